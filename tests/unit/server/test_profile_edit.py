"""A profile that is changed keeps its comments, its order and everything else."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.model.profile import Profile
from gpu_dash.server.flags.correct import correct_profile
from gpu_dash.server.profile_edit import with_corrections, write_profile
from gpu_dash.server.profile_file import read_profile

OLD = """\
# why this launch is as it is
description = "old"   # one line

[server]
model = "a/b"  # the model

[server.flags]
# how it is split
tensor-parallel-size = 2
swap-space = 8          # not taken any more
dtype = "fp16"          # asked for by the team
max-model-len = 8192

# what the host needs
[server.env]
VLLM_ATTENTION_BACKEND = "FLASHINFER"
NCCL_IB_DISABLE = "1"   # no InfiniBand here

[load]
ramp = [
    1,  # warm
    4,
]
"""


def corrected(folder: Path, text: str) -> tuple[Profile, str]:
    path = folder / "old.toml"
    path.write_text(text)
    right = correct_profile(read_profile(path), (0, 33)).profile
    return right, with_corrections(text, right)


def test_only_the_lines_that_were_wrong_change(tmp_path: Path) -> None:
    _, text = corrected(tmp_path, OLD)

    before, after = OLD.splitlines(), text.splitlines()
    assert [line for line in before if line not in after] == [
        "swap-space = 8          # not taken any more",
        'dtype = "fp16"          # asked for by the team',
        'VLLM_ATTENTION_BACKEND = "FLASHINFER"',
    ]
    assert [line for line in after if line not in before] == [
        'dtype = "float16"  # asked for by the team',
        'attention-backend = "FLASHINFER"',
    ]
    assert after.index("# what the host needs") + 1 == after.index("[server.env]")


def test_the_new_text_is_the_corrected_profile(tmp_path: Path) -> None:
    right, text = corrected(tmp_path, OLD)
    path = tmp_path / "old.toml"
    write_profile(path, text)

    assert read_profile(path) == right
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["old.toml"]


@pytest.mark.parametrize(
    "text",
    [
        '[server]\nmodel = "a/b"\nflags = {swap-space = 4, seed = 1} # all in one line\n',
        '[server]\nmodel = "a/b"\nflags.swap-space = 4\nflags.seed = 1\n',
    ],
)
def test_what_cannot_be_changed_safely_is_left_to_the_person(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="by hand"):
        corrected(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ('[server]\nmodel = "m"\n[server.flags]\n"swap-space" = 4\nseed = 1', {"seed": 1}),
        (
            '[server]\nmodel = "m"\n[ server . flags ]\nlora-modules = [\n "a=#",\n]\nswap-space=1',
            {"lora-modules": ["a=#"]},
        ),
        (
            '[server]\nmodel = "m"\n[server.env]\nVLLM_ATTENTION_BACKEND = "X"\n',
            {"attention-backend": "X"},
        ),
    ],
)
def test_other_ways_of_writing_a_table(tmp_path: Path, text: str, flags: dict[str, object]) -> None:
    _, changed = corrected(tmp_path, text)

    assert tomllib.loads(changed)["server"]["flags"] == flags
