"""When a line was written, as far as intervals go.

Log stamps have no year and no zone, so all that is asked of them is how far two lines are apart.
"""

from __future__ import annotations

import re

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STAMP = re.compile(
    r"(?:(?P<name>[A-Z][a-z]{2}) +(?P<day>\d{1,2})"  # syslog: May 18 19:02:39
    r"|(?:\d{4}-)?(?P<mm>\d\d)-(?P<dd>\d\d)"  # vLLM, NCCL, JSON
    r"|(?:\d{4})?(?P<md>\d{3,4}))"  # torch: E1012, E429, 20241209
    r"[ T](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
)


def moment(stamp: str) -> float | None:
    """Seconds since the beginning of a year of twelve months of 31 days; ``None`` for a stamp
    that counts from something else, such as the kernel's uptime."""
    found = _STAMP.search(stamp)
    if found is None:
        return None
    if found["name"]:
        if found["name"] not in _MONTHS:
            return None
        month, day = _MONTHS.index(found["name"]) + 1, int(found["day"])
    elif found["md"]:
        month, day = int(found["md"][:-2]), int(found["md"][-2:])
    else:
        month, day = int(found["mm"]), int(found["dd"])
    days = month * 31 + day
    return ((days * 24 + int(found["h"])) * 60 + int(found["m"])) * 60.0 + int(found["s"])
