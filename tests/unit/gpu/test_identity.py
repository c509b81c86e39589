"""From what a process is shown to the cards of the host."""

from __future__ import annotations

import pytest

from gpu_dash.gpu.identity import container_gpus, visible_gpus
from gpu_dash.model.gpu import GpuInfo, GpuVendor

NVIDIA = tuple(
    GpuInfo(
        gpu=gpu,
        name="H200",
        uuid=f"GPU-{gpu}aaaaaaa-0000-0000-0000-000000000000",
        pci_bus_id=f"0000:{bus}:00.0",
        mig_uuids=("MIG-11111111-a", "MIG-22222222-b") if gpu == 2 else (),
    )
    for gpu, bus in enumerate(("1b", "3b", "5c", "04"))
)
AMD = tuple(
    GpuInfo(gpu=gpu, name="MI300X", uuid=f"GPU-{gpu:016x}", vendor=GpuVendor.AMD)
    for gpu in range(4)
)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "2, 0"}, (2, 0)),
        ({"CUDA_VISIBLE_DEVICES": "1,-1,0"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "1gpu,2"}, (1, 2)),  # strtoul
        ({"CUDA_VISIBLE_DEVICES": "GPU-3aaa,GPU-0aaaaaaa"}, (3, 0)),
        ({"CUDA_VISIBLE_DEVICES": "gpu-3AAA"}, (3,)),
        ({"CUDA_VISIBLE_DEVICES": "MIG-11111111-a,MIG-2222"}, (2, 2)),
        ({"CUDA_VISIBLE_DEVICES": "MIG-GPU-1aaaaaaa-0000/1/0"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "MIG-GPU-1aaaaaaa-0000/1/0,MIG-GPU-1aaaaaaa-0000/2/0"}, (1, 1)),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1"}, (3, 0)),
        ({"HIP_VISIBLE_DEVICES": "3"}, (0, 1, 2, 3)),
    ],
)
def test_nvidia(variables: dict[str, str], expected: tuple[int, ...]) -> None:
    visible = visible_gpus(variables, NVIDIA)
    assert (visible.gpus, visible.problem) == (expected, "")


@pytest.mark.parametrize(
    ("value", "expected", "says"),
    [
        ("1,9,0", (1,), "'9' names no card"),
        ("GPU-", (), "'GPU-' names no card"),  # more than one
        ("GPU-ffff,0", (), "'GPU-ffff' names no card"),
        ("all", (), "'all' names no card"),
        ("0,,1", (0,), "'' names no card"),
        ("0,1,0", (), "'0' names a card for the second time"),
        ("0,GPU-0aaa", (), "second time"),
        ("MIG-1111,MIG-11111111-a", (), "second time"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(
    value: str, expected: tuple[int, ...], says: str
) -> None:
    visible = visible_gpus({"CUDA_VISIBLE_DEVICES": value}, NVIDIA)
    assert visible.gpus == expected
    assert visible.problem.startswith(f"CUDA_VISIBLE_DEVICES={value}: ")
    assert says in visible.problem


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"HIP_VISIBLE_DEVICES": "3,1"}, (3, 1)),
        ({"CUDA_VISIBLE_DEVICES": "2"}, (2,)),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "2"}, (0,)),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1"}, (3,)),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0000000000000001"}, (1,)),
    ],
)
def test_amd(variables: dict[str, str], expected: tuple[int, ...]) -> None:
    assert visible_gpus(variables, AMD).gpus == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), [0, 1, 2, 3]),
        (("--gpus", "all"), [0, 1, 2, 3]),
        (("--gpus=2",), [0, 1]),
        (("--ipc=host", "--gpus", '"device=3,1"'), [1, 3]),
        (("--gpus", "device=GPU-2aaa"), [2]),
        (("--device", "nvidia.com/gpu=1", "--device=nvidia.com/gpu=0"), [0, 1]),
        (("--device", "nvidia.com/gpu=all"), [0, 1, 2, 3]),
        (("--device", "/dev/kfd"), [0, 1, 2, 3]),
    ],
)
def test_the_cards_of_a_container(arguments: tuple[str, ...], expected: list[int]) -> None:
    assert [info.gpu for info in container_gpus(arguments, NVIDIA)] == expected
