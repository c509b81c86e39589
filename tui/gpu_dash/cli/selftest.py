"""``gpu-dash selftest``: the load generator's error table on this machine."""

from __future__ import annotations

import asyncio

import click
import msgspec

from gpu_dash.cli.options import print_json
from gpu_dash.load.selftest import STREAMS, ErrorRow, measure

_HEADER = (
    "streams    tok/s   TTFT true   error p50     p99   gap true   error p50     p99"
    "   worst lag   CPU/1k tok   failed"
)


@click.command("selftest")
@click.option("--load-procs", type=click.IntRange(1, 64), default=1, help="As in run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per number of streams.")
def command(*, load_procs: int, as_json: bool) -> int:
    """Measure a server in the package that knows what it sent when, and show how far the load
    generator's figures are from the server's own, in milliseconds."""
    if not as_json:
        click.echo(_HEADER)
    failed = 0
    for streams in STREAMS:
        row = asyncio.run(measure(streams, workers=load_procs))
        failed += row.requests_failed
        if as_json:
            print_json(msgspec.to_builtins(row))
        else:
            click.echo(_line(row))
    return 1 if failed else 0


def _line(row: ErrorRow) -> str:
    def ms(seconds: float) -> float:
        return seconds * 1000

    bound = "  client-bound" if row.client_bound else ""
    return (
        f"{row.streams:7}  {row.output_tokens_per_s:7.0f}   {ms(row.ttft_p50_s):9.2f}"
        f"   {ms(row.ttft_error_p50_s):+9.2f} {ms(row.ttft_error_p99_s):+7.2f}"
        f"   {ms(row.gap_p50_s):8.2f}   {ms(row.gap_error_p50_s):+9.2f}"
        f" {ms(row.gap_error_p99_s):+7.2f}   {ms(row.loop_lag_s):9.2f}"
        f"   {ms(row.cpu_s_per_1000_tokens):7.1f} ms   {row.requests_failed:6}{bound}"
    )
