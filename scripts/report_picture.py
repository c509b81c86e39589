"""Keep the charts of a session's report as one SVG file, on white.

python -m scripts.report_picture SESSION-FOLDER FILE.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu_dash.record.reader import SessionReader
from gpu_dash.record.report.page import report_page
from gpu_dash.record.report.style import picture_style


def charts_of(page: str) -> str:
    """The first picture of a report as a file of its own."""
    start = page.index("<svg")
    end = page.index("</svg>", start)
    head, _, inside = page[start:end].partition(">")
    return (
        f'{head} xmlns="http://www.w3.org/2000/svg"><style>{picture_style()}</style>'
        f'<rect width="100%" height="100%" fill="#fff"></rect>{inside}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("session", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    page = report_page(SessionReader(arguments.session))
    arguments.out.write_text(charts_of(page), encoding="utf-8")


if __name__ == "__main__":
    main()
