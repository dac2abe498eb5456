"""Names of instruction sets, as board and runtime files have them."""

ISAS = ("armv6-m", "armv7-m", "armv7e-m", "armv8-m", "armv8-m-dsp", "armv8.1-m-mve", "rv32imc",
        "xtensa-lx7", "x86-64")
"""Those a core may have."""

FORMER = {"rv32imac": "rv32imc"}
"""Other names of instruction sets and of cores' tables, and what they mean: no kernel uses the
atomics of RV32IMAC, so a core that has them runs and costs the same."""


def read_name(name: str) -> str:
    """Return an instruction set, or a core's table, by the name used here.

    Parameters
    ----------
    name : str
        As a file or a command has it; what is not known is returned as it is.
    """
    return FORMER.get(name, name)
