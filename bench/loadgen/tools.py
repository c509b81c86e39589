"""The load generators that are compared, each with its defaults, and how to read what they say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.loadgen.rig import OUTPUT_TOKENS, PROMPT_TOKENS, Cell, Reported, Tool


def gpu_dash() -> Tool:
    """This project, from the environment that runs the benchmark."""

    def command(cell: Cell, url: str, folder: Path) -> list[str]:
        program = str(Path(sys.executable).with_name("gpu-dash"))
        return [
            program, "run", "--base-url", url, "--model", "mock", "--chat", "--json",
            "--ramp", str(cell.concurrency), "--requests", str(cell.requests), "--warmup", "0s",
            "--prompt-tokens", str(PROMPT_TOKENS), "--output-tokens", str(OUTPUT_TOKENS),
            "--gpu", "none", "--out", str(folder / "session"),
        ]  # fmt: skip

    def report(_folder: Path, stdout: str) -> Reported:
        step = json.loads(stdout.splitlines()[0])
        return Reported(
            step["requests_ok"], step["ttft_p50_s"], step["ttft_p99_s"], step["itl_p99_s"]
        )

    return Tool("gpu-dash run", command, report)


def vllm_bench(vllm: list[str], tokenizer: str) -> Tool:
    """vLLM's own.

    Args:
        vllm: the ``vllm`` command.
        tokenizer: folder of any tokenizer; it makes the prompts.
    """

    def command(cell: Cell, url: str, folder: Path) -> list[str]:
        return [
            *vllm, "bench", "serve", "--backend", "openai-chat", "--base-url", url,
            "--endpoint", "/v1/chat/completions", "--model", "mock", "--tokenizer", tokenizer,
            "--dataset-name", "random", "--random-input-len", str(PROMPT_TOKENS),
            "--random-output-len", str(OUTPUT_TOKENS), "--num-prompts", str(cell.requests),
            "--max-concurrency", str(cell.concurrency), "--num-warmups", "0", "--disable-tqdm",
            "--ready-check-timeout-sec", "0", "--save-result", "--result-dir", str(folder),
            "--result-filename", "result.json", "--percentile-metrics", "ttft,itl",
            "--metric-percentiles", "50,99",
        ]  # fmt: skip

    def report(folder: Path, _stdout: str) -> Reported:
        result = json.loads((folder / "result.json").read_text())
        return Reported(
            result["completed"],
            result["p50_ttft_ms"] / 1000,
            result["p99_ttft_ms"] / 1000,
            result["p99_itl_ms"] / 1000,
        )

    return Tool("vllm bench serve", command, report, {"HF_HUB_OFFLINE": "1"})


def guidellm(program: str, tokenizer: str) -> Tool:
    """GuideLLM, 0.8.

    Args:
        program: the ``guidellm`` command.
        tokenizer: folder of any tokenizer; it makes the prompts.
    """

    def command(cell: Cell, url: str, folder: Path) -> list[str]:
        return [
            program, "run", "--backend", f"kind=openai_http,target={url},model=mock",
            "--profile", f"kind=concurrent,streams={cell.concurrency}",
            "--constraint", f"kind=max_requests,count={cell.requests}",
            "--tokenizer", f"kind=huggingface_auto,model={tokenizer}",
            "--data",
            f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={OUTPUT_TOKENS}",
            "--output", f"kind=json,path={folder}/result.json", "--disable-progress",
        ]  # fmt: skip

    def report(folder: Path, _stdout: str) -> Reported:
        metrics = json.loads((folder / "result.json").read_text())["benchmarks"][0]["metrics"]

        def milliseconds(name: str, percent: str) -> float:
            return float(metrics[name]["successful"]["percentiles"][percent])

        return Reported(
            metrics["request_totals"]["successful"],
            milliseconds("time_to_first_token_ms", "p50") / 1000,
            milliseconds("time_to_first_token_ms", "p99") / 1000,
            milliseconds("inter_token_latency_ms", "p99") / 1000,
        )

    return Tool("guidellm", command, report, {"HF_HUB_OFFLINE": "1"})


def aiperf(program: str, tokenizer: str) -> Tool:
    """AIPerf, 0.13.

    Args:
        program: the ``aiperf`` command.
        tokenizer: folder of any tokenizer; it makes the prompts.
    """

    def command(cell: Cell, url: str, folder: Path) -> list[str]:
        return [
            program, "profile", "-m", "mock", "--url", url, "--endpoint-type", "chat",
            "--streaming", "--tokenizer", tokenizer, "--concurrency", str(cell.concurrency),
            "--request-count", str(cell.requests), "--isl", str(PROMPT_TOKENS),
            "--osl", str(OUTPUT_TOKENS), "--use-server-token-count", "--ui", "none",
            "--no-gpu-telemetry", "--no-server-metrics", "--artifact-dir", str(folder),
        ]  # fmt: skip

    def report(folder: Path, _stdout: str) -> Reported:
        result = json.loads((folder / "profile_export_aiperf.json").read_text())
        ttft, gap = result["time_to_first_token"], result["inter_chunk_latency"]
        return Reported(
            round(result["request_count"]["avg"]),
            ttft["p50"] / 1000,
            ttft["p99"] / 1000,
            gap["p99"] / 1000,
        )

    return Tool("aiperf", command, report)
