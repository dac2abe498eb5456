"""Compile every loop ahead of time, into one shared library for each platform.

numba types the loops and writes LLVM's text of them, llvmlite optimises it and makes objects, and
zig links those, for any platform on any. The text is taken before numba's own optimisation, by
`inspect_llvm`, so that every platform gets its own: NUMBA_OPT=0 is set before numba is imported.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, overload

from hwmodels.kernels import compiled, library, native
from hwmodels.kernels.compiled import BOUNDLESS, NOTHING, PARTS, Kernel, kinds_of

BASELINES = {"": "x86-64", "_v3": "x86-64-v3"}
TARGETS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "linux-x86_64": ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu", BASELINES),
    "linux-aarch64": ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu", {"": "generic"}),
    "darwin-x86_64": ("x86_64-apple-macosx11.0", "x86_64-macos", BASELINES),
    "darwin-aarch64": ("arm64-apple-macosx11.0", "aarch64-macos", {"": "apple-m1"}),
    "win32-x86_64": ("x86_64-pc-windows-gnu", "x86_64-windows-gnu", BASELINES),
}
"""LLVM's and zig's name of a platform, and processors loops are compiled for, by suffix."""

OPTIONS = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
SCALARS = {"i": types.int64, "u": types.uint64}
POINTER = types.CPointer(types.int64)
NATIVE = {"i64": types.int64, "i32": types.int32, "ptr": POINTER}
OUTSIDE = {"memset", "memcpy"}
"""What `library.c` has."""
CONVERSION = re.compile(r"= (?:[su]itofp|fpto[su]i) ")
STEPS: list[Any] = []
"""Compiled replacement policies of other packages: their machine code lives as long as they."""
WORD = ir.IntType(64)


class BuildError(Exception):
    """A loop cannot be compiled ahead of time; the message has its name."""


@intrinsic
def _count_zeros(context, value):  # type: ignore[no-untyped-def]
    return types.uint64(value), lambda _, builder, __, values: builder.cttz(
        values[0], ir.IntType(1)(1))


@intrinsic
def _call(context, address, first, second, third):  # type: ignore[no-untyped-def]
    def write(_, builder, __, values):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(WORD, [WORD] * 3).as_pointer()
        return builder.call(builder.inttoptr(values[0], kind), values[1:])

    return types.int64(*[types.int64] * 4), write


@intrinsic
def _read(context, address, size):  # type: ignore[no-untyped-def]
    def write(_, builder, __, values):  # type: ignore[no-untyped-def]
        found = WORD(0)
        for bits in (8, 16, 32):
            place = builder.inttoptr(values[0], ir.IntType(bits).as_pointer())
            wide = builder.zext(builder.load(place, align=1), WORD)
            found = builder.select(builder.icmp_signed("==", values[1], WORD(bits // 8)), wide,
                                   found)
        return found

    return types.int64(types.int64, types.int64), write


overload(compiled.lowest_bit)(lambda value: lambda value: _count_zeros(value))
overload(native.call_native)(lambda address, first, second, third:
                             lambda address, first, second, third:
                             _call(address, first, second, third))
overload(native.read_host)(lambda address, size: lambda address, size: _read(address, size))


def load_modules(folders: Iterable[Path]) -> list[ModuleType]:
    """Import the modules of folders of loops, and none of the packages they lie in.

    Those import what a build has no need of.
    """
    found = []
    for folder in folders:
        package = ".".join(folder.relative_to(library.ROOT).parts)
        for path in sorted(folder.glob("*.py")):
            name = f"{package}.{path.stem}"
            if path.stem.startswith("_") or path == Path(__file__):
                continue
            if name not in sys.modules:
                spec = spec_from_file_location(name, path)
                assert spec is not None and spec.loader is not None
                sys.modules[name] = module_from_spec(spec)
                spec.loader.exec_module(sys.modules[name])
            found.append(sys.modules[name])
    return found


def compile_step(touch: Callable[..., int], choose: Callable[..., int]) -> int:
    """Return the address of a replacement policy's function, compiled for this process's life.

    Parameters
    ----------
    touch, choose : callable
        As `hwmodels.board.policies` says, Python or numba's.

    Raises
    ------
    BuildError
        In a line, where numba cannot type them.
    """
    touched, chosen = [function if hasattr(function, "py_func") else numba.njit(function)
                       for function in (touch, choose)]

    def step(word, asked, ways):  # type: ignore[no-untyped-def]
        if asked < 0:
            return np.int64(chosen(word, ways))
        return np.int64(touched(word, asked >> 1, asked & 1, ways))

    try:
        made = numba.cfunc(types.int64(types.int64, types.int64, types.int64))(step)
    except numba.core.errors.NumbaError as error:
        raise BuildError(" ".join(str(error).split())[:200]) from error
    STEPS.append(made)
    address: int = made.address
    return address


def list_loops(modules: Iterable[ModuleType]) -> list[Kernel]:
    """Return every loop that is written in one of some modules."""
    return [one for module in modules for one in vars(module).values()
            if isinstance(one, Kernel) and one.module == module.__name__]


def declare_parts(modules: Iterable[ModuleType], **options: Any) -> None:
    """Put what numba compiles in place of every function that loops call."""
    known = {function: numba.njit(function, **options) for function in PARTS}
    for module in modules:
        for name, one in list(vars(module).items()):
            if isinstance(one, type(declare_parts)) and one in known:
                setattr(module, name, known[one])


def write_llvm(loop: Kernel) -> str:
    """Return LLVM's text of a loop and all it calls, with its symbol and C's arguments.

    Raises
    ------
    BuildError
        Where numba would compute with floating-point numbers.
    """
    parameters: list[str] = []
    arguments, kinds = [], []
    for place, kind in enumerate(kinds_of(loop.py_func)):
        name = f"a{place}"
        parameters.append(name)
        if loop.native:
            given = loop.native[place]
            kinds.append(NATIVE[given])
            arguments.append(f"carray({name}, ({BOUNDLESS},))" if given == "ptr"
                             else f"int64({name})")
        elif len(kind) == 1:
            kinds.append(SCALARS[kind])
            arguments.append(name)
        else:
            sizes = [f"{name}_{number}" for number in range(int(kind[1]))]
            parameters += sizes
            kinds += [types.CPointer(SCALARS[kind[0]]), *[types.int64] * len(sizes)]
            arguments.append(f"carray({name}, ({', '.join(sizes)},))")
    space = {"loop": numba.njit(loop.py_func, **OPTIONS), "carray": carray, "int64": np.int64}
    exec(f"def {loop.symbol}({', '.join(parameters)}):\n"
         f"    {'' if _returned(loop) == NOTHING else 'return '}loop({', '.join(arguments)})",
         space)
    returned = types.void if _returned(loop) == NOTHING else types.int64
    entry = numba.cfunc(returned(*kinds), error_model="numpy")(space[loop.symbol])
    text = entry.inspect_llvm()
    if CONVERSION.search(text):
        found = [part[:90] for part in text.split("\ndefine ") if CONVERSION.search(part)]
        raise BuildError(f"{loop.name}: int64 meets uint64 in {'; '.join(found)}")
    return _mark(text.replace(entry.native_name, loop.symbol),
                 alone=not _uses(loop, native.call_native))


def _uses(loop: Kernel, function: Callable[..., Any]) -> bool:
    """Whether the module of a loop imports a function."""
    return any(one is function for one in vars(sys.modules[loop.module]).values())


def _returned(loop: Kernel) -> str:
    return NOTHING if loop.py_func.__annotations__["return"] is None else "i"


def _mark(text: str, *, alone: bool) -> str:
    """Return LLVM's text with what numba cannot know.

    No array is counted by reference; arithmetic wraps; and, `alone`, no two arrays overlap, nor
    does anything else write to them.
    """
    text = re.sub(r"^ *(?:tail )?call void @NRT_(?:in|de)cref\(.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"= (add|sub|mul|shl) (?:nuw )?(?:nsw )?i64", r"= \1 i64", text)
    if not alone:
        return text
    return re.sub(r"^define .*$", lambda found: re.sub(
        r"\bptr (?=[%\w])(?!noalias)", "ptr noalias ", found[0]), text, flags=re.MULTILINE)


def compile_object(texts: Mapping[str, str], target: str, processor: str, suffix: str) -> bytes:
    """Return an object file of some loops.

    Parameters
    ----------
    texts : mapping of str to str
        LLVM's, by symbol.
    target, processor : str
        LLVM's names; suffix is added to the symbols.

    Raises
    ------
    BuildError
        Where a loop needs what no library has: it may raise an exception, for example.
    """
    machine = llvm.Target.from_triple(target).create_target_machine(
        cpu=processor, opt=3, reloc="pic", codemodel="default")
    module = llvm.parse_assembly("")
    for symbol, text in texts.items():
        module.link_in(llvm.parse_assembly(text.replace(symbol, symbol + suffix)))
    entries = {symbol + suffix for symbol in texts}
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration:
            one.linkage = "external" if one.name in entries else "internal"
    for one in module.functions:
        if not one.is_declaration and one.name not in entries:
            one.add_function_attribute("alwaysinline")
    module.triple, module.data_layout = target, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    # What was just stored by words would be waited for as vectors.
    tuning.loop_vectorization, tuning.slp_vectorization = False, False
    tuning.loop_unrolling = False  # Their many short loops run no faster unrolled.
    builder = llvm.create_pass_builder(machine, tuning)
    # What numba leaves of exceptions that cannot come is found in simplified functions only.
    first = llvm.create_new_function_pass_manager()
    first.add_sroa_pass()
    first.add_instruction_combine_pass()
    for one in module.functions:
        if not one.is_declaration:
            first.run(one, builder)
    builder.getModulePassManager().run(module, builder)
    needed = {one.name for one in module.functions if one.is_declaration
              and not one.name.startswith("llvm.")} - OUTSIDE
    if needed:
        where = [one.name[:90] for one in module.functions if not one.is_declaration
                 and any(f"@{name}(" in str(one) for name in needed)]
        raise BuildError(f"{', '.join(where)}: need {', '.join(sorted(needed))}")
    code: bytes = machine.emit_object(module)
    return code


def link(objects: Iterable[bytes], head: str, target: str, path: Path) -> None:
    """Link objects and `library.c` into a shared library that needs no other.

    Raises
    ------
    BuildError
        With what zig says.
    """
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for place, code in enumerate(objects):
            names.append(f"{folder}/{place}.o")
            Path(names[-1]).write_bytes(code)
        quoted = head.replace("\n", "\\n")
        ended = subprocess.run(
            [sys.executable, "-m", "ziglang", "cc", "-shared", "-nostdlib", "-fno-builtin", "-O2",
             "-s", "-fno-sanitize=all", "-target", target, f'-DLOOPS="{quoted}"',
             str(Path(__file__).parent / "library.c"), *names, "-o", f"{folder}/{path.name}"],
            capture_output=True, text=True, check=False)
        if ended.returncode:
            raise BuildError(f"zig, for {target}: {ended.stderr.strip()[-2000:]}")
        made = path.with_name(f".{path.name}")
        made.write_bytes(Path(folder, path.name).read_bytes())
        made.replace(path)


def build(loops: Sequence[Kernel], modules: Sequence[ModuleType], platforms: Iterable[str],
          folder: Path) -> list[Path]:
    """Compile loops for platforms; return the libraries.

    Raises
    ------
    BuildError
        Naming the loop.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # Branches would be made of choices that are taken for easy to guess; here they seldom are.
    llvm.set_option("", "-x86-cmov-converter=false")
    declare_parts(modules, **OPTIONS)
    texts = {loop.symbol: write_llvm(loop) for loop in loops}
    head = "\n".join([library.checksum_sources(), *(
        " ".join((loop.symbol, _returned(loop), *kinds_of(loop.py_func))) for loop in loops)])
    made = []
    for platform in platforms:
        target, linked, processors = TARGETS[platform]
        objects = [compile_object(texts, target, processor, suffix)
                   for suffix, processor in processors.items()]
        made.append(folder / library.name_library(platform))
        link(objects, head, linked, made[-1])
    return made
