"""The disk fills up: ``python -m tests.faults.small_disk FOLDER``, the folder being a small disk.

A process of its own, because the disk exists in its mount namespace only. Prints the outcome.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import tempfile

from tests.faults.host import fill_the_disk
from tests.faults.stage import play

tempfile.tempdir = sys.argv[1]
print(json.dumps(dataclasses.asdict(asyncio.run(play(fill_the_disk)))))
