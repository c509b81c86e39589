"""A log that docker or journalctl prints, across the end of an agent.

Both programs are scripted here, with the options and the output of the real ones.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_dash.server.log_command import LogCommand, container_command, journal_command
from tests.integration.commands import wait_for

PROGRAM = """#!{python}
import pathlib, sys, time
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
docker = "--timestamps" in sys.argv
assert docker or "--output=short-unix" in sys.argv
assert "--follow" in sys.argv
(since,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--since=")]
printed = 0
while not (here / "over").exists():
    for line in (here / "lines").read_text().splitlines()[printed:]:
        printed += 1
        stamp, _, text = line.partition(" ")
        if docker:
            whole = f"2026-11-30T10:00:{{stamp}}000000000Z"
            if since[:1] == "0" or whole >= since:
                print(whole, text, flush=True)
        elif float(stamp) >= float(since.removeprefix("@")):
            print(f"{{stamp}}00000 host-a vllm[77]: {{text}}", flush=True)
    time.sleep(0.01)
"""


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lines that both programs have to print, each with its second."""
    for name in ("docker", "journalctl"):
        program = tmp_path / name
        program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    lines = tmp_path / "lines"
    lines.write_text("01.1 first\n02.1 second\n02.1 of the same moment\n", encoding="utf-8")
    return lines


async def until(path: Path, text: str) -> None:
    await asyncio.to_thread(
        wait_for, lambda: path.exists() and path.read_text(encoding="utf-8") == text, repr(text)
    )


@pytest.mark.parametrize(
    "argv", [lambda: container_command("c", 0.0), lambda: journal_command("vllm.service", 0.5)]
)
async def test_the_next_agent_goes_on_where_the_last_one_was(
    argv: Callable[[], tuple[str, ...]], printed: Path, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    first = LogCommand(argv(), log)
    await first.start()
    await until(log, "first\nsecond\nof the same moment\n")
    await first.stop()

    with printed.open("a", encoding="utf-8") as more:
        more.write("02.1 late, of the same moment\n03.1 third\n")
    second = LogCommand(argv(), log)
    await second.start()
    await until(log, "first\nsecond\nof the same moment\nlate, of the same moment\nthird\n")
    await second.stop()

    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert "02.1" in calls[1]


async def test_the_last_lines_of_a_container_that_has_ended_are_waited_for(
    printed: Path, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    command = LogCommand(container_command("c"), log)
    await command.start()
    await until(log, "first\nsecond\nof the same moment\n")
    with printed.open("a", encoding="utf-8") as more:
        more.write("03.1 the last word\n")
    asyncio.get_running_loop().call_later(0.2, (tmp_path / "over").touch)

    await command.finish()

    assert log.read_text(encoding="utf-8").endswith("the last word\n")


async def test_a_line_without_a_stamp_is_kept_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    command = LogCommand(("/bin/sh", "-c", "printf -- '-- Boot 77 --\\nno end'"), log)
    await command.start()

    await command.finish()

    assert log.read_text(encoding="utf-8") == "-- Boot 77 --\nno end\n"
