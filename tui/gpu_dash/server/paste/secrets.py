"""Keys and tokens in a pasted launch: named, and their values kept nowhere."""

from __future__ import annotations

import dataclasses
import re

from gpu_dash.server.paste.launch import Notes, PastedLaunch, PastedValue

_NAME = re.compile(
    r"(?:^|[-_])(?:api[-_]?keys?|(?:access|secret|private|encryption)[-_]?key(?:[-_]id)?|token|secret|"
    r"passw(?:or)?d|passwd)$|_KEY$|TOKEN$|SECRET$|PASSWORD$|^hf[-_]token$",
    re.IGNORECASE,
)
_NO_SECRET = frozenset({"image-token", "tokenizer"})
_PROXY = re.compile(r"(?:https?|all|ftp)_proxy", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{?\w+[^}]*\}?|\$\(.*\)|\{\{.*\}\}|<[^<>]+>|%\w")
_USER_IN_URL = re.compile(r"(://)[^/\s@]+@")
_TOKEN_SHAPE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{10,}|sk-[A-Za-z0-9_-]{10,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{10,}|nvapi-[\w-]{10,}|xox[abprs]-[\w-]{10,}"
    r"|A(?:KI|SI)A[0-9A-Z]{16}|AIza[\w-]{30,}|gsk_\w{20,}|r8_\w{20,}"
    r"|eyJ[\w-]{10,}\.[\w-]+\.[\w-]*)"
)
"""Of Hugging Face, OpenAI, GitHub, GitLab, NVIDIA, Slack, AWS, Google, Groq, Replicate, and JWT."""
_BEARER = re.compile(r"\b(bearer|basic)([ =:]+)(?!\$)[\w.~+/=-]{6,}", re.IGNORECASE)
_IN_QUERY = re.compile(
    r"([?&](?:[\w-]*token|[\w-]*key|sig|signature|password|secret)=)(?!\$)[^&\s\"']+", re.IGNORECASE
)
_IN_JSON = re.compile(
    r"([\"'](?:[\w-]*(?:token|secret|password|passwd)|[\w-]*api[_-]?key|[\w-]*secret[_-]access[_-]key)"
    r"[\"']\s*:\s*[\"'])(?!\$)[^\"']+",
    re.IGNORECASE,
)
HIDDEN = "***"


def is_secret_name(name: str) -> bool:
    """Whether a variable or flag holds a key, by its name."""
    return name not in _NO_SECRET and _NAME.search(name) is not None


def is_secret_value(value: str) -> bool:
    """Whether a value is a secret itself, and no reference to one."""
    return bool(value) and _REFERENCE.fullmatch(value) is None


def without_secrets(launch: PastedLaunch, notes: Notes) -> PastedLaunch:
    """The launch with ``None`` in place of the secrets of its environment, without those of its
    flags; their names are noted."""
    env: dict[str, str | None] = {}
    for name, value in launch.env.items():
        if is_secret_name(name) or (value and _may_hold_credentials(name, value)):
            _note(notes, name)
            env[name] = None if value is None or is_secret_value(value) else value
        else:
            env[name] = None if value is None else hide_in_text(value, name, notes)
    flags: dict[str, PastedValue] = {}
    for name, flag in launch.flags.items():
        if is_secret_name(name):
            _note(notes, name)
            if isinstance(flag, str) and not is_secret_value(flag):
                flags[name] = flag
        elif isinstance(flag, str):
            flags[name] = hide_in_text(flag, name, notes)
        elif isinstance(flag, list):
            flags[name] = [hide_in_text(text, name, notes) for text in flag]
        else:
            flags[name] = flag
    model = None if launch.model is None else hide_in_text(launch.model, "model", notes)
    return dataclasses.replace(launch, model=model, env=env, flags=flags)


def without_tokens(text: str) -> str:
    """A text without what in it has the shape of a token, or stands before the @ of a URL."""
    text = _BEARER.sub(rf"\1\2{HIDDEN}", _USER_IN_URL.sub(rf"\1{HIDDEN}@", text))
    text = _IN_JSON.sub(rf"\1{HIDDEN}", _IN_QUERY.sub(rf"\1{HIDDEN}", text))
    return _TOKEN_SHAPE.sub(HIDDEN, text)


def hide_in_text(text: str, name: str, notes: Notes) -> str:
    """A value without secrets in it; its name is noted if there was one."""
    hidden = without_tokens(text)
    if hidden != text:
        _note(notes, name)
    return hidden


def _may_hold_credentials(name: str, value: str) -> bool:
    return _PROXY.fullmatch(name) is not None and ("$" in value or "@" in value)


def _note(notes: Notes, name: str) -> None:
    if name not in notes.secrets:
        notes.secrets.append(name)
