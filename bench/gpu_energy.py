"""Energy counter against the integrals of power, on the cards of this host.

    python bench/gpu_energy.py [--seconds 30] [--scripted]

Two accounts of the same seconds, for each card:

* the driver's: the energy counter and the two powers (averaged over a second, momentary), read
  together ten times a second, and the record of 50 powers a second that the driver keeps;
* the sampler's, as a child process of its own: its energy counter, brought forward to the moment
  of the sample, its power ten times a second, and its mean of the driver's record.

The averaged power trails what a card draws by up to a second, so a step of the load inside the
window shows as a deviation of it; under steady load there is none. ``--scripted`` reads eight cards
of the scripted driver, to try the command where there is no GPU. It informs, it does not gate.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.fakes.nvml.fixture import build_library
from tests.fakes.nvml.scene import NvmlScene
from tests.integration.sampler_run import SamplerRun

from gpu_dash.model.events import GpuSamples

pynvml: Any = importlib.import_module("pynvml")

INTERVAL_S = 0.1
RECORD_INTERVAL_S = 1.0
"""The driver's record holds two seconds and more."""
AVERAGE, MOMENTARY = 185, 186
"""Field numbers of NVML's two powers."""
SCENE = "*.power_mw 550000\n*.energy_mj 1000+550000\n"

Curve = list[tuple[float, float]]
"""Moments in seconds, and watts or joules."""


class Account:
    """What one source said of one card.

    Attributes:
        energy: the counter, by the moment of its reading.
        powers: curves of power by their name.
    """

    def __init__(self) -> None:
        self.energy: Curve = []
        self.powers: dict[str, Curve] = defaultdict(list)

    def rows(self) -> Iterator[tuple[str, float, float, float]]:
        """Name, joules by the counter, joules by the power, and the seconds that both cover."""
        for name, curve in self.powers.items() if self.energy else ():
            first = max(curve[0][0], self.energy[0][0])
            last = min(curve[-1][0], self.energy[-1][0])
            if last > first:
                counted = at(self.energy, last) - at(self.energy, first)
                yield name, counted, integral(curve, first, last), last - first


def at(curve: Curve, moment: float) -> float:
    """The value of a curve at a moment, on the line between its neighbours."""
    before, after = curve[0], curve[-1]
    for point in curve:
        if point[0] <= moment:
            before = point
        else:
            after = point
            break
    if after[0] <= before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * (moment - before[0]) / (after[0] - before[0])


def integral(curve: Curve, first: float, last: float) -> float:
    """The area under a curve between two moments, by trapezoids."""
    inner = [point for point in curve if first < point[0] < last]
    points = [(first, at(curve, first)), *inner, (last, at(curve, last))]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))


def main() -> None:
    parser = argparse.ArgumentParser(description="Energy counter against power.")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--scripted", action="store_true", help="cards of the scripted driver")
    arguments = parser.parse_args()
    with _environment(scripted=arguments.scripted) as environment:
        sampled: dict[int, Account] = {}
        reading = threading.Thread(
            target=lambda: sampled.update(read_sampler(environment, arguments.seconds))
        )
        reading.start()
        asked = {} if arguments.scripted else read_driver(arguments.seconds)
        reading.join()
    _print("driver", asked)
    _print("sampler", sampled)


def read_driver(seconds: float) -> dict[int, Account]:
    """Ask NVML itself."""
    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(gpu) for gpu in range(pynvml.nvmlDeviceGetCount())]
    accounts = {gpu: Account() for gpu in range(len(handles))}
    newest_us = dict.fromkeys(accounts, 0)
    ends = time.monotonic() + seconds
    due = record_due = time.monotonic()
    while time.monotonic() < ends:
        takes_record = time.monotonic() >= record_due
        record_due += RECORD_INTERVAL_S * takes_record
        for gpu, handle in enumerate(handles):
            account = accounts[gpu]
            _poll(handle, account)
            if takes_record:
                newest_us[gpu] = _take_record(handle, account, newest_us[gpu])
        due += INTERVAL_S
        time.sleep(max(0.0, due - time.monotonic()))
    return accounts


def _poll(handle: Any, account: Account) -> None:
    before = time.time()
    joules = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000
    account.energy.append(((before + time.time()) / 2, joules))
    now = time.time()
    account.powers["GetPowerUsage"].append((now, pynvml.nvmlDeviceGetPowerUsage(handle) / 1000))
    for name, field in (("average", AVERAGE), ("momentary", MOMENTARY)):
        (answer,) = pynvml.nvmlDeviceGetFieldValues(handle, [field])
        if answer.nvmlReturn == pynvml.NVML_SUCCESS:
            account.powers[name].append((now, answer.value.uiVal / 1000))


def _take_record(handle: Any, account: Account, newest_us: int) -> int:
    try:
        _, samples = pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_TOTAL_POWER_SAMPLES, newest_us)
    except (pynvml.NVMLError_NotFound, pynvml.NVMLError_NotSupported):
        return newest_us
    new = [sample for sample in samples if int(sample.timeStamp) > newest_us]
    account.powers["GetSamples, 50 Hz"] += [
        (sample.timeStamp / 1e6, sample.sampleValue.uiVal / 1000) for sample in new
    ]
    return max([newest_us, *(int(sample.timeStamp) for sample in new)])


def read_sampler(environment: dict[str, str], seconds: float) -> dict[int, Account]:
    """Take what a sampler child says."""
    accounts: dict[int, Account] = defaultdict(Account)
    with SamplerRun("nvml", environment) as run:
        began = run.wait(GpuSamples).at
        run.wait(GpuSamples, lambda event: event.at >= began + seconds, patience_s=seconds + 30)
        events = [event for event in run.events if isinstance(event, GpuSamples)]
    _print_intervals([event.at for event in events])
    for event in events:
        for sample in event.samples:
            account = accounts[sample.gpu]
            if sample.energy_joules is not None and sample.energy_age_s is None:
                account.energy.append((event.at, sample.energy_joules))
                if sample.power_mean_watts is not None:
                    # it is of the second that ends here: a step, whose middle is half a second ago
                    account.powers["mean of 50 Hz"].append(
                        (event.at - RECORD_INTERVAL_S / 2, sample.power_mean_watts)
                    )
            if sample.power_watts is not None:
                account.powers["power, 10 Hz"].append((event.at, sample.power_watts))
    return accounts


def _print(source: str, accounts: dict[int, Account]) -> None:
    for gpu, account in sorted(accounts.items()):
        for name, counted, drawn, seconds in account.rows():
            print(
                f"{source:8} GPU {gpu}  {name:18} {seconds:6.1f} s  counter {counted:9.1f} J  "
                f"power {drawn:9.1f} J  {100 * (drawn / counted - 1):+.2f} %"
            )


def _print_intervals(moments: list[float]) -> None:
    late_ms = sorted(
        1000 * abs(after - before - INTERVAL_S) for before, after in itertools.pairwise(moments)
    )
    p99 = late_ms[int(0.99 * (len(late_ms) - 1))]
    print(f"sampler  {len(moments)} sweeps, jitter p99 {p99:.1f} ms, most {late_ms[-1]:.1f} ms")


@contextmanager
def _environment(*, scripted: bool) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        scene = NvmlScene(Path(folder), Path(folder) / "cards.scenario")
        if scripted:
            build_library(Path(folder))
            scene.write(SCENE)
        yield scene.environment()


if __name__ == "__main__":
    main()
