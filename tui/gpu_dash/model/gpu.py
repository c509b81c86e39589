"""What a GPU is and what one reading of it says.

``None`` means that the card does not offer the value. A reading that failed is an event
(:class:`~gpu_dash.model.events.GpuReadFailed`), never a quiet ``None`` or an invented number.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class GpuVendor(StrEnum):
    """Who made the card."""

    NVIDIA = "nvidia"
    AMD = "amd"
    SIMULATED = "simulated"


class GpuInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What does not change while the driver is loaded."""

    gpu: int
    """Index on this host, as the vendor's tools count."""
    name: str
    uuid: str = ""
    pci_bus_id: str = ""
    """Lower case with the domain, as the kernel writes it: ``0000:9b:00.0``."""
    vendor: GpuVendor = GpuVendor.NVIDIA
    max_operating_temperature_celsius: float | None = None
    slowdown_temperature_celsius: float | None = None
    shutdown_temperature_celsius: float | None = None
    power_limit_default_watts: float | None = None
    power_limit_min_watts: float | None = None
    power_limit_max_watts: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    memory_total_bytes: int | None = None
    mig_uuids: tuple[str, ...] = ()
    """MIG devices that the card is split into. Such a card tells no utilisation."""

    @property
    def nearest_limit_celsius(self) -> float | None:
        """The lowest of the card's temperature limits: where it begins to slow down."""
        limits = [
            limit
            for limit in (
                self.max_operating_temperature_celsius,
                self.slowdown_temperature_celsius,
                self.shutdown_temperature_celsius,
            )
            if limit is not None
        ]
        return min(limits, default=None)


class ThrottleKind(StrEnum):
    """Why a card runs below the clock it was asked for, in the order of alarm."""

    THERMAL = "thermal"
    """HW or SW thermal slowdown."""
    POWER_BRAKE = "power_brake"
    """The board's or the chassis' power brake signal."""
    SLOWDOWN = "slowdown"
    """``hw_slowdown`` alone for two samples: thermal, brake or fast power, the driver says not."""
    POWER_CAP = "power_cap"
    """The power limit. Normal under decode: shown amber only when it costs clock."""

    @property
    def is_alarm(self) -> bool:
        """True for the kinds shown in red; a power cap is not one of them."""
        return self is not ThrottleKind.POWER_CAP


class GpuSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reading of one card."""

    gpu: int
    temperature_celsius: float | None = None
    """NVIDIA: the core. AMD: edge, or junction where there is no edge."""
    hotspot_temperature_celsius: float | None = None
    memory_temperature_celsius: float | None = None
    hbm_temperatures_celsius: tuple[float, ...] | None = None
    """Of each memory stack, where a card tells them apart."""
    headroom_celsius: float | None = None
    """Degrees to the nearest of the card's limits."""
    power_watts: float | None = None
    """NVIDIA: averaged over a second from Ampere on. AMD: average or momentary, as the chip has
    it; ``None`` for the second die of a card, whose first die answers for both."""
    power_peak_watts: float | None = None
    """The highest since the reading before, from the driver's own record of 50 a second."""
    power_mean_watts: float | None = None
    """Over the time since the reading before, from the same record: without the polled power's
    lag of a second."""
    power_limit_watts: float | None = None
    """The limit in force (enforced), which can differ from the one that was set."""
    energy_joules: float | None = None
    """A counter since the driver was loaded; only differences mean anything."""
    energy_age_s: float | None = None
    """Seconds from the reading of that counter to this sample: it is dear, and read once a second.
    ``None``: it is of this moment."""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    utilization_percent: float | None = None
    """``None`` on a card in MIG mode, which does not tell it."""
    memory_utilization_percent: float | None = None
    """Share of time in which memory was read or written."""
    fan_percent: float | None = None
    """What the fan is asked for; may pass 100. ``None`` on cards without one."""
    pcie_tx_bytes: int | None = None
    """A counter that may wrap; only differences mean anything."""
    pcie_rx_bytes: int | None = None
    nvlink_tx_bytes: int | None = None
    """Sum over the links since the driver was loaded."""
    nvlink_rx_bytes: int | None = None
    ecc_corrected: int | None = None
    """Memory errors since the driver was loaded."""
    ecc_uncorrected: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    """Names such as ``sw_power_cap hw_thermal sw_thermal hw_power_brake hw_slowdown``; a bit
    without a name as hex, ``0x200``. Idle and application clocks are no throttling and left out."""
    throttle_thermal_s: float | None = None
    """Seconds of thermal throttling since the source was opened, from the driver's counters
    where it has them, else from the polled reasons."""
    throttle_power_s: float | None = None
    """The same for the power cap and the power brake."""


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that computes on a card."""

    gpu: int
    pid: int
    """As the driver says it; in a container it may be the host's."""
    memory_bytes: int | None = None
    """Of the card; ``None``: the driver does not tell, as for a card in MIG mode."""
    name: str = ""
    """Empty: no such process can be seen here."""
    belongs_to: tuple[int, ...] = ()
    """Pids of the process, of its session's leader and of its ancestors."""


class GpuSourceState(StrEnum):
    """How the readings fare as a whole."""

    STARTING = "starting"
    LIVE = "live"
    STALE = "stale"
    """The sampler is silent: a driver call hangs, or the process was lost and is replaced."""
    FAILED = "failed"
    NONE = "none"
    """There is no usable source on this host, or none was wanted."""
