"""A real vLLM on the CPU, in an environment of its own: ``make test-vllm`` makes it.

``make test`` does not collect these tests, because the environment takes 3.5 GB.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ENVIRONMENT_VARIABLE = "GPU_DASH_VLLM_ENVIRONMENT"

PROFILE = """\
description = "vLLM on the CPU with a tiny model"

[server]
model = "{environment}/tiny"
command = ["{environment}/bin/vllm", "serve"]
port = 0
ready_timeout = "5m"

[server.flags]
max-model-len = 2048
enforce-eager = true

[server.env]
HF_HUB_OFFLINE = "1"
VLLM_CPU_KVCACHE_SPACE = "1"
VLLM_NO_USAGE_STATS = "1"

[load]
prompt_tokens = 64

[gpu]
source = "none"
"""


@pytest.fixture(scope="session")
def vllm_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A launch profile for the vLLM in the environment that ``make test-vllm`` made."""
    environment = os.environ.get(ENVIRONMENT_VARIABLE)
    if environment is None:
        pytest.skip(f"{ENVIRONMENT_VARIABLE} names no environment with vLLM: run make test-vllm")
    profile = tmp_path_factory.mktemp("profile") / "vllm-cpu.toml"
    profile.write_text(PROFILE.format(environment=Path(environment).resolve()))
    profile.chmod(0o600)
    return profile
