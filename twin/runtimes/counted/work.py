"""What a layer asks of a counted kernel: the variant of the code, and how often each part runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from hwmodels.core.file import load_core
from hwmodels.frozen import frozen
from hwmodels.isa import load_isa
from twin.network.graph import GraphLayer

SHARED = ("call", "dimension", "element", "output", "biased output", "pixel", "mac")
"""Parts that code of any path may have."""

VECTOR, SCALAR = "vector ", "scalar "
"""How names of parts begin that only a core with vectors runs, or only one without."""

OLDEST = "@2.3.1"
"""How levels of release 2.3.1 end: it chooses kernels by other rules, scales each channel in every
call, and without Arm's DSP extension runs the portable kernels.
"""


@frozen
class Work:
    """How often the parts of a kernel run.

    Parameters
    ----------
    variant
        Which code of the operator runs: types, and what shapes choose ("int8 same").
    path
        The same of an optimised library, where its own dispatch chooses ("int8 3x3").
    vector_path
        The same on cores with vectors, where it chooses otherwise there.
    terms
        How often: "call" (once), "element", "row", ...; each has a coefficient per class.
    own
        The same of parts only an optimised library has; those that begin with `VECTOR` run on
        cores with vectors, with `SCALAR` on others.
    guessed
        What is assumed of the inputs where they decide how often a part runs.
    oldest
        What release 2.3.1 runs instead, where it does.
    runs
        Operator whose code an optimised library runs, where it is another's.
    """

    variant: str
    path: str = ""
    vector_path: str = ""
    terms: Mapping[str, float]
    own: Mapping[str, float] = field(default_factory=dict)
    guessed: str = ""
    oldest: Work | None = None
    runs: str = ""

    def at(self, core: str, level: str) -> Work:
        """Return what a release runs on a core ("m4", "O2@2.3.1")."""
        if self.oldest is None or not level.endswith(OLDEST):
            return self
        dsp = "dsp" in load_isa(_isa(core)).extensions
        return self.oldest if dsp else replace(self.oldest, path="")

    def count(self, kernels: str) -> Mapping[str, float]:
        """Return how often parts of a library's kernels run."""
        if kernels == "reference":
            return self.terms
        if not self.path:
            return {**self.terms, **self.own}
        return {**{name: often for name, often in self.terms.items() if name in SHARED}, **self.own}

    def code(self, kernels: str, core: str) -> str:
        """Return which code of a library's kernels runs on a core ("m4", "c906")."""
        vectors = load_isa(_isa(core)).vector_bits
        path = (vectors and self.vector_path) or self.path
        return path if path and kernels != "reference" else self.variant


def _isa(core: str) -> str:
    return load_core(core.replace("m", "cortex-m")).traits.isa


Describe = Callable[[GraphLayer], Work]
"""step -> its work."""

Terms = Mapping[str, Describe]
"""By operator, what a file of `terms/` describes."""


def count_blocks(rows: int, columns: int, depth: int) -> dict[str, float]:
    """Return the parts of a product of matrices computed in blocks of rows and columns.

    Parameters
    ----------
    rows
        Of the first matrix: pixels.
    columns
        Of the result: channels.
    depth
        Multiply-accumulates of one result.

    Returns
    -------
    mapping of str to float
        Of two by two results, two results and single ones: how many, and how many groups of 16 and
        4 and single steps along the depth; on Helium of four rows by one, and of one.
    """
    pairs, odd = columns // 2 * (rows // 2), columns // 2 * (rows % 2)
    last = columns % 2 * rows
    parts: dict[str, float] = {"scalar column pair": columns // 2,
                               "scalar column pair depth": columns // 2 * depth}
    for name, count in (("pair", pairs), ("odd", odd), ("last", last),
                        ("last pair", columns % 2 * (rows // 2)), ("alone", rows % 2 * columns)):
        steps = {"": 1, " sixteen": depth // 16, " four": depth % 16 // 4, " quad": depth // 4,
                 " rest": depth % 4}
        parts |= {f"scalar {name}{step}": count * often for step, often in steps.items()}
    vectors = -(-depth // 16)
    return parts | {
        "vector by four": rows // 4 * columns,
        "vector by four step": rows // 4 * columns * vectors,
        "vector by one row": rows % 4,
        "vector by one quad": rows % 4 * (columns // 4),
        "vector by one tail": rows % 4 * (columns % 4),
        "vector by one": rows % 4 * columns,
        "vector by one step": rows % 4 * columns * vectors,
        "vector by four eight": rows // 4 * columns * -(-depth // 8),
        "vector by one eight": rows % 4 * columns * -(-depth // 8),
        "vector each eight": rows * columns * -(-depth // 8)}
