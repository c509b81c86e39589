"""More of what people publish: each text is written here in the shape of a real one."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.history import NEWEST
from gpu_dash.server.paste.profile_text import profile_text
from gpu_dash.server.paste.text import import_text

OUTPUT_ON_ITS_OWN_LINE = """\
nohup uv run vllm serve acme/m \\
  --port 8001 \\
  --dtype bfloat16 \\
  > /tmp/server.log 2>&1 &
PID=$!
"""
CONTINUED_PROMPT = "$ vllm serve acme/m \\\n> --port 8001 \\\n> --seed 3\n"
WRAPPERS = """\
env HIP_VISIBLE_DEVICES=0,1 HF_HUB_OFFLINE=1 ${EXTRA:-} \\
  setsid nohup .venv/bin/vllm serve acme/m --max-num-seqs 4 > "/tmp/x.log" 2>&1 < /dev/null &
"""
HERE_DOCUMENT = """\
cat <<EOF > start.sh
#!/bin/bash
export VLLM_CPU_KVCACHE_SPACE=40
numactl --cpunodebind=0 --membind=0 vllm serve acme/m \\\\
    --dtype bfloat16 \\\\
    --port 8000
EOF
"""
BATCH = """\
@echo off
REM a remark with docker run in it
set MODEL=acme/m
set GPU_ARGS=--gpus all
docker run -d ^
    -p %PORT%:8000 ^
    %GPU_ARGS% ^
    -v "D:\\models\\m:/model" ^
    vllm/vllm-openai:latest ^
    --model %MODEL% ^
    --max-model-len 4096
