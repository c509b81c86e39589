"""How hot one simulated card is, what it draws, and how fast it may run: pure arithmetic.

Heat is a first-order model: ``dT/dt = (ambient + R * P - T) / tau``, so under a steady power the
card settles at ``ambient + R * P``. Power is what the card draws idle plus a part that grows with
the activity and with the clock to a power. The clock is the highest that every limit allows:

* the **power cap**: the clock at which the power stays under the limit (``sw_power_cap``);
* **software slowdown**: above the maximum operating temperature the clock falls by a share per
  degree (``sw_thermal``);
* **hardware slowdown**: at the slowdown threshold the clock is cut to a fraction and held there
  until the card has cooled by a hysteresis (``hw_thermal`` with ``hw_slowdown``).

A clock that was lowered for heat comes back by so many MHz a second, and until it is back the
card still says ``sw_thermal``.

A real card with its heat sink takes a minute or more to settle; ``time_constant_s`` is shortened
to a quarter of that, so that a demo ramp of two minutes shows the whole story.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

_LONGEST_STEP_S = 0.1
"""The limits react between two steps, so a long stretch of time is cut into short ones."""


@dataclass(frozen=True, slots=True)
class CardSpec:
    """What does not change about a card: its limits and the constants of the model."""

    name: str = "Simulated H100 80GB"
    ambient_celsius: float = 32.0
    thermal_resistance_celsius_per_watt: float = 0.054
    """R: degrees above ambient for each watt. Bad air flow is a high R."""
    time_constant_s: float = 15.0
    """tau: after this long a step in power has done 63 % of its effect."""
    idle_power_watts: float = 110.0
    """Drawn with the model loaded and nothing to do."""
    dynamic_power_watts: float = 640.0
    """Drawn on top of it at full activity and full clock, when no limit steps in."""
    power_exponent: float = 2.5
    """Dynamic power goes with the clock to this power: a lower clock needs a lower voltage."""
    power_limit_watts: float = 700.0
    power_limit_min_watts: float = 200.0
    power_limit_max_watts: float = 700.0
    sm_clock_max_mhz: float = 1980.0
    sm_clock_min_mhz: float = 345.0
    sm_clock_step_mhz: float = 15.0
    memory_clock_mhz: float = 2619.0
    max_operating_temperature_celsius: float = 87.0
    slowdown_temperature_celsius: float = 89.0
    shutdown_temperature_celsius: float = 95.0
    slowdown_hysteresis_celsius: float = 6.0
    slowdown_clock_fraction: float = 0.5
    """What hardware slowdown leaves of the clock."""
    clock_loss_per_celsius: float = 0.02
    """Share of the clock that software slowdown takes for each degree too much."""
    clock_recovery_mhz_per_s: float = 60.0
    activity_time_constant_s: float = 0.25
    """Readings and power regulation average the activity over about this long."""
    memory_total_bytes: int = 80 * 1024**3
    memory_used_bytes: int = 74 * 1024**3
    """Weights and the KV cache, which vLLM takes at the start and keeps."""

    def hastened(self, factor: float) -> CardSpec:
        """The same card with heat and recovery ``factor`` times as fast."""
        return replace(
            self,
            time_constant_s=self.time_constant_s / factor,
            clock_recovery_mhz_per_s=self.clock_recovery_mhz_per_s * factor,
        )


class Card:
    """The state of one card; :meth:`advance` is the only thing that changes it."""

    def __init__(self, spec: CardSpec) -> None:
        self.spec = spec
        self.power_watts = spec.idle_power_watts
        self.temperature_celsius = (
            spec.ambient_celsius + spec.thermal_resistance_celsius_per_watt * self.power_watts
        )
        self.sm_clock_mhz = spec.sm_clock_max_mhz
        self.energy_joules = 0.0
        self.throttle_thermal_s = 0.0
        self.throttle_power_s = 0.0
        self.throttle_reasons: tuple[str, ...] = ()
        self._activity = 0.0
        self._busy = 0.0
        self._thermal_ceiling_mhz = spec.sm_clock_max_mhz
        self._hardware_slowdown = False

    @property
    def utilization_percent(self) -> float:
        """Share of the recent time in which anything ran, as NVML counts it."""
        return float(round(100 * self._busy))

    def advance(self, elapsed_s: float, *, activity: float, busy: float) -> None:
        """Let time pass.

        Args:
            elapsed_s: how much time.
            activity: 0 to 1, how hard the chip works.
            busy: 0 to 1, the share of the time in which any kernel runs; a kernel that only
                waits for another card is busy and works little.
        """
        while elapsed_s > 0:
            step_s = min(elapsed_s, _LONGEST_STEP_S)
            elapsed_s -= step_s
            self._step(step_s, activity, busy)

    def _step(self, step_s: float, activity: float, busy: float) -> None:
        spec = self.spec
        blend = 1 - math.exp(-step_s / spec.activity_time_constant_s)
        self._activity += (activity - self._activity) * blend
        self._busy += (busy - self._busy) * blend

        self._limit_for_heat(step_s)
        power_ceiling_mhz = self._power_ceiling_mhz()
        capped = power_ceiling_mhz < self._thermal_ceiling_mhz
        self.sm_clock_mhz = self._on_a_step(min(power_ceiling_mhz, self._thermal_ceiling_mhz))
        self._name_reasons(capped)
        if capped:
            self.throttle_power_s += step_s
        if self._thermal_ceiling_mhz < spec.sm_clock_max_mhz:
            self.throttle_thermal_s += step_s

        share = (self.sm_clock_mhz / spec.sm_clock_max_mhz) ** spec.power_exponent
        self.power_watts = spec.idle_power_watts + spec.dynamic_power_watts * self._activity * share
        self.energy_joules += self.power_watts * step_s
        settled = spec.ambient_celsius + spec.thermal_resistance_celsius_per_watt * self.power_watts
        self.temperature_celsius += (settled - self.temperature_celsius) * (
            1 - math.exp(-step_s / spec.time_constant_s)
        )

    def _limit_for_heat(self, step_s: float) -> None:
        spec = self.spec
        if self.temperature_celsius >= spec.slowdown_temperature_celsius:
            self._hardware_slowdown = True
        elif self.temperature_celsius <= (
            spec.slowdown_temperature_celsius - spec.slowdown_hysteresis_celsius
        ):
            self._hardware_slowdown = False
        if self._hardware_slowdown:
            self._thermal_ceiling_mhz = spec.sm_clock_max_mhz * spec.slowdown_clock_fraction
            return
        excess = max(0.0, self.temperature_celsius - spec.max_operating_temperature_celsius)
        wanted_mhz = spec.sm_clock_max_mhz * (1 - spec.clock_loss_per_celsius * excess)
        recovered_mhz = self._thermal_ceiling_mhz + spec.clock_recovery_mhz_per_s * step_s
        self._thermal_ceiling_mhz = min(wanted_mhz, recovered_mhz)

    def _power_ceiling_mhz(self) -> float:
        spec = self.spec
        allowed_watts = spec.power_limit_watts - spec.idle_power_watts
        wanted_watts = spec.dynamic_power_watts * self._activity
        if wanted_watts <= allowed_watts:
            return spec.sm_clock_max_mhz
        share: float = (allowed_watts / wanted_watts) ** (1 / spec.power_exponent)
        return spec.sm_clock_max_mhz * share

    def _on_a_step(self, clock_mhz: float) -> float:
        spec = self.spec
        return max(
            spec.sm_clock_min_mhz, clock_mhz // spec.sm_clock_step_mhz * spec.sm_clock_step_mhz
        )

    def _name_reasons(self, capped: bool) -> None:
        spec = self.spec
        reasons = []
        if capped:
            reasons.append("sw_power_cap")
        if self._hardware_slowdown:
            reasons += ["hw_slowdown", "hw_thermal"]
            too_hot = self.temperature_celsius > spec.max_operating_temperature_celsius
            if too_hot:
                reasons.append("sw_thermal")
        elif self._thermal_ceiling_mhz < spec.sm_clock_max_mhz:
            reasons.append("sw_thermal")
        self.throttle_reasons = tuple(reasons)
