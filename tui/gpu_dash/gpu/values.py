"""Numbers out of what GPU tools and the kernel write, and what means that there is none. Pure.

Tools spell a missing value in dozens of ways (``N/A``, ``[Not Supported]``, ``N/A (Secondary
die)``, a whole sentence), and firmware has its own: all ones, -1, 255 degrees. So a value is
known only if it begins as a number and lies where such a quantity can lie; all else is missing.
"""

from __future__ import annotations

import re
from typing import Any

_NUMBER = re.compile(r"\s*\(?\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z%°µ/]*)")
_NO_WORDS = (
    "n/a", "not supported", "requested functionality", "unknown", "none", "gpu is lost",
    "gpu requires reset", "reset required", "insufficient", "err!", "unsupported", "not found",
    "not available", "no data", "function not found", "deprecated", "null",
)  # fmt: skip
_HIGHEST_CELSIUS = 200.0
_LOWEST_CELSIUS = -60.0
_HIGHEST_WATTS = 5000.0
_HIGHEST_MHZ = 30000.0
_BYTES_OF = {
    "": 1, "B": 1,
    "KB": 2**10, "KIB": 2**10,
    "MB": 2**20, "MIB": 2**20,
    "GB": 2**30, "GIB": 2**30,
    "TB": 2**40, "TIB": 2**40,
}  # fmt: skip


def number(value: Any) -> float | None:
    """The number with which a value begins; ``None`` if it does not begin with one.

    ``"627.40 W"``, ``"(1725Mhz)"``, ``45`` and ``{"value": 45, "unit": "C"}`` are numbers,
    ``"N/A"``, ``"[Not Supported]"`` and ``"0x1"`` are not.
    """
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    match = _NUMBER.match(value) if isinstance(value, str) else None
    if match is None or match[2].startswith("x"):
        return None
    return float(match[1])


def unit(value: Any) -> str:
    """The unit behind the number; empty where there is none."""
    if isinstance(value, dict):
        return str(value.get("unit", ""))
    match = _NUMBER.match(value) if isinstance(value, str) else None
    return "" if match is None else match[2]


def celsius(value: Any) -> float | None:
    """A temperature, or a distance between two."""
    return _within(number(value), _LOWEST_CELSIUS, _HIGHEST_CELSIUS)


def watts(value: Any) -> float | None:
    """A power."""
    return _within(_scaled(value), 0.0, _HIGHEST_WATTS)


def limit_watts(value: Any) -> float | None:
    """A power limit. A limit of nothing is none."""
    return watts(value) or None


def megahertz(value: Any) -> float | None:
    """A clock."""
    clock = number(value)
    if clock is not None and unit(value).lower() == "ghz":
        clock *= 1000
    return None if clock == 0xFFFF else _within(clock, 0.0, _HIGHEST_MHZ)


def percent(value: Any) -> float | None:
    """A share. What is above 100 is a counter under the same name."""
    return _within(number(value), 0.0, 100.0)


def count(value: Any) -> int | None:
    """A number of things, from none up."""
    amount = number(value)
    if amount is None or amount < 0 or amount in (0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF):
        return None
    return int(amount)


def size_bytes(value: Any, default_unit: str = "") -> int | None:
    """A size. All tools mean powers of two, whether they write MB or MiB."""
    amount = number(value)
    factor = _BYTES_OF.get((unit(value) or default_unit).upper())
    if amount is None or amount < 0 or factor is None:
        return None
    return round(amount * factor)


def words(value: Any) -> str:
    """A name; empty where the tool says that there is none."""
    text = str(value).strip() if isinstance(value, str | int) else ""
    bare = text.strip("[]").lower()
    missing = bare.startswith(_NO_WORDS)
    return "" if missing else text


def kernel_bus_id(bus_id: str) -> str:
    """A PCI address as the kernel writes it: ``00000000:9B:00.0`` → ``0000:9b:00.0``.

    Kernel logs leave the function away (``0000:9b:00``); a card is function 0.
    """
    domain, _, rest = bus_id.strip().lower().partition(":")
    if domain.startswith("0000") and len(domain) > 4:
        domain = domain[-4:]
    return f"{domain}:{rest if '.' in rest else f'{rest}.0'}"


def _scaled(value: Any) -> float | None:
    power = number(value)
    if power is None:
        return None
    return power / 1000 if unit(value) == "mW" else power


def _within(value: float | None, least: float, most: float) -> float | None:
    return value if value is not None and least <= value <= most else None
