"""``gpu-dash sessions report``: one session as a page to keep or to send."""

from __future__ import annotations

from pathlib import Path

import click

from gpu_dash.record.folder import find_session
from gpu_dash.record.reader import SessionReader
from gpu_dash.record.report.page import report_page
from gpu_dash.record.report.write import write_private

_STDOUT = Path("-")


@click.command("report")
@click.argument("session")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Where to; - is stdout. The session's name with .html in this folder if left out.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there already.")
def command(session: str, output: Path | None, force: bool) -> None:
    """One session as a self-contained HTML file: charts, steps, findings, throttles."""
    folder = find_session(session)
    page = report_page(SessionReader(folder))
    if output == _STDOUT:
        click.echo(page, nl=False)
        return
    path = output or Path(f"{folder.resolve().name}.html")
    write_private(path, page, is_forced=force)
    click.echo(f"{path.absolute()}")
