"""What is wrong with a key before anybody was asked; the key itself is never in a message."""

from __future__ import annotations

from gpu_dash.doctor.check import Check, fail, ok, warn

HIDDEN = "***"
_QUOTES = "\"'`“”‘’"


def check_key(variable: str | None, value: str | None) -> tuple[Check, str | None]:
    """Look at a key, and say which one to go on with.

    Args:
        variable: the environment variable that was named; ``None``: no key is used.
        value: what it holds; ``None``: it is not set.
    """
    if variable is None:
        return ok("key", "no key is sent (--api-key-env NAME names its variable)"), None
    if value is None:
        return fail("key", f"the variable {variable} is not set", f"export {variable}=…"), None
    if not value.strip():
        return fail("key", f"the variable {variable} is blank", f"export {variable}=…"), None
    usable = value.strip().strip(_QUOTES).removeprefix("Bearer ").removeprefix("bearer ").strip()
    if not value.isascii():
        action = "copy the key again from where it was made, as plain text"
        return fail("key", f"{variable} holds characters that no HTTP header takes", action), None
    if value != value.strip():
        action = f"export {variable} without them; the checks go on without them"
        return fail("key", f"{variable} begins or ends with spaces or a line end", action), usable
    if value[:7].lower() == "bearer ":
        action = f"export {variable} as the bare key; Bearer is put in front of it anyway"
        return fail("key", f"{variable} begins with the word Bearer", action), usable
    if value[0] in _QUOTES or value[-1] in _QUOTES:
        action = f"export {variable} without quotes in it; the checks go on without them"
        return fail("key", f"{variable} has quotes around the key", action), usable
    if any(character.isspace() for character in value):
        action = "copy the key again: two values may have been pasted into one"
        return fail("key", f"{variable} has spaces inside the key", action), None
    if len(value) < 8:
        action = "look whether it was cut when it was copied"
        return warn("key", f"{variable} holds only {len(value)} characters", action), usable
    return ok("key", f"{variable} holds {len(value)} characters"), usable


def without_key(text: str, *keys: str | None) -> str:
    """A text in which no key stands, whoever wrote it there."""
    for key in keys:
        for form in {key or "", (key or "").strip()}:
            if form:
                text = text.replace(form, HIDDEN)
    return text
