"""Any saved output of a GPU tool or kernel: finds out what it is and reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpu_dash.gpu.kernel_event import KernelEvent
from gpu_dash.gpu.kernel_log import read_kernel_log
from gpu_dash.gpu.saved import (
    amd_smi,
    amd_smi_frame,
    amd_smi_table,
    nvidia_smi,
    nvidia_smi_csv,
    nvidia_smi_dmon,
    nvidia_smi_list,
    nvidia_smi_table,
    rocm_smi,
    rocm_smi_table,
    sysfs,
)
from gpu_dash.gpu.saved.card import SavedCard
from gpu_dash.gpu.saved.failures import SavedFailure, read_failures
from gpu_dash.model.text import strip_controls


@dataclass(frozen=True, slots=True)
class SavedOutput:
    """What a text says."""

    cards: list[SavedCard] = field(default_factory=list)
    events: list[KernelEvent] = field(default_factory=list)
    """Of a kernel log."""
    failures: list[SavedFailure] = field(default_factory=list)
    remark: str = ""
    """What a person should know about the reading."""

    @property
    def is_empty(self) -> bool:
        """Nothing in the text is known."""
        return not (self.cards or self.events or self.failures)


_READERS: tuple[Callable[[str], list[SavedCard] | None], ...] = (
    # the narrow ones first: JSON and XML, then tables, then loose lines
    amd_smi.read_json,
    rocm_smi.read_json,
    nvidia_smi.read_xml,
    nvidia_smi.read_text,
    nvidia_smi_table.read_table,
    nvidia_smi_dmon.read_dmon,
    nvidia_smi_list.read_list,
    amd_smi_frame.read_frame,
    amd_smi.read_csv,
    rocm_smi.read_csv,
    rocm_smi.read_text,
    rocm_smi_table.read_table,
    amd_smi_table.read_table,
    sysfs.read_sensors,
    amd_smi.read_text,
    sysfs.read_decoded_metrics,
    sysfs.read_listing,
)


def read_saved(text: str, columns: Sequence[str] = ()) -> SavedOutput:
    """Read a saved output.

    Args:
        text: rocm-smi, amd-smi, nvidia-smi, a listing of sysfs or a kernel log.
        columns: of a CSV of nvidia-smi without a header line.
    """
    text = "\n".join(strip_controls(line) for line in text.split("\n"))
    events = list(read_kernel_log(text.split("\n")))
    if events:
        return SavedOutput(events=events)
    failures = read_failures(text)
    try:
        cards = nvidia_smi_csv.read_csv(text, columns)
    except nvidia_smi_csv.MissingHeader as error:
        return SavedOutput(error.cards, failures=failures, remark=str(error))
    for read in () if cards else _READERS:
        cards = read(text)
        if cards:
            break
    return SavedOutput(cards or [], failures=failures)
