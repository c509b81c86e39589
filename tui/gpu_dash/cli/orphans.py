"""``gpu-dash orphans``: what an earlier vLLM left behind, and its end."""

from __future__ import annotations

import itertools
from typing import Any

import click

from gpu_dash.cli.options import print_json
from gpu_dash.gpu.holders import gpu_memory_by_process
from gpu_dash.server.orphans import Orphan, end_orphans, find_orphans


@click.command("orphans")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per process.")
@click.option("--end", is_flag=True, help="End them, session by session, after asking.")
@click.option("--yes", is_flag=True, help="With --end: do not ask.")
def command(as_json: bool, end: bool, yes: bool) -> int:
    """Processes of a vLLM whose server is gone. They serve nobody and hold the GPUs' memory."""
    orphans = find_orphans(gpu_memory_by_process())
    if as_json:
        print_json([orphan_row(orphan) for orphan in orphans])
    elif not orphans:
        click.echo("no orphans")
    left: list[Orphan] = []
    for session, members in itertools.groupby(orphans, key=lambda orphan: orphan.session):
        group = list(members)
        if not as_json:
            for orphan in group:
                click.echo(f"session {session}: {orphan}")
        if end and (yes or click.confirm(f"end {len(group)} processes of session {session}?")):
            left += end_orphans(group)
    if left:
        click.echo(f"still there after SIGKILL: {', '.join(map(str, left))}", err=True)
    elif orphans and not end and not as_json:
        click.echo("gpu-dash orphans --end ends them")
    return 1 if left else 0


def orphan_row(orphan: Orphan) -> dict[str, Any]:
    """An orphan for JSON."""
    return {
        "pid": orphan.process.pid,
        "title": orphan.title,
        "session": orphan.session,
        "age_s": round(orphan.age_s, 1),
        "memory_bytes": orphan.memory_bytes,
        "gpu_memory_bytes": {str(gpu): size for gpu, size in orphan.gpu_memory_bytes.items()},
    }
