"""``gpu-dash sessions export``: one session as a single file for other tools."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gpu_dash.model.errors import RecordError
from gpu_dash.record.export import write_csv, write_json
from gpu_dash.record.folder import find_session
from gpu_dash.record.reader import SessionReader


@click.command("export")
@click.argument("session")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "json"]),
    required=True,
    help="json: everything; csv: ts, gpu, temp, power, sm_clk, util per card and second.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to; stdout if left out.",
)
def command(session: str, format_: str, output: Path | None) -> None:
    """One session as a single file."""
    reader = SessionReader(find_session(session))
    write = write_json if format_ == "json" else write_csv
    if output is None:
        write(reader, sys.stdout)
        return
    try:
        with output.open("w", encoding="utf-8", newline="") as file:
            write(reader, file)
    except OSError as error:
        raise RecordError(f"{output}: {error.strerror}; name a file that you can write") from error
