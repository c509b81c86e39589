"""Widgets: they hold rows and repaint what changed, and decide nothing."""
