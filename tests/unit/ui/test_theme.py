"""What a role looks like never says it by colour alone."""

from __future__ import annotations

import pytest

from gpu_dash.ui.render.row import Role
from gpu_dash.ui.theme import UNCOLOURED, styles_for


@pytest.mark.parametrize("color_system", ["standard", "256", "truecolor", None])
def test_every_role_has_a_style(color_system: str | None) -> None:
    assert set(styles_for(no_color=False, color_system=color_system)) == set(Role)
    assert set(UNCOLOURED) == set(Role)


def test_no_color_uses_none() -> None:
    styles = styles_for(no_color=True, color_system="truecolor")

    assert all(style.color is None and style.bgcolor is None for style in styles.values())


def test_alarm_warning_and_grey_differ_without_colour() -> None:
    told_apart = {UNCOLOURED[role] for role in (Role.PLAIN, Role.DIM, Role.ALARM, Role.SHOUT)}

    assert len(told_apart) == 4


def test_grey_stays_grey_with_sixteen_colours() -> None:
    assert styles_for(no_color=False, color_system="standard")[Role.DIM].dim
