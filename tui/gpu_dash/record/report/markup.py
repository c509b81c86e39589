"""HTML and SVG as nested elements.

The one place where text becomes HTML. Whatever is not :class:`Markup` came from outside or might
have: it loses its control sequences and what it calls a key, and is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from gpu_dash.model.text import one_line
from gpu_dash.record.redact import hide_secrets


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None
"""A :class:`Markup` as it stands, any other text escaped, ``None`` left out."""
Attribute = str | float | None


def text(plain: str) -> Markup:
    """A text, made safe for any place between tags or in quotes."""
    return Markup(html.escape(hide_secrets(one_line(plain)), quote=True))


def element(name: str, *children: Child, **attributes: Attribute) -> Markup:
    """``<name attribute="…">children</name>``.

    Args:
        name: of the tag.
        children: what stands in it, in order.
        attributes: ``class_`` is ``class``, and every other ``_`` is ``-``; ``None`` is left out.
    """
    head = "".join(
        f' {_attribute_name(key)}="{_attribute_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{head}>{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Markup:
    """Children behind each other, without a tag around them."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else text(child)
            for child in children
            if child is not None
        )
    )


def pixels(value: float) -> str:
    """A coordinate with a tenth of a pixel."""
    rounded = f"{value:.1f}"
    return rounded[:-2] if rounded.endswith(".0") else rounded


def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _attribute_text(value: str | float) -> str:
    return text(value) if isinstance(value, str) else pixels(value)
