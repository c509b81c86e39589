"""The one place where text becomes HTML."""

from __future__ import annotations

import pytest

from gpu_dash.record.report.markup import Markup, element, joined, pixels, text


@pytest.mark.parametrize(
    ("plain", "made"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b \"c\" 'd'", "a &amp; b &quot;c&quot; &#x27;d&#x27;"),
        ("\x1b[31mred\x1b[0m\x00", "red"),
        ("two\nlines", "two ⏎ lines"),
        ("left \u202e right", "left  right"),
        ("--api-key=sk-123 HF_TOKEN=hf_abc", "--api-key=*** HF_TOKEN=***"),
        ("&amp;", "&amp;amp;"),
    ],
)
def test_a_text_is_made_safe(plain: str, made: str) -> None:
    assert text(plain) == made


def test_children_are_escaped_and_markup_is_not() -> None:
    inner = element("b", "<i>")
    assert inner == "<b>&lt;i&gt;</b>"
    assert element("p", "x < ", inner, None) == "<p>x &lt; <b>&lt;i&gt;</b></p>"
    assert joined(("<", Markup("<br>"))) == "&lt;<br>"


def test_attributes_are_escaped_and_named_as_in_html() -> None:
    made = element("a", class_="c", aria_label='"><script>', viewBox="0 0 1 1", x=1.25, y=None)
    assert made == (
        '<a class="c" aria-label="&quot;&gt;&lt;script&gt;" viewBox="0 0 1 1" x="1.2"></a>'
    )


def test_pixels_have_a_tenth_at_most() -> None:
    assert [pixels(value) for value in (0.0, 1.04, 12.35, -3.0)] == ["0", "1", "12.3", "-3"]
