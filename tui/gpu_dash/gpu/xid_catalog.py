"""What to do after an XID: NVIDIA's immediate and follow-up action, in the catalogue's words."""

from __future__ import annotations

from typing import NamedTuple


class Actions(NamedTuple):
    """What the catalogue advises."""

    immediate: str
    follow_up: str


_RESTART_APP = "restart the application"
_RESET = "reset the GPU"
_SUPPORT = "contact support if it returns"
_NOTHING = "none"
_NVLINK5 = Actions(
    "check the NVLink 5 sub-code in the line: fatal ones need a reset of all linked GPUs",
    "`nvidia-smi nvlink -e` and the fabric manager's log on both ends",
)

_ACTIONS = {
    8: Actions(_RESTART_APP, _SUPPORT),
    13: Actions(_RESTART_APP, "debug the application; on one card only: run dcgmi diag"),
    31: Actions(_RESTART_APP, "debug the application; on one card only: run dcgmi diag"),
    43: Actions(_NOTHING, _SUPPORT),
    45: Actions("none: it follows another error", "look at the XID before it"),
    46: Actions(_RESET, _SUPPORT),
    48: Actions("drain the card; a reset if no XID 63 or 64 follows", _SUPPORT),
    62: Actions(_RESET, _SUPPORT),
    63: Actions(_NOTHING, _NOTHING),
    64: Actions(_RESET, _SUPPORT),
    69: Actions(_RESTART_APP, "check the application and its CUDA version"),
    74: Actions("check the NVLink's other end; reset both GPUs", _SUPPORT),
    79: Actions("restart the host", _SUPPORT),
    92: Actions(_NOTHING, _SUPPORT),
    94: Actions(_RESTART_APP, "none where another XID explains it"),
    95: Actions(_RESET, "none where another XID explains it"),
    109: Actions(_RESET, _SUPPORT),
    119: Actions(_RESET, "investigate driver and firmware versions"),
    120: Actions(_RESET, "investigate driver and firmware versions"),
    140: Actions(_RESET, _SUPPORT),
    143: Actions(_RESET, _SUPPORT),
    **dict.fromkeys((144, 145, 146, 147, 149, 150), _NVLINK5),
    154: Actions("do what the line says: reset, reboot or drain", _NOTHING),
    155: Actions(_RESET, _SUPPORT),
    156: Actions(_RESET, _SUPPORT),
    157: Actions(_NOTHING, _SUPPORT),
    158: Actions(_RESET, _SUPPORT),
}
_UNKNOWN = Actions("look this code up in NVIDIA's XID catalogue", _SUPPORT)


def xid_actions(code: int) -> Actions:
    """The actions for a code; for one that is not listed here, where to look."""
    return _ACTIONS.get(code, _UNKNOWN)
