"""A server in a container and in a compose file of the user's: the whole job through docker's own
command line, on a docker that speaks it (:mod:`tests.fakes.docker`)."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.fakes.docker import calls, install
from tests.integration.commands import gpu_dash, is_running

CONTAINER = """\
[server]
kind = "container"
command = ["docker"]
image = "acme/llm:1"
container_args = ["--gpus", "all", "-v", "/models:/models", "-p", "127.0.0.1:{port}:{port}"]
model = "simulated-32b"
port = {port}
shutdown_timeout = "0s"

[server.env]
NCCL_IB_DISABLE = "1"
"""
COMPOSE = """\
[server]
kind = "container"
command = ["docker"]
compose_file = "compose.yaml"
compose_service = "llm"
model = "simulated-32b"
port = {port}
"""
LOAD = """
[load]
ramp = [1]
step = "500ms"
warmup = "100ms"
prompt_tokens = 16
output_tokens = 8

[gpu]
source = "none"
"""
COMPOSE_FILE = """\
services:
  llm:
    image: acme/llm:1
    command: ["simulated-32b", "--port", "{port}"]
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run(folder: Path, profile: str) -> tuple[list[list[str]], str]:
    """One whole run; how docker was called, and the log that was followed."""
    port = free_port()
    path = folder / "boxed.toml"
    path.write_text((profile + LOAD).format(port=port), encoding="utf-8")
    path.chmod(0o600)
    (folder / "compose.yaml").write_text(COMPOSE_FILE.format(port=port), encoding="utf-8")
    install(folder)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = gpu_dash(
        *("run", str(path), "--force", "--json", "--out", str(folder / "out")),
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    step = json.loads(done.stdout.splitlines()[0])
    assert step["requests_ok"] > 0
    return calls(folder), (folder / "out" / "server.log").read_text(encoding="utf-8")


def pid_of_container(folder: Path) -> int:
    (state,) = [path for path in folder.glob("*.json") if path.name != "calls"]
    pid: int = json.loads(state.read_text(encoding="utf-8"))["pid"]
    return pid


def test_a_container_is_run_followed_stopped_and_removed(tmp_path: Path) -> None:
    words, log = run(tmp_path, CONTAINER)

    verbs = [call[0] for call in words]
    assert set(verbs) == {"logs", "rm", "run", "stop", "wait"}
    started = words[verbs.index("run")]
    name = started[started.index("--name") + 1]
    assert started[started.index("--env") + 1] == "NCCL_IB_DISABLE"
    assert started[started.index("acme/llm:1") :][:4] == [
        *("acme/llm:1", "simulated-32b", "--host", "0.0.0.0")
    ]
    assert words[verbs.index("stop")] == ["stop", "-t", "20", name]
    assert verbs[-1] == "rm"
    assert "Application startup complete" in log


def test_a_compose_file_of_the_user_is_brought_up_followed_and_stopped(tmp_path: Path) -> None:
    words, log = run(tmp_path, COMPOSE)

    head = ["compose", "--file", str(tmp_path / "compose.yaml")]
    spoken = [call[3:] for call in words if call[:3] == head]
    assert ["up", "--detach", "llm"] in spoken
    (followed,) = [call for call in words if call[0] == "logs"]
    assert followed[-1] == f"{tmp_path.name}-llm-1"
    assert ["stop", "--timeout", "20", "llm"] in spoken
    assert not any("rm" in call or "down" in call for call in words)
    assert not is_running(pid_of_container(tmp_path))
    assert "Application startup complete" in log


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("compose.yaml", "none.yaml"), "none.yaml is no file"),
        (('compose_service = "llm"', ""), "names no service"),
        (("port = {port}", "port = 0"), "the port that the service publishes"),
        (("[load]", "[server.flags]\nseed = 1\n[load]"), "belong into the compose file"),
    ],
)
def test_what_is_wrong_with_a_compose_profile_is_said(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    path = tmp_path / "boxed.toml"
    path.write_text((COMPOSE + LOAD).replace(*change).replace("{port}", "8000"), encoding="utf-8")
    path.chmod(0o600)
    install(tmp_path)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    done = gpu_dash("run", str(path), cwd=tmp_path, env=environment)

    assert done.returncode == 2
    assert said in done.stderr
