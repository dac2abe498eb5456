"""What the header of a program's report says: what its file states, and what it does not."""

from __future__ import annotations

from typing import Any

from hwmodels.quantities import format_used
from twin.pricing.prediction import Prediction
from twin.reports.tables.parts import Pairs


def program_pairs(prediction: Prediction) -> tuple[Pairs, Pairs]:
    """Return what stands for the program in the header, and for its memory."""
    program: Any = prediction.deployment
    elf = program.elf
    named = (f"{len(elf.functions):,} functions, named by address: the file has no symbols"
             if elf.stripped else f"{len(elf.functions):,} functions")
    return [
        ("program", f"{elf.path.name}, sha256 {elf.sha256[:12]}, {named}"),
        ("", f"{prediction.macs:,} MACs by the products its instructions compute, "
             "parameters not known"),
    ], [
        ("runtime", f"{program.runtime.identity}, constants in {program.weights}, variables in "
                    f"{program.arena}, code in {program.code}"),
        ("RAM", format_used(prediction.ram_bytes, prediction.ram_available_bytes)),
        ("", tell_ram(program)),
    ]


def tell_ram(program: Any) -> str:
    """Return what a program's RAM is made of, and what of it the file does not tell."""
    parts = {name: size for name, size in program.ram_parts.items() if size}
    sizes = " + ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in parts.items())
    unknown = [name for name in ("arena", "stack") if name not in parts]
    return (f"{sizes or 'nothing'} bytes"
            + (f"; {' and '.join(unknown)} not known" if unknown else ""))


def start_line(prediction: Prediction) -> str:
    """Return what ran before the billed part."""
    program: Any = prediction.deployment
    return (f"before the billed part, and apart from it: {program.found.start_up_instructions:,} "
            "instructions")
