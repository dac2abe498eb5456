"""Loops with instructions and accesses at their places: trips, steps and order by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hwmodels.kernel import Access, Block, Loop, Operand
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import block, draft_kernel
from twin.runtimes.lowering.libc import run_drafts, split_runs
from twin.runtimes.lowering.nests import (
    bound,
    by_axis,
    closing,
    count_blocks,
    guarded,
    load,
    over_axes,
    repeat,
    resolve,
    step,
    store,
    strides,
)


def counts(*drafts) -> list[tuple[str, int, int]]:
    return [(one.name, one.trips, one.entries) for one in count_blocks(*drafts)]


def test_trips_are_the_product_of_the_loops_around() -> None:
    loops = repeat("row", 5, closing("row", "b"), repeat("column", 3, closing("column", "b")),
                   step("after", "nop"))
    # a loop's closing branch falls through once each time the loop is entered
    assert counts(step("call", "bl"), loops) == [
        ("call", 1, 1), ("row", 5, 1), ("column", 15, 5), ("after", 5, 5)]


def test_a_loop_of_nothing_runs_nothing_and_one_of_one_is_entered_each_time() -> None:
    assert counts(repeat("row", 4, repeat("tail", 0, closing("tail", "b")),
                         repeat("once", 1, closing("once", "b")))) == [
        ("tail", 0, 0), ("once", 4, 4)]


def test_a_block_among_drafts_keeps_its_own_trips_and_place() -> None:
    inside = block("tap", "mla", 7, 2)
    assert count_blocks(repeat("row", 3, step("first", "nop"), inside))[1] is inside


def test_accesses_step_in_the_loops_they_name() -> None:
    nests = resolve(repeat("row", 4, step("s", "nop"), repeat(
        "gone", 0, load("input", 4)), repeat("once", 1, store("output", 1, 2, row=8, once=99)),
        repeat("column", 2, closing("c", "b"), load("input", 4, column=4, row=16))))
    assert nests == (Loop(extent=4, body=(
        Access(operand="output", write=True, width_bytes=1, offset_bytes=2, steps_bytes=(8,)),
        Loop(extent=2, body=(Access(operand="input", write=False, width_bytes=4,
                                    steps_bytes=(16, 4)),)))),)


def test_bounds_add_up() -> None:
    (access,) = resolve(guarded(guarded(load("input", 1), bound(0, 3)), bound(-1, 2)))
    assert isinstance(access, Access)
    assert [(one.offset, one.limit) for one in access.guards] == [(0, 3), (-1, 2)]


def test_loops_over_a_shape_walk_a_dense_tensor() -> None:
    shape = (2, 3, 4)
    assert strides(shape) == [12, 4, 1]
    (outer,) = resolve(*over_axes(shape, load("input", 2, **by_axis(strides(shape), 2))))
    assert isinstance(outer, Loop) and outer.extent == 2
    inner = outer.body[0].body[0].body[0]  # type: ignore[union-attr]
    assert isinstance(inner, Access) and inner.steps_bytes == (24, 8, 2)


@pytest.mark.parametrize("joined", [True, False])
def test_runs_of_parts_fill_the_whole(joined: bool) -> None:
    # (2, 3) and (2, 5) elements of two bytes along axis 1 of (2, 8)
    repetitions, runs = split_runs([(2, 3), (2, 5)], (2, 8), 1, 2)
    assert (repetitions, runs) == (2, [6, 10])
    whole, part = ("output", "input") if joined else ("input", "output")
    touched = {whole: set(), part: set(), f"{part}2": set()}
    for nest in resolve(*run_drafts("thumb2", repetitions, runs, joined)):
        for access, offset in places(nest):
            assert access.write == (access.operand.startswith("output"))
            touched[access.operand] |= set(range(offset, offset + access.width_bytes))
    assert touched == {whole: set(range(32)), part: set(range(12)), f"{part}2": set(range(20))}


def places(nest):
    """Every access of a nest with its address."""
    def walk(one, indices):
        if isinstance(one, Access):
            yield one, one.offset_bytes + sum(
                a * b for a, b in zip(one.steps_bytes, indices, strict=True))
        else:
            for index in range(one.extent):
                for inner in one.body:
                    yield from walk(inner, (*indices, index))
    yield from walk(nest, ())


def test_a_kernel_keeps_what_it_runs_and_touches() -> None:
    operands = tuple(Operand(name=name, role=name, memory="m", address=0, size_bytes=64)
                     for name in ("input", "weights", "output"))
    kernel = draft_kernel(
        "f", "conv", Site(graph=None, layer=SimpleNamespace(name="f"), isa="armv7-m", fpu=None,
                          operands=operands),
        repeat("element", 8, closing("element", "ldrb r1, [r0], #1; strb r1, [r2], #1; bne 0b"),
               load("input", 1, element=1), store("output", 1, element=1)),
        repeat("never", 0, closing("never", "bne 0b"), load("weights", 4)))
    assert kernel.blocks == (Block(
        name="element", code="ldrb r1, [r0], #1; strb r1, [r2], #1; bne 0b", trips=8, entries=1),)
    assert [one.name for one in kernel.operands] == ["input", "output"]
    assert kernel.code_bytes == round(3 * 2.66)
