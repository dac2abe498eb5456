"""Runtimes: kernel libraries by name and version, and how layers become kernels on them."""

from twin.runtimes.file import list_compilers, list_runtimes, load_runtime
from twin.runtimes.runtime import Built, Runtime

__all__ = ["Built", "Runtime", "list_compilers", "list_runtimes", "load_runtime"]
