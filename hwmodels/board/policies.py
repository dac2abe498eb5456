"""Replacement policies of caches: the one list of them, and those of other packages.

A policy is an entry here, its function in `hwmodels.kernels.cache_policies` and its method in the
reference the tests compare with. What a board file may say, how the cache is simulated, and what is
tried where a part's policy is not documented follow from the entry. A policy of another package is
a module with `choose(word, ways)` and `touch(word, way, filled, ways)`, numba's or plain Python,
over a word of 64 bits that every set has.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from hwmodels.errors import BoardError, did_you_mean
from hwmodels.extensions import blamed, find_entries, load_entry, take
from hwmodels.frozen import frozen
from hwmodels.kernels import cache_words

GROUP = "twin.policies"
"""Entry points of policies."""

MOST_TREE_WAYS = 32
"""Nodes of a tree are bits of one word."""

TRIED = 64
"""Fills of a set after which a policy of another package has shown which ways it chooses."""


@frozen
class Policy:
    """How a full set chooses the line that leaves.

    Parameters
    ----------
    name
        As a board file gives it.
    number
        By which the compiled simulation chooses its function; from `cache_words.FIRST_ADDRESS` on
        the function's address.
    tree
        Whether the ways are the leaves of a binary tree: a power of two of them, up to 32.
    start
        What its register holds at first; None: a seed.
    candidate
        Whether a cache of undocumented policy may well have it. Round robin stands for FIFO.
    step
        That function, of a policy of another package: touches that hit, made again in the same
        order, may change something there, so that none is omitted.
    """

    name: str
    doc: str
    number: int
    tree: bool = False
    start: int | None = None
    candidate: bool = False
    step: Callable[[int, int, int], int] | None = field(default=None, compare=False)

    def takes(self, ways: int) -> bool:
        """Whether a cache of so many ways can have it."""
        if self.step is None:
            return not self.tree or (ways & (ways - 1) == 0 and ways <= MOST_TREE_WAYS)
        word, chosen = 0, []
        with blamed(GROUP, self.name):
            for _ in range(TRIED):
                chosen.append(self.step(word, cache_words.ASK, ways))
                word = self.step(word, chosen[-1] << 1 | 1, ways)
        return all(0 <= way < ways for way in chosen)


POLICIES: Mapping[str, Policy] = MappingProxyType({policy.name: policy for policy in (
    Policy(name="lru", number=cache_words.LRU, candidate=True,
           doc="the line not touched for longest"),
    Policy(name="plru", number=cache_words.PLRU, tree=True, candidate=True,
           doc="the line a binary tree points to, whose nodes turn away from each line touched"),
    Policy(name="round_robin", number=cache_words.ROUND_ROBIN, candidate=True,
           doc="the next way of the set, in turn"),
    # Lines leave in the order they came where ways are filled in turn: nothing invalidates one.
    Policy(name="fifo", number=cache_words.ROUND_ROBIN, doc="the line that came first"),
    Policy(name="lfsr", number=cache_words.LFSR, candidate=True,
           doc="a way drawn by a 16-bit shift register all sets share (pseudo-random)"),
    Policy(name="global_round_robin", number=cache_words.GLOBAL, start=0,
           doc="the next way by one counter for all sets"),
)})
"""By name."""


def policy_of(name: str, where: str = "a cache") -> Policy:
    """Return the policy of that name, also of another package; `where` begins its refusal.

    Raises
    ------
    BoardError
        For a name nobody has.
    ExtensionError
        When another package's code is no policy.
    """
    if name in POLICIES:
        policy = POLICIES[name]
    elif name in find_entries(GROUP):
        return _load_policy(name)
    else:
        raise BoardError(f"{where}: replacement {name!r}; "
                         f"{did_you_mean(name, (*POLICIES, *find_entries(GROUP)))}")
    if policy.number not in cache_words.CHOSEN:
        raise BoardError(f"{where}: replacement {name!r}: no loop has its function; accepted: "
                         "CHOSEN of hwmodels/kernels/cache_words.py")
    return policy


def policies_of(names: str, where: str = "a cache") -> tuple[Policy, ...]:
    """Return the policies a cache is counted under together: names, parted by blanks."""
    return tuple([policy_of(name, where) for name in names.split(" ")])


@lru_cache
def _load_policy(name: str) -> Policy:
    touch, choose = (take(GROUP, name, function) for function in ("touch", "choose"))
    with blamed(GROUP, name):
        native = _compile_policy(name, touch, choose)
    module = load_entry(GROUP, name)
    return Policy(name=name, doc=(module.__doc__ or "").partition("\n")[0], step=native, start=0,
                  number=ctypes.cast(native, ctypes.c_void_p).value or 0)


def _compile_policy(name: str, touch: Callable[..., int], choose: Callable[..., int]) -> Any:
    """Make two functions a C function that simulations call (`cache_words.FIRST_ADDRESS`)."""
    kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)
    try:
        from hwmodels.kernels.build import compile_step
    except ImportError:
        logging.getLogger(__name__).warning(
            "note: replacement %s runs as plain Python, slowly; pip install "
            "'embedded-twin[compile]' compiles it", name)
        return kind(lambda word, asked, ways: choose(word, ways) if asked < 0
                    else touch(word, asked >> 1, asked & 1, ways))
    return kind(compile_step(touch, choose))
