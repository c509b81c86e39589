"""A stand-in for ``vllm serve`` with simulated cards: ``python -m gpu_dash.demo serve MODEL``.

It speaks real HTTP, prints lines shaped like vLLM's, and its cards heat up with the load that it
really gets. The demo, the tests and the simulated GPU source use it as they would use a
stranger's server: over the socket. Standard library and asyncio only.

::

    arguments ─► serve ─► startup, narrator, shutdown, failure ─► log   what it says, and when
                   │       engine_core   the child process that a stop must end too
                   ├─► simulation ─► engine ─► stats   continuous batching, capacity, queue
                   │             └─► rack ─► thermal   temperature, power, clock of each card
                   ├─► http_server   HTTP/1.1 on asyncio
                   └─► api ─► protocol   bodies and refusals of the OpenAI routes
                          ├─► replies    tokens as server-sent events
                          └─► metrics    vLLM's families in Prometheus' text format
"""
