"""the first way not touched since all others were (one bit a way, as some application cores do)"""


def touch(word: int, way: int, filled: int, ways: int) -> int:
    """Return the bits of a set after a touch of a way: where all are set, only its own stays."""
    bit = 1 << way
    word |= bit
    return bit if word == (1 << ways) - 1 else word


def choose(word: int, ways: int) -> int:
    """Return the first way whose bit is not set."""
    for way in range(ways):
        if not (word >> way) & 1:
            return way
    return 0
