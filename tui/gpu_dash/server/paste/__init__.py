"""What people paste → one launch: shell, docker and podman, compose, Kubernetes, systemd, ray.

The road: :mod:`typography` makes quotes and dashes plain, :mod:`text` sees what kind of text it is,
one reader for each kind (:mod:`script`, :mod:`manifest`, :mod:`unit_file`) finds the words that
start the server, and :mod:`server_words` reads them into a :class:`~.launch.PastedLaunch`.
Nothing is run and nothing is looked up: what the text does not say stays as it was typed.
"""
