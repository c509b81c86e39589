"""What the vLLM that is installed says of itself."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.history import Release, parse_release

ANSWER_TIMEOUT_S = 120.0
"""vLLM imports for 9 s before it prints its version; longer from a cold disk."""
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")
_DISTRIBUTION = re.compile(r"vllm(?:_cpu)?-(\d+\.\d+[^-]*)\.dist-info")
_VERSION = re.compile(r"^\s*(?:vllm\s+)?(\d+\.\d+\S*)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class InstalledVllm:
    """The release, and every flag that its help names."""

    release: Release
    flags: frozenset[str]


def ask_installed(program: str, environment: Mapping[str, str]) -> InstalledVllm:
    """Ask a ``vllm`` command for its version and its help.

    Raises:
        UsageError: it cannot be run, or its answer is not understood.
    """
    version = _VERSION.search(_output([program, "--version"], environment))
    if version is None:
        raise UsageError(f"{program} --version: no version in its answer; use --vllm-version X.Y")
    shown = _output([program, "serve", "--help=all"], environment)
    return InstalledVllm(parse_release(version[1]), frozenset(_FLAG.findall(shown)))


def release_on_disk(program: str, search_path: str | None) -> Release | None:
    """The release of the vLLM that a command belongs to, by the files beside it: at once, where
    asking the command takes 9 s.

    Args:
        program: ``vllm``, or a path to it or to its environment's Python.
        search_path: ``PATH`` of the person who launches.

    Returns:
        ``None`` where it cannot be told, or is none that the table covers.
    """
    found = shutil.which(program, path=search_path)
    if found is None:
        return None
    for folder in (Path(found).parents[1], Path(found).resolve().parents[1]):
        for metadata in sorted(folder.glob("lib/python3*/site-packages/vllm*-*.dist-info")):
            version = _DISTRIBUTION.fullmatch(metadata.name)
            if version is not None:
                with contextlib.suppress(UsageError):
                    return parse_release(version[1])
    return None


def _output(argv: list[str], environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            argv,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_TIMEOUT_S,
            check=True,
        )
    except FileNotFoundError as error:
        raise UsageError(f"{argv[0]} is not installed here; use --vllm-version X.Y") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"{' '.join(argv)}: {error}; use --vllm-version X.Y") from error
    return done.stdout.decode(errors="replace")
