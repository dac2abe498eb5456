"""Loops that native code calls, or that call native code of the C library."""

from hwmodels.kernels.compiled import Integer, Words, compile_callback, compile_inline, compile_kept
from hwmodels.kernels.native import External, read_host

labs = External("labs", "i64", ("i64",))
narrow = External("abs", "i32", ("i32",))
memset = External("memset", "i64", ("ptr", "i32", "i64"))


@compile_inline
def double(number: Integer) -> Integer:
    """Twice a number."""
    return 2 * number


@compile_callback("i64", "i32", "ptr")
def take(number: Integer, small: Integer, words: Words) -> None:
    """Write down what was given, what the library makes of it, and what stands at an address."""
    if number == 0:
        return
    words[0], words[1], words[2] = double(number), small, labs(number)
    words[3] = narrow(small - 1)
    place = 5
    for size in (1, 2, 4):
        words[place] = read_host(words[4], size)
        place += 1


@compile_kept
def set_through_the_library(words: Words) -> Integer:
    """What another changes is read again."""
    words[0] = 7
    memset(words, 1, 8)
    return words[0]
