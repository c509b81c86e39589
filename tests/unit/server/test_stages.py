"""Start-up stages, on lines that vLLM of several versions really printed."""

from __future__ import annotations

import pytest

from gpu_dash.server.stages import Stage, stage_of

WORKER = "(Worker_TP0 pid=210) INFO 11-30 18:43:10 "


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        (
            "(APIServer pid=7) INFO 11-30 18:42:41 [utils.py:253] non-default args: {'port': 8000}",
            Stage("reading arguments"),
        ),
        (
            "INFO 03-20 16:01:36 [api_server.py:981] vLLM API server version 0.8.1",
            Stage("reading arguments"),
        ),
        (
            "INFO 11-30 18:42:50 [model.py:541] Resolved architecture: Qwen3ForCausalLM",
            Stage("reading the model's config"),
        ),
        (
            "(EngineCore pid=9) INFO 11-30 18:42:59 [core.py:1] Initializing a V1 LLM engine (v1)",
            Stage("starting the engine"),
        ),
        (WORKER + "[pynccl.py:111] vLLM is using nccl==2.28.9", Stage("connecting the GPUs")),
        (
            WORKER + "[gpu_model_runner.py:4001] Starting to load model /m...",
            Stage("loading weights"),
        ),
        (
            "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:09<00:28,  9.50s/it]",
            Stage("loading weights", 0.25),
        ),
        (
            WORKER + "[gpu_model_runner.py:1] Model loading took 30.6 GiB memory and 12.1 seconds",
            Stage("weights are loaded"),
        ),
        (WORKER + "[backends.py:653] Dynamo bytecode transform time: 9.02 s", Stage("compiling")),
        (
            "INFO [kv_cache_utils.py:1316] GPU KV cache size: 499,760 tokens",
            Stage("sizing the KV cache"),
        ),
        (
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  53%|█████▎   | 27/51",
            Stage("capturing CUDA graphs", 0.53),
        ),
        ("INFO:     Application startup complete.", Stage("ready")),
        ('INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK', None),
        ("", None),
    ],
)
def test_a_line_begins_a_stage(line: str, stage: Stage | None) -> None:
    assert stage_of(line) == stage
