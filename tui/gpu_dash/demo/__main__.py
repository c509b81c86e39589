"""``python -m gpu_dash.demo serve MODEL [flags of vLLM …] [--sim-… …]``."""

from __future__ import annotations

import asyncio
import sys

from gpu_dash.demo.arguments import parse
from gpu_dash.demo.serve import serve

if __name__ == "__main__":
    sys.exit(asyncio.run(serve(parse(sys.argv[1:]))))
