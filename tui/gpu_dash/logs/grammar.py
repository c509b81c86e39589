"""What a line is made of: who wrote it, how loud, when, and the message itself.

vLLM 0.6 to 0.33, torch, NCCL and RCCL, uvicorn, tqdm, JSON logging, Ray and the kernel, with or
without a prefix, and with what a container, a journal or a cluster writes in front. Line numbers
and widths change with every release and are never looked at. A line that fits nothing is raw
text: a traceback, a library's own print.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Any

import msgspec


class Level(IntEnum):
    """How loud the writer was; ``NONE`` for text without a level."""

    NONE = 0
    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4
    CRITICAL = 5


class Form(IntEnum):
    """Whose format a line has."""

    RAW = 0
    VLLM = 1
    """vLLM's own log records, those of Ray workers and JSON records too."""
    UVICORN = 2
    TORCH = 3
    """torch's C++ log: ``[rank3]:[E1012 22:31:22.267 ProcessGroupNCCL.cpp:607] …``."""
    NCCL = 4
    KERNEL = 5
    PROGRESS = 6
    """A state of a progress bar."""
    CLIENT = 7
    """The caller's side, where a load generator writes into the same log."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A line taken apart."""

    form: Form
    message: str
    """What is left behind everything below; its own indentation is kept."""
    level: Level = Level.NONE
    process: str = ""
    """As the log calls it: ``EngineCore``, ``Worker_TP1``, ``VllmWorker rank=1``."""
    pid: int | None = None
    stamp: str = ""
    """As written; there is no year, and no zone, in most of them."""
    file: str = ""
    """Name of the source file that logged, without its folders."""
    rank: int | None = None
    """torch's rank, from ``[rank3]:`` or ``[Rank 3]``."""
    device: int | None = None
    """NCCL's device: an index inside the visible ones."""
    head: str = ""
    """Everything in front of the message: the same for all lines of one record."""


_LEVELS = {
    "TRACE": Level.DEBUG,
    "DEBUG": Level.DEBUG,
    "INFO": Level.INFO,
    "WARN": Level.WARNING,
    "WARNING": Level.WARNING,
    "ERROR": Level.ERROR,
    "CRITICAL": Level.CRITICAL,
    "FATAL": Level.CRITICAL,
}
_LETTERS = {"I": Level.INFO, "W": Level.WARNING, "E": Level.ERROR, "F": Level.CRITICAL}
_UVICORN = {f"{name}:".ljust(10): level for name, level in _LEVELS.items()}
"""uvicorn pads level and colon to ten columns."""

