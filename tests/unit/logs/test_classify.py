"""Cause and consequence, folding, the same record over several lines, and what is left alone."""

from __future__ import annotations

import json

import pytest

from gpu_dash.logs.classify import SHOWN_CHARACTERS, Classifier
from gpu_dash.model.events import Finding
from gpu_dash.model.log import Severity
from tests.unit.logs.saying import found, latest, read

WORKER = "(Worker_TP1 pid=77) ERROR 11-30 10:00:00 [multiproc_executor.py:949] "
OTHER_WORKER = "(Worker_TP0 pid=76) ERROR 11-30 10:00:00 [multiproc_executor.py:949] "
ENGINE = "(EngineCore pid=71) ERROR 11-30 10:00:02 [core.py:1110] "
FRONT = "(APIServer pid=70) ERROR 11-30 10:00:03 [serving.py:908] "
DIED = "(EngineCore pid=71) ERROR 11-30 10:00:01 [multiproc_executor.py:284] Worker proc "
DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
TRACEBACK = "Traceback (most recent call last):"


def causes(findings: list[Finding]) -> list[tuple[int | None, str, str]]:
    return [(f.line, f.kind, f.subject) for f in findings if f.root]


# -- cause and consequence -------------------------------------------------------------------------


def test_what_only_reports_a_failure_is_never_the_cause() -> None:
    findings = found(FRONT + DEAD, FRONT + DEAD)

    assert [(f.kind, f.root, f.count) for f in findings] == [("engine_dead", False, 2)]


def test_a_cause_that_arrives_late_takes_the_place_of_what_followed_from_it() -> None:
    findings = found(
        DIED + "VllmWorker-1 died unexpectedly (exit code: -6), shutting down executor.",
        WORKER + ILLEGAL,
    )

    assert causes(findings) == [(2, "illegal_access", "tp:1")]
    assert [f.kind for f in findings if not f.root] == ["worker_died"]


def test_a_finding_that_is_no_longer_the_cause_is_handed_out_again() -> None:
    classifier = Classifier()
    _, first = classifier.feed([DIED + "VllmWorker-1 died unexpectedly, shutting"], 1, at=1.0)
    _, second = classifier.feed([WORKER + ILLEGAL], 2, at=2.0)

    assert [(f.line, f.root) for f in first] == [(1, True)]
    assert sorted((f.line, f.root) for f in second) == [(1, False), (2, True)]
    assert {f.line: f.at for f in second} == {1: 1.0, 2: 2.0}


def test_of_two_workers_the_first_is_the_cause() -> None:
    findings = found(OTHER_WORKER + ILLEGAL, WORKER + ILLEGAL)

    assert causes(findings) == [(1, "illegal_access", "tp:0")]
    assert [(f.subject, f.root) for f in findings] == [("tp:0", True), ("tp:1", False)]


def test_a_worker_knows_better_than_the_engine() -> None:
    findings = found(
        ENGINE + "RuntimeError: NCCL error: internal error",
        WORKER + "RuntimeError: NCCL error: internal error",
    )

    assert causes(findings) == [(2, "nccl_internal", "tp:1")]


def test_a_peer_that_does_not_answer_is_no_cause_when_a_worker_had_died_before() -> None:
    findings = found(
        DIED + "VllmWorker-1 died unexpectedly (exit code: None), shutting down executor.",
        OTHER_WORKER + "RuntimeError: NCCL error: remote process exited or there was a network",
    )

    assert causes(findings) == [(1, "worker_died", "rank:1")]


def test_what_happened_an_hour_ago_is_another_incident() -> None:
    findings = found(
        "(Worker_TP1 pid=77) ERROR 11-30 09:00:00 [multiproc_executor.py:949] " + ILLEGAL,
        ENGINE + "ValueError: No available memory for the cache blocks.",
    )

    assert [kind for _, kind, _ in causes(findings)] == ["illegal_access", "oom_kv_none"]


