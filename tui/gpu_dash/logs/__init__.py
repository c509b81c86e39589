"""The server's log: read, cut into lines, understood.

* :mod:`~gpu_dash.logs.source`, :mod:`~gpu_dash.logs.lines`: bytes as they come, lines as they are;
* :mod:`~gpu_dash.logs.follow`: the thread that follows a log and hands over batches.
"""
