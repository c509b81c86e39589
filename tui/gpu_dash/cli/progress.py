"""The progress of ``run`` on stderr: one line that is rewritten on a terminal, and only changes
of state elsewhere."""

from __future__ import annotations

import sys
import time

import click

from gpu_dash.model.events import Event, Finding, LoadChanged, LoadTick, Notice, ServerChanged
from gpu_dash.model.load import LoadState
from gpu_dash.model.log import Severity
from gpu_dash.model.text import strip_controls

BAR_CELLS = 20


class Progress:
    """Folds events into one line."""

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._server = ""
        self._load: LoadChanged | None = None
        self._shown = ""

    def take(self, event: Event) -> None:
        """Take an event; the line changes if it is of concern."""
        match event:
            case ServerChanged(status=status):
                stage = f": {status.stage}" if status.stage else ""
                words = f"server {status.state}{stage}"
                if words != self._server:
                    self._server = words
                    self._state_changed(words)
            case LoadChanged():
                changed = self._load is None or event.state is not self._load.state
                self._load = event
                if changed and event.state is not LoadState.IDLE:
                    words = short_load(event.concurrency, event.request_rate)
                    self._state_changed(f"step {event.step}: {event.state}, {words}")
            case LoadTick():
                self._rewrite(self._load_line(event))
            case Notice(text=text):
                self.say(text)
            case Finding(severity=Severity.ERROR | Severity.CRITICAL):
                subject = f" {event.subject}" if event.subject else ""
                self.say(f"{event.source}: {event.kind}{subject}: {event.message}")
            case _:
                pass

    def say(self, text: str) -> None:
        """A line of its own that stays."""
        self.clear()
        click.echo(f"gpu-dash: {strip_controls(text)[:500]}", err=True)

    def clear(self) -> None:
        """Take the rewritten line off the terminal, for something that stays."""
        if self._on_terminal and self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._shown = ""

    def end(self) -> None:
        """Leave the terminal on an empty line."""
        self.clear()

    def _state_changed(self, words: str) -> None:
        if self._on_terminal:
            self._rewrite(words)
        else:
            click.echo(f"gpu-dash: {words}", err=True)

    def _rewrite(self, words: str) -> None:
        if self._on_terminal and words != self._shown:
            click.echo(f"\r\x1b[K{words}", err=True, nl=False)
            self._shown = words

    def _load_line(self, tick: LoadTick) -> str:
        load = self._load
        if load is None:
            return ""
        rate = tick.output_tokens / tick.interval_s if tick.interval_s > 0 else 0.0
        bar = ""
        bound = "  client-bound" if tick.client_bound else ""
        if load.window_opens_at is not None and load.window_closes_at is not None:
            length = load.window_closes_at - load.window_opens_at
            done = (time.monotonic() - load.window_opens_at) / length if length > 0 else 1.0
            cells = max(0, min(BAR_CELLS, int(done * BAR_CELLS)))
            bar = f"[{'#' * cells}{'.' * (BAR_CELLS - cells)}] "
        return (
            f"step {load.step} {load.state} {bar}{short_load(load.concurrency, load.request_rate)} "
            f"in flight {tick.in_flight}  {rate:.0f} tok/s{bound}"
        )


def short_load(concurrency: int | None, request_rate: float | None) -> str:
    """What a step asks for: ``c=8``, or ``2.5/s`` in an open loop."""
    return f"c={concurrency}" if request_rate is None else f"{request_rate:g}/s"
