"""The dashboard as a job of a shell: stopped by Ctrl+Z, back by ``fg``."""

from __future__ import annotations

import os
import signal

_NOT_WHILE_STOPPED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGCONT)
"""Signals with their plain effect meanwhile: they end the job, or continue it."""


def has_shell_below() -> bool:
    """Whether somebody could continue this job: the leader of a session is nobody's job."""
    return os.getpgrp() != os.getsid(0)


def stop_job(terminal: int) -> None:
    """Stop all processes of this job, as the terminal's own Ctrl+Z would; return in the foreground.

    A parent in the same job, such as make or a script, would otherwise stay in the foreground and
    the shell never be asked. A job that is continued in the background is stopped again as a
    whole. One that is told to end, or whose terminal is gone, ends here: nothing can be drawn any
    more, and Textual would wait for ever for a terminal to draw on.

    Args:
        terminal: descriptor of the controlling terminal; its modes must be the shell's.
    """
    handlers = {number: signal.signal(number, signal.SIG_DFL) for number in _NOT_WHILE_STOPPED}
    os.killpg(0, signal.SIGSTOP)
    while not _is_in_foreground(terminal):
        os.killpg(0, signal.SIGSTOP)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _is_in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        signal.raise_signal(signal.SIGHUP)
        raise
