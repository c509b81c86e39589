"""How many tokens one request asks for, where they are spread."""

from __future__ import annotations

import math
import random

from gpu_dash.model.token_spread import SpreadKind, TokenSpread


def draw_tokens(spread: TokenSpread, dice: random.Random) -> int:
    """A number of tokens, at least one.

    The logarithm of a log-normal number with mean ``m`` and deviation ``s`` is normal with the
    variance ``ln(1 + s²/m²)`` and the mean ``ln m`` less half of that.
    """
    match spread.kind:
        case SpreadKind.UNIFORM:
            least, most = spread.mean - spread.deviation, spread.mean + spread.deviation
            return dice.randint(round(least), round(most))
        case SpreadKind.NORMAL:
            return max(1, round(dice.gauss(spread.mean, spread.deviation)))
        case SpreadKind.LOGNORMAL:
            variance = math.log1p((spread.deviation / spread.mean) ** 2)
            middle = math.log(spread.mean) - variance / 2
            return max(1, round(dice.lognormvariate(middle, math.sqrt(variance))))
