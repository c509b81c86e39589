"""The rows under the charts: ramp steps, throttle spans, errors and the time.

They stand in the columns of the charts' own time axis, so that a cause stands under its effect.
"""

from __future__ import annotations

from gpu_dash.agent.store import Store, is_loud
from gpu_dash.model.gpu import ThrottleKind
from gpu_dash.ui.render.format import clock
from gpu_dash.ui.render.row import Role
from gpu_dash.ui.render.timeaxis import TimeAxis
from gpu_dash.ui.view import View

STEP_LINE = "┊"
ERROR_SIGN = "✗"
Cell = tuple[str, Role]
Cells = list[Cell]


class Lane:
    """One row of cells; what is put later stands over what was there."""

    def __init__(self, width: int) -> None:
        self.cells: Cells = [(" ", Role.PLAIN)] * width

    def put(self, cell: int, text: str, role: Role) -> None:
        """Write narrow characters from a column on; what does not fit is cut."""
        for offset, character in enumerate(text):
            if 0 <= cell + offset < len(self.cells):
                self.cells[cell + offset] = (character, role)

    def is_free(self, cell: int, length: int) -> bool:
        """Whether nothing stands there, or close to it."""
        around = self.cells[max(0, cell - 1) : cell + length + 1]
        return cell + length <= len(self.cells) and all(text == " " for text, _ in around)

    def add_times(self, axis: TimeAxis) -> Lane:
        """Labels of the time since the session's start, where nothing else stands."""
        for cell, moment in axis.ticks():
            label = f"╵{clock(moment)}"
            if self.is_free(cell, len(label)):
                self.put(cell, label, Role.DIM)
        return self

    def add_steps(self, axis: TimeAxis, store: Store) -> Lane:
        """Where each step's window opened, with its concurrency or rate; an error is not covered,
        and a number is not cut by one."""
        for mark in store.step_marks:
            rate, cell = mark.request_rate, axis.cell(mark.opened_at)
            label = STEP_LINE + (f"{mark.concurrency}" if rate is None else f"{rate:g}/s")
            if not self._has_error(cell, len(label)):
                self.put(cell, label, Role.STRONG)
            elif not self._has_error(cell, 1):
                self.put(cell, STEP_LINE, Role.STRONG)
        return self

    def _has_error(self, cell: int, length: int) -> bool:
        covered = self.cells[max(0, cell) : max(0, cell + length)]
        return any(text == ERROR_SIGN for text, _ in covered)

    def add_throttles(self, axis: TimeAxis, view: View) -> Lane:
        """Spans in which a card throttled."""
        alarms_last = sorted(view.store.throttle_spans, key=lambda span: span.kind.is_alarm)
        for span in alarms_last:
            first = axis.cell(span.began_at)
            last = axis.cell(span.ended_at if span.ended_at is not None else view.now)
            if last < 0 or first >= axis.width:
                continue
            first, last = max(0, first), min(axis.width - 1, last)
            alarm = span.kind is not ThrottleKind.POWER_CAP
            role = Role.ALARM if alarm else Role.WARN
            self.put(first, ("▬" if alarm else "─") * (last - first + 1), role)
            label = f"▲{span.gpu}" if alarm else f"{span.gpu}"
            self.put(first + max(0, (last - first - len(label)) // 2), label, role)
        return self

    def add_errors(self, axis: TimeAxis, store: Store) -> Lane:
        """Failed requests, and findings that are not said by a throttle's span."""
        for point in store.load_history:
            if point.requests_failed:
                self.put(axis.cell(point.at), ERROR_SIGN, Role.ALARM)
        for finding in store.findings:
            if is_loud(finding) and finding.source != "gpu":
                self.put(axis.cell(finding.at), ERROR_SIGN, Role.SHOUT)
        return self


def lanes(view: View, axis: TimeAxis, rows: int) -> list[tuple[str, Cells]]:
    """So many rows, each with its label: all in one, times apart, or all apart."""
    store = view.store
    width = axis.width
    events = Lane(width).add_throttles(axis, view).add_errors(axis, store)
    if rows == 1:
        return [("time", events.add_steps(axis, store).add_times(axis).cells)]
    times = ("time", Lane(width).add_times(axis).cells)
    if rows == 2:
        return [("marks", events.add_steps(axis, store).cells), times]
    return [("step", Lane(width).add_steps(axis, store).cells), ("event", events.cells), times]
