"""Commands: argument → call, nothing else. One module per command."""

from __future__ import annotations

import os
import sys

import click

from gpu_dash.cli.group import cli
from gpu_dash.model.errors import GpuDashError, UsageError

EXIT_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``gpu-dash``: every error is one line on stderr and an exit code."""
    try:
        code = cli.main(args=arguments, prog_name="gpu-dash", standalone_mode=False)
    except GpuDashError as error:
        _fail(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has had enough; nothing must be flushed into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = error.filename or "output"
        _fail(f"{where}: {error.strerror}; make room, or write elsewhere", UsageError.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    one_line = " ".join(message.split())
    click.echo(f"gpu-dash: {one_line}", err=True)
    sys.exit(code)
