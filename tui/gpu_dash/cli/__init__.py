"""Commands: argument → call, nothing else."""


def main() -> None:
    """Entry point of ``gpu-dash``."""
    raise SystemExit("not built yet")