# Every repetition is bounded, so that no line, however it was made, takes long.
_PREFIX = r"\(([A-Za-z](?:[^()]{0,60}?|\w{0,40}\([\w()]{0,100}\))) pid=(\d+)[^()]{0,80}\) ?"
_VLLM = (
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(\d\d-\d\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,:+Z-]{0,13}) "
    r"\[?(?:[^\s\]:]{0,200}/)?([^\s\]:/]{1,100}):\d+\] ?"
)
_RECORD = re.compile(rf"(?:{_PREFIX})?(?:{_VLLM}|({'|'.join(_UVICORN)}))")
_GLUED = re.compile(rf"(?:{_PREFIX})?{_VLLM}()")
_PREFIXES = re.compile(rf"{_PREFIX}(?:{_PREFIX})?")
_TORCH = re.compile(
    r"(?:\[rank(\d+)\]:)?"
    r"(?:\[([IWEF])(\d{3,4} \d\d:\d\d:\d\d\.\d+)? ?([\w.]+):\d+\]"
    r"|([IWEF])(\d{4,8} \d\d:\d\d:\d\d\.\d+) +\d+ ([\w./]+):\d+\]) ?"
)
_TORCH_RANK = re.compile(r"(?:\[(?:PG [^\]]*)?[Rr]ank (\d+)\] ?)")
_RANK = re.compile(r"\[rank(\d+)\]: ?")
_NCCL = re.compile(
    r"(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] )?[^\s:]{1,255}:(\d+):\d+ \[(-?\d+)\] "
    r"(?:\S{1,300}:\d+ (?:\(\w{1,80}\) )?)?NCCL ([A-Z]+) "
)
_NCCL_BARE = re.compile(
    r"(?:^|\] )(?:[^\s:]{1,255}:\d+ (?:\(\w{1,80}\) )?)?NCCL (WARN|ERROR|INFO) "
)
"""The same where somebody changed or cut what stands in front."""
_NCCL_LEVELS = {"INFO": Level.INFO, "WARN": Level.WARNING, "ERROR": Level.ERROR}
_KERNEL = re.compile(
    r"(?:<\d+>)?(?:kern +:\w+ *: )?(?:"
    r"\[ *(\d+\.\d+)\] "
    r"|\[(\w{3} \w{3} +\d+ [\d:]+ \d{4})\] "
    r"|((?:\w{3} +\d+ [\d:]+|\d{4}-\d\d-\d\dT\S+)) \S+ kernel: (?:\[ *\d+\.\d+\] )?"
    r")"
)
_KERNEL_MESSAGE = re.compile(
    r" *(?:NVRM: |nvidia-nvswitch\d*: |amdgpu[ :]|\[drm[:\]]"
    r"|(?:Out of memory|Memory cgroup out of memory): Killed process )"
)
_PROGRESS = re.compile(r"\d%(?: Completed \| |\|[^|]*\| *)[^\s|]{1,30}/[^\s|]{1,30} \[[\d:]+<")
_CARRIER = re.compile(
    # docker logs -t, Kubernetes, journalctl -o short-iso; docker compose; journalctl, ts
    r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d) "
    r"(?:std(?:out|err) [FP] |[\w.:-]{0,255}[\w.-] [\w.@/-]+(?:\[\d+\])?: )?"
    r"|[\w.-]+ +\| "
    r"|[A-Z][a-z]{2} [ \d]\d [\d:]{8} (?:[\w.:-]{0,255}[\w.-] [\w.@/-]+(?:\[\d+\])?: )?"
    # a time of any tool; kubectl logs --prefix; mpirun --tag-output; srun --label
    r"|\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?\]? (?:\[[A-Z][a-z]+\] (?:\(\w+\) )?)?"
    r"|\[pod/[\w./-]+\] "
    r"|[A-Z]+ \d{4}-\d\d-\d\dT[\d:.]+Z \[resource\.[^\]]{1,200}\] "
    r"|\[\d+,\d+\]<std(?:out|err)>: ?"
    r"| {0,3}\d{1,4}: "
)
_PLAIN = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?[\s|-]{1,5}"
    r"(?:[\w.]{1,100} [|-] )?\[?(DEBUG|INFO|WARNING|ERROR|CRITICAL)\]?(?!: {2})[\s:|-]{1,8}"
)
"""What Python's own formatters make of a record, where somebody configured vLLM's logging."""
_CLIENT = "client: "


def parse(text: str) -> Record:
    """Take one line apart.

    Args:
        text: the line without control sequences and without its line feed.
    """
    match = _RECORD.match(text)
    if match is not None:
        return _record(match, text)
    return _parse_rarer(text, carried=False)


def _record(match: re.Match[str], text: str) -> Record:
    """A record of vLLM or uvicorn."""
    process, pid, level, stamp, file, uvicorn = match.groups()
    end = match.end()
    return Record(
        Form.UVICORN if uvicorn else Form.VLLM,
        text[end:],
        _UVICORN[uvicorn] if uvicorn else _LEVELS[level],
        process or "",
        None if pid is None else int(pid),
        stamp or "",
        file or "",
        None,
        None,
        text[:end],
    )


def _parse_rarer(text: str, *, carried: bool) -> Record:
    """Everything but the two formats above; ``carried``: what stood in front is gone already."""
    process, pid, start = "", None, 0
    prefix = _PREFIXES.match(text)
    if prefix is not None:
        # The innermost writer: Ray puts its own prefix behind the engine's.
        process, pid = prefix[3] or prefix[1], int(prefix[4] or prefix[2])
        start = prefix.end()
        inner = _RECORD.match(text, start)
        if inner is not None:
            return msgspec.structs.replace(_record(inner, text), process=process, pid=pid)
    body = text[start:]
    record = _foreign(body)
    if record is not None:
        return msgspec.structs.replace(
            record,
            process=process or record.process,
            pid=record.pid if pid is None else pid,
            head=record.head or text[: len(text) - len(record.message)],
        )
    glued = _GLUED.search(body)
    if glued is not None:
        # Behind a progress bar without a line feed, or behind VLLM_LOGGING_PREFIX.
        return _record(glued, body)
    plain = _PLAIN.match(body)
    if plain is not None:
        return Record(
            Form.VLLM,
            body[plain.end() :],
            _LEVELS[plain[2]],
            process,
            pid,
            plain[1],
            head=text[:start] + plain[0],
        )
    if not carried:
        carrier = _CARRIER.match(body)
        if carrier is not None:
            rest = body[carrier.end() :]
            match = _RECORD.match(rest)
            return _record(match, rest) if match else _parse_rarer(rest, carried=True)
    return Record(Form.RAW, body, Level.NONE, process, pid, head=text[:start])


