"""Runtimes: kernel libraries by name and version, and how layers become kernels on them."""

from twin.runtimes.runtime import Runtime, list_compilers, list_runtimes, load_runtime

__all__ = ["Runtime", "list_compilers", "list_runtimes", "load_runtime"]
