"""What ``nvidia-smi -q`` says, where it was written into a log.

``HW Slowdown`` is only the sum of the lines below it and is not looked at.
"""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Rule, Weight
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.model.log import Severity

_ACTIVE = r"^\s*[\w ]+\s*: Active\b"
_NAMED_INACTIVE_OR_HEADING = (
    r"(?i)slowdown\W{1,40}(?:not|inactive|false|no|0)\b|^[\w. \[\]]+(?:, [\w., \[\]]*)?$"
)
"""The second is the first line of ``--query-gpu`` CSV, which names every column."""
_RAW = voices(Voice.RAW)

RULES = (
    Rule(
        "thermal",
        ("HW Thermal Slowdown", "SW Thermal Slowdown"),
        pattern=r"Thermal Slowdown\s*: Active\b",
        weight=Weight.CONDITION,
        voices=_RAW,
        matches=(
            "            HW Thermal Slowdown           : Active",
            "Clocks Event Reasons: SW Thermal Slowdown: Active",
        ),
        rejects=(
            "            HW Thermal Slowdown           : Not Active",
            "        GPU Slowdown Temp                 : 97 C",
        ),
    ),
    Rule(
        "thermal",
        ("hw_thermal_slowdown", "sw_thermal_slowdown"),
        unless=_NAMED_INACTIVE_OR_HEADING,
        values=r"(?i)\bgpu\W{0,2}(?P<gpu>\d+)\b",
        weight=Weight.CONDITION,
        voices=_RAW,
        matches=(
            "gpu 2 temp=94C clocks_event_reasons=[hw_thermal_slowdown, hw_slowdown]",
            "clocks_event_reasons.hw_thermal_slowdown: Active",
        ),
        rejects=(
            "clocks_event_reasons.hw_thermal_slowdown: Not Active",
            "index, temperature.gpu, clocks_event_reasons.hw_thermal_slowdown",
        ),
    ),
    Rule(
        "power",
        ("hw_power_brake_slowdown",),
        unless=_NAMED_INACTIVE_OR_HEADING,
        values=r"(?i)\bgpu\W{0,2}(?P<gpu>\d+)\b",
        weight=Weight.CONDITION,
        voices=_RAW,
        matches=("clocks_event_reasons.hw_power_brake_slowdown: Active",),
        rejects=("clocks_event_reasons.hw_power_brake_slowdown: Not Active",),
    ),
    Rule(
        "power",
        ("HW Power Brake Slowdown ",),
        pattern=_ACTIVE,
        weight=Weight.CONDITION,
        voices=_RAW,
        matches=("            HW Power Brake Slowdown       : Active",),
        rejects=("            HW Power Brake Slowdown       : Not Active",),
    ),
    Rule(
        "power",
        ("SW Power Cap ",),
        pattern=_ACTIVE,
        weight=Weight.CONDITION,
        severity=Severity.INFO,
        voices=_RAW,
        first_check="normal at full load: compare the power limit with the card's default",
        matches=("        SW Power Cap                      : Active",),
        rejects=("        SW Power Cap                      : Not Active",),
    ),
)
