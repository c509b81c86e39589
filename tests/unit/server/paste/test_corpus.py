"""Every published launch command of ``tests/data/launch`` comes out as its README says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_dash.server.flags.history import parse_release
from gpu_dash.server.paste.text import import_text

CORPUS = Path(__file__).parents[3] / "data" / "launch" / "commands.jsonl"
COMMANDS = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def without(values: dict[str, Any], secrets: list[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in secrets}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["id"])
def test_a_published_command_is_imported_whole(command: dict[str, Any]) -> None:
    expected = command["expect"]
    secrets = expected["secrets"]

    imported = import_text(command["text"], parse_release("0.33")).as_json()

    for name in ("program", "model", "port", "visible_devices", "container"):
        assert imported[name] == expected[name], name
    for name in ("flags", "env"):
        assert without(imported[name], secrets) == without(expected[name], secrets)
    assert set(imported["secrets"]) == set(secrets)
    assert set(imported["unresolved"]) == set(expected.get("unresolved", ()))
    found = {
        why: {(one["name"], one["instead"]) for one in imported["corrections"] if one["why"] == why}
        for why in ("gone", "never_existed", "bad_form", "no_effect")
    }
    assert found["gone"] == {(one["name"], one["instead"]) for one in expected["gone_in_0_33"]}
    assert found["never_existed"] == {
        (one["name"], one["instead"]) for one in expected["never_existed"]
    }
    assert {name for name, _ in found["bad_form"]} == {
        one["flag"] for one in expected.get("bad_form_in_0_33", ())
    }
    assert not found["no_effect"]
    for name in expected.get("fork_only", ()):
        assert any(name in warning for warning in imported["warnings"])
    if "warn" in expected and "filled in" not in expected["warn"]:
        assert imported["warnings"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["id"])
def test_no_value_of_a_secret_is_kept(command: dict[str, Any]) -> None:
    expected = command["expect"]
    values = [{**expected["env"], **expected["flags"]}.get(name) for name in expected["secrets"]]

    text = json.dumps(import_text(command["text"]).as_json())

    for value in values:
        if value is not None and "$" not in value and not value.startswith("<"):
            assert value not in text
