"""Play the faults and print the table: ``python -m tests.faults [WORD …]``."""

from __future__ import annotations

import asyncio
import sys

from tests.faults.plays import PLAYS
from tests.faults.table import print_table

sys.exit(1 if asyncio.run(print_table(PLAYS, sys.argv[1:])) else 0)
