"""What people paste, beside the published commands: each row is one habit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.history import NEWEST
from gpu_dash.server.paste.profile_text import profile_text
from gpu_dash.server.paste.text import import_text

ARRAY = """
MODEL=${MODEL:-Qwen/Qwen3-8B}
ARGS=(
  --model "$MODEL"
  # a comment
  --port "${PORT:-8001}"
)
ARGS+=(--enable-lora)
exec python3 -m vllm.entrypoints.openai.api_server "${ARGS[@]}" "$@"
"""
UNIT_IN_SCRIPT = """
cat > /etc/systemd/system/vllm.service <<EOF
[Service]
Environment="CUDA_VISIBLE_DEVICES=2,3"
ExecStart=/usr/bin/env vllm serve /models/x \\
  --tensor-parallel-size 2
EOF
systemctl daemon-reload
"""
ANCHORS = """
x-common: &common
  image: vllm/vllm-openai:v0.8.5
services:
  vllm:
    <<: *common
    environment:
      CUDA_VISIBLE_DEVICES: "${GPUS:-0}"
    command: ["--model", "Qwen/Qwen2.5-7B", "--swap-space=4"]
    gpus: all
"""
SHELL_IN_POD = """
spec:
  containers:
  - image: vllm/vllm-openai:latest
    command: ["/bin/sh", "-c"]
    args: ["vllm serve m/n --max_num_batched_tokens 1024"]
    env:
    - name: HF_TOKEN
      valueFrom: {secretKeyRef: {name: hf, key: token}}
"""
HELM = """
        - name: vllm
          image: "{{ .Values.repository }}:{{ .Values.tag }}"
          {{- if .Values.enabled }}
          args:
            - "--model"
            - {{ .Values.model }}
          {{- end }}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ARRAY, {"model": "Qwen/Qwen3-8B", "port": 8001, "flags": {"enable-lora": True}}),
        (UNIT_IN_SCRIPT, {"model": "/models/x", "visible_devices": "2,3"}),
        (ANCHORS, {"model": "Qwen/Qwen2.5-7B", "visible_devices": "0"}),
        (
            SHELL_IN_POD,
            {"program": "vllm serve", "env": {"HF_TOKEN": None}, "secrets": ["HF_TOKEN"]},
        ),
        (HELM, {"model": "{{ .Values.model }}", "program": "image entrypoint"}),
        (
            "vllm serve “a/b” —tensor-parallel-size 2 –max-model-len 8192 −−port 9000",
            {
                "model": "a/b",
                "port": 9000,
                "flags": {"tensor-parallel-size": "2", "max-model-len": "8192"},
            },
        ),
        (
            'tmux new -d "CUDA_VISIBLE_DEVICES=0,1 vllm serve a/b -tp=2 -q awq"',
            {
                "visible_devices": "0,1",
                "flags": {"tensor-parallel-size": "2", "quantization": "awq"},
            },
        ),
        (
            "ray start --head && vllm serve a/b --served-model-name one two --host 0.0.0.0",
            {"flags": {"served-model-name": ["one", "two"], "host": "0.0.0.0"}},
        ),
        (
            "docker run --gpus all ^\n  -p 8000:8000 ^\n  vllm/vllm-openai:v0.6.3 --model a/b",
            {"model": "a/b", "program": "image entrypoint"},
        ),
        (
            "podman run --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 vllm/vllm-openai a/b",
            {"visible_devices": "0,1"},
        ),
        (
            "MODEL ?= a/b\nrun:\n\tvllm serve $(MODEL) --port $(PORT)",
            {"model": "a/b", "port": "$(PORT)", "unresolved": ["PORT"]},
        ),
        (
            "Start it:\n```bash\n$ vllm serve a/b \\\n  --seed 1\n```\nIt isn’t up.",
            {"flags": {"seed": "1"}},
        ),
        (
            'docker run --gpus all "$IMAGE" --model a/b --max-model-len 4096',
            {"model": "a/b", "unresolved": ["IMAGE"]},
        ),
        (
            'f() {\n  local model=$1\n  vllm serve "$model"\n}\nf a/b',
            {"model": "$model", "unresolved": ["1", "model"]},
        ),
        (
            '$env:TOK = "x"\ndocker run `\n  -e A=$env:TOK vllm/vllm-openai --model a/b',
            {"model": "a/b", "env": {"A": "x"}},
        ),
        ("echo 'vllm serve x/y'\nvllm serve a/b", {"model": "a/b"}),
    ],
)
def test_a_habit(text: str, expected: dict[str, Any]) -> None:
    imported = import_text(text).as_json()

    assert {name: imported[name] for name in expected} == expected


def test_the_object_has_just_the_keys_that_scripts_rely_on() -> None:
    assert list(import_text("vllm serve a/b").as_json()) == [
        *("program", "model", "flags", "env", "visible_devices", "port", "container"),
        *("corrections", "secrets", "unresolved", "warnings"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve a/b --api-key sk-live-0123456789",
        "HF_TOKEN=sk-live-0123456789 vllm serve a/b",
        "export OPENAI_API_KEY=sk-live-0123456789\nvllm serve a/b",
        "https_proxy=http://me:sk-live-0123456789@proxy:3128 vllm serve a/b",
        "docker run -e VLLM_API_KEY=sk-live-0123456789 vllm/vllm-openai a/b",
        "vllm serve a/b --hf-token sk-live-0123456789",
        "vllm serve a/b --download-dir http://me:sk-live-0123456789@host/x",
        "KEY=sk-live-0123456789\nvllm serve a/b --api-key $KEY",
        "vllm serve a/b sk-live-0123456789",
    ],
)
def test_a_secret_is_named_and_stands_nowhere(text: str) -> None:
    imported = import_text(text)

    assert "0123456789" not in json.dumps(imported.as_json())
    assert "0123456789" not in profile_text(imported, NEWEST)


@pytest.mark.parametrize(
    "text", ["", "ls -l", "pip install vllm", "docker run redis", "\0\x1b[31m"]
)
def test_a_text_without_a_server_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="nothing in the text starts a vLLM server"):
        import_text(text)
