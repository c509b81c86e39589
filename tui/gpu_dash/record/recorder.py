"""The writer of a session folder.

Events are handed over on the agent's loop and written by a thread of the recorder's own, so that
a slow or full disk never stops the road. A disk that is full costs rows, which are counted and
said; one that hangs lets the queue run full, and then the newest events are dropped, counted and
said likewise. The files stay whole in every case.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpu_dash.analysis.verdict import Verdict
from gpu_dash.model import events as ev
from gpu_dash.model.errors import RecordError
from gpu_dash.record.append import RowsLost
from gpu_dash.record.columns import FILES, WRITTEN_LATE
from gpu_dash.record.folder import META_FILE
from gpu_dash.record.meta import SessionMeta, local_utc_offset_s, write_meta
from gpu_dash.record.session_rows import SessionRows
from gpu_dash.record.table import Table
from gpu_dash.record.trouble import Trouble

FLUSH_S = 0.5
QUEUE_EVENTS = 10_000
"""Many minutes of a usual session: what a disk may hang before events are dropped."""
WAKE_EVENTS = 1_000
"""The writer is woken before its time when this many events wait."""
SETTLE_S = 5.0
"""A disk on the edge of full is not announced as well again until it took all for this long."""
CLOSE_S = 10.0


class Recorder:
    """Writes one session's folder, from the first event on.

    In a folder that an earlier agent wrote, it goes on after the last whole line of each file.

    Args:
        folder: exists; see :mod:`gpu_dash.record.folder`.
        meta: what is known of the session; the rest is learned from the events.
        on_notice: takes a sentence that a person must see. Called on the writer's thread or on
            the thread of :meth:`record`; must not block.
        settle_s: see :data:`SETTLE_S`.
        queue_events: see :data:`QUEUE_EVENTS`.

    Raises:
        RecordError: the folder or a file in it cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        meta: SessionMeta,
        on_notice: Callable[[str], None],
        *,
        settle_s: float = SETTLE_S,
        queue_events: int = QUEUE_EVENTS,
    ) -> None:
        if meta.utc_offset_s is None:
            offset = local_utc_offset_s(meta.anchor.utc)
            meta = msgspec.structs.replace(meta, utc_offset_s=offset)
        self.folder = folder
        self._meta = meta
        self._written_meta: SessionMeta | None = None
        self._on_notice = on_notice
        self._queue_events = queue_events
        self._queue: deque[ev.Event] = deque()
        self._dropped = 0
        self._dropped_counted = 0
        self._is_overflowing = False
        self._is_closing = False
        self._wake = threading.Event()
        self._rows = SessionRows(meta.anchor, meta.gpus)
        self._tables: dict[str, Table] = {}
        self._trouble = Trouble(folder, on_notice, settle_s, rows_lost=meta.rows_lost)
        try:
            write_meta(folder, meta)
            for name in FILES:
                if name not in WRITTEN_LATE:
                    self._tables[name] = Table(folder, name)
        except (OSError, RowsLost) as error:
            self._close_tables()
            reason = error.reason if isinstance(error, RowsLost) else error.strerror
            raise RecordError(
                f"{folder}: {reason}; make room there or name another folder with --out"
            ) from error
        self._written_meta = meta
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def meta(self) -> SessionMeta:
        """What is known of the session now."""
        return self._meta

    @property
    def rows_lost(self) -> int:
        """Rows and events that could not be written so far."""
        return self._trouble.rows_lost + self._dropped - self._dropped_counted

    def record(self, event: ev.Event) -> None:
        """Take an event. Never waits and never raises."""
        if self._is_closing:
            return
        self._learn(event)
        if isinstance(event, ev.LogLines | ev.LoadTick | ev.SessionBegan):
            return  # in server.log, in requests.csv and server.csv, in session.toml
        waiting = len(self._queue)
        if waiting >= self._queue_events:
            self._dropped += 1
            if not self._is_overflowing:
                self._is_overflowing = True
                self._on_notice(
                    f"{self.folder}: the disk does not take the recording; "
                    "new events are not recorded until it does"
                )
            return
        if waiting < self._queue_events // 2:
            self._is_overflowing = False
        self._queue.append(event)
        if waiting >= WAKE_EVENTS:
            self._wake.set()

    def describe(self, **fields: Any) -> None:
        """Put what became known of the session (fields of :class:`SessionMeta`) into
        ``session.toml``."""
        self._meta = msgspec.structs.replace(self._meta, **fields)

    def finish(
        self,
        *,
        verdict: Verdict | None = None,
        exit_code: int | None = None,
        knee_concurrency: int | None = None,
    ) -> None:
        """Say how the session came out; :meth:`close` writes it."""
        self.describe(verdict=verdict, exit_code=exit_code, knee_concurrency=knee_concurrency)

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Write what waits and close the files. Blocks until that is done, or for ``timeout_s``
        if the disk hangs. The session itself may go on: a later recorder continues the files.
        """
        self._is_closing = True
        self._wake.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._on_notice(f"{self.folder}: the disk hangs; the last rows are not written")

    # -- on the loop ---------------------------------------------------------------------------

    def _learn(self, event: ev.Event) -> None:
        """Keep ``session.toml`` at what the events say."""
        known = self._meta
        match event:
            case ev.GpuSourceChanged(source=source, gpus=gpus) if gpus:
                if (known.gpu_source, known.gpus) != (source, gpus):
                    self.describe(gpu_source=source, gpus=gpus)
            case ev.ServerChanged(status=status):
                said = {
                    "model": status.model or known.model,
                    "base_url": status.base_url or known.base_url,
                    "visible_gpus": status.visible_gpus,
                    "vllm_version": status.version or known.vllm_version,
                }
                if any(getattr(known, name) != value for name, value in said.items()):
                    self.describe(**said)
            case ev.SessionEnded(at=at):
                self.describe(ended_utc=known.anchor.time_utc(at))
            case _:
                pass

    # -- on the writer's thread ----------------------------------------------------------------

    def _run(self) -> None:
        try:
            is_last = False
            while not is_last:
                self._wake.wait(FLUSH_S)
                self._wake.clear()
                is_last = self._is_closing
                self._flush(is_last)
        except BaseException as error:
            self._on_notice(f"{self.folder}: the recording stopped ({error!r})")
            raise
        finally:
            self._close_tables()

    def _flush(self, is_last: bool) -> None:
        pending: dict[str, list[list[str]]] = {}
        for name, row in self._rows_waiting(is_last):
            pending.setdefault(name, []).append(row)
        wrote = [self._append(name, rows) for name, rows in pending.items()]
        dropped = self._dropped
        if dropped > self._dropped_counted:
            self._trouble.lost(dropped - self._dropped_counted, "events that came meanwhile", "")
            self._dropped_counted = dropped
        self._trouble.flushed(all_written=bool(wrote) and all(wrote), is_last=is_last)
        if is_last or not self._trouble.goes_on:
            self._write_meta()

    def _write_meta(self) -> None:
        meta = msgspec.structs.replace(self._meta, rows_lost=self._trouble.rows_lost)
        if meta != self._written_meta:
            try:
                write_meta(self.folder, meta)
            except OSError as error:
                self._trouble.lost(0, META_FILE, error.strerror or str(error))
            else:
                self._written_meta = meta

    def _rows_waiting(self, is_last: bool) -> Iterable[tuple[str, list[str]]]:
        for _ in range(len(self._queue)):
            yield from self._rows.of(self._queue.popleft())
        yield from self._rows.left_over(None if is_last else time.monotonic())

    def _append(self, name: str, rows: Sequence[Sequence[str]]) -> bool:
        """Whether all rows went into the file."""
        try:
            if name not in self._tables:
                self._tables[name] = Table(self.folder, name)
            self._tables[name].append(rows)
        except RowsLost as error:
            self._trouble.lost(error.count, f"rows of {name}", error.reason)
        except OSError as error:
            self._trouble.lost(len(rows), f"rows of {name}", error.strerror or str(error))
        else:
            return True
        return False

    def _close_tables(self) -> None:
        for table in self._tables.values():
            table.close()
