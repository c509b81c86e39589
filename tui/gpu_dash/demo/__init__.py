"""A stand-in for ``vllm serve`` with simulated cards: ``python -m gpu_dash.demo serve MODEL``.

It speaks real HTTP, prints lines shaped like vLLM's, and its cards heat up with the load that it
really gets. The demo, the tests and the simulated GPU source use it as they would use a
stranger's server: over the socket. Standard library and asyncio only.

::

    arguments ─► serve ─► startup            log lines until the port listens
                   ├─► simulation ─► engine  continuous batching, capacity, queue
                   │             └─► rack ─► thermal   temperature, power, clock of each card
                   ├─► api ─► protocol       bodies and error bodies of the OpenAI routes
                   │      └─► http_server    HTTP/1.1 on asyncio
                   ├─► metrics ◄─ stats      vLLM's families in Prometheus' text format
                   └─► failure               the ways to die, with their log lines
"""
