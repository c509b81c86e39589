"""How failures read in a log: one table, in the order in which a line is tried.

To teach it a new wording, add a phrase to a rule, or a rule to the module of its area, each with
lines that match and lines that must not: the tests run them all. What only reports a failure
comes first, then what is special before what is general.
"""

from __future__ import annotations

from gpu_dash.logs.rules import (
    client,
    device,
    engine,
    gpu,
    memory,
    nccl,
    network,
    p2p,
    setup,
    support,
    telemetry,
)
from gpu_dash.logs.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    *engine.IGNORED,
    *engine.CONSEQUENCES,
    *nccl.RULES,
    *network.RULES,
    *p2p.RULES,
    *nccl.ANY_WARNING,
    *gpu.RULES,
    *telemetry.RULES,
    *memory.RULES,
    *device.RULES,
    *support.RULES,
    *setup.RULES,
    *engine.RULES,
    *client.RULES,
)
