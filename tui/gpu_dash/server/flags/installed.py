"""What the vLLM that is installed says of itself."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_dash.model.errors import UsageError
from gpu_dash.server.flags.history import Release, parse_release

ANSWER_TIMEOUT_S = 120.0
"""vLLM imports for 9 s before it prints its version; longer from a cold disk."""
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")
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
