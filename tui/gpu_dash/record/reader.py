"""A session folder read back as the events that made it.

The reader takes what is there: a folder whose agent still runs or was killed (a cut last line is
left out), one with files missing, one with columns that this version does not know.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path

import msgspec

from gpu_dash.model import events as ev
from gpu_dash.model.clock import ClockAnchor
from gpu_dash.model.errors import RecordError
from gpu_dash.model.gpu import GpuSample, GpuSourceState
from gpu_dash.model.load import RequestRecord, StepResult
from gpu_dash.model.server import HandleKind, ServerMetrics
from gpu_dash.record.cells import text_of, value_of
from gpu_dash.record.columns import FILES
from gpu_dash.record.folder import LOG_FILE, is_session_folder
from gpu_dash.record.journal import SESSION_END, STEP_END, event_of
from gpu_dash.record.log_times import timed_lines
from gpu_dash.record.meta import SessionMeta, local_utc_offset_s, read_meta
from gpu_dash.record.read_table import Record, Row, last_time_s, record_of, rows_of, struct_of
from gpu_dash.record.ticks import ticks_of

_TIMED_FILES = ("gpu.csv", "server.csv", "events.csv")
"""Files whose first column is the time of the row."""


class SessionReader:
    """One session folder.

    Args:
        folder: of the session.

    Raises:
        RecordError: it holds no session, or its ``session.toml`` cannot be understood.
    """

    def __init__(self, folder: Path) -> None:
        if not is_session_folder(folder):
            raise RecordError(f"{folder} holds no session; see gpu-dash sessions list")
        self.folder = folder
        self.meta = read_meta(folder) or self._guessed_meta()

    @property
    def duration_s(self) -> float:
        """From the session's start to the last row of any file whose rows come as time goes by."""
        ends = (last_time_s(self.folder / name) for name in _TIMED_FILES)
        return max((end for end in ends if end is not None), default=0.0)

    def rows(self, name: str) -> Iterator[Row]:
        """The whole rows of a CSV file by column, cells as they stand in it; none if there is no
        such file.

        Raises:
            RecordError: the file cannot be read.
        """
        return rows_of(self.folder / name)

    def records(self, name: str, columns: Sequence[str] | None = None) -> Iterator[Record]:
        """The rows of a CSV file as values: numbers, flags and texts; ``None`` for an empty
        cell.

        Args:
            name: of the file.
            columns: only these; all if left out. A day of sixteen cards has 1.4 million rows of
                35 columns, most of which nobody looks at.

        Raises:
            RecordError: the file cannot be read.
        """
        for row in self.rows(name):
            chosen = row if columns is None else {key: row.get(key, "") for key in columns}
            yield record_of(chosen)

    def events(self, *, readings_since_s: float = -math.inf) -> Iterator[ev.Event]:
        """All events in the order of their time, which counts from the session's start; in front
        the one that says that it began.

        Args:
            readings_since_s: leave out readings of cards and server from before this moment: an
                agent that goes on with a session of days shows its last hour.

        Raises:
            RecordError: a file cannot be read.
        """
        journal = list(self.rows("events.csv"))
        told = [event for row in journal if (event := event_of(row)) is not None]
        requests = list(self.requests())
        sources: list[Iterable[ev.Event]] = [
            told,
            self._cards(told),
            self._gpu_samples(readings_since_s),
            self._metrics(readings_since_s),
            _request_events(requests),
            self._steps(journal),
            ticks_of(requests),
            self._log(event for event in told if isinstance(event, ev.Finding)),
            self._ended(journal),
        ]
        yield self._began()
        yield from sorted(itertools.chain.from_iterable(sources), key=lambda event: event.at)

    def told(self) -> Iterator[ev.Event]:
        """The events of ``events.csv`` as they stand in it, their moments counted from the
        session's start; rows that only point to another file are passed over.

        Raises:
            RecordError: the file cannot be read.
        """
        for row in self.rows("events.csv"):
            event = event_of(row)
            if event is not None:
                yield event

    def steps(self) -> Iterator[StepResult]:
        """The finished steps that can be read.

        Raises:
            RecordError: the file cannot be read.
        """
        for record in self.records("steps.csv"):
            result = struct_of(record, StepResult)
            if result is not None:
                yield result

    def _records_since(self, name: str, since_s: float) -> Iterator[Record]:
        """The records with a time, from a moment on."""
        for row in self.rows(name):
            at = value_of(row.get("time_s", ""))
            if at is not None and at >= since_s:
                yield record_of(row)

    # -- one file after the other --------------------------------------------------------------

    def _began(self) -> ev.SessionBegan:
        meta = self.meta
        return ev.SessionBegan(
            at=0.0,
            session=meta.session,
            folder=str(self.folder),
            anchor=ClockAnchor(monotonic=0.0, utc=meta.anchor.utc),
            label=meta.label,
            profile=meta.profile,
            gpu_source=meta.gpu_source,
        )

    def _ended(self, journal: Iterable[Row]) -> Iterator[ev.Event]:
        for row in journal:
            at = value_of(row.get("time_s", ""))
            if row.get("kind") == SESSION_END and at is not None:
                yield ev.SessionEnded(at=at, session=self.meta.session)

    def _cards(self, told: Iterable[ev.Event]) -> Iterator[ev.Event]:
        """What the cards are, where no event says it."""
        if self.meta.gpus and not any(isinstance(e, ev.GpuSourceChanged) for e in told):
            yield ev.GpuSourceChanged(
                at=0.0,
                source=self.meta.gpu_source,
                state=GpuSourceState.LIVE,
                gpus=self.meta.gpus,
            )

    def _gpu_samples(self, since_s: float) -> Iterator[ev.Event]:
        """Each row as the sample that it is, behind one with the extremes of its second, so that
        a fold over the samples of a second comes to what it came to while it was live."""
        for name in ("gpu.csv", "gpu_fast.csv"):
            records_since = self._records_since(name, since_s)
            for at, records in itertools.groupby(records_since, key=itemgetter("time_s")):
                samples, extremes = [], []
                for record in records:
                    sample = struct_of(_sample_fields(record), GpuSample)
                    if sample is None:
                        continue
                    samples.append(sample)
                    extreme = _extreme(sample, record)
                    if extreme != sample:
                        extremes.append(extreme)
                if extremes:
                    yield ev.GpuSamples(at=at, samples=tuple(extremes))
                if samples:
                    yield ev.GpuSamples(at=at, samples=tuple(samples))

    def _metrics(self, since_s: float) -> Iterator[ev.Event]:
        for record in self._records_since("server.csv", since_s):
            metrics = struct_of(record, ServerMetrics)
            if metrics is not None:
                yield ev.ServerMetricsRead(at=record["time_s"], metrics=metrics)

    def requests(self) -> Iterator[tuple[float, RequestRecord]]:
        """The requests, each with the moment at which its end was reported; all moments count
        from the session's start.

        Raises:
            RecordError: the file cannot be read.
        """
        for record in self.records("requests.csv"):
            moments = {"scheduled": record.get("scheduled_s"), "sent": record.get("time_s")}
            request = struct_of({**record, **moments}, RequestRecord)
            if request is not None:
                reported_at = record.get("reported_s")
                if reported_at is None:
                    reported_at = request.sent + (request.e2e_s or 0.0)
                yield reported_at, request

    def _steps(self, journal: Iterable[Row]) -> Iterator[ev.Event]:
        ends = {
            text_of(row.get("subject", "")): value_of(row.get("time_s", ""))
            for row in journal
            if row.get("kind") == STEP_END
        }
        for result in self.steps():
            at = ends.get(f"step:{result.step}")
            end = result.time_s + result.duration_s if at is None else at
            yield ev.StepEnded(at=end, result=result)

    def _log(self, findings: Iterable[ev.Finding]) -> Iterator[ev.Event]:
        if self.meta.kind is HandleKind.EXTERNAL:
            return  # the file only says where the log is
        path = self.folder / LOG_FILE
        offset = self.meta.utc_offset_s
        utc = self.meta.anchor.utc
        try:
            with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
                yield from timed_lines(
                    file,
                    start_utc=utc,
                    utc_offset_s=local_utc_offset_s(utc) if offset is None else offset,
                    findings=[f for f in findings if f.source == "log"],
                )
        except FileNotFoundError:
            return
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from error

    def _guessed_meta(self) -> SessionMeta:
        """For a folder without ``session.toml``: the first row with both times tells when it
        began."""
        utc = 0.0
        for name in FILES:
            row = next(self.rows(name), {})
            moment, at = row.get("time_utc", ""), value_of(row.get("time_s", ""))
            try:
                utc = datetime.fromisoformat(moment).timestamp() - float(at or 0.0)
            except ValueError:
                continue
            break
        return SessionMeta(
            session=self.folder.resolve().name, anchor=ClockAnchor(monotonic=0.0, utc=utc)
        )


def _sample_fields(record: Record) -> Record:
    reasons = record.get("throttle_reasons") or ""
    stacks = record.get("hbm_temperatures_celsius")
    return {
        **record,
        "throttle_reasons": [name for name in reasons.split("+") if name],
        "hbm_temperatures_celsius": [value_of(cell) for cell in stacks.split("+")]
        if stacks
        else None,
    }


def _extreme(sample: GpuSample, record: Record) -> GpuSample:
    def either(name: str, value: float | None) -> float | None:
        extreme = record.get(name)
        return value if extreme is None else float(extreme)

    return msgspec.structs.replace(
        sample,
        temperature_celsius=either("temperature_max_celsius", sample.temperature_celsius),
        power_watts=either("power_max_watts", sample.power_watts),
        sm_clock_mhz=either("sm_clock_min_mhz", sample.sm_clock_mhz),
    )


def _request_events(requests: Iterable[tuple[float, RequestRecord]]) -> Iterator[ev.Event]:
    for reported_at, group in itertools.groupby(requests, key=lambda pair: pair[0]):
        yield ev.RequestsEnded(at=reported_at, requests=tuple(request for _, request in group))