def test_a_new_server_is_another_incident() -> None:
    start = "INFO 11-30 10:00:05 [api_server.py:1] vLLM API server version 0.9.1"
    ready = "INFO:     Application startup complete."
    findings = found(start, ready, WORKER + ILLEGAL, start, WORKER + ILLEGAL)

    assert causes(findings) == [
        (3, "illegal_access", "tp:1"),
        (5, "illegal_access", "tp:1"),
    ]


def test_what_is_said_before_the_first_line_of_a_start_belongs_to_it() -> None:
    findings = found(
        "INFO 05-14 04:44:35 [__init__.py:243] No platform detected, vLLM is running on "
        "UnspecifiedPlatform",
        "INFO 05-14 04:44:36 [api_server.py:1] vLLM API server version 0.9.1",
        TRACEBACK,
        "RuntimeError: Failed to infer device type",
    )

    assert [(f.line, f.kind, f.root) for f in findings] == [
        (1, "device_visibility", True),
        (4, "device_visibility", False),
    ]


def test_a_condition_is_neither_cause_nor_consequence() -> None:
    preempted = (
        "WARNING 11-30 10:00:00 scheduler.py:1057] Sequence group 0 is preempted by "
        "PreemptionMode.SWAP mode because there is not enough KV cache space."
    )
    findings = found(preempted, WORKER + ILLEGAL, preempted)

    assert [(f.kind, f.root, f.count) for f in findings] == [
        ("kv_preempt", True, 2),
        ("illegal_access", True, 1),
    ]


def test_the_mistakes_of_callers_are_no_part_of_a_crash() -> None:
    refused = 'INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 401 Unauthorized'
    findings = found(WORKER + ILLEGAL, refused)

    assert [kind for _, kind, _ in causes(findings)] == ["illegal_access", "client_auth"]


def test_the_same_failure_an_hour_later_is_another_finding() -> None:
    line = "(Worker_TP1 pid=77) ERROR 11-30 {}:00:00 [multiproc_executor.py:949] " + ILLEGAL
    findings = found(line.format("09"), line.format("10"))

    assert [(f.line, f.root, f.count) for f in findings] == [(1, True, 1), (2, True, 1)]


def test_errors_of_two_requests_have_nothing_to_do_with_each_other() -> None:
    findings = found(
        FRONT + "ValueError: one",
        "(APIServer pid=70) INFO 11-30 10:00:04 [loggers.py:1] fine",
        "(APIServer pid=70) ERROR 11-30 10:00:05 [serving.py:908] KeyError: 'two'",
    )

    assert [(f.line, f.kind, f.root) for f in findings] == [
        (1, "python_error", True),
        (3, "python_error", True),
    ]


# -- whose card it is ------------------------------------------------------------------------------


def test_a_worker_without_a_rank_in_its_name_is_known_by_its_pid() -> None:
    findings = found(
        "(Worker pid=5159) INFO 11-30 18:50:34 [parallel_state.py:1615] world_size=2 rank=1 "
        "local_rank=1 distributed_init_method=tcp://127.0.0.1:60967 backend=nccl",
        "(Worker pid=5159) ERROR 11-30 18:50:40 [multiproc_executor.py:949] " + ILLEGAL,
    )

    assert causes(findings) == [(2, "illegal_access", "rank:1")]


def test_the_kernel_names_a_pid_and_the_log_its_rank() -> None:
    findings = found(
        "(VllmWorker-3 pid=103125) INFO 05-28 17:47:14 [gpu_model_runner.py:1316] Starting to load "
        "model acme/model-32b...",
        "[881221.402211] Out of memory: Killed process 103125 (pt_main_thread) total-vm:1kB",
    )

    assert causes(findings) == [(2, "host_oom", "rank:3")]


def test_a_lost_card_told_over_three_lines() -> None:
    findings = found(
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0",
        "               NVRM: (PCI ID: 10de:26b5) installed in this system has",
        "               NVRM: fallen off the bus and is not responding to commands.",
    )

    assert causes(findings) == [(3, "gpu_lost", "pci:0000:b3:00.0")]


