"""``gpu-dash sessions``: what was recorded, and the way out of it. One module per verb."""

from __future__ import annotations

import click

from gpu_dash.cli.sessions import compare, export, listing, report, show


@click.group("sessions")
def command() -> None:
    """The recorded sessions.

    SESSION is a name, the beginning of one, "last", or the path of a session folder.
    """


command.add_command(listing.command)
command.add_command(show.command)
command.add_command(compare.command)
command.add_command(export.command)
command.add_command(report.command)
