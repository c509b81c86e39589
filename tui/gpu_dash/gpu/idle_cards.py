"""Simulated cards without a server: they idle, and cool down if they were warm. Pure."""

from __future__ import annotations

import math

from gpu_dash.model.gpu import GpuInfo, GpuSample, GpuVendor

REST_CELSIUS = 36.0
"""Where an idle card comes to rest."""
COOLING_S = 15.0
"""Time in which a card loses two thirds of what is left of its warmth."""
IDLE_POWER_WATTS = 70.0
IDLE_SM_CLOCK_MHZ = 345.0


def default_cards(count: int) -> tuple[GpuInfo, ...]:
    """The cards to show before any simulated server has named its own: those of the built-in one,
    so that nothing on the screen changes its name when that starts."""
    return tuple(
        GpuInfo(
            gpu=gpu,
            name="Simulated H100 80GB",
            uuid=f"GPU-51000000-0000-4000-8000-{gpu:012x}",
            pci_bus_id=f"0000:{gpu + 1:02x}:00.0",
            vendor=GpuVendor.SIMULATED,
            max_operating_temperature_celsius=87.0,
            slowdown_temperature_celsius=89.0,
            shutdown_temperature_celsius=95.0,
            power_limit_default_watts=700.0,
            power_limit_min_watts=200.0,
            power_limit_max_watts=700.0,
            sm_clock_max_mhz=1980.0,
            memory_clock_max_mhz=2619.0,
            memory_total_bytes=80 * 1024**3,
        )
        for gpu in range(count)
    )


def idle_sample(info: GpuInfo, before: GpuSample | None, elapsed_s: float) -> GpuSample:
    """An idle card, some time after the sample before (``None``: it was never busy)."""
    warm = REST_CELSIUS
    energy = 0.0
    if before is not None:
        if before.temperature_celsius is not None:
            warm = before.temperature_celsius
        energy = before.energy_joules or 0.0
    warmth = (warm - REST_CELSIUS) * math.exp(-elapsed_s / COOLING_S)
    temperature = round(REST_CELSIUS + warmth, 3)
    limit = info.nearest_limit_celsius
    return GpuSample(
        gpu=info.gpu,
        temperature_celsius=temperature,
        headroom_celsius=None if limit is None else limit - temperature,
        power_watts=IDLE_POWER_WATTS,
        power_limit_watts=info.power_limit_default_watts,
        energy_joules=round(energy + IDLE_POWER_WATTS * elapsed_s, 3),
        sm_clock_mhz=IDLE_SM_CLOCK_MHZ,
        memory_clock_mhz=info.memory_clock_max_mhz,
        utilization_percent=0.0,
        memory_used_bytes=0,
        memory_total_bytes=info.memory_total_bytes,
    )
