"""gpu-dash: launch, load, watch and record vLLM on several GPUs from one terminal."""

__version__ = "0.1.0"