def test_a_table_of_readings_names_its_card_above() -> None:
    findings = found(
        "GPU 00000000:2B:00.0",
        "    Clocks Event Reasons",
        "            HW Thermal Slowdown           : Active",
    )

    assert causes(findings) == [(3, "thermal", "pci:00000000:2b:00.0")]


def test_a_card_is_the_same_with_and_without_its_function() -> None:
    findings = found(
        "[1.0] NVRM: Xid (PCI:0000:2b:00): 13, pid=1, name=x",
        "[1.1] NVRM: Xid (PCI:0000:2b:00.0): 13, pid=1, name=x",
        "[1.2] NVRM: Xid (PCI:0000:3b:00): 13, pid=1, name=x",
    )

    assert [(f.subject, f.count) for f in findings] == [
        ("pci:0000:2b:00", 2),
        ("pci:0000:3b:00", 1),
    ]


# -- tracebacks ------------------------------------------------------------------------------------


def test_an_error_of_no_kind_is_never_silence() -> None:
    findings = found(
        WORKER + "WorkerProc hit an exception.",
        WORKER + TRACEBACK,
        WORKER + '  File "/x/vllm/model.py", line 1, in load',
        WORKER + "    weights[name]",
        WORKER + "KeyError: 'layers.0.self_attn'",
        ENGINE + "EngineCore failed to start.",
        ENGINE + TRACEBACK,
        ENGINE + "Exception: WorkerProc initialization failed due to an exception in a background "
        "process. See stack trace for root cause.",
    )

    assert causes(findings) == [(5, "python_error", "tp:1")]
    assert findings[0].severity is Severity.ERROR
    assert [f.kind for f in findings if not f.root] == ["engine_dead"]


def test_tracebacks_of_two_processes_line_by_line() -> None:
    findings = found(
        OTHER_WORKER + TRACEBACK,
        WORKER + TRACEBACK,
        OTHER_WORKER + '  File "/x/a.py", line 1, in capture_model',
        WORKER + '  File "/x/b.py", line 1, in execute_model',
        WORKER + "torch.OutOfMemoryError: CUDA out of memory.",
        OTHER_WORKER + "torch.OutOfMemoryError: CUDA out of memory.",
    )

    assert [(f.line, f.kind) for f in findings] == [
        (5, "oom_runtime"),
        (6, "oom_warmup_capture"),
    ]


def test_the_last_exception_of_a_chain_may_be_the_one_that_is_known() -> None:
    findings = found(
        ENGINE + TRACEBACK,
        ENGINE + "    response = queue.get(timeout)",
        ENGINE + "TimeoutError",
        ENGINE,
        ENGINE + "The above exception was the direct cause of the following exception:",
        ENGINE,
        ENGINE + TRACEBACK,
        ENGINE + "    raise TimeoutError() from e",
        ENGINE + "TimeoutError: RPC call to sample_tokens timed out.",
    )

    assert causes(findings) == [(9, "stall", "")]
    assert len(findings) == 1


def test_a_raw_traceback_without_any_prefix() -> None:
    findings = found(
        TRACEBACK,
        '  File "/x/vllm", line 8, in <module>',
        "    sys.exit(main())",
        "TypeError: main() takes 0 positional arguments",
    )

    assert causes(findings) == [(4, "python_error", "")]


def test_text_of_another_process_inside_a_raw_traceback() -> None:
    findings = found(
        TRACEBACK,
        '  File "/x/vllm", line 8, in <module>',
        "nanobind: leaked 4 instances!",
        "    sys.exit(main())",
        "TypeError: main() takes 0 positional arguments",
    )

    assert causes(findings) == [(5, "python_error", "")]


