"""Machine code of this processor, made from LLVM's text and loaded, through llvmlite alone."""

import functools
from typing import Any

import llvmlite
from llvmlite import binding as llvm

MOST_UNROLLED = 1500
"""Lines of a module above which loops stay as they are: its many short ones run no faster unrolled,
and take LLVM a tenth longer."""


@functools.cache
def target_machine() -> Any:
    """Return this processor, with all its instructions.

    Its compiler would make branches of choices it takes for easy to guess; here they seldom are.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    x86 = llvm.get_process_triple().startswith(("x86", "i686"))
    if x86:
        llvm.set_option("", "-x86-cmov-converter=false")
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3,
        reloc="static" if x86 else "default", codemodel="jitdefault", jit=True)


def describe_machine() -> str:
    """Return what machine code hangs on besides its sources: processor and versions."""
    return repr((llvm.get_process_triple(), llvm.get_host_cpu_name(),
                 sorted(llvm.get_host_cpu_features().items()), llvm.llvm_version_info,
                 llvmlite.__version__))


def compile_module(text: str) -> bytes:
    """Return the machine code of a module.

    Parameters
    ----------
    text : str
        As `translation` writes it.

    Returns
    -------
    bytes
        An object file.
    """
    machine = target_machine()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = False  # What was just stored by words is waited for as vectors.
    # What is in a loop whose turns are done several at once has to be straight.
    tuning.loop_unrolling = "llvm.loop !" in text or text.count("\n") <= MOST_UNROLLED
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


def load_code(code: bytes) -> Any:
    """Return an engine that holds machine code; it goes with the engine.

    Parameters
    ----------
    code : bytes
        Of `compile_module`, on this processor.

    Returns
    -------
    llvmlite.binding.ExecutionEngine
        Asked for addresses of functions.
    """
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
