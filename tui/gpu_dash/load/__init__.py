"""The load: what is sent to the server, when, and what came back.

In the agent:

* :mod:`~gpu_dash.load.driver`: the agent's side, one object with a method per key;
* :mod:`~gpu_dash.load.conductor`: which step runs and when its window opens and closes (pure);
* :mod:`~gpu_dash.load.ledger`: the requests of each step, until all of them have ended;
* :mod:`~gpu_dash.load.client_limit`: whether the client, not the server, was the limit (pure);
* :mod:`~gpu_dash.load.pool`, :mod:`~gpu_dash.load.shares`: several workers that look like one;
* :mod:`~gpu_dash.load.child`: a worker process and its pipes.

In the worker, which is a process of its own so that no screen and no disk delays a request:

* :mod:`~gpu_dash.load.worker`: frames in, frames out, ticks;
* :mod:`~gpu_dash.load.closed_loop`: keeps so many requests in flight, or sends each when due;
* :mod:`~gpu_dash.load.arrivals`: when the requests of an open loop are due (pure);
* :mod:`~gpu_dash.load.exchange`: one request, from its first byte to its last;
* :mod:`~gpu_dash.load.transport`, :mod:`~gpu_dash.load.route`,
  :mod:`~gpu_dash.load.direct_transport`, :mod:`~gpu_dash.load.httpx_transport`: how bytes get
  there, and which of two ways they take;
* :mod:`~gpu_dash.load.sse`, :mod:`~gpu_dash.load.template`, :mod:`~gpu_dash.load.answer`,
  :mod:`~gpu_dash.load.outcome`, :mod:`~gpu_dash.load.window`: what the bytes say, and what they
  count for (pure);
* :mod:`~gpu_dash.load.prompt`: what each request asks.

:mod:`~gpu_dash.load.protocol` is what the two sides say to each other.
"""
