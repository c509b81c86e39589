"""Names and values against releases of vLLM."""

from __future__ import annotations

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.check import check_launch
from gpu_dash.server.flags.history import parse_release


def verdicts(name: str, value: object, version: str) -> list[tuple[str, str]]:
    is_variable = name.startswith("VLLM_")
    flags = {} if is_variable else {name: value}
    checked = check_launch(flags, (name,) if is_variable else (), parse_release(version))
    return [(one.name, str(one.why)) for one in checked.corrections]


@pytest.mark.parametrize(
    ("name", "value", "version", "why"),
    [
        ("swap-space", "8", "0.6", None),
        ("swap-space", "8", "0.17", "no_effect"),
        ("swap-space", "8", "0.18", "gone"),
        ("max-seq-len-to-capture", "32768", "0.10", None),
        ("max-seq-len-to-capture", "32768", "0.11", "gone"),
        ("disable-log-requests", True, "0.16", None),
        ("disable-log-requests", True, "0.26", "gone"),
        ("disable-log-requests", True, "0.33", None),
        ("attention-backend", "FLASHINFER", "0.12", "never_existed"),
        ("attention-backend", "FLASHINFER", "0.13", None),
        ("model-name", "x", "0.33", "never_existed"),
        ("max-num-seq", "4", "0.33", None),
        ("device", "cuda", "0.33", "gone"),
        ("enable-chunked-prefill", "True", "0.33", "bad_form"),
        ("no-enable-prefix-caching", True, "0.33", None),
        ("limit-mm-per-prompt", "image=2", "0.33", "bad_form"),
        ("limit-mm-per-prompt", '{"image": 2}', "0.33", None),
        ("speculative-config", '{"model": "a/b"}', "0.33", None),
        ("speculative-config", "{model: a/b}", "0.33", "bad_form"),
        ("speculative-config.method", "mtp", "0.33", None),
        ("dtype", "fp16", "0.33", "bad_form"),
        ("VLLM_ATTENTION_BACKEND", "", "0.14", None),
        ("VLLM_ATTENTION_BACKEND", "", "0.15", "gone"),
        ("VLLM_USE_V1", "", "0.33", "gone"),
        ("VLLM_QUANTIZE", "", "0.8", "never_existed"),
        ("VLLM_ENABLE_PREFIX_CACHING", "", "0.33", "never_existed"),
        ("VLLM_TENSOR_PARALLEL_SIZE", "", "0.33", "never_existed"),
        ("VLLM_API_KEY", "", "0.33", None),
    ],
)
def test_a_name_in_a_release(name: str, value: object, version: str, why: str | None) -> None:
    assert verdicts(name, value, version) == ([] if why is None else [(name, why)])


def test_a_variable_of_somebody_else_is_not_judged() -> None:
    checked = check_launch({}, ("NCCL_P2P_DISABLE", "HF_HOME"), parse_release("0.33"))

    assert checked.corrections == ()


def test_a_name_of_a_fork_is_a_warning() -> None:
    checked = check_launch({"fancy-hpu-flag": True}, (), parse_release("0.33"), of_fork=True)

    assert checked.corrections == ()
    assert "fancy-hpu-flag" in checked.warnings[0]


@pytest.mark.parametrize("version", ["0.5", "0.34", "1.0", "new", ""])
def test_a_version_that_the_table_does_not_cover(version: str) -> None:
    with pytest.raises(UsageError):
        parse_release(version)
