"""Lines as each version and library writes them, taken apart."""

from __future__ import annotations

import json

import pytest

from gpu_dash.logs.grammar import Form, Level, Place, parse, place_of

VLLM = [
    # 0.6 and 0.7: no opening bracket, workers with a prefix
    (
        "INFO 11-05 04:16:47 model_runner.py:1025] Starting to load model acme/model-7b...",
        ("", None, Level.INFO, "11-05 04:16:47", "model_runner.py"),
    ),
    (
        "(VllmWorkerProcess pid=67) ERROR 02-22 22:09:01 custom_all_reduce.py:136] x",
        ("VllmWorkerProcess", 67, Level.ERROR, "02-22 22:09:01", "custom_all_reduce.py"),
    ),
    (
        "(RayWorkerWrapper pid=880, ip=192.0.2.58) INFO 04-16 01:01:44 worker.py:3] x",
        ("RayWorkerWrapper", 880, Level.INFO, "04-16 01:01:44", "worker.py"),
    ),
    # 0.8 to 0.10
    (
        "INFO 03-20 16:01:36 [core.py:58] x",
        ("", None, Level.INFO, "03-20 16:01:36", "core.py"),
    ),
    (
        "(VllmWorker rank=1 pid=2207) ERROR 06-29 19:19:59 [multiproc_executor.py:487] x",
        ("VllmWorker rank=1", 2207, Level.ERROR, "06-29 19:19:59", "multiproc_executor.py"),
    ),
    (
        "(VllmWorker TP1 pid=12) WARNING 08-11 07:01:02 [utils.py:1] x",
        ("VllmWorker TP1", 12, Level.WARNING, "08-11 07:01:02", "utils.py"),
    ),
    # 0.11 to 0.33
    (
        "(EngineCore_DP0 pid=77352) INFO 10-22 09:43:49 [shm_broadcast.py:466] x",
        ("EngineCore_DP0", 77352, Level.INFO, "10-22 09:43:49", "shm_broadcast.py"),
    ),
    (
        "(Worker_DP0_TP1_EP3 pid=5159) CRITICAL 11-30 18:50:34 [parallel_state.py:1615] x",
        ("Worker_DP0_TP1_EP3", 5159, Level.CRITICAL, "11-30 18:50:34", "parallel_state.py"),
    ),
    # VLLM_LOGGING_LEVEL=DEBUG: a shortened path
    (
        "(APIServer pid=7) DEBUG 11-04 18:02:56 [entrypoints/.../serving.py:1267] x",
        ("APIServer", 7, Level.DEBUG, "11-04 18:02:56", "serving.py"),
    ),
    # VLLM_LOGGING_PREFIX, and a progress bar without a line feed in front
    (
        "node-a> (Worker_TP1 pid=5) ERROR 11-04 18:02:56 [core.py:1] x",
        ("Worker_TP1", 5, Level.ERROR, "11-04 18:02:56", "core.py"),
    ),
    (
        "Capturing CUDA graphs:  53%|█▎ | 27/51 [00:06<00:05,  4.14it/s](Worker_TP1 pid=5) ERROR "
        "11-04 18:02:56 [core.py:1] x",
        ("Worker_TP1", 5, Level.ERROR, "11-04 18:02:56", "core.py"),
    ),
    # what carries the log
    (
        "vllm-1  | (EngineCore pid=71) ERROR 04-09 20:31:12 [core.py:1110] x",
        ("EngineCore", 71, Level.ERROR, "04-09 20:31:12", "core.py"),
    ),
    (
        "2026-11-30T18:43:44.123456789Z stdout F INFO 03-20 16:01:36 [core.py:58] x",
        ("", None, Level.INFO, "03-20 16:01:36", "core.py"),
    ),
    (
        "Nov 30 18:43:44 host-a vllm[4711]: INFO 03-20 16:01:36 [core.py:58] x",
        ("", None, Level.INFO, "03-20 16:01:36", "core.py"),
    ),
    (
        "(EngineCore pid=215) (RayWorkerProc pid=221) ERROR 03-20 16:01:36 [core.py:58] x",
        ("RayWorkerProc", 221, Level.ERROR, "03-20 16:01:36", "core.py"),
    ),
]


