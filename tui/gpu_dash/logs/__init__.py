"""The server's log: read, cut into lines, understood.

The road of a line:

* :mod:`~gpu_dash.logs.source`, :mod:`~gpu_dash.logs.lines`: bytes as they come, lines as they are;
* :mod:`~gpu_dash.logs.grammar`: who wrote a line, how loud, when;
* :mod:`~gpu_dash.logs.tracebacks`, :mod:`~gpu_dash.logs.stage`, :mod:`~gpu_dash.logs.subject`: what
  earlier lines said that this one needs;
* :mod:`~gpu_dash.logs.rules`: how failures read, as data;
* :mod:`~gpu_dash.logs.findings`, :mod:`~gpu_dash.logs.incident`: repeats folded, the cause told
  from what followed;
* :mod:`~gpu_dash.logs.classify` holds these together, and :mod:`~gpu_dash.logs.follow` is the
  thread that does it for a log that grows.
"""
