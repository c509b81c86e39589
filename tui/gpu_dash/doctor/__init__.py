"""What stands in the way before a launch or a run: checks of this host and of an endpoint.

:mod:`address` goes to the endpoint's socket, :mod:`key` looks at the key, :mod:`endpoint` asks the
HTTP surface step by step, :mod:`host` looks at the machine. Every check is a
:class:`~.check.Check`.
"""
