"""What others write neither steers the terminal nor breaks the screen."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from gpu_dash.model import events as ev
from gpu_dash.model.gpu import GpuSourceState
from gpu_dash.model.log import LogLine, Severity
from gpu_dash.model.server import ServerState
from gpu_dash.ui.scripted_feed import ScriptedFeed
from tests.ui.dashboard import dashboard
from tests.ui.scenes import began, gpu_infos, gpu_sample, server

HOSTILE = [
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "[bold]markup[/bold] [link=http://x.invalid]y[/] [/nonsense]",
    "温度计" * 60,
    "x" * 5000,
    "tab\tand\rcarriage\nbreak\x00null\x9b31m",
    "\u202eoverride\u2066isolate e\u0301\u200b 👩\u200d👩\u200d👧",
    "\ud800lone surrogate",
    "",
]


@pytest.mark.parametrize("size", [(60, 16), (160, 48)])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_everywhere(text: str, size: tuple[int, int]) -> None:
    feed = ScriptedFeed(
        began(session=text),
        ev.GpuSourceChanged(
            at=0.0, source=text, state=GpuSourceState.STALE, detail=text,
            gpus=gpu_infos(2, name=text or "x"),
        ),
        ev.GpuSamples(at=1.0, samples=(gpu_sample(0, throttle_reasons=(text,)),)),
        ev.GpuReadFailed(at=1.0, gpu=1, call=text, error=text or "x", lost=True),
        server(ServerState.FAILED, 1.0, model=text, detail=text, exit_code=1),
        ev.LogLines(at=1.0, lines=(
            LogLine(1, text), LogLine(2, text, text or "kind", Severity.ERROR, True),
        )),
        ev.Finding(
            at=1.0, kind=text or "kind", severity=Severity.ERROR, source="log", subject=text,
            message=text, first_check=text, line=2,
        ),
    )  # fmt: skip
    async with dashboard(feed, size) as screen:
        rows = await screen.rows()
        await screen.press("e", "enter")
        opened = await screen.rows()
        await screen.press("escape", "slash", "a", "enter")
        searched = await screen.rows()

    for row in (*rows, *opened, *searched):
        assert row.isprintable()
        assert cell_len(row) == size[0]
    assert "FAILED" in rows[0]
    if text.startswith("[bold]"):
        assert "[bold]markup[/bold]" in "\n".join(rows)
