"""Faults on purpose: what breaks, how soon it is seen, what is said of it, what is left.

``python -m tests.faults`` breaks the stand-in server, gpu-dash and its files in every way below and
prints the table as Markdown. It takes some minutes, and belongs to the documentation, not to the
test run.
"""
