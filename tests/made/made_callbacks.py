"""Loops that native code calls, or that call native code."""

from hwmodels.kernels.compiled import Integer, Words, compile_callback, compile_kept, compile_part
from hwmodels.kernels.native import call_native, read_host


@compile_part
def double(number: Integer) -> Integer:
    """Twice a number."""
    return 2 * number


@compile_callback("i64", "i32", "ptr")
def take(number: Integer, small: Integer, words: Words) -> None:
    """Write down what was given, what a function makes of it, and what stands at an address."""
    if number == 0:
        return
    words[0], words[1], words[2] = double(number), small, call_native(words[3], number, small, 5)
    for place in range(3):
        words[5 + place] = read_host(words[4], 1 << place)


@compile_kept
def set_natively(words: Words) -> Integer:
    """What another changes is read again."""
    words[0] = 7
    call_native(words[3], words[4], 1, 8)
    return words[0]
