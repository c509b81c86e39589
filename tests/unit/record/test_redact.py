"""Keys that people put where they do not belong."""

from __future__ import annotations

import pytest

from gpu_dash.record.redact import hide_in_command, hide_secrets

KEY = "sk-Ab3-9z_Q"


@pytest.mark.parametrize(
    "words",
    [
        ["vllm", "serve", "m", "--api-key", KEY, "--port", "8000"],
        ["vllm", "serve", "m", "--api-key", KEY, KEY, "--port", "8000"],
        ["vllm", "serve", "m", f"--api-key={KEY}", "--port", "8000"],
        ["vllm", "serve", "m", "--api_key", KEY, "--port", "8000"],
        ["vllm", "serve", "m", "--hf-token", KEY, "--port", "8000"],
        ["docker", "run", "-e", f"VLLM_API_KEY={KEY}", "image", "--port", "8000"],
        ["docker", "run", "-e", f"ANYTHING={KEY}", "image", "--port", "8000"],
        ["docker", "run", "--env", f"ANYTHING={KEY}", "image", "--port", "8000"],
        ["docker", "run", f"--env=ANYTHING={KEY}", "image", "--port", "8000"],
        ["docker", "run", f"-eANYTHING={KEY}", "image", "--port", "8000"],
        ["env", f"HF_TOKEN={KEY}", "vllm", "--port", "8000"],
        ["sh", "-c", f"HF_TOKEN={KEY} vllm serve m --port 8000"],
        ["sh", "-c", f"vllm serve m --api-key {KEY} --port 8000"],
        ["sh", "-c", f"vllm serve m --api-key '{KEY}' --port 8000"],
        ["curl", "-H", f"Authorization: Bearer {KEY}", "--port", "8000"],
        ["vllm", "serve", f"https://me:{KEY}@hub.invalid/model", "--port", "8000"],
    ],
)
def test_a_command_keeps_everything_but_the_key(words: list[str]) -> None:
    hidden = hide_in_command(words)
    assert KEY not in " ".join(hidden)
    assert len(hidden) == len(words)
    assert "8000" in hidden[-1]
    assert hidden[0] == words[0]


@pytest.mark.parametrize(
    "words",
    [
        ["vllm", "serve", "m", "--max-num-batched-tokens", "8192"],
        ["vllm", "serve", "m", "--tokenizer", "t", "--tokenizer-mode=auto"],
        ["vllm", "serve", "m", "--api-server-count", "2", "-tp", "2", "-e"],
        ["vllm", "serve", "m", "--generation-config", '{"max_new_tokens": 12}'],
        ["docker", "run", "-e", "HF_TOKEN", "image"],
    ],
)
def test_a_command_without_a_key_stays_as_it_is(words: list[str]) -> None:
    assert hide_in_command(words) == tuple(words)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (
            f"args: Namespace(api_key='{KEY}', port=8000)",
            "args: Namespace(api_key='***', port=8000)",
        ),
        (f"{{'api_key': ['{KEY}'], 'x': 1}}", "{'api_key': ['***'], 'x': 1}"),
        (f'{{"hf_token": "{KEY}"}}', '{"hf_token": "***"}'),
        (f"http://u:{KEY}@192.0.2.1:80/v1", "http://***@192.0.2.1:80/v1"),
        (
            "generation tokens: 100, key value cache 30 %",
            "generation tokens: 100, key value cache 30 %",
        ),
    ],
)
def test_a_text_keeps_its_words(text: str, hidden: str) -> None:
    assert hide_secrets(text) == hidden


@pytest.mark.parametrize("piece", ["x", "-", "--a", "A_", "api_key ", "://", "A_KEY"])
def test_a_line_without_end_is_searched_once(piece: str) -> None:
    """A search that began anew at each character would take hours for this megabyte."""
    line = piece * (1_000_000 // len(piece))
    assert hide_secrets(line) == line
