"""What vLLM writes while it stops."""

from __future__ import annotations

from gpu_dash.demo.log import API_SERVER, ENGINE_CORE, ServerLog


def log_stop_asked(log: ServerLog, timeout_s: float) -> None:
    """A signal arrived."""
    mode = "drain" if timeout_s else "abort"
    for text in (
        "[shutdown] API server: shutdown triggered",
        f"[shutdown] API server: stopping engine client mode={mode} timeout={timeout_s:.0f}s",
    ):
        log.record(API_SERVER, "INFO", "launcher.py:254", text)


def log_engine_stopped(log: ServerLog) -> None:
    """The engine goes; the warning is on every clean stop of vLLM's."""
    _api(log, "core_client.py:770", "MPClient: start timeout=0s")
    _api(log, "core_client.py:772", "MPClient: stopping engine manager")
    _api(log, "utils.py:628", "Process manager: send sigterm to process EngineCore")
    text = "[shutdown] EngineCore: trigger received signal=SIGTERM"
    log.record(ENGINE_CORE, "INFO", "core.py:1454", text)
    log.record(
        API_SERVER,
        "WARNING",
        "utils.py:653",
        "[shutdown] Process manager: force killing remaining process EngineCore "
        f"pid {log.pid_of(ENGINE_CORE)}",
    )
    _api(log, "core_client.py:774", "MPClient: engine manager stopped")
    _api(log, "core_client.py:777", "MPClient: complete")


def log_server_stopped(log: ServerLog) -> None:
    """The HTTP server goes."""
    log.raw_error("INFO:     Shutting down")
    log.raw_error("INFO:     Waiting for application shutdown.")
    log.raw_error("INFO:     Application shutdown complete.")
    log.raw_error(f"INFO:     Finished server process [{log.pid_of(API_SERVER)}]")


def _api(log: ServerLog, source: str, text: str) -> None:
    log.record(API_SERVER, "INFO", source, f"[shutdown] {text}")
