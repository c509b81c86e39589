"""A docker without containers: the command line of the real one, over the built-in stub server.

It takes the options that docker 28 takes for the verbs of gpu-dash, and refuses all others as
docker does (``unknown flag``, exit 125). A "container" is a process in a session of its own; nobody
but this program may signal it. A line of its log has the time at which it was printed; ``--since``
is taken, and leaves nothing out.

    python -m tests.fakes.docker FOLDER run --detach --name N IMAGE MODEL --host H --port P …
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import yaml

POLL_S = 0.02


class Options(argparse.ArgumentParser):
    """Refuses in docker's words."""

    def error(self, message: str) -> NoReturn:
        print(f"unknown flag or argument: {message}", file=sys.stderr)
        raise SystemExit(125)


def install(folder: Path) -> Path:
    """Write a ``docker`` into a folder, and give its path."""
    program = folder / "docker"
    root = Path(__file__).parents[2]
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m tests.fakes.docker {folder} "$@"\n'
    )
    program.chmod(0o755)
    return program


def calls(folder: Path) -> list[list[str]]:
    """How it was called so far."""
    lines = (folder / "calls").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def main(folder: Path, words: list[str]) -> int:
    """Do one command."""
    with (folder / "calls").open("a", encoding="utf-8") as file:
        file.write(json.dumps(words) + "\n")
    verb = words[0]
    if verb == "compose":
        return _compose(folder, words[1:])
    return {"run": _run, "logs": _logs, "wait": _wait, "stop": _stop, "rm": _remove}[verb](
        folder, words[1:]
    )


def _run(folder: Path, words: list[str]) -> int:
    options = Options()
    for name in ("--name", "--gpus", "--ipc", "--network", "--shm-size", "--device"):
        options.add_argument(name)
    for short, name in (("-v", "--volume"), ("-p", "--publish"), ("-e", "--env")):
        options.add_argument(short, name, action="append", default=[])
    options.add_argument("-d", "--detach", action="store_true")
    options.add_argument("image")
    options.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = options.parse_args(words)
    missing = [name for name in asked.env if "=" not in name and name not in os.environ]
    if missing:
        print(f"docker: {missing} is not in the environment", file=sys.stderr)
        return 125
    print(_start(folder, asked.name, asked.arguments))
    return 0


def _start(folder: Path, name: str, arguments: list[str]) -> str:
    """Start the stub server as the container of that name."""
    port = arguments[arguments.index("--port") + 1]
    command = [sys.executable, "-m", "gpu_dash.demo", "serve", arguments[0]]
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", port, "--sim-startup", "0.2"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (folder / f"{name}.json").write_text(json.dumps({"pid": process.pid}))
    return name


def _state(folder: Path, name: str) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    except FileNotFoundError:
        print(f"Error response from daemon: No such container: {name}", file=sys.stderr)
        raise SystemExit(1) from None
    return state


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _logs(folder: Path, words: list[str]) -> int:
    options = Options()
    options.add_argument("-f", "--follow", action="store_true")
    options.add_argument("-t", "--timestamps", action="store_true")
    options.add_argument("--since", type=float)
    options.add_argument("name")
    asked = options.parse_args(words)
    pid = _state(folder, asked.name)["pid"]
    with (folder / f"{asked.name}.log").open(encoding="utf-8") as log:
        while True:
            was_running = _is_running(pid)
            for line in log:
                stamp = f"{datetime.now(UTC).isoformat()[:-6]}Z " if asked.timestamps else ""
                print(f"{stamp}{line}", end="", flush=True)
            if not was_running:
                return 0
            time.sleep(POLL_S)


def _wait(folder: Path, words: list[str]) -> int:
    name = words[0]
    pid = _state(folder, name)["pid"]
    while _is_running(pid):
        time.sleep(POLL_S)
    print(0)
    return 0


def _stop(folder: Path, words: list[str]) -> int:
    options = Options()
    options.add_argument("-t", "--timeout", type=int, default=10)
    options.add_argument("name")
    asked = options.parse_args(words)
    _end(folder, asked.name, asked.timeout)
    print(asked.name)
    return 0


def _end(folder: Path, name: str, timeout_s: float) -> None:
    pid = _state(folder, name)["pid"]
    if not _is_running(pid):
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    if _is_running(pid):
        os.killpg(pid, signal.SIGKILL)


def _remove(folder: Path, words: list[str]) -> int:
    options = Options()
    options.add_argument("-f", "--force", action="store_true")
    options.add_argument("name")
    name = options.parse_args(words).name
    _end(folder, name, 0)
    (folder / f"{name}.json").unlink()
    print(name)
    return 0


def _compose(folder: Path, words: list[str]) -> int:
    options = Options()
    options.add_argument("-f", "--file", required=True)
    verbs = options.add_subparsers(dest="verb", required=True, parser_class=Options)
    up = verbs.add_parser("up")
    up.add_argument("-d", "--detach", action="store_true")
    ps = verbs.add_parser("ps")
    ps.add_argument("-q", "--quiet", action="store_true")
    stop = verbs.add_parser("stop")
    stop.add_argument("-t", "--timeout", type=int, default=10)
    for verb in (up, ps, stop):
        verb.add_argument("service")
    asked = options.parse_args(words)
    services = yaml.safe_load(Path(asked.file).read_text())["services"]
    if asked.service not in services:
        print(f"no such service: {asked.service}", file=sys.stderr)
        return 1
    container = f"{Path(asked.file).parent.name}-{asked.service}-1"
    if asked.verb == "up":
        _start(folder, container, services[asked.service]["command"])
    elif asked.verb == "ps":
        print(container)
    else:
        _end(folder, container, asked.timeout)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
