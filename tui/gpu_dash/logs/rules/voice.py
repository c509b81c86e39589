"""The tone in which a line is said: the same words are an alarm in one and nothing in another."""

from __future__ import annotations

from enum import IntEnum

from gpu_dash.logs.grammar import Form, Level, Record


class Voice(IntEnum):
    """In what tone a line is said; a rule names those in which its words mean something."""

    SILENT = 0
    """Never looked at: progress bars, empty lines."""
    RAW = 1
    """Text without a level: tracebacks, libraries' own prints."""
    FAILURE = 2
    """Records at ERROR and CRITICAL, of vLLM, uvicorn and torch."""
    WARNING = 3
    NOTE = 4
    """Records at INFO and DEBUG. Few mean anything; many quote the words of a failure."""
    NCCL_WARN = 5
    NCCL_NOTE = 6
    KERNEL = 7
    ACCESS = 8
    """A line of uvicorn's access log."""
    CLIENT = 9


def voice_of(record: Record) -> Voice:
    """The tone of a line."""
    form = record.form
    if form is Form.VLLM or form is Form.TORCH or form is Form.UVICORN:
        if record.level >= Level.ERROR:
            return Voice.FAILURE
        if record.level is Level.WARNING:
            return Voice.WARNING
        if form is Form.UVICORN and " HTTP/" in record.message:
            return Voice.ACCESS
        return Voice.NOTE
    if form is Form.RAW:
        return Voice.RAW if record.message else Voice.SILENT
    if form is Form.NCCL:
        return Voice.NCCL_WARN if record.level >= Level.WARNING else Voice.NCCL_NOTE
    if form is Form.KERNEL:
        return Voice.KERNEL
    return Voice.CLIENT if form is Form.CLIENT else Voice.SILENT


def voices(*names: Voice) -> frozenset[Voice]:
    """The voices in which a rule's words mean something."""
    return frozenset(names)