@pytest.mark.parametrize(("line", "expected"), VLLM, ids=[line[:50] for line, _ in VLLM])
def test_a_record_of_vllm(line: str, expected: tuple[str, int | None, Level, str, str]) -> None:
    record = parse(line)

    assert record.form is Form.VLLM
    assert (record.process, record.pid, record.level, record.stamp, record.file) == expected
    assert record.message in ("x", "Starting to load model acme/model-7b...")


def test_the_indentation_of_a_message_is_kept() -> None:
    record = parse("ERROR 09-15 08:00:02 [serving.py:908]     raise output")

    assert record.message == "    raise output"
    assert record.head == "ERROR 09-15 08:00:02 [serving.py:908] "


OTHERS = [
    (
        'INFO:     127.0.0.1:46686 - "POST /v1/completions HTTP/1.1" 200 OK',
        Form.UVICORN,
        Level.INFO,
        '127.0.0.1:46686 - "POST /v1/completions HTTP/1.1" 200 OK',
    ),
    ("ERROR:    [Errno 98] error", Form.UVICORN, Level.ERROR, "[Errno 98] error"),
    ("(APIServer pid=1) INFO:     Shutting down", Form.UVICORN, Level.INFO, "Shutting down"),
    (
        "WARNING: vllm bench serve no longer sets it",
        Form.RAW,
        Level.NONE,
        "WARNING: vllm bench serve no longer sets it",
    ),
    (
        "[rank3]:[E1012 22:31:22.267261276 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog",
        Form.TORCH,
        Level.ERROR,
        "Watchdog",
    ),
    (
        "[rank0]:[F ProcessGroupNCCL.cpp:1169] [PG 2 Rank 0] [PG 2 Rank 0] stuck",
        Form.TORCH,
        Level.CRITICAL,
        "stuck",
    ),
    (
        "[E306 00:03:07.842961975 socket.cpp:1011] [c10d] The client socket",
        Form.TORCH,
        Level.ERROR,
        "[c10d] The client socket",
    ),
    (
        "I20241209 23:39:43.535403 12993627 ProcessGroupNCCL.cpp:2262] [PG ID 0 PG GUID "
        "0(default_pg) Rank 0] took 60 ms",
        Form.TORCH,
        Level.INFO,
        "took 60 ms",
    ),
    ("vllm-1  | INFO:     Shutting down", Form.UVICORN, Level.INFO, "Shutting down"),
    (
        "2026-11-30T18:43:44.1Z stderr F [rank0]:[E1012 22:31:22.2 socket.cpp:607] [Rank 0] x",
        Form.TORCH,
        Level.ERROR,
        "x",
    ),
    ("Nov 30 18:43:44 host-a vllm[4711]: Bus error", Form.RAW, Level.NONE, "Bus error"),
    ("[rank0]: RuntimeError: x", Form.RAW, Level.NONE, "RuntimeError: x"),
    (
        "host-a:213:213 [1] NCCL INFO NCCL version 2.27.3+cuda12.9",
        Form.NCCL,
        Level.INFO,
        "NCCL version 2.27.3+cuda12.9",
    ),
    (
        "[2025-11-04 18:02:56] host-a:213:213 [1] enqueue.cc:1535 NCCL WARN Cuda failure",
        Form.NCCL,
        Level.WARNING,
        "Cuda failure",
    ),
    (
        "(EngineCore pid=2) (RayWorkerProc pid=3) box:22126:22126 [0] NCCL INFO Connected",
        Form.NCCL,
        Level.INFO,
        "Connected",
    ),
    ("[88211.120044] NVRM: Xid (PCI:0000:3b:00): 31", Form.KERNEL, Level.NONE, None),
    (
        "May 18 19:02:39 host-a kernel: NVRM: Xid (PCI:0000:3b:00): 31",
        Form.KERNEL,
        Level.NONE,
        None,
    ),
    ("[Sat Jan  7 14:25:56 2023] amdgpu 0000:e3:00.0: GPU reset", Form.KERNEL, Level.NONE, None),
    ("               NVRM: fallen off the bus", Form.KERNEL, Level.NONE, None),
    (
        "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:09<00:28,  9.50s/it]",
        Form.PROGRESS,
        Level.NONE,
        None,
    ),
    ("client: HTTP 401 {}", Form.CLIENT, Level.NONE, "HTTP 401 {}"),
    ("(Worker_TP0 pid=5536) ", Form.RAW, Level.NONE, ""),
    ("", Form.RAW, Level.NONE, ""),
    ("0 errors, 0 warnings", Form.RAW, Level.NONE, "0 errors, 0 warnings"),
    ("{not json", Form.RAW, Level.NONE, "{not json"),
]


