"""What is read from an NVIDIA card, how often, and in which unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpu_dash.gpu.backend import ThrottleCounters
from gpu_dash.gpu.card import COUNTERS, NotOffered, Quantity
from gpu_dash.gpu.nvml_driver import NvmlDriver, known
from gpu_dash.gpu.nvml_fields import Field, read_fields
from gpu_dash.gpu.nvml_series import ByteCounters, PowerRecord
from gpu_dash.gpu.reasons import throttle_reasons

NO_SENSOR_CELSIUS = 255
"""What a temperature sensor that is not there answers."""

_SW_POWER_CAP = 74
_THERMAL = 75
_MEMORY_TEMPERATURE = 82
_SW_THERMAL = 269
_HW_THERMAL = 270
_HW_POWER_BRAKE = 271


def fast_quantities(driver: NvmlDriver, handle: Any) -> list[Quantity]:
    """Calls that take a microsecond or two."""
    nvml = driver.nvml
    number = _number_of(driver, handle)

    def reasons() -> Mapping[str, Any]:
        bits = driver.call("nvmlDeviceGetCurrentClocksEventReasons", handle)
        return {"throttle_reasons": throttle_reasons(bits)}

    def temperature() -> Mapping[str, Any]:
        celsius = driver.number("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU)
        return {"temperature_celsius": None if celsius == NO_SENSOR_CELSIUS else celsius}

    return [
        Quantity("nvmlDeviceGetTemperature", temperature),
        number("power_watts", "nvmlDeviceGetPowerUsage", scale=1000),
        number("sm_clock_mhz", "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        Quantity("nvmlDeviceGetCurrentClocksEventReasons", reasons),
    ]


def slow_quantities(driver: NvmlDriver, handle: Any, *, has_limits: bool) -> list[Quantity]:
    """Calls that are dear, or whose values move slowly.

    Args:
        has_limits: the card names its temperature limits. If it does not, the headroom is what
            the driver says: newer cards may offer only the distance.
    """
    nvml = driver.nvml
    number = _number_of(driver, handle)

    def utilization() -> Mapping[str, Any]:
        rates = driver.call("nvmlDeviceGetUtilizationRates", handle)
        return {
            "utilization_percent": known(rates.gpu),
            "memory_utilization_percent": known(rates.memory),
        }

    quantities = [
        Quantity("nvmlDeviceGetUtilizationRates", utilization),
        Quantity("nvmlDeviceGetMemoryInfo", _MemoryInfo(driver, handle)),
        number("memory_clock_mhz", "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        number("energy_joules", "nvmlDeviceGetTotalEnergyConsumption", scale=1000),
        Quantity("nvmlDeviceGetFieldValues", _Fields(driver, handle)),
        Quantity("nvmlDeviceGetFieldValues (bytes)", ByteCounters(driver, handle)),
        Quantity("nvmlDeviceGetSamples", PowerRecord(driver, handle)),
    ]
    if not has_limits:
        quantities.append(Quantity("nvmlDeviceGetMarginTemperature", _Margin(driver, handle)))
    return quantities


def rare_quantities(driver: NvmlDriver, handle: Any) -> list[Quantity]:
    """Calls whose values hardly move. A fan's takes a tenth of a millisecond and more."""
    nvml = driver.nvml
    number = _number_of(driver, handle)

    def errors(field: str, kind: int) -> Quantity:
        call = "nvmlDeviceGetTotalEccErrors"

        def read() -> Mapping[str, Any]:
            return {field: driver.call(call, handle, kind, nvml.NVML_VOLATILE_ECC)}

        return Quantity(f"{call} ({field})", read)

    return [
        number("power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit", scale=1000),
        number("fan_percent", "nvmlDeviceGetFanSpeed"),
        errors("ecc_corrected", nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        errors("ecc_uncorrected", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
    ]


def _number_of(driver: NvmlDriver, handle: Any) -> Callable[..., Quantity]:
    def quantity(field: str, call: str, *arguments: Any, scale: float = 1.0) -> Quantity:
        def read() -> Mapping[str, Any]:
            return {field: driver.number(call, handle, *arguments, scale=scale)}

        return Quantity(call, read)

    return quantity


class _Margin:
    """Degrees to the nearest limit, as the driver says. Some H100s say a negative number at rest,
    which is no margin."""

    def __init__(self, driver: NvmlDriver, handle: Any) -> None:
        self._driver = driver
        self._handle = handle

    def __call__(self) -> Mapping[str, Any]:
        margin = self._driver.number("nvmlDeviceGetMarginTemperature", self._handle)
        return {"headroom_celsius": None if margin is None or margin < 0 else margin}


class _MemoryInfo:
    """Memory in use without what the driver reserves, which only the second version of the call
    tells apart."""

    def __init__(self, driver: NvmlDriver, handle: Any) -> None:
        self._driver = driver
        self._handle = handle
        self._version: tuple[int, ...] = (driver.nvml.nvmlMemory_v2,)

    def __call__(self) -> Mapping[str, Any]:
        try:
            memory = self._driver.call("nvmlDeviceGetMemoryInfo", self._handle, *self._version)
        except NotOffered:
            if not self._version:
                raise
            self._version = ()
            return self()
        return {"memory_used_bytes": memory.used, "memory_total_bytes": memory.total}


class _Fields:
    """Memory temperature and throttle counters, in one call to the driver.

    Fields that the card does not offer are not asked for again.
    """

    def __init__(self, driver: NvmlDriver, handle: Any) -> None:
        self._driver = driver
        self._handle = handle
        self._fields: list[Field] = [
            _MEMORY_TEMPERATURE,
            _SW_POWER_CAP,
            _SW_THERMAL,
            _HW_THERMAL,
            _HW_POWER_BRAKE,
            _THERMAL,
        ]

    def __call__(self) -> Mapping[str, Any]:
        values = read_fields(self._driver, self._handle, self._fields)
        if _SW_THERMAL in values or _HW_THERMAL in values:
            values.pop(_THERMAL, None)
            if _THERMAL in self._fields:
                self._fields.remove(_THERMAL)
        celsius = values.get(_MEMORY_TEMPERATURE)
        counted = {field: value / 1e9 for field, value in values.items()}
        return {
            "memory_temperature_celsius": None if celsius == NO_SENSOR_CELSIUS else celsius,
            COUNTERS: ThrottleCounters(
                sw_power_cap_s=counted.get(_SW_POWER_CAP),
                sw_thermal_s=counted.get(_SW_THERMAL),
                hw_thermal_s=counted.get(_HW_THERMAL),
                thermal_s=counted.get(_THERMAL),
                hw_power_brake_s=counted.get(_HW_POWER_BRAKE),
            ),
        }
