"""Run a terminal program in a terminal of a given size and keep a picture of its screen.

    python -m scripts.screenshot --size 160x48 --out FILE.svg [STEP…] -- COMMAND…

Steps, done in the order in which they stand:

    --wait-for REGEX   wait until the screen's text matches
    --keys KEYS        press keys, by tmux's names, separated by blanks: "r ] ] Escape C-q"
    --pause SECONDS    let the program go on

``--out`` ending in ``.txt`` keeps the text alone. The terminal is tmux's (which must be installed),
with 24-bit colour; nothing of the caller's own tmux is used. For a PNG:

    rsvg-convert --zoom 2 FILE.svg --output FILE.png      (librsvg2-bin, fonts-dejavu-core)
    magick FILE.svg FILE.png                              (ImageMagick)
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyte

from scripts.terminal_svg import render_svg

TMUX_CONFIGURATION = """\
set -g status off
set -g default-terminal tmux-256color
set -g remain-on-exit on
set -sg escape-time 0
set-environment -g COLORTERM truecolor
"""
POLL_S = 0.1


class Terminal:
    """A program in a tmux of its own; leaving the ``with`` block ends both."""

    def __init__(self, command: Sequence[str], columns: int, lines: int) -> None:
        self._command = command
        self._columns = columns
        self._lines = lines
        self._folder = tempfile.TemporaryDirectory(prefix="screenshot-")

    def __enter__(self) -> Terminal:
        configuration = Path(self._folder.name, "tmux.conf")
        configuration.write_text(TMUX_CONFIGURATION)
        size = ("-x", str(self._columns), "-y", str(self._lines))
        self._tmux(
            *("-f", str(configuration), "new-session", "-d", *size, shlex.join(self._command))
        )
        return self

    def __exit__(self, *_exception: object) -> None:
        self._tmux("kill-server")
        self._folder.cleanup()

    def text(self) -> str:
        """The screen's text, one line per row."""
        return self._tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names."""
        self._tmux("send-keys", *keys)

    def wait_for(self, pattern: re.Pattern[str], timeout_s: float) -> None:
        """Wait until the screen's text matches.

        Raises:
            SystemExit: it did not; the message holds the screen.
        """
        deadline = time.monotonic() + timeout_s
        while pattern.search(text := self.text()) is None:
            if time.monotonic() > deadline:
                raise SystemExit(f"{text}\n{pattern.pattern!r} did not appear in {timeout_s:g} s")
            time.sleep(POLL_S)

    def screen(self) -> pyte.Screen:
        """The screen with its colours."""
        screen = pyte.Screen(self._columns, self._lines)
        content = self._tmux("capture-pane", "-p", "-e", "-N").rstrip("\n")
        pyte.Stream(screen).feed(content.replace("\n", "\r\n"))
        return screen

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", f"{self._folder.name}/socket", *arguments],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout


class _Step(argparse.Action):
    """Keep the steps in the order in which they were written."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        namespace.steps = [*namespace.steps, (self.dest, values)]


def parse_size(text: str) -> tuple[int, int]:
    """Columns and lines of ``160x48``."""
    columns, lines = text.split("x")
    return int(columns), int(lines)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=parse_size, default=(160, 48), help="columns x lines")
    parser.add_argument("--out", type=Path, required=True, help="FILE.svg or FILE.txt")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each --wait-for")
    parser.add_argument("--wait-for", type=re.compile, action=_Step, metavar="REGEX")
    parser.add_argument("--keys", type=str.split, action=_Step)
    parser.add_argument("--pause", type=float, action=_Step, metavar="SECONDS")
    parser.add_argument("command", nargs="+")
    parser.set_defaults(steps=[])
    return parser.parse_args()


def main() -> None:
    """Run the program, do the steps, keep the picture."""
    arguments = parse_arguments()
    with Terminal(arguments.command, *arguments.size) as terminal:
        for name, value in arguments.steps:
            if name == "wait_for":
                terminal.wait_for(value, arguments.timeout)
            elif name == "keys":
                terminal.press(*value)
            else:
                time.sleep(value)
        if arguments.out.suffix == ".txt":
            arguments.out.write_text(terminal.text(), encoding="utf-8")
        else:
            arguments.out.write_text(render_svg(terminal.screen()), encoding="utf-8")


if __name__ == "__main__":
    main()