@pytest.mark.parametrize(
    ("line", "form", "level", "message"), OTHERS, ids=[line[:50] or "empty" for line, *_ in OTHERS]
)
def test_a_line_of_somebody_else(line: str, form: Form, level: Level, message: str | None) -> None:
    record = parse(line)

    assert (record.form, record.level) == (form, level)
    if message is not None:
        assert record.message == message


@pytest.mark.parametrize(
    ("line", "rank", "device"),
    [
        ("[rank3]:[E1012 22:31:22.26 ProcessGroupNCCL.cpp:607] [Rank 3] x", 3, None),
        ("[E ProcessGroupNCCL.cpp:475] [Rank 4] x", 4, None),
        ("[E429 13:55:49.38 ProcessGroupNCCL.cpp:1] [PG ID 4 PG GUID 19 Rank 1] x", 1, None),
        ("[rank12]: Traceback (most recent call last):", 12, None),
        ("host-b:240:240 [6] misc/socket.cc:533 NCCL WARN x", None, 6),
        ("host-b:240:240 [0] /long/path_name/src/init.cc:179 NCCL WARN x", None, 0),
    ],
)
def test_rank_and_device(line: str, rank: int | None, device: int | None) -> None:
    record = parse(line)

    assert (record.rank, record.device) == (rank, device)


def test_a_json_record() -> None:
    line = json.dumps(
        {
            "asctime": "2026-11-30 18:43:44,123",
            "levelname": "ERROR",
            "name": "vllm.v1.engine.core",
            "processName": "EngineCore",
            "process": 812,
            "message": "EngineCore failed to start.",
            "exc_info": "Traceback (most recent call last):\nValueError: x",
        }
    )

    record = parse(line)

    assert (record.form, record.level, record.process, record.pid) == (
        Form.VLLM,
        Level.ERROR,
        "EngineCore",
        812,
    )
    assert record.message == (
        "EngineCore failed to start.\nTraceback (most recent call last):\nValueError: x"
    )


@pytest.mark.parametrize(
    ("process", "place"),
    [
        ("Worker_TP1", Place(tp=1, is_worker=True)),
        ("Worker_DP0_TP3_EP7", Place(tp=3, is_worker=True)),
        ("VllmWorker TP1", Place(tp=1, is_worker=True)),
        ("VllmWorker rank=2", Place(rank=2, is_worker=True)),
        ("VllmWorker-0", Place(rank=0, is_worker=True)),
        ("Worker", Place(is_worker=True)),
        ("Worker_PP0", Place(is_worker=True)),
        ("EngineCore_DP0", Place()),
        ("APIServer", Place(is_front_end=True)),
        ("ApiServer_1", Place(is_front_end=True)),
        ("", Place()),
    ],
)
def test_where_a_process_stands(process: str, place: Place) -> None:
    assert place_of(process) == place
