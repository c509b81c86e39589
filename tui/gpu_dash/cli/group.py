"""The command group: ``gpu-dash PROFILE`` is the dashboard, a first word that is a command is
that command."""

from __future__ import annotations

import importlib

import click

from gpu_dash import __version__

_COMMANDS = {
    "adopt": "Take a server that runs already under supervision.",
    "attach": "The dashboard on the agent that runs.",
    "demo": "The dashboard on simulated GPUs and a built-in server; needs nothing.",
    "doctor": "What stands in the way on this host and at an endpoint.",
    "gpus": "One reading of every GPU.",
    "logs": "What went wrong, in a saved log.",
    "orphans": "Processes that an earlier vLLM left behind, and their end.",
    "plan": "Weights, KV cache and concurrency of a model on given cards, before a launch.",
    "profiles": "List, show, check and make launch profiles.",
    "replay": "The dashboard on a recorded session.",
    "run": "Launch, ramp, record and judge without a screen.",
    "selftest": "How true the load generator is on this machine.",
    "sessions": "The recorded sessions.",
    "status": "What runs on this host.",
    "stop": "Stop load, server and agent.",
}
DASHBOARD = "dashboard"


class DashboardByDefault(click.Group):
    """Loads a command's module when it is called, so that each starts as fast as it can."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS and cmd_name != DASHBOARD:
            return None
        module = importlib.import_module(f"gpu_dash.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else None
        if first not in (*_COMMANDS, "--help", "--version"):
            args = [DASHBOARD, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=DashboardByDefault,
    help="""A terminal dashboard that launches and supervises vLLM, drives the load and shows what
every GPU does about it, on one clock.

\b
gpu-dash PROFILE           launch a profile and watch it
gpu-dash --base-url URL    watch and load a server that runs already
gpu-dash                   come back to what runs
gpu-dash PROFILE --help    the options of the dashboard""",
)
@click.version_option(__version__, message="gpu-dash %(version)s")
def cli() -> None:
    """The root of all commands."""


def command_names() -> frozenset[str]:
    """Names that a profile must not have."""
    return frozenset(_COMMANDS)
