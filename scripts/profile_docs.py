"""Write the fields of a profile into docs/profiles.md, from the docstrings of the fields.

python -m scripts.profile_docs            write
python -m scripts.profile_docs --check    exit 1 if the page is not up to date
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from gpu_dash.model import load, profile

PAGE = Path(__file__).parents[1] / "docs" / "profiles.md"
HEAD = "## Fields\n"
TABLES = (
    ("", profile.Profile),
    ("[server]", profile.ServerProfile),
    ("[target]", profile.TargetProfile),
    ("[load]", profile.LoadProfile),
    ("[gpu]", profile.GpuProfile),
    ("[expected]", load.ExpectedBand),
)
_NOT_WRITTEN = frozenset({"server", "target", "load", "gpu", "expected", "name"})
"""Of the file itself: its tables, and its own name."""


def fields_of(table: type) -> Iterator[tuple[str, str, str]]:
    """``(name, default, docstring)`` of each field, in order."""
    source = ast.parse(inspect.getsource(table)).body[0]
    assert isinstance(source, ast.ClassDef)
    for at, statement in enumerate(source.body[:-1]):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        following = source.body[at + 1]
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text = " ".join(str(following.value.value).split())
            yield statement.target.id, _default(statement.value), text


def _default(value: ast.expr | None) -> str:
    if value is None:
        return "required"
    text = ast.unparse(value)
    if text == "None":
        return "–"
    enumerated = re.fullmatch(r"\w+\.(\w+)", text)
    if enumerated is not None:
        return f"`{enumerated[1].lower()}`"
    return (
        f"`{text.replace('(', '[').replace(',)', ']').replace(')', ']').replace(chr(39), chr(34))}`"
    )


def page() -> str:
    """The whole page: what is written by hand above, the fields below."""
    written = PAGE.read_text(encoding="utf-8").partition(HEAD)[0]
    parts = [written, HEAD]
    for title, table in TABLES:
        rows = [row for row in fields_of(table) if title or row[0] not in _NOT_WRITTEN]
        parts.append(f"\n{f'### `{title}`' if title else '### At the head of the file'}\n\n")
        parts.append("| field | default | |\n| --- | --- | --- |\n")
        for name, default, text in rows:
            plain = text.replace("``", "`").replace("|", "\\|")
            parts.append(f"| `{name}` | {default} | {plain} |\n")
    return "".join(parts)


def main() -> int:
    """Write the page, or say whether it is up to date."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true")
    wanted = page()
    if options.parse_args().check:
        return int(PAGE.read_text(encoding="utf-8") != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
