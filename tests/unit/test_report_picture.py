"""The charts of a report as a picture of their own."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from gpu_dash.record.reader import SessionReader
from gpu_dash.record.report.page import report_page
from scripts.report_picture import charts_of

REFERENCE = Path(__file__).parents[1] / "data" / "h200-tp2"


def test_the_picture_is_well_formed_and_has_its_own_style() -> None:
    picture = ElementTree.fromstring(charts_of(report_page(SessionReader(REFERENCE))))
    name = "{http://www.w3.org/2000/svg}"
    assert picture.tag == f"{name}svg"
    (style,) = picture.iter(f"{name}style")
    assert ".shade" in (style.text or "")
    assert any(text.text == "Temperature, °C" for text in picture.iter(f"{name}text"))
