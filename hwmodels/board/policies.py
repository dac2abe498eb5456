"""Replacement policies of caches: the one list of them.

A policy is an entry here, its function in `hwmodels.kernels.cache_policies` and its method in the
reference the tests compare with. What a board file may say, how the cache is simulated, and what is
tried where a part's policy is not documented follow from the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hwmodels.errors import BoardError, did_you_mean
from hwmodels.kernels import cache_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a full set chooses the line that leaves.

    Parameters
    ----------
    name : str
        As a board file gives it.
    doc : str
        Which line leaves.
    number : int
        By which the compiled simulation chooses its function.
    hits_change : bool
        Whether a touch that finds its line changes what leaves next; its number is then one of
        `cache_words.TOUCHED`.
    sets_apart : bool
        Whether what one set evicts hangs on nothing outside it.
    stack : bool
        Whether a cache of more ways holds all lines of one with fewer (Mattson).
    tree : bool
        Whether the ways are the leaves of a binary tree: a power of two of them, up to 32.
    start : int or None
        What its register holds at first; None: a seed.
    candidate : bool
        Whether a cache of undocumented policy may well have it. Round robin stands for FIFO.
    """

    name: str
    doc: str
    number: int
    hits_change: bool = False
    sets_apart: bool = True
    stack: bool = False
    tree: bool = False
    start: int | None = None
    candidate: bool = False

    def takes(self, ways: int) -> bool:
        """Whether a cache of so many ways can have it."""
        return not self.tree or (ways & (ways - 1) == 0 and ways <= MOST_TREE_WAYS)


MOST_TREE_WAYS = 32
"""Nodes of a tree are bits of one word."""

POLICIES: Mapping[str, Policy] = MappingProxyType({policy.name: policy for policy in (
    Policy(name="lru", number=cache_words.LRU, hits_change=True, stack=True, candidate=True,
           doc="the line not touched for longest"),
    Policy(name="plru", number=cache_words.PLRU, hits_change=True, tree=True, candidate=True,
           doc="the line a binary tree points to, whose nodes turn away from each line touched"),
    Policy(name="round_robin", number=cache_words.ROUND_ROBIN, candidate=True,
           doc="the next way of the set, in turn"),
    # Lines leave in the order they came where ways are filled in turn: nothing invalidates one.
    Policy(name="fifo", number=cache_words.ROUND_ROBIN, doc="the line that came first"),
    Policy(name="lfsr", number=cache_words.LFSR, sets_apart=False, candidate=True,
           doc="a way drawn by a 16-bit shift register all sets share (pseudo-random)"),
    Policy(name="global_round_robin", number=cache_words.GLOBAL, sets_apart=False, start=0,
           doc="the next way by one counter for all sets"),
)})
"""By name."""


def policy_of(name: str, where: str) -> Policy:
    """Return the policy of that name; `where` begins the refusal of any other."""
    if name not in POLICIES:
        raise BoardError(f"{where}: replacement {name!r}; {did_you_mean(name, POLICIES)}")
    policy = POLICIES[name]
    touched = policy.number in cache_words.TOUCHED
    if policy.number not in cache_words.CHOSEN or touched != policy.hits_change:
        raise BoardError(f"{where}: replacement {name!r}: no loop has its functions; accepted: "
                         "CHOSEN and TOUCHED of hwmodels/kernels/cache_words.py")
    return policy
