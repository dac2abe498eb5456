"""Generated C as a library of this machine: run layer by layer in the test's own process."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np

from twin.codegen.ports import firmware_folder
from twin.codegen.source import generate_source, write_source
from twin.graph import Graph
from twin.operators import is_alias


class _Layer(ctypes.Structure):
    _fields_ = [("run", ctypes.CFUNCTYPE(None)), ("name", ctypes.c_char_p),
                ("output_offset", ctypes.c_uint32), ("output_bytes", ctypes.c_uint32),
                ("index", ctypes.c_uint32)]


class _Model(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("layers", ctypes.POINTER(_Layer)),
                ("layer_count", ctypes.c_uint32), ("arena", ctypes.POINTER(ctypes.c_uint8)),
                ("arena_bytes", ctypes.c_uint32), ("input_offset", ctypes.c_uint32),
                ("input_bytes", ctypes.c_uint32), ("output_offset", ctypes.c_uint32),
                ("output_bytes", ctypes.c_uint32)]


def build_kernels(folder: Path) -> Path:
    """Compile the kernels once into an object the models link."""
    target = folder / "kernels.o"
    kernels = firmware_folder() / "kernels"
    # -fwrapv is not given: the kernels' own casts must do.
    for source in sorted(kernels.glob("*.c")):
        subprocess.run(["cc", "-std=c99", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c",
                        str(source), "-o", str(folder / f"{source.stem}.part.o")], check=True)
    subprocess.run(["ld", "-r", *map(str, sorted(folder.glob("*.part.o"))), "-o", str(target)],
                   check=True)
    return target


def run_native(graph: Graph, values: np.ndarray, kernels: Path, folder: Path) -> list[np.ndarray]:
    """Run the generated C; return the output of every layer that is called, in order."""
    source = generate_source(graph, "x86-64")
    write_source(source, folder)
    text = source.model_c.replace("@BUILD@", "0").replace("@COMPILER@", "cc")
    (folder / "model.c").write_text(text, encoding="utf-8")
    root, library = firmware_folder(), folder / "model.so"
    subprocess.run(["cc", "-std=c99", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
                    f"-I{root}/core", f"-I{root}/kernels", "model.c", "weights.S", str(kernels),
                    "-o", str(library)], cwd=folder, check=True)
    model = _Model.in_dll(ctypes.CDLL(str(library)), "model")
    arena = np.ctypeslib.as_array(model.arena, (model.arena_bytes,))
    arena[:] = 0xA5  # what no layer wrote must not matter
    arena[model.input_offset:model.input_offset + model.input_bytes] = np.frombuffer(
        values.tobytes(), np.uint8)
    layers = [layer for layer in graph.layers if not is_alias(layer)]
    outputs = []
    for place, layer in enumerate(layers):
        entry = model.layers[place]
        assert entry.index == layer.index
        entry.run()
        tensor = graph.tensors[layer.outputs[0]]
        raw = arena[entry.output_offset:entry.output_offset + entry.output_bytes].tobytes()
        outputs.append(np.frombuffer(raw, tensor.dtype).reshape(tensor.shape))
    return outputs


assert sys.byteorder == "little", "weights.bin is little endian"