def test_the_frames_of_one_traceback_do_not_explain_the_next_one() -> None:
    findings = found(
        WORKER + TRACEBACK,
        WORKER + '  File "/x/a.py", line 1, in capture_model',
        WORKER + "torch.OutOfMemoryError: CUDA out of memory.",
        WORKER + TRACEBACK,
        WORKER + '  File "/x/a.py", line 1, in execute_model',
        WORKER + "torch.OutOfMemoryError: CUDA out of memory.",
    )

    assert [f.kind for f in findings] == ["oom_warmup_capture", "oom_runtime"]


def test_an_exception_group() -> None:
    findings = found(
        "ERROR:    Exception in ASGI application",
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "/x/starlette.py", line 1, in __call__',
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
        "  +-+---------------- 1 ----------------",
        "    | Traceback (most recent call last):",
        '    |   File "/x/app.py", line 1, in __call__',
        "    | RuntimeError: No response returned.",
        "    +------------------------------------",
    )

    assert [(f.line, f.kind) for f in findings] == [(8, "python_error")]


def test_a_heading_that_quotes_the_exception_is_not_the_exception() -> None:
    findings = found(
        WORKER + "Exception in worker while processing method init_device: CUDA error: an illegal "
        "memory access was encountered, Traceback (most recent call last):",
        WORKER + '  File "/x/a.py", line 1, in init_device',
        WORKER + ILLEGAL,
    )

    assert causes(findings) == [(3, "illegal_access", "tp:1")]


def test_where_it_happened_is_known_only_under_the_heading() -> None:
    heading = "ERROR 03-20 16:01:38 [engine.py:389] "
    findings = found(
        heading + "CUDA out of memory. Tried to allocate 896.00 MiB.",
        heading + TRACEBACK,
        heading + '  File "/x/vllm/worker/model_runner.py", line 1, in load_model',
        heading + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB.",
    )

    assert [(f.line, f.kind, f.root, f.count) for f in findings] == [(1, "oom_load", True, 2)]


def test_what_python_ignores_is_no_error() -> None:
    findings = found(
        "Exception ignored in: <function Socket.__del__ at 0x7f>",
        TRACEBACK,
        '  File "/x/zmq.py", line 1, in __del__',
        "AttributeError: 'NoneType' object has no attribute 'close'",
    )

    assert findings == []


def test_an_unknown_error_is_reported_before_the_log_ends() -> None:
    classifier = Classifier()
    ok = "(APIServer pid=70) INFO 11-30 10:00:04 [loggers.py:1] fine"
    texts = [FRONT + "Something new broke", *[ok] * 60]

    _, findings = classifier.feed(texts, 1, at=1.0)

    assert [(f.line, f.kind) for f in findings] == [(1, "python_error")]


def test_one_json_record_with_its_traceback() -> None:
    line = json.dumps(
        {
            "levelname": "ERROR",
            "processName": "EngineCore",
            "process": 5,
            "message": "EngineCore failed to start.",
            "exc_info": f'{TRACEBACK}\n  File "/x.py", line 1, in f\nValueError: No available '
            "memory for the cache blocks.",
        }
    )

    assert causes(found(line)) == [(1, "oom_kv_none", "")]


def test_json_records_of_no_kind() -> None:
    records = [
        json.dumps({"levelname": "ERROR", "process": 5, "message": f"{what} broke"})
        for what in ("This", "That")
    ]

    assert [(f.line, f.kind) for f in found(*records)] == [
        (1, "python_error"),
        (2, "python_error"),
    ]


# -- waiting, stages, stopping ---------------------------------------------------------------------

STALL = (
    "(EngineCore pid=71) INFO 11-30 10:0{}:49 [shm_broadcast.py:466] No available shared memory "
    "broadcast block found in 60 seconds."
)


