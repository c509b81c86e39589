"""Further headers of the requests, and which of them are secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from gpu_dash.model.errors import UsageError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of HTTP (RFC 9110, 5.6.2)."""
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_]\w*)\}|(?P<bare>[A-Za-z_]\w*))")
_OURS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection",
     "accept-encoding", "expect", "upgrade"}
)  # fmt: skip
"""Headers that the client itself must decide."""

Pairs = tuple[tuple[str, str], ...]


class Headers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Kept in memory only, like a key: never written, logged or shown."""

    plain: Pairs = ()
    secret: Pairs = ()
    """With values from environment variables: they are cut out of what a server says."""

    @property
    def pairs(self) -> Pairs:
        """All of them, name and value."""
        return (*self.plain, *self.secret)


def parse_header(text: str) -> tuple[str, str]:
    """``Name: value`` → name and value.

    Raises:
        UsageError: it has no colon.
    """
    name, colon, value = text.partition(":")
    if not colon:
        # the text is not repeated: it may be a secret that was pasted
        raise UsageError("a header is written 'Name: value', or 'Name: $VARIABLE' for a secret")
    return name.strip(), value.strip()


def resolve_headers(
    written: Iterable[tuple[str, str]], environment: Mapping[str, str], *, has_key: bool = False
) -> Headers:
    """The headers as they are sent; a later one replaces an earlier one of the same name.

    Args:
        written: names and values; a value that is ``$NAME`` or ``${NAME}`` is that variable's.
        environment: where the variables are.
        has_key: requests carry a key, and so an ``Authorization`` of their own.

    Raises:
        UsageError: a name or a value cannot be sent, or a variable is not set. No value is
            repeated in the message.
    """
    written = list(written)
    check_headers(written, has_key=has_key)
    plain: dict[str, tuple[str, str]] = {}
    secret: dict[str, tuple[str, str]] = {}
    for name, value in written:
        variable = _VARIABLE.fullmatch(value)
        plain.pop(name.lower(), None)
        secret.pop(name.lower(), None)
        into, known = plain, value
        if variable is not None:
            source = variable["braced"] or variable["bare"]
            into, known = secret, environment.get(source, "")
            if not known:
                raise UsageError(f"header {name}: the variable {source} is not set; export it")
        _check_value(name, known)
        into[name.lower()] = (name, known)
    return Headers(plain=tuple(plain.values()), secret=tuple(secret.values()))


def check_headers(written: Iterable[tuple[str, str]], *, has_key: bool = False) -> None:
    """Refuse headers that cannot be sent, whatever their variables hold.

    Raises:
        UsageError: a name or a value cannot be sent.
    """
    for name, value in written:
        if _NAME.fullmatch(name) is None:
            raise UsageError(f"header {name[:40]!r}: a name has letters, digits and dashes only")
        if name.lower() in _OURS or (has_key and name.lower() == "authorization"):
            raise UsageError(f"header {name}: the client sends its own; leave it out")
        _check_value(name, value)


def _check_value(name: str, value: str) -> None:
    if not value or not value.isascii() or not value.isprintable():
        raise UsageError(
            f"header {name}: its value is empty, or has a line break or a letter outside ASCII"
        )
