"""One instruction at a time, its registers beside the Armv7-M and Armv8.1-M manuals' results."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hwmodels.program.listing import Listed
from twin.errors import FirmwareError
from twin.program.image.read.operations import compile_operation
from twin.program.image.read.sources import LR, SINGLES, STEP
from twin.program.image.read.values import DATA, STALE, Scope
from twin.program.image.read.walk import Walker


def run(mnemonic, operands="", flags=(0, 0, True), **registers):
    """Execute one instruction; return the machine."""
    places = {f"r{i}": i for i in range(13)} | {"sp": 13, "lr": LR}
    state = dict.fromkeys(range(16), 0) | {places[name]: value for name, value in registers.items()}
    machine = SimpleNamespace(scope=Scope(), state=state, flags=flags)
    machine.decide = lambda condition, flags: Walker.decide(machine, condition, flags)
    compile_operation(Listed(address=0x08000100, size_bytes=4, mnemonic=mnemonic,
                             operands=operands))(machine)
    return machine


@pytest.mark.parametrize(("text", "r1", "r2", "result"), [
    ("add r0, r1, r2", 7, 5, 12), ("add r0, r1, r2", 0x7FFFFFFF, 1, -0x80000000),
    ("add r0, r1", 7, 0, 7), ("sub r0, r1, r2", 7, 9, -2), ("rsb r0, r1, #10", 3, 0, 7),
    ("addw r0, r1, #4095", 1, 0, 4096), ("subw r0, r1, #4095", 1, 0, -4094),
    ("mul r0, r1, r2", -3, 5, -15), ("and r0, r1, r2", 0b1100, 0b1010, 0b1000),
    ("bic r0, r1, #4", 0b1100, 0, 0b1000), ("orr r0, r1, r2", 0b1100, 0b1010, 0b1110),
    ("orr r0, r1, r2", 0, 9, 9), ("orr r0, r1, r2", 9, 0, 9),
    ("eor r0, r1, r2", 0b1100, 0b1010, 0b0110), ("orn r0, r1, r2", 1, 7, -7),
    ("sdiv r0, r1, r2", -7, 2, -3), ("udiv r0, r1, r2", 7, 2, 3), ("lsl r0, r1, #4", 3, 0, 48),
    ("lsr r0, r1, #28", -1, 0, 15), ("asr r0, r1, #1", -3, 0, -2), ("asr r0, r1, #40", -3, 0, -1),
    ("lsl r0, r1, r2", 3, 32, 0), ("lsr r0, r1, r2", 3, 33, 0), ("ror r0, r1, #4", 0x12, 0,
                                                                 0x20000001),
    ("add r0, r1, r2, lsl #3", 1, 2, 17), ("sub r0, r1, r2, asr #1", 1, -8, 5),
    ("mov r0, r1", 5, 0, 5), ("movw r0, #65535", 0, 0, 65535), ("mvn r0, r1", 5, 0, -6),
    ("neg r0, r1", 5, 0, -5), ("adr r0, #8", 0, 0, 0x0800010C), ("mov r0, pc", 0, 0, 0x08000104),
    ("uxtb r0, r1", -1, 0, 255), ("sxtb r0, r1", 0x1FF, 0, -1), ("uxth r0, r1", -1, 0, 65535),
    ("sxth r0, r1", 0x18000, 0, -32768), ("ubfx r0, r1, #4, #8", 0xABC, 0, 0xAB),
    ("sbfx r0, r1, #4, #8", 0xFF0, 0, -1), ("mla r0, r1, r2, r3", 3, 5, 115),
    ("mls r0, r1, r2, r3", 3, 5, 85)])
def test_arithmetic_of_numbers(text, r1, r2, result):
    mnemonic, _, operands = text.partition(" ")
    found = run(mnemonic, operands, r0=0, r1=r1, r2=r2, r3=100)
    assert found.state[0] == result
    assert (found.state[1], found.state[2], found.flags) == (r1, r2, (0, 0, True))


@pytest.mark.parametrize("text", ["add r0, r1, r2", "sub r0, r2, r1", "orr r0, r1, r2",
                                  "eor r0, r1, r2", "udiv r0, r2, r1", "mla r0, r1, r2, r3",
                                  "adc r0, r2, r2", "sbc r0, r2, r2"])
@pytest.mark.parametrize("unknown", [DATA, STALE])
def test_of_data_comes_data_and_of_what_is_stale_the_same(text, unknown):
    mnemonic, _, operands = text.partition(" ")
    carries = mnemonic in ("adc", "sbc")
    assert run(mnemonic, operands, r1=unknown, r2=6, r3=1).state[0] == (
        DATA if carries else unknown)


@pytest.mark.parametrize(("text", "low", "high"), [
    ("smull r0, r3, r1, r2", -6, -1), ("umull r0, r3, r1, r2", -6, 2)])
def test_long_products_have_two_halves(text, low, high):
    """-2 times 3; unsigned 0xFFFFFFFE times 3 is 0x2FFFFFFFA."""
    mnemonic, _, operands = text.partition(" ")
    found = run(mnemonic, operands, r1=-2, r2=3).state
    assert found[0] in (low, DATA) and found[3] in (high, DATA)
    assert (found[0], found[3]) != (0, 0)


def test_a_top_half_is_moved_over_what_is_there():
    assert run("movt", "r0, #0x2000", r0=0x12345).state[0] == 0x20002345
    assert run("movt", "r0, #0x8000", r0=0).state[0] == -0x80000000
    assert run("movt", "r0, #1", r0=DATA).state[0] is DATA
    assert run("movt", "r0, #1", r0=STALE).state[0] == STALE


@pytest.mark.parametrize(("text", "holds"), [
    # r1 = 5 against r2 = 7
    ("cmp r1, r2", {"lt": True, "ge": False, "eq": False, "ne": True, "lo": True, "hs": False,
                    "gt": False, "le": True, "hi": False, "ls": True, "mi": True, "pl": False}),
    ("cmp r2, r2", {"eq": True, "ge": True, "lt": False, "hs": True, "hi": False}),
    ("cmp r1, #5", {"eq": True}), ("cmn r1, r3", {"eq": True, "lt": False}),
    ("tst r1, r2", {"eq": False, "ne": True}), ("tst r1, #2", {"eq": True}),
    ("teq r1, r2", {"eq": False}), ("teq r1, r1", {"eq": True}),
    ("subs r0, r1, r2", {"lt": True, "eq": False}), ("subs r0, r1, #5", {"eq": True}),
    ("rsbs r0, r1, #7", {"gt": True}), ("adds r0, r1, r3", {"eq": True}),
    ("adds r0, r1, r2", {"lt": False, "mi": False}), ("ands r0, r1, #2", {"eq": True}),
    ("movs r0, r1", {"eq": False, "mi": False}), ("movs r0, #0", {"eq": True}),
    ("negs r0, r1", {"lt": True}), ("mvns r0, r1", {"mi": True}),
    ("lsls r0, r1, #1", {"eq": False})])
def test_flags_are_what_a_comparison_left(text, holds):
    mnemonic, _, operands = text.partition(" ")
    found = run(mnemonic, operands, r1=5, r2=7, r3=-5)
    assert {name: found.decide(name, found.flags) for name in holds} == holds


@pytest.mark.parametrize(("text", "yes", "no"), [
    ("csel r0, r1, r2, eq", 10, 20), ("csinc r0, r1, r2, eq", 10, 21),
    ("csneg r0, r1, r2, eq", 10, -20), ("csinv r0, r1, r2, eq", 10, -21), ("cset r0, eq", 1, 0),
    ("csetm r0, eq", -1, 0), ("cinc r0, r1, eq", 11, 10), ("csinc r0, zr, zr, eq", 0, 1),
    ("csel r0, r1, zr, eq", 10, 0)])
def test_selections_take_one_source_or_change_the_other(text, yes, no):
    mnemonic, _, operands = text.partition(" ")
    for flags, result in (((3, 3, True), yes), ((3, 4, True), no), ((DATA, 4, True), DATA)):
        found = run(mnemonic, operands, flags, r0=9, r1=10, r2=20)
        assert found.state[0] is result or found.state[0] == result


@pytest.mark.parametrize(("flags", "result"), [((3, 3, True), 12), ((3, 4, True), 9),
                                               ((DATA, 4, True), DATA)])
def test_a_condition_decides_whether_it_runs_and_data_leave_either(flags, result):
    found = run("addeq", "r0, r1, r2", flags, r0=9, r1=7, r2=5)
    assert found.state[0] == result and found.state[1] == 7
    same = run("moveq", "r0, r1", (DATA, 4, True), r0=7, r1=7)
    assert same.state[0] == 7  # either way


def test_loops_are_counted_in_the_link_register_by_their_elements():
    assert run("dls", "lr, r1", r1=9).state[LR] == 9
    assert run("dls", "lr, r1", r1=9).state[STEP] == 1
    vectors = run("dlstp.16", "lr, r1", r1=20).state
    assert (vectors[LR], vectors[STEP]) == (20, 8)
    tested = run("wlstp.8", "lr, r1, #20", r1=20, lr=3).state
    assert (tested[LR], tested[STEP]) == (3, 16)  # whether it is entered is the walk's


def test_a_value_kept_in_a_single_register_comes_back():
    kept = run("vmov", "s5, r1", r1=42)
    assert kept.state[SINGLES + 5] == 42
    machine = SimpleNamespace(scope=Scope(), state=kept.state, flags=None)
    compile_operation(Listed(address=0, size_bytes=4, mnemonic="vmov", operands="r0, s5"))(machine)
    assert machine.state[0] == 42
    assert run("vmov", "r0, s6").state[0] is DATA


@pytest.mark.parametrize("unknown", [DATA, 5, STALE])
def test_of_what_only_moves_data_the_result_is_data_unless_it_read_what_is_stale(unknown):
    found = run("smlad", "r0, r1, r2, r3", r1=unknown, r2=1, r3=1)
    assert found.state[0] == (STALE if unknown == STALE else DATA)
    assert found.state[1] == unknown and found.flags == (0, 0, True)
    cleared = run("vadd.f32", "s5, s6, s7")
    assert SINGLES + 5 not in cleared.state


@pytest.mark.parametrize("text", ["nop ", "dsb sy", "it eq"])
def test_what_does_nothing_changes_nothing(text):
    mnemonic, _, operands = text.partition(" ")
    assert run(mnemonic, operands, r0=9).state == run("nop", r0=9).state


def test_what_is_not_understood_is_refused_by_its_address():
    with pytest.raises(FirmwareError, match="0x08000100: 'add r0, r1, bogus' is not understood"):
        run("add", "r0, r1, bogus")
