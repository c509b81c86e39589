"""Saved outputs of GPU tools and kernels, of this host or of another.

Each module reads one kind of text and says whether a text is of its kind. None of them runs a
tool: :mod:`gpu_dash.gpu.smi_commands` does, and uses the same readers.
"""
