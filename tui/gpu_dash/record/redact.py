"""Keys and tokens that people put into argument lists, URLs and logs, taken out before anything
is written. gpu-dash's own never get as far as here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

HIDDEN = "***"

_WORD = r"(?:api[-_]?key|(?:hf|hub|auth|access)[-_]?token|secret|password)"
"""How the name of a key ends. What stands before it in the name is left out where a text is
searched: it would be tried from each character on, and a line without end takes hours."""
_VALUE = r"[^\s'\",)\]}]+"
_IN_TEXT = (
    # api_key='…', "hf_token": "…", --api-key=…
    re.compile(rf"({_WORD}['\"]?\s*[=:]\s*['\"(\[]*){_VALUE}", re.IGNORECASE),
    # --api-key … within one word, as in sh -c '…'
    re.compile(rf"((?<![\w-])--[\w-]*{_WORD}\s+['\"]?){_VALUE}", re.IGNORECASE),
    # HF_TOKEN=…
    re.compile(r"(\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=)\S+"),
    re.compile(r"(\bBearer\s+)[\w.~+/-]+=*", re.IGNORECASE),
    # https://user:password@host
    re.compile(r"(://)[^/\s@]+(?=@)"),
)
_SECRET_FLAG = re.compile(rf"--?[\w-]*{_WORD}", re.IGNORECASE)
_ENVIRONMENT_FLAGS = ("-e", "--env")
_ENVIRONMENT_VALUE = re.compile(r"((?:-e|--env=)?[A-Za-z_]\w*=).*", re.DOTALL)


def hide_secrets(text: str) -> str:
    """A text without the values of what it calls a key, token, secret or password."""
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def hide_in_command(words: Sequence[str]) -> tuple[str, ...]:
    """An argument list without keys and without the values of environment variables that it
    hands to a container."""
    return tuple(_hidden(words))


def _hidden(words: Sequence[str]) -> Iterator[str]:
    is_value = False
    before = ""
    for word in words:
        is_value = is_value and not word.startswith("-")
        sets_variable = before in _ENVIRONMENT_FLAGS or word.startswith(_ENVIRONMENT_FLAGS)
        if is_value:
            yield HIDDEN
        elif sets_variable and (match := _ENVIRONMENT_VALUE.fullmatch(word)):
            yield match[1] + HIDDEN
        else:
            yield hide_secrets(word)
        is_value = is_value or _SECRET_FLAG.fullmatch(word) is not None
        before = word
