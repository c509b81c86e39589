"""What is refused before a launch."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path

from tests.faults.registry import detail, fault, has_failed
from tests.faults.stage import Outcome, Stage
from tests.integration.commands import gpu_dash, is_running, write_profile
from tests.orphan import leave_an_orphan


def _refused(stage: Stage, path: Path) -> Outcome:
    began = time.monotonic()
    done = gpu_dash("run", str(path))
    assert done.returncode == 2, done.stderr
    return Outcome(time.monotonic() - began, done.stderr.strip().removeprefix("gpu-dash: "))


def _edited(stage: Stage, old: str, new: str) -> Path:
    path = write_profile(stage.folder)
    path.write_text(path.read_text().replace(old, new))
    return path


@fault("port taken")
async def _port(stage: Stage) -> Outcome:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        path = write_profile(stage.folder, port=listener.getsockname()[1])
        return await asyncio.to_thread(_refused, stage, path)


@fault("model folder removed")
async def _model(stage: Stage) -> Outcome:
    return _refused(stage, _edited(stage, 'model = "quick"', 'model = "/no/such/model"'))


@fault("program not installed")
async def _program(stage: Stage) -> Outcome:
    return _refused(stage, _edited(stage, '"{python}", "-m", "gpu_dash.demo"', '"no-such-vllm"'))


def _with_config(stage: Stage, flags: str) -> Path:
    model = stage.folder / "model"
    model.mkdir()
    config = {"num_attention_heads": 28, "max_position_embeddings": 4096}
    (model / "config.json").write_text(json.dumps(config))
    return _edited(stage, 'model = "quick"', f'model = "{model}"\n[server.flags]\n{flags}\n#')


@fault("tensor parallel size that the heads do not divide by")
async def _heads(stage: Stage) -> Outcome:
    path = _with_config(stage, "")
    text = path.read_text().replace("[server.flags]\n\n#", "#").replace("= 2\nsim", "= 8\nsim")
    path.write_text(text)
    return _refused(stage, path)


@fault("longer context than the model has")
async def _context(stage: Stage) -> Outcome:
    path = _with_config(stage, "")
    text = path.read_text().replace("[server.flags]\n\n#", "#")
    path.write_text(text.replace("sim-gpus = 2", "sim-gpus = 2\nmax-model-len = 999999"))
    return _refused(stage, path)


@fault("orphans of an earlier server")
async def _orphan(stage: Stage) -> Outcome:
    pid = await asyncio.to_thread(leave_an_orphan)
    outcome = _refused(stage, _edited(stage, 'source = "sim"', 'source = "none"'))
    gpu_dash("orphans", "--end", "--yes")
    outcome.is_clean = not is_running(pid)
    return outcome


@fault("flag with a wrong value")
async def _flag(stage: Stage) -> Outcome:
    await stage.serve(flags="max-num-seqs = 0", wait=False)
    return await stage.timed(lambda: None, has_failed, detail)