@pytest.mark.parametrize(
    ("before", "repeats", "severity"),
    [
        (
            "Loading safetensors checkpoint shards:  12% Completed | 2/16 [0:1<0:2,  1s/it]",
            3,
            "info",
        ),
        ("INFO 11-30 10:00:00 [backends.py:1] Dynamo bytecode transform time: 5.10 s", 3, "info"),
        ("INFO:     Application startup complete.", 1, "warning"),
        ("", 1, "info"),
        ("", 2, "warning"),
    ],
)
def test_waiting_is_harmless_while_starting_and_not_while_serving(
    before: str, repeats: int, severity: str
) -> None:
    (finding,) = found(before, *(STALL.format(minute) for minute in range(repeats)))

    assert (finding.line, finding.kind) == (2, "stall")
    assert (finding.severity, finding.count) == (severity, repeats)


def test_a_server_that_was_asked_to_stop_may_end_as_it_likes() -> None:
    findings = found(
        "(APIServer pid=70) INFO 11-30 10:00:00 [launcher.py:100] [shutdown] API server: shutdown "
        "triggered",
        FRONT + DEAD,
        DIED + "VllmWorker-1 died unexpectedly (exit code: -15), shutting down executor.",
        TRACEBACK,
        '  File "/x.py", line 1, in f',
        "KeyboardInterrupt: terminated",
    )

    assert findings == []


def test_an_error_before_the_stop_stays_what_it_is() -> None:
    findings = found(
        WORKER + ILLEGAL,
        "INFO 11-30 10:00:00 [launcher.py:100] [shutdown] API server: shutdown triggered",
        FRONT + DEAD,
    )

    assert [(f.kind, f.root) for f in findings] == [
        ("illegal_access", True),
        ("engine_dead", False),
    ]


# -- folding and marks -----------------------------------------------------------------------------


def test_repeats_are_counted_and_handed_out_rarely() -> None:
    classifier = Classifier()
    handed_out = []
    for number in range(1, 1001):
        _, findings = classifier.feed([FRONT + DEAD], number, at=float(number))
        handed_out += findings
    handed_out += classifier.settle(at=1001.0)

    assert [f.count for f in handed_out] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
    assert latest(handed_out)[0].count == 1000


def test_each_line_of_a_finding_is_marked_and_only_the_first_as_the_cause() -> None:
    lines, _ = read([f"{WORKER}{ILLEGAL}\nINFO ok\n{WORKER}{ILLEGAL}\n".encode()])

    assert [(line.kind, line.severity, line.root) for line in lines] == [
        ("illegal_access", Severity.CRITICAL, True),
        ("", Severity.INFO, False),
        ("illegal_access", Severity.CRITICAL, False),
    ]


def test_the_state_of_a_progress_bar_that_says_more_is_shown() -> None:
    text = "bar: 53%|##  | 27/51 [00:06<00:05,  4.14it/s]\rFatal Python error: Bus error\rbar: 54%"
    lines, findings = read([f"{text}\n".encode()])

    assert lines[0].text == "Fatal Python error: Bus error"
    assert [f.kind for f in findings] == ["nccl_shm"]


def test_of_a_progress_bar_the_newest_state_is_shown() -> None:
    lines, findings = read([b"bar:  1%|\rbar:  2%|\rbar:  3%|\r\n"])

    assert [line.text for line in lines] == ["bar:  3%|"]
    assert findings == []


def test_control_sequences_reach_neither_pane_nor_finding() -> None:
    text = f"\x1b[0;36m(Worker_TP1 pid=7)\x1b[0;0m \x1b[31mERROR\x1b[0m {WORKER[26:]}{ILLEGAL}\x07"
    lines, findings = read([f"{text}\n".encode()])

    assert findings[0].message == f"(Worker_TP1 pid=7) ERROR {WORKER[26:]}{ILLEGAL}"
    assert lines[0].text == findings[0].message


def test_a_line_of_a_megabyte_is_cut_for_the_pane() -> None:
    lines, findings = read(
        [b"RuntimeError: NCCL error: internal error " + b"x" * 1_000_000 + b"\n"]
    )

    assert len(lines[0].text) == SHOWN_CHARACTERS + 1
    assert [f.kind for f in findings] == ["nccl_internal"]