def _foreign(text: str) -> Record | None:
    """A line in the format of somebody other than vLLM and uvicorn."""
    if text.startswith("[") or text[1:5].isdigit():
        match = _TORCH.match(text)
        if match is not None:
            return _torch(match, text)
        match = _RANK.match(text)
        if match is not None:
            return Record(Form.RAW, text[match.end() :], rank=int(match[1]))
    if " NCCL " in text:
        match = _NCCL.search(text)
        if match is not None:
            stamp, pid, device, level = match.groups()
            return Record(
                Form.NCCL,
                text[match.end() :],
                _NCCL_LEVELS.get(level, Level.WARNING),
                pid=int(pid),
                stamp=stamp or "",
                device=int(device),
            )
    match = _NCCL_BARE.search(text) if "NCCL " in text else None
    if match is not None:
        return Record(Form.NCCL, text[match.end() :], _NCCL_LEVELS[match[1]])
    if text.startswith("{") and (record := _json(text)) is not None:
        return record
    match = _KERNEL.match(text)
    if match is not None:
        return Record(Form.KERNEL, text[match.end() :], stamp=match[1] or match[2] or match[3])
    if _KERNEL_MESSAGE.match(text):
        return Record(Form.KERNEL, text.lstrip())
    if "%" in text and _PROGRESS.search(text) and _GLUED.search(text) is None:
        return Record(Form.PROGRESS, text)
    if text.startswith(_CLIENT):
        return Record(Form.CLIENT, text[len(_CLIENT) :])
    return None


def _torch(match: re.Match[str], text: str) -> Record:
    message = text[match.end() :]
    rank = match[1]
    # The group may be named twice; the rank in it counts where ``[rank3]:`` is missing.
    while (group := _TORCH_RANK.match(message)) is not None:
        rank = rank or group[1]
        message = message[group.end() :]
    return Record(
        Form.TORCH,
        message,
        _LETTERS[match[2] or match[5]],
        stamp=match[3] or match[6] or "",
        file=match[4] or match[7],
        rank=None if rank is None else int(rank),
    )


class _Json(msgspec.Struct):
    """The keys of vLLM's JSON records, and of other people's formatters."""

    message: str = ""
    msg: str = ""
    levelname: str = ""
    level: str = ""
    severity: str = ""
    process_name: str = msgspec.field(default="", name="processName")
    process: Any = None
    asctime: str = ""
    timestamp: Any = ""
    filename: str = ""
    exc_info: Any = None
    log: str = ""
    """The line itself, in the files of Docker's json-file driver."""
    journal: str = msgspec.field(default="", name="MESSAGE")
    """The same of ``journalctl -o json``."""


_json_decoder = msgspec.json.Decoder(_Json)


def _json(text: str) -> Record | None:
    try:
        fields = _json_decoder.decode(text)
    except msgspec.DecodeError:
        return None
    level = _LEVELS.get((fields.levelname or fields.level or fields.severity).upper())
    message = fields.message or fields.msg
    carried = fields.log or fields.journal or (message if level is None else "")
    if carried:
        line = carried.rstrip("\r\n")
        match = _RECORD.match(line)
        return _record(match, line) if match else _parse_rarer(line, carried=True)
    if level is None or not message:
        return None
    if isinstance(fields.exc_info, str):
        message = f"{message}\n{fields.exc_info}"
    return Record(
        Form.VLLM,
        message,
        level,
        fields.process_name,
        fields.process if isinstance(fields.process, int) else None,
        fields.asctime or str(fields.timestamp or ""),
        fields.filename,
        head=text,
    )


class Place(msgspec.Struct, frozen=True):
    """Where a process stands among the workers, as far as its name says."""

    rank: int | None = None
    tp: int | None = None
    is_worker: bool = False
    is_front_end: bool = False


_PLACE_RANK = re.compile(r"rank=(\d+)|VllmWorker-(\d+)")
_PLACE_TP = re.compile(r"[ _]TP(\d+)")


@lru_cache(maxsize=256)
def place_of(process: str) -> Place:
    """Read the name of a process."""
    rank = _PLACE_RANK.search(process)
    tp = _PLACE_TP.search(process)
    name = process.lower()
    return Place(
        rank=int(rank[1] or rank[2]) if rank else None,
        tp=int(tp[1]) if tp else None,
        is_worker="worker" in name,
        is_front_end=name.startswith("apiserver"),
    )
