"""When a line was written.

Most stamps in a log have no year and no zone. How far two lines are apart can be told without
either; to lay them beside the readings of the cards takes a zone and a date nearby.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STAMP = re.compile(
    r"(?:(?P<name>[A-Z][a-z]{2}) +(?P<day>\d{1,2})"  # syslog: May 18 19:02:39
    r"|(?:\d{4}-)?(?P<mm>\d\d)-(?P<dd>\d\d)"  # vLLM, NCCL, JSON
    r"|(?:\d{4})?(?P<md>\d{3,4}))"  # torch: E1012, E429, 20241209
    r"[ T](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
)

_YEAR = re.compile(r"(?:^|\s)((?:19|20)\d{2})(?:-|\d{4} |$)")


def moment(stamp: str) -> float | None:
    """Seconds since the beginning of a year of twelve months of 31 days; ``None`` for a stamp
    that counts from something else, such as the kernel's uptime."""
    found = _STAMP.search(stamp)
    if found is None:
        return None
    month, day = _month_and_day(found)
    if not month:
        return None
    days = month * 31 + day
    return ((days * 24 + int(found["h"])) * 60 + int(found["m"])) * 60.0 + int(found["s"])


def utc_seconds(stamp: str, zone: tzinfo | None, near: float | None) -> float | None:
    """Seconds since the epoch of a stamp; ``None`` for one that counts from something else.

    Args:
        stamp: as written.
        zone: of the writer's clock, where the stamp names none; ``None``: of this host.
        near: seconds since the epoch of a moment from which it is less than half a year away;
            settles the year where the stamp has none. ``None``: only stamps with a year.
    """
    try:
        whole = datetime.fromisoformat(stamp.replace(",", "."))
    except ValueError:
        pass
    else:
        return _in_zone(whole, zone).timestamp()
    found = _STAMP.search(stamp)
    year = _YEAR.search(stamp)
    if found is None or (near is None and year is None):
        return None
    month, day = _month_and_day(found)
    clock = (int(found["h"]), int(found["m"]), int(found["s"]))
    if year is not None:
        years = [int(year[1])]
    else:
        assert near is not None
        about = datetime.fromtimestamp(near, UTC).year
        years = [about - 1, about, about + 1]
    moments = []
    for candidate in years:
        try:
            moments.append(_in_zone(datetime(candidate, month, day, *clock), zone).timestamp())
        except ValueError:
            continue  # February 29 of another year, or no date at all
    return min(moments, key=lambda moment: abs(moment - (near or moment)), default=None)


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    if moment.tzinfo is not None:
        return moment
    return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)


def _month_and_day(found: re.Match[str]) -> tuple[int, int]:
    """Month and day of a stamp; month 0 for a name that is no month's."""
    if found["name"]:
        name = found["name"]
        return (_MONTHS.index(name) + 1 if name in _MONTHS else 0, int(found["day"]))
    if found["md"]:
        return int(found["md"][:-2]), int(found["md"][-2:])
    return int(found["mm"]), int(found["dd"])
