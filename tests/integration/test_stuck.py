"""A worker that hangs while ``/health`` says 200, on the stand-in."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path

from gpu_dash.agent.home import AgentHome
from gpu_dash.model.commands import SetConcurrency
from gpu_dash.model.log import Severity
from gpu_dash.model.server import ServerState
from tests.integration.test_agent import launch, ready


def break_server(base_url: str, fault: str, gpu: int) -> None:
    body = json.dumps({"fault": fault, "gpu": gpu}).encode()
    request = urllib.request.Request(f"{base_url}/sim/fault", body, method="POST")
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.status == 200


async def test_a_frozen_worker_is_called_within_ten_seconds_with_its_card(
    main_home: AgentHome, tmp_path: Path
) -> None:
    watcher = await ready(main_home, launch(tmp_path))
    assert (await watcher.ask(SetConcurrency(concurrency=4))).ok
    await watcher.until(lambda store: store.requests_ok > 10)

    frozen_at = time.monotonic()
    break_server(watcher.store.server.base_url, "freeze", gpu=1)
    await watcher.until(lambda store: any(f.kind == "stuck" for f in store.findings))

    (stuck,) = [f for f in watcher.store.findings if f.kind == "stuck"]
    assert stuck.at - frozen_at < 10
    assert (stuck.subject, stuck.severity) == ("gpu:1", Severity.CRITICAL)
    assert watcher.store.server.state is ServerState.READY
    break_server(watcher.store.server.base_url, "unfreeze", gpu=1)
    await watcher.until(
        lambda store: [f.severity for f in store.findings if f.kind == "stuck"][-1] == "info"
    )
    await watcher.close()
