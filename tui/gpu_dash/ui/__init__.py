"""The dashboard: the only package that knows a screen library.

A feed holds the store; pure functions in ``render`` turn it into rows of text; widgets put those
rows on the screen and repaint only what changed.
"""
