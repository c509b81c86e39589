"""What a frame of the dashboard costs: CPU milliseconds, and bytes that ssh would carry.

    python bench/refresh.py [--seconds 30] [--log-lines 20] [SIZExCARDS…]

Plays a ramp of simulated cards with a moving log at two frames a second (as fast as it goes, on a
clock of its own) into a driver that counts what would be written to the terminal. It informs, it
does not gate.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from textual.drivers.headless_driver import HeadlessDriver

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.ui import scenes

from gpu_dash.model import events as ev
from gpu_dash.model.log import LogLine
from gpu_dash.ui.app import DashboardApp
from gpu_dash.ui.scripted_feed import ScriptedFeed

FRAME_S = 0.5
WARM_S = 60.0
"""Of the scene that is there before the first counted frame."""
CASES = ("80x24x8", "100x30x8", "160x48x8", "200x50x8", "200x50x16")


class CountingDriver(HeadlessDriver):
    """A terminal that is nowhere and counts what it is sent."""

    written = 0

    @property
    def is_headless(self) -> bool:
        return False

    def write(self, data: str) -> None:
        type(self).written += len(data.encode())


async def measure(width: int, height: int, cards: int, seconds: float, log_lines: int) -> str:
    """One line of the table."""
    events = list(scenes.ramp_scene(cards, WARM_S + seconds))
    start = next(index for index, event in enumerate(events) if event.at > WARM_S)
    feed = ScriptedFeed(*events[:start])
    app = DashboardApp(feed, frames_per_s=0.001)
    app.driver_class = CountingDriver
    running = asyncio.create_task(app.run_async(size=(width, height)))
    while not app.is_running or not app.screen.is_current:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    app.paint()
    await asyncio.sleep(0.1)
    CountingDriver.written = 0
    frames, cpu, line = 0, 0.0, 1_000_000
    while feed.moment < WARM_S + seconds - FRAME_S:
        until = feed.moment + FRAME_S
        due = []
        while start < len(events) and events[start].at <= until:
            due.append(events[start])
            start += 1
        extra = tuple(
            LogLine(line + number, f"a line of the log, number {line + number}, of usual length")
            for number in range(log_lines)
        )
        line += log_lines
        began = time.process_time()
        feed.publish(*due, ev.LogLines(at=until, lines=extra))
        feed.moment = until
        app.paint()
        await asyncio.sleep(1 / 30)
        cpu += time.process_time() - began
        frames += 1
    app.exit()
    await running
    per_frame = CountingDriver.written / frames
    return (
        f"{f'{width}x{height}':>8} {cards:>6} {cpu / frames * 1000:>10.1f} "
        f"{cpu / frames / FRAME_S * 100:>9.1f} {per_frame:>12,.0f} "
        f"{per_frame / FRAME_S / 1000:>7.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES, metavar="WIDTHxHEIGHTxCARDS")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the scene")
    parser.add_argument("--log-lines", type=int, default=5, help="new log lines a frame")
    options = parser.parse_args()
    print("    size  cards  ms/frame  % of core  bytes/frame    kB/s")
    for case in options.cases:
        width, height, cards = (int(part) for part in case.split("x"))
        print(asyncio.run(measure(width, height, cards, options.seconds, options.log_lines)))


if __name__ == "__main__":
    main()
