"""What a model needs on given cards, from its ``config.json`` alone.

:mod:`shape` reads the config, :mod:`weights` counts the parameters, :mod:`kv_cache` does the
arithmetic of vLLM's cache, and :mod:`plan` joins them into an answer.
"""