"""
POWERSHELL = """\
$env:HF_HOME="$HOME\\.cache\\huggingface"
docker run -d --gpus all `
  -v "${env:HF_HOME}:/root/.cache/huggingface" `
  -v F:\\cache:/models `
  vllm/vllm-openai:latest `
  --model acme/m `
  --kv-transfer-config '{\\"kv_connector\\":\\"C\\",\\"kv_role\\":\\"kv_both\\"}'
"""
SET_ARGUMENTS = """\
set -- \\
    --model "${MODEL:-acme/m}" \\
    --port 8000
if [ -n "${QUANT:-}" ]; then
    set -- "$@" --quantization "${QUANT}"
fi
echo "Starting: python3 -m vllm.entrypoints.openai.api_server $*" >&2
exec python3 -m vllm.entrypoints.openai.api_server "$@"
"""
EITHER_ARGUMENTS = """\
if [[ "$#" -gt 0 ]]; then
  exec python -m vllm.entrypoints.openai.api_server "$@"
fi
args=(--model "${MODEL_ID:-acme/m}" --port "${PORT:-8000}")
exec python -m vllm.entrypoints.openai.api_server "${args[@]}"
"""
SYSTEMD_RUN = """\
export NCCL_P2P_DISABLE=1
systemd-run --user --scope -p MemoryMax=90% --setenv=HF_HUB_OFFLINE=1 \\
    python3 -m vllm.entrypoints.openai.api_server --model acme/m --tensor-parallel-size 8
"""
COMMAND_IN_A_VARIABLE = """\
MODEL=acme/m
CMD="python -m vllm.entrypoints.openai.api_server --model $MODEL --port 8100"
log "server: $CMD"
screen -dmS vllm bash -c "export HF_HUB_OFFLINE=1; $CMD 2>&1 | tee log"
"""
SKYPILOT = """\
resources:
  accelerators: {L4, A100}
envs:
  MODEL_NAME: acme/m
  HF_TOKEN: <your-token>
setup: |
  pip install vllm
run: |
  conda activate vllm
  python -u -m vllm.entrypoints.openai.api_server \\
    --port 8081 --model $MODEL_NAME \\
    --tensor-parallel-size $SKYPILOT_NUM_GPUS_PER_NODE 2>&1 | tee log &
"""
CI_SCRIPT = """\
serve:
  script:
    - pip install vllm
    - CUDA_VISIBLE_DEVICES=1 vllm serve acme/m --port 9000 &
"""
QUADLET_IN_SCRIPT = """\
cat > "${DIR}/audio.container" <<UNIT
[Container]
Image=${IMAGE}
Volume=${HOME}/.models:/root/.cache/huggingface:Z
AddDevice=nvidia.com/gpu=all
Environment=HF_TOKEN=hf_0123456789abcdefghij
Exec=--model ${AUDIO} --limit-mm-per-prompt audio=5

[Service]
Restart=on-failure
UNIT
"""
COMPOSE_WITH_IDS = """\
x-vllm: &vllm
  image: vllm/vllm-openai:v0.10.2
  environment: &env
    NCCL_DEBUG: WARN
  deploy:
    resources:
      reservations:
        devices:
          - driver: nvidia
            device_ids: ["2", "3"]
            capabilities: [gpu]
services:
  web:
    image: nginx
  chat:
    <<: *vllm
    env_file: .env
    environment:
      <<: *env
      HF_HOME: /hf
    command: >
      --model ${MODEL:-acme/m}
      --tensor-parallel-size 2
"""
STATEFUL_SET = """\
kind: StatefulSet
spec:
  template:
    spec:
      initContainers:
      - {name: fetch, image: alpine, command: ["sh", "-c", "wget x"]}
      containers:
      - name: server
        image: registry.example/llm:1
        command: ["python3", "-m", "vllm.entrypoints.openai.api_server"]
        args: ["--model=$(MODEL_ID)", "--port", "9000"]
        env:
        - {name: MODEL_ID, value: acme/m}
        envFrom:
        - configMapRef: {name: settings}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            OUTPUT_ON_ITS_OWN_LINE,
            {"model": "acme/m", "port": 8001, "flags": {"dtype": "bfloat16"}, "warnings": []},
        ),
        (CONTINUED_PROMPT, {"port": 8001, "flags": {"seed": "3"}, "warnings": []}),
        (
            WRAPPERS,
            {
                "env": {"HIP_VISIBLE_DEVICES": "0,1", "HF_HUB_OFFLINE": "1"},
                "visible_devices": "0,1",
                "flags": {"max-num-seqs": "4"},
                "unresolved": ["EXTRA"],
            },
        ),
        (
            HERE_DOCUMENT,
            {"port": 8000, "env": {"VLLM_CPU_KVCACHE_SPACE": "40"}, "warnings": []},
        ),
        (
            BATCH,
            {
                "model": "acme/m",
                "container": {
                    "image": "vllm/vllm-openai:latest",
                    "gpus": "all",
                    "mounts": ["D:\\models\\m:/model"],
                    "ports": ["${PORT}:8000"],
                },
                "unresolved": ["PORT"],
            },
        ),
        (
            POWERSHELL,
            {
                "container": {
                    "image": "vllm/vllm-openai:latest",
                    "gpus": "all",
                    "mounts": [
                        "$HOME\\.cache\\huggingface:/root/.cache/huggingface",
                        "F:\\cache:/models",
                    ],
                    "ports": [],
                },
                "flags": {"kv-transfer-config": '{"kv_connector":"C","kv_role":"kv_both"}'},
                "corrections": [],
            },
        ),
        (
            SET_ARGUMENTS,
            {"model": "acme/m", "port": 8000, "flags": {"quantization": "${QUANT}"}},
        ),
        (EITHER_ARGUMENTS, {"model": "acme/m", "port": 8000, "warnings": []}),
        (SYSTEMD_RUN, {"env": {"NCCL_P2P_DISABLE": "1", "HF_HUB_OFFLINE": "1"}}),
        (
            COMMAND_IN_A_VARIABLE,
            {"model": "acme/m", "port": 8100, "env": {"HF_HUB_OFFLINE": "1"}, "warnings": []},
        ),
        (
            SKYPILOT,
            {
                "model": "acme/m",
                "port": 8081,
                "secrets": ["HF_TOKEN"],
                "unresolved": ["<your-token>", "SKYPILOT_NUM_GPUS_PER_NODE"],
            },
        ),
        (CI_SCRIPT, {"model": "acme/m", "port": 9000, "visible_devices": "1"}),
        (
            QUADLET_IN_SCRIPT,
            {
                "program": "image entrypoint",
                "secrets": ["HF_TOKEN"],
                "unresolved": ["IMAGE", "HOME", "AUDIO"],
            },
        ),
        (
            COMPOSE_WITH_IDS,
            {
                "model": "acme/m",
                "visible_devices": "2,3",
                "env": {"NCCL_DEBUG": "WARN", "HF_HOME": "/hf"},
                "warnings": ["env_file .env: what is in it is not known here"],
            },
        ),
        (
            STATEFUL_SET,
            {
                "model": "acme/m",
                "port": 9000,
                "warnings": ["envFrom configMapRef settings: what is in it is not known here"],
            },
        ),
        (
            "vllm serve acme/m –-tensor-parallel-size 2 — max-model-len 4096",
            {"flags": {"tensor-parallel-size": "2", "max-model-len": "4096"}, "warnings": []},
        ),
        (
            "uv run --isolated -m acme.vllm.server --model acme/m --tensor-parallel-size 4",
            {"program": "acme.vllm.server", "model": "acme/m"},
        ),
        (
            "sudo -E CUDA_VISIBLE_DEVICES=0 nice -n -5 taskset -c 0-15 vllm serve acme/m --port 80",
            {"env": {"CUDA_VISIBLE_DEVICES": "0"}, "port": 80},
        ),
        (
            "srun -N1 bash -c '\n  export A=$B\n  uv run vllm serve acme/m -dp 2 | tee $LOG\n'",
            {"env": {"A": "$B"}, "flags": {"data-parallel-size": "2"}},
        ),
        (
            "ssh gpu1 <<'EOF'\nCUDA_VISIBLE_DEVICES=3 nohup vllm serve acme/m > log 2>&1 &\nEOF",
            {"model": "acme/m", "visible_devices": "3"},
        ),
        (
            "set -gx CUDA_VISIBLE_DEVICES 0,1\nvllm serve acme/m -tp 2",
            {"visible_devices": "0,1", "flags": {"tensor-parallel-size": "2"}},
        ),
        (
            "set -exo pipefail\nTP=$1\nvllm serve acme/m -tp $TP",
            {"env": {}, "flags": {"tensor-parallel-size": "$TP"}},
        ),
        (
            "docker run --gpus all \\\n  # the cache\n  -v ~/.cache:/c \\\n"
            "  -p 8000:8000 `# web` \\\n"
            "  vllm/vllm-openai \\\n  --model acme/m",
            {
                "model": "acme/m",
                "container": {
                    "image": "vllm/vllm-openai",
                    "gpus": "all",
                    "mounts": ["~/.cache:/c"],
                    "ports": ["8000:8000"],
                },
            },
        ),
        (
            "vllm serve acme/m -tp $((SLURM_GPUS)) -O.mode=3 -ac.backend FLASHINFER -O3",
            {
                "flags": {
                    "tensor-parallel-size": "$((SLURM_GPUS))",
                    "compilation-config.mode": "3",
                    "attention-config.backend": "FLASHINFER",
                    "optimization-level": "3",
                },
                "unresolved": ["SLURM_GPUS"],
            },
        ),
        (
            "singularity exec --nv vllm.sif \\\n  vllm serve acme/m --port 8000 &\npkill -f vllm",
            {"model": "acme/m", "port": 8000},
        ),
    ],
)
def test_a_habit(text: str, expected: dict[str, Any]) -> None:
    imported = import_text(text).as_json()

    assert {name: imported[name] for name in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve a/b --otlp-traces-headers 'authorization=Bearer zq0123456789zq'",
        "vllm serve https://host/m?token=zq0123456789zq",
        'vllm serve a/b --hf-overrides \'{"access_token": "zq0123456789zq"}\'',
        'vllm serve a/b --model-loader-extra-config \'{"aws_secret_access_key": "q0123456789"}\'',
        "curl -H 'Authorization: Bearer zq0123456789zq' x\nvllm serve a/b",
        "docker run -e KEY_HEADER='Bearer zq0123456789zq' vllm/vllm-openai a/b",
        "@echo off\nset HF_TOKEN=zq0123456789zq\nvllm serve a/b",
        '$env:HF_TOKEN = "zq0123456789zq"\nvllm serve a/b',
        "[Service]\nEnvironment=AWS_SECRET_ACCESS_KEY=zq0123456789zq\nExecStart=vllm serve a/b",
        "envs:\n  HF_TOKEN: zq0123456789zq\nrun: |\n  vllm serve a/b",
        "vllm serve a/b --download-dir /x eyJhbGciOiJI0123456789.eyJzdWIi.c2ln",
    ],
)
def test_a_secret_stands_nowhere(text: str) -> None:
    imported = import_text(text)

    assert "0123456789" not in json.dumps(imported.as_json())
    assert "0123456789" not in profile_text(imported, NEWEST)


@pytest.mark.parametrize(
    "text",
    [
        "cat <<EOF\n" * 40 + "vllm serve acme/m",
        "r<<EOF\n<<EOF\nvllm serve acme/m",
        'bash -c "' * 60 + "vllm serve acme/m",
        "vllm serve acme/m > log 2>&",
        "a=(" * 20_000 + "vllm serve acme/m",
        "$(" * 40_000 + "vllm serve acme/m",
        "{{" * 40_000 + "vllm serve acme/m",
        "vllm serve acme/m " + "<a" * 40_000,
        "a: &a\n  image: vllm\n  b: *a\n",
        "a: &a [x, x]\n"
        + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)).replace(
            "*a0", "*a"
        )
        + "image: vllm/vllm-openai\nargs: [--model, a/b]\n",
        "x:\n" + "".join(" " * n + "- - x:\n" for n in range(1, 400)) + "image: vllm",
    ],
)
def test_a_text_that_nobody_means_well_with_ends_all_the_same(text: str) -> None:
    with contextlib.suppress(UsageError):
        import_text(text)
