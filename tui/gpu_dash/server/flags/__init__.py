"""vLLM's command line through its releases: which names a release knows, and what to write instead.

:mod:`history` answers from the table ``history.toml``, :mod:`advice` says what took a name's
place, and :mod:`check` puts both to a launch.
"""
