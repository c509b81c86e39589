"""The look of the page: light, dark as the reader's system is, and black on white in print.

Colours are classes and no variables, so that a picture taken out of the page keeps them.
"""

from __future__ import annotations

from gpu_dash.record.report.markup import Markup

CARD_STYLES = 8
"""Classes ``c0`` to ``c7`` are told apart by people who do not see all colours."""
_LIGHT = ("#0b6bb8", "#c77700", "#00865f", "#b84f94", "#3aa0dc", "#c43c00", "#7d7a00", "#6a48b5")
_DARK = ("#5eb0f5", "#f0a63c", "#3cc79a", "#e58ac4", "#9bd2f7", "#ff8255", "#cfc84a", "#b39cf0")


def _strokes(colours: tuple[str, ...]) -> str:
    return "".join(
        f".c{place}{{stroke:{colour};fill:none}}.fc{place}{{fill:{colour};stroke:none}}"
        f".a{place}{{fill:{colour};fill-opacity:.18;stroke:none}}"
        for place, colour in enumerate(colours)
    )


_SHAPES = """
svg.chart{display:block;width:100%;height:auto;margin:.3rem 0}
svg path{stroke-width:1.4;stroke-linejoin:round;stroke-linecap:round}
svg text{font:11px system-ui,-apple-system,"Segoe UI",sans-serif}
svg .title{font-size:12.5px;font-weight:600}
svg .end{text-anchor:end} svg .middle{text-anchor:middle}
svg .step-label{font-weight:600} svg .lane{font-size:9px} svg .flag-label{font-size:9px}
svg .rule{stroke-dasharray:5 4;stroke-width:1;fill:none}
svg .flag{stroke-dasharray:2 3;stroke-width:1.2;fill:none}
svg .grid,svg .axis-line{stroke-width:1}
svg .point{stroke-width:1.6}
"""
_LIGHT_SHAPES = """
svg text{fill:#222} svg .axis,svg .lane,svg .legend{fill:#5b6470}
svg .grid{stroke:#e4e7eb} svg .axis-line{stroke:#9aa3ad}
svg .step{fill:#eef1f5} svg .step.odd{fill:#e1e6ee} svg .lane-bed{fill:#eef1f5}
svg .shade{fill:#d3222a;fill-opacity:.11}
svg .thermal,svg .power_brake,svg .slowdown{fill:#d3222a} svg .power_cap{fill:#e2a117}
svg .failed{fill:#d3222a;stroke:none}
svg .rule{stroke:#a03038} svg .rule-label{fill:#a03038}
svg .flag{stroke:#7b1fa2} svg .flag-head{fill:#7b1fa2} svg .flag-label{fill:#fff}
svg .hot{fill:#d3222a;stroke:none} svg .hollow{fill:#fff}
"""
_DARK_SHAPES = """
svg text{fill:#e6e8eb} svg .axis,svg .lane,svg .legend{fill:#9aa4b0}
svg .grid{stroke:#2b323b} svg .axis-line{stroke:#5b6672}
svg .step{fill:#1c222a} svg .step.odd{fill:#242c36} svg .lane-bed{fill:#1c222a}
svg .shade{fill:#ff5a5f;fill-opacity:.17}
svg .thermal,svg .power_brake,svg .slowdown{fill:#ff5a5f} svg .power_cap{fill:#c98f1c}
svg .failed{fill:#ff5a5f}
svg .rule{stroke:#ff9aa0} svg .rule-label{fill:#ff9aa0}
svg .flag{stroke:#d29cf0} svg .flag-head{fill:#b46fd9} svg .flag-label{fill:#fff}
svg .hot{fill:#ff5a5f} svg .hollow{fill:#14181d}
"""
_PAGE = """
:root{color-scheme:light dark}
body{margin:0 auto;max-width:1180px;padding:1.2rem 1.4rem 3rem;
 font:15px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;background:#fff;color:#1d2127}
h1{font-size:1.5rem;margin:.2rem 0 .1rem} h2{font-size:1.1rem;margin:1.9rem 0 .5rem}
.sub{margin:0 0 1rem} .sub,.note{color:#5b6470} .note{font-size:.87rem;max-width:60rem}
table{border-collapse:collapse;font-size:.8rem;font-variant-numeric:tabular-nums}
th,td{padding:.22rem .5rem;text-align:left;vertical-align:top;border-bottom:1px solid #e4e7eb}
th{font-weight:600;color:#5b6470} td.n,th.n{text-align:right;white-space:nowrap}
td.w{overflow-wrap:anywhere;min-width:5.5rem} code{font:.86em ui-monospace,Menlo,Consolas,monospace}
code{overflow-wrap:anywhere} dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;
 margin:0;font-size:.92rem} dt{color:#5b6470} dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto} .pair{display:grid;grid-template-columns:1fr 1fr;gap:.5rem 1rem}
.word{font-weight:700} .passed{color:#0a7a4b} .failed-word{color:#c01820} .open{color:#8a5a00}
@media (max-width:760px){.pair{grid-template-columns:1fr}}
"""
_DARK_PAGE = """
body{background:#14181d;color:#e6e8eb} .sub,.note,th,dt{color:#9aa4b0}
th,td{border-color:#2b323b}
.passed{color:#4fd39a} .failed-word{color:#ff7a7f} .open{color:#e8b04c}
"""
_PRINT = """
@page{margin:12mm} body{max-width:none;padding:0;font-size:10px} h1{font-size:1.3rem}
h2{margin:1rem 0 .3rem} dl{font-size:9.5px;line-height:1.3}
.note,table{font-size:8.5px}
.pair{grid-template-columns:1fr 1fr} svg.chart,tr,dl,.keep{break-inside:avoid} h2{break-after:avoid}
thead{display:table-header-group} .scroll{overflow:visible}
th,td{padding:.12rem .3rem}
"""


def picture_style() -> Markup:
    """What a chart needs when it stands alone, on white."""
    return Markup(_SHAPES + _LIGHT_SHAPES + _strokes(_LIGHT))


def style_sheet() -> Markup:
    """The text of the ``style`` element."""
    dark = _DARK_PAGE + _DARK_SHAPES + _strokes(_DARK)
    return Markup(
        f"{_PAGE}{picture_style()}@media screen and (prefers-color-scheme:dark){{{dark}}}"
        f"@media print{{{_PRINT}}}"
    )
