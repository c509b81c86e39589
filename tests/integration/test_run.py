"""``gpu-dash run``: the whole job without a screen, with real child processes."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.agent.home import all_homes
from tests.fakes.stub_server import StubServer
from tests.integration.commands import gpu_dash, start_gpu_dash, wait_for, write_profile

CONTRACT_FILES = {
    "session.toml",
    "gpu.csv",
    "requests.csv",
    "steps.csv",
    "server.csv",
    "events.csv",
    "server.log",
}


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run whose outcome several tests look at."""
    folder = tmp_path_factory.mktemp("run")
    profile = write_profile(folder)
    out = folder / "out"
    done = gpu_dash(
        *("run", str(profile), "--ramp", "1,2,4", "--step", "1s", "--output-tokens", "16"),
        *("--json", "--out", str(out)),
    )
    return done, out


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_it_prints_an_object_a_step_and_the_verdict_last(
    finished: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, out = finished
    *steps, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert [step["concurrency"] for step in steps] == [1, 2, 4]
    assert all(step["requests_ok"] > 0 and step["requests_failed"] == 0 for step in steps)
    assert last["session"] == str(out)
    names = [condition["name"] for condition in last["verdict"]["conditions"]]
    assert names == ["every_gpu_worked", "throughput_held", "temperature_margin"]
    assert done.returncode == (0 if last["verdict"]["passed"] else 1)


def test_it_leaves_the_files_of_the_contract(
    finished: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    _, out = finished
    assert {path.name for path in out.iterdir()} >= CONTRACT_FILES
    assert len(rows(out / "steps.csv")) == 3
    assert {row["gpu"] for row in rows(out / "gpu.csv")} == {"0", "1"}
    assert "Application startup complete" in (out / "server.log").read_text(encoding="utf-8")


def test_the_steps_agree_with_what_the_requests_say(
    finished: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, out = finished
    requests = rows(out / "requests.csv")
    printed = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
    for step, shown in zip(rows(out / "steps.csv"), printed, strict=True):
        mine = [row for row in requests if row["step"] == step["step"]]
        in_window = sum(int(row["tokens_in_window"]) for row in mine)
        duration = float(step["duration_s"])
        assert float(step["output_tokens_per_s"]) == pytest.approx(in_window / duration, rel=1e-3)
        assert int(step["output_tokens"]) == sum(int(row["output_tokens"]) for row in mine)
        assert int(step["requests_ok"]) == sum(row["outcome"] == "ok" for row in mine)
        assert shown["output_tokens_per_s"] == pytest.approx(
            float(step["output_tokens_per_s"]), rel=1e-3
        )
        opened = float(step["time_s"])
        for row in mine:
            inside = opened <= float(row["time_s"]) < opened + duration
            assert (row["counted"] == "true") is inside


def test_nothing_is_left_of_a_run(
    finished: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    assert [home.name for home in all_homes()] == []


def refused(*arguments: str, **options: Any) -> tuple[int, str]:
    """Exit code and the one line of a run that could not begin."""
    done = gpu_dash("run", *arguments, **options)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("gpu-dash: server ")]
    assert len(lines) == 1, done.stderr
    return done.returncode, lines[0]


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[server\n", encoding="utf-8")
    broken.chmod(0o600)
    wrong = write_profile(tmp_path, "wrong", flags="\n[server.env]\nA = 3")
    for arguments, words in (
        (("no-such-profile",), "there is none of that name"),
        ((str(broken),), "no valid TOML"),
        ((str(wrong),), "`server.env"),
        ((), "PROFILE or --base-url"),
        (("simulated", "--base-url", "http://127.0.0.1:1"), "one of the two"),
        (("simulated", "--ramp", "1,x"), "is not a ramp"),
        (("simulated", "--step", "5"), "is not a duration"),
        (("simulated", "--step", "5s", "--requests", "3"), "--step and --requests"),
        (("simulated", "--slo", "ttft=fast"), "is not a duration"),
        (("simulated", "--no-such-option"), "--no-such-option"),
        (("--base-url", "127.0.0.1:8000"), "http://HOST:PORT"),
        (("--base-url", "http://127.0.0.1:1", "--api-key-env", "NO_SUCH"), "NO_SUCH is not set"),
    ):
        code, line = refused(*arguments)
        assert (code, words in line) == (2, True), (arguments, line)


def test_a_ramp_of_rates_with_a_secret_header_that_stands_nowhere(tmp_path: Path) -> None:
    out, secret = tmp_path / "out", "s3cret-that-stands-nowhere"
    done = gpu_dash(
        *("run", str(write_profile(tmp_path)), "--rate", "20,40", "--arrival", "constant"),
        *("--requests", "20", "--output-tokens", "uniform:2,6", "--seed", "3"),
        *("--header", "X-Api-Key: $OUR_KEY", "--json", "--out", str(out)),
        env={**os.environ, "OUR_KEY": secret},
    )
    steps = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
    assert [(step["concurrency"], step["request_rate"]) for step in steps] == [
        (None, 20),
        (None, 40),
    ]
    assert [step["requests_ok"] for step in steps] == [20, 20]
    due = [float(row["scheduled_s"]) for row in rows(out / "requests.csv") if row["step"] == "2"]
    gaps = [later - earlier for earlier, later in pairwise(sorted(due))]
    assert gaps == pytest.approx([0.025] * 19, abs=1e-5)
    assert {int(row["output_tokens"]) for row in rows(out / "requests.csv")} == {2, 3, 4, 5, 6}
    assert secret not in done.stdout + done.stderr
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert secret not in file.read_text(encoding="utf-8", errors="replace"), file


def test_a_port_that_is_taken_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        profile = write_profile(tmp_path, port=listener.getsockname()[1])
        code, line = refused(str(profile))
    assert (code, "is taken" in line) == (2, True), line


def test_a_model_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    profile = write_profile(tmp_path)
    profile.write_text(
        profile.read_text(encoding="utf-8").replace('"quick"', '"/no/such/model"'), encoding="utf-8"
    )
    code, line = refused(str(profile))
    assert (code, "/no/such/model does not exist" in line) == (2, True), line


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    profile = write_profile(tmp_path)
    code, line = refused(str(profile), "--out", str(tmp_path))
    assert (code, "empty" in line) == (2, True), line


def test_no_gpu_source_where_one_was_asked_for_is_exit_code_4(tmp_path: Path) -> None:
    code, line = refused(str(write_profile(tmp_path)), "--gpu", "nvml")
    assert code == 4, line


def test_an_endpoint_that_refuses_is_exit_code_3() -> None:
    code, line = refused("--base-url", "http://127.0.0.1:1")
    assert (code, "does not answer" in line) == (3, True), line


def test_a_server_that_dies_while_it_starts_is_exit_code_3_with_its_cause(tmp_path: Path) -> None:
    profile = write_profile(tmp_path)
    profile.write_text(
        profile.read_text(encoding="utf-8").replace("gpu_dash.demo", "no_such_module"),
        encoding="utf-8",
    )
    done = gpu_dash("run", str(profile), "--out", str(tmp_path / "out"))
    assert done.returncode == 3
    assert "exit code 1" in done.stderr
    assert "No module named" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_dies_under_load_is_exit_code_3_and_the_files_are_kept(
    tmp_path: Path,
) -> None:
    profile = write_profile(tmp_path, flags='sim-fault = "nccl_timeout@1.5"')
    out = tmp_path / "out"
    done = gpu_dash("run", str(profile), "--step", "20s", "--out", str(out))
    assert done.returncode == 3, done.stderr
    assert "the server failed" in done.stderr
    assert {path.name for path in out.iterdir()} >= CONTRACT_FILES
    kinds = {row["kind"] for row in rows(out / "events.csv")}
    assert {"nccl_timeout", "server_exit"} <= kinds


def test_an_interrupt_ends_the_step_and_keeps_everything(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start_gpu_dash(
        *("run", str(write_profile(tmp_path)), "--step", "60s", "--json", "--out", str(out))
    )
    try:
        requests = out / "requests.csv"
        wait_for(lambda: requests.exists() and len(rows(requests)) > 3, "requests")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, stderr
    step, last = [json.loads(line) for line in stdout.splitlines()]
    assert 0 < step["duration_s"] < 60
    assert last["session"] == str(out)
    assert len(rows(out / "steps.csv")) == 1


def test_a_server_that_somebody_else_started_is_loaded_and_left_alone(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "gpu_dash.demo", "serve", "theirs"),
            *("--port", str(port), "--sim-startup", "0"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: _listens(port), "the server")
        out = tmp_path / "out"
        done = gpu_dash(
            *("run", "--base-url", f"http://127.0.0.1:{port}/v1", "--ramp", "2", "--step", "1s"),
            *("--warmup", "100ms", "--output-tokens", "16", "--chat", "--gpu", "none"),
            *("--json", "--out", str(out)),
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[0])["requests_ok"] > 0
        assert server.poll() is None
    finally:
        server.terminate()
        server.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_run_in_which_nothing_succeeded_is_not_judged(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gpu_dash.demo", "serve", "theirs", "--sim-startup", "0"]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen([*command, "--port", str(port)], stdout=quiet, stderr=quiet)
    try:
        wait_for(lambda: _listens(port), "the server")
        done = gpu_dash(
            *("run", "--base-url", f"http://127.0.0.1:{port}", "--model", "wrong", "--ramp", "1"),
            *("--step", "500ms", "--warmup", "0s", "--gpu", "none", "--json"),
            *("--out", str(tmp_path / "out")),
        )
    finally:
        server.terminate()
        server.wait(10)
    assert done.returncode == 3
    assert "model_not_found" in done.stderr
    assert "does not answer" not in done.stderr
    verdict = json.loads(done.stdout.splitlines()[-1])["verdict"]
    assert verdict["passed"] is None
    assert [condition["passed"] for condition in verdict["conditions"]] == [None] * 3


def test_a_source_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _ = refused(str(write_profile(tmp_path)), "--gpu", "nvml", "--out", str(out))
    assert (code, out.exists()) == (4, False)


def test_a_server_that_is_gone_at_the_end_is_exit_code_3(tmp_path: Path) -> None:
    with StubServer() as server:
        server.wait_until_ready()
        process = start_gpu_dash(
            *("run", "--base-url", f"http://127.0.0.1:{server.port}", "--gpu", "none"),
            *("--ramp", "1,2", "--step", "3s", "--warmup", "0s", "--output-tokens", "16"),
            *("--timeout", "3s", "--out", str(tmp_path / "out")),
        )
        requests = tmp_path / "out" / "requests.csv"
        wait_for(lambda: requests.exists() and len(rows(requests)) > 3, "requests")
        server.stop(signal.SIGKILL)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3, stderr
    assert "does not answer" in stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--ramp", "99999999999999999999"),
        ("--output-tokens", "99999999999999999999"),
        ("--seed", "99999999999999999999999"),
        ("--base-url", "http://[::1"),
        ("--base-url", "http://user:s3cr3t@127.0.0.1:1"),
    ],
)
def test_numbers_and_urls_beyond_all_sense_are_one_line(arguments: tuple[str, ...]) -> None:
    profile = () if "--base-url" in arguments else ("simulated",)
    code, line = refused(*profile, *arguments)
    assert code == 2, line
    assert "s3cr3t" not in line


def test_without_a_home_it_is_one_line() -> None:
    environment = {"PATH": os.environ["PATH"]}
    script = (
        "import pathlib, sys\n"
        "def home(): raise RuntimeError('Could not determine home directory.')\n"
        "pathlib.Path.home = home\n"
        "from gpu_dash.cli import main; main(['status'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "gpu-dash: there is no home folder; set HOME or XDG_STATE_HOME\n"


def test_a_full_output_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gpu_dash", "status"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
