"""``gpu-dash doctor`` against the built-in stand-in for vLLM, and against its key."""

from __future__ import annotations

import json
import os

from tests.fakes.stub_server import StubServer
from tests.integration.commands import gpu_dash

KEY = "test-key-0123456789"


def test_the_stand_in_for_vllm_passes_every_check() -> None:
    with StubServer() as stub:
        stub.wait_until_ready()
        done = gpu_dash("doctor", "--base-url", f"http://127.0.0.1:{stub.port}", "--json")

    checks = {check["check"]: check for check in json.loads(done.stdout)}
    assert {name for name, check in checks.items() if check["status"] == "fail"} == set()
    assert {"path", "model", "choices", "tokens", "streaming", "usage", "context"} <= set(checks)
    assert done.returncode == 0


def test_a_key_is_asked_for_taken_and_never_printed() -> None:
    with StubServer(environment={"VLLM_API_KEY": KEY}) as stub:
        stub.wait_until_ready()
        without = gpu_dash("doctor", "--base-url", f"http://127.0.0.1:{stub.port}")
        arguments = (
            "doctor",
            "--base-url",
            f"http://127.0.0.1:{stub.port}",
            "--api-key-env",
            "STUB_KEY",
        )
        wrong = gpu_dash(*arguments, env={**os.environ, "STUB_KEY": "wrong-0987654321"})
        right = gpu_dash(*arguments, env={**os.environ, "STUB_KEY": KEY})

    assert (without.returncode, wrong.returncode, right.returncode) == (1, 1, 0)
    assert "wants a key" in without.stdout
    assert "the key is refused" in wrong.stdout
    assert KEY not in right.stdout + right.stderr
    assert "0987654321" not in wrong.stdout + wrong.stderr
