"""Board files: every shipped one loads, and every refusal names file, key and what is accepted."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
import yaml

from hwmodels.board.declaration import KINDS
from hwmodels.board.file import SHIPPED, change_board, list_boards, load_board
from hwmodels.errors import BoardError

ASKED_FOR = {
    "nucleo_l4r5zi": "cortex-m4", "nucleo_f401re": "cortex-m4",
    "nucleo_u575zi_q": "cortex-m33", "b_u585i_iot02a": "cortex-m33", "ek_ra6m4": "cortex-m33",
    "nucleo_h7a3zi_q": "cortex-m7", "stm32h747i_disco": "cortex-m7",
    "nucleo_h723zg": "cortex-m7", "apollo510_evb": "cortex-m55", "stm32n6570_dk": "cortex-m55",
    "rpi_pico": "cortex-m0plus", "host": "x86-64",
    "nrf52840dk": "cortex-m4", "nrf5340dk": "cortex-m33", "nucleo_u385rg_q": "cortex-m33",
    "rpi_pico2": "cortex-m33", "nucleo_f746zg": "cortex-m7", "ek_ra8d1": "cortex-m85",
    "esp32c3_devkitm": "rv32imc", "esp32s3_devkitc": "xtensa-lx7",
}

RULES = {
    "clocks.cpu.frequency_hz": ("300MHz", "above what voltage scale vos0 allows"),
    "caches.l1d.size_bytes": ("20KiB", "no power of two of sets"),
    "caches.l1d.line_bytes": ("24", "not a power of two"),
    "supply.voltage_v": ("5V", "outside the supply range"),
    "supply.regulator": ("none", "this part has no none"),
    "supply.voltage_scale": ("vos9", "not a scale of this part"),
    "memories.dtcm.cacheable": ("true", "bypasses the caches"),
    "memories.dtcm.bus": ("axi", "is not on a bus"),
    "memories.flash.wait_states": ("3", "fewer than the 6"),
    "memories.sram.address": ("0x20000000", "lies inside dtcm"),
    "memories.sram.bus": ("ahb", "bus 'ahb' does not exist"),
    "memories.flash.wait_states_max_hz.vos0": (
        ["44MHz", "280MHz", "88MHz"], "88 MHz after 280 MHz; accepted: .*rise"),
    "power.reference_ipc": (0.08, ">= 0.1 <= 1"),
    "placement.arena": ("flash", "the arena is written"),
    "clocks.axi.frequency_hz": ("100MHz", "derived from cpu"),
}

UNREADABLE = {
    "clocks.cpu.frequency_hz": ("fast", "-3MHz", "280 bananas", "nan", "1e400", "true"),
    "caches.l1d.size_bytes": ("32KB", "0", "2.5"),
    "supply.voltage_v": ("null", "3 mA"),
    "caches.l1d.replacement": ("random",),
    "caches.l1d.write": ("sideways",),
    "memories.flash.prefetch": ("perhaps",),
}


def document(name: str = "nucleo_h7a3zi_q") -> dict:
    text = (SHIPPED / f"{name}.yaml").read_text()
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def write(tmp_path, content: dict | str):
    path = tmp_path / "mine.yaml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("name", list_boards())
def test_every_board_loads_with_every_number_sourced(name):
    board = load_board(name)
    assert (board.name, board.core_family) == (name, ASKED_FOR.get(name, board.core_family))
    for fact in board.facts:
        assert fact.kind in KINDS and fact.source, fact.path
        assert fact.value is not None or fact.kind == "assumed", fact.path
    assert board.counters is not None and len(board.counters.levels) == 4
    assert board.core.dcache is None or board.cache(board.core.dcache).sets >= 1
    numbers = {fact.path for fact in board.facts}
    assert {"supply.voltage_v", f"clocks.{board.core.clock}.frequency_hz"} <= numbers


def test_the_boards_asked_for_are_there():
    assert set(ASKED_FOR) <= set(list_boards())


@pytest.mark.parametrize("name", list_boards())
def test_every_source_is_used_and_every_alias_is_one_board_s(name):
    raw = document(name)
    used = {fact.source for fact in load_board(name).facts} | {load_board(name).counters.source}
    stated = json.loads(load_board(name).document)["sources"]  # With those of the NPU's family.
    assert used == set(stated.values()) >= set(raw["sources"].values())
    for alias in raw["board"]["aliases"]:
        assert load_board(alias.upper().replace("_", "-")).name == name


@pytest.mark.parametrize("name", list_boards())
def test_the_document_reads_back_to_the_same_board(name, tmp_path):
    board = load_board(name)
    again = load_board(write(tmp_path, json.loads(board.document)))
    assert again == board


def test_an_instruction_set_with_atomics_means_the_one_without(tmp_path):
    raw, board = document("esp32c3_devkitm"), load_board("esp32c3_devkitm")
    raw["board"]["core_family"] = "rv32imac"
    raw["cores"]["main"] |= {"isa": "rv32imac", "model": "rv32imac"}
    assert load_board(write(tmp_path, raw)) == board
    same = load_board(board.name, overrides={"cores.main.isa": "rv32imac"})
    assert same.core == board.core
    raw["cores"]["main"]["isa"] = "rv32ima"
    with pytest.raises(BoardError, match=r"cores\.main\.isa: .*'rv32imc'.*not 'rv32ima'"):
        load_board(write(tmp_path, raw))


@pytest.mark.parametrize("path", RULES)
def test_a_what_if_the_part_cannot_have_is_refused_with_its_rule(path):
    value, rule = RULES[path]
    with pytest.raises(BoardError, match=rule) as refusal:
        load_board("nucleo_h7a3zi_q", overrides={path: value})
    assert f"nucleo_h7a3zi_q.yaml:{path}" in str(refusal.value)
    assert any(word in str(refusal.value) for word in ("accepted", "did you mean"))


@pytest.mark.parametrize(("path", "value"),
                         [(path, value) for path, values in UNREADABLE.items() for value in values])
def test_a_value_of_the_wrong_kind_is_refused(path, value):
    with pytest.raises(BoardError, match=path):
        load_board("nucleo_h7a3zi_q", overrides={path: value})


def test_an_unknown_path_names_the_nearest():
    with pytest.raises(BoardError, match=r"did you mean clocks\.cpu\.frequency_hz"):
        load_board("nucleo_h7a3zi_q", overrides={"clock.cpu.frequency_hz": "100MHz"})
    with pytest.raises(BoardError, match=r"is a section.*caches\.l1d\.size_bytes"):
        load_board("nucleo_h7a3zi_q", overrides={"caches.l1d": "16KiB"})
    with pytest.raises(BoardError, match=r"path .caches\.l2\.size_bytes. is not"):
        load_board("nucleo_h7a3zi_q", overrides={"caches.l2.size_bytes": "16KiB"})
    with pytest.raises(BoardError, match=r"KB is none of them, did you mean KiB\?"):
        load_board("nucleo_h7a3zi_q", overrides={"caches.l1d.size_bytes": "16KB"})


def test_a_what_if_leaves_the_board_alone_and_marks_the_number():
    board = load_board("NUCLEO-H7A3ZI-Q")
    slower = change_board(board, {"clocks.cpu.frequency_hz": "140MHz"})
    assert board.clock("cpu").frequency_hz == 280e6
    assert slower.clock("cpu").frequency_hz == slower.clock("axi").frequency_hz == 140e6
    # 44 MHz per wait state: 140 MHz needs 3, 280 MHz needs 6 (stm32h7xx_ll_utils.c)
    assert (slower.memory("flash").wait_states, board.memory("flash").wait_states) == (3, 6)
    fact = next(fact for fact in slower.facts if fact.path == "clocks.cpu.frequency_hz")
    assert (fact.kind, fact.source) == ("assumed", "what-if: set by the user")
    back = change_board(slower, {"clocks.cpu.frequency_hz": 280_000_000})
    assert back.memories == board.memories and back.clocks == board.clocks


def test_what_ifs_are_judged_together():
    """225 MHz at VOS1 needs 5 wait states, 42 MHz each (stm32h7xx_ll_utils.c)."""
    board = load_board("nucleo_h7a3zi_q", overrides={
        "supply.voltage_scale": "vos1", "clocks.cpu.frequency_hz": "225MHz"})
    assert board.memory("flash").wait_states == 5
    assert board.power.core_voltage_v == 1.2
    with pytest.raises(BoardError, match=r"supply\.voltage_scale=vos0 up to 280 MHz"):
        change_board(board, {"clocks.cpu.frequency_hz": "226MHz"})


def test_the_banking_of_l4r5_is_one_what_if():
    """A read of 128 bits instead of 64 halves the lines of the accelerator (RM0432)."""
    dual = load_board("nucleo_l4r5zi")
    single = change_board(dual, {"memories.flash.read_bytes": 16})
    for name, rows in (("art_i", 32), ("art_d", 8)):
        assert dual.cache(name).size_bytes == single.cache(name).size_bytes == rows * 32
        assert (dual.cache(name).line_bytes, single.cache(name).line_bytes) == (8, 16)
        assert dual.cache(name).sets == single.cache(name).sets == 1


def test_a_scale_may_need_a_regulator():
    """STM32H747: 480 MHz on the LDO only, 400 MHz otherwise (stm32h7xx_ll_utils.c)."""
    fast = {"supply.voltage_scale": "vos0", "clocks.cpu.frequency_hz": "480MHz"}
    with pytest.raises(BoardError, match=r"out of reach of the smps; .*supply\.regulator=ldo"):
        load_board("stm32h747i_disco", overrides=fast)
    board = load_board("stm32h747i_disco", overrides={**fast, "supply.regulator": "ldo"})
    assert board.clock("axi").frequency_hz == 240e6 and board.memory("flash").wait_states == 2


def test_wait_states_of_sram_are_latency():
    """RA6M4: one SRAM wait state above 100 MHz (FSP bsp_feature.h)."""
    board = load_board("ek_ra6m4")
    slow = change_board(board, {"clocks.cpu.frequency_hz": "100MHz"})
    for memory, latency in ((board.memory("sram"), 1), (slow.memory("sram"), 0)):
        assert (memory.latency_cycles, memory.wait_states) == (latency, 0)


REFUSED_FILES = {
    "unknown key": (lambda d: d["caches"]["l1d"].update(colour="red"), "caches.l1d.colour"),
    "unknown section": (lambda d: d.update(cache={}), "cache: unknown key; did you mean caches"),
    "bare number": (lambda d: d["caches"]["l1d"].update(ways=4), "has no kind and source"),
    "ways not known": (lambda d: d["caches"]["l1d"].update(ways=None), "omitted for a fully"),
    "too many ways": (lambda d: d["caches"]["l1d"].update(
        ways=[2048, "datasheet", "ll"], size_bytes=["64KiB", "datasheet", "ll"]), "1 to 1024"),
    "too many lines": (lambda d: d["caches"]["l1d"].update(
        size_bytes=["16MiB", "datasheet", "ll"]), "more than 262144 lines"),
    "missing source": (lambda d: d["sources"].pop("ll"), "'ll' is not in the file's sources"),
    "unknown kind": (lambda d: d["caches"]["l1d"].update(ways=[4, "rumour", "ll"]), "'rumour'"),
    "missing key": (lambda d: d["memories"]["flash"].pop("size_bytes"), "size_bytes: is required"),
    "missing section": (lambda d: d.pop("memories"), "memories: is required"),
    "unknown event": (lambda d: d.update(prices={"sneeze": {}}), "event 'sneeze'"),
    "price of no memory": (lambda d: d.update(prices={"write_back@attic": {}}), "memory 'attic'"),
    "circular clock": (lambda d: d["clocks"].update(
        cpu={"of": "axi", "divide_by": [2, "assumed", "ll"]}), "derived from itself"),
    "wrong schema": (lambda d: d.update(schema=2), "schema: input should be 1"),
    "negative deviation": (lambda d: d["caches"]["l1d"].update(
        ways={"value": 4, "kind": "datasheet", "source": "ll", "rel_sd": -1}), "rel_sd"),
}


@pytest.mark.parametrize("case", REFUSED_FILES)
def test_a_wrong_file_is_refused_by_key(case, tmp_path):
    spoil, message = REFUSED_FILES[case]
    raw = document()
    spoil(raw)
    path = write(tmp_path, raw)
    with pytest.raises(BoardError, match=r"mine\.yaml:") as refusal:
        load_board(path)
    assert message in str(refusal.value)


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda npu: npu["units"]["CONV_ACC"].pop("roles"), "npu.units.CONV_ACC.roles: is required"),
    (lambda npu: npu["units"]["CONV_ACC"].update(roles=[]), "one or more of convolution, "),
    (lambda npu: npu["units"]["CONV_ACC"].update(roles=["convoluting"]),
     "role 'convoluting' does not exist; did you mean convolution"),
    (lambda npu: npu["units"].update(NULL=npu["units"]["ARITH_ACC"]), "a path without units"),
    (lambda npu: npu["units"].pop("POOL_ACC"),
     "npu.hand_over.pre_unit_cycles.POOL_ACC: unit 'POOL_ACC' does not exist"),
])
def test_the_units_of_an_accelerator_are_checked(spoil, message, tmp_path):
    raw = json.loads(load_board("stm32n6570_dk").document)
    spoil(raw["npu"])
    with pytest.raises(BoardError) as refusal:
        load_board(write(tmp_path, raw))
    assert message in str(refusal.value)


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: [", "\x00\x01", "schema: 1\nschema: 1\n",
                                  "board: !!python/object:os.system {}"])
def test_what_is_no_board_file_is_refused(text, tmp_path):
    with pytest.raises(BoardError, match=r"mine\.yaml"):
        load_board(write(tmp_path, text))


def test_a_missing_board_is_refused_with_a_hint(tmp_path):
    with pytest.raises(BoardError, match="did you mean nucleo_l4r5zi"):
        load_board("nucleo_l4r5z")
    with pytest.raises(BoardError, match="cannot be read"):
        load_board(tmp_path / "none.yaml")
    with pytest.raises(BoardError, match="cannot be read"):
        load_board(str(tmp_path) + "/")


def test_a_user_s_folder_adds_boards(tmp_path, monkeypatch):
    raw = document()
    raw["board"].update(name="my_board", aliases=["MINE"])
    (tmp_path / "b.yaml").write_text(json.dumps(raw))
    monkeypatch.setenv("TWIN_BOARDS", str(tmp_path))
    assert "b" in list_boards() and load_board("b").name == "my_board"
    assert load_board("My-Board").name == load_board("mine").name == "my_board"
    monkeypatch.setenv("TWIN_BOARDS", str(tmp_path / "none"))
    with pytest.raises(BoardError, match="TWIN_BOARDS"):
        list_boards()


def test_numbers_may_carry_units(tmp_path):
    raw = document()
    raw["clocks"]["cpu"]["frequency_hz"][0] = "0.28 GHz"
    raw["supply"]["voltage_v"][0] = "3000mV"
    raw["caches"]["l1d"]["size_bytes"][0] = 16384
    assert load_board(write(tmp_path, raw)) == load_board("nucleo_h7a3zi_q")


def test_any_damage_ends_in_a_board_or_a_refusal():
    """Whatever one node is replaced by, nothing but a BoardError comes out."""
    dice = random.Random(1)
    junk = [None, True, -1, 1e300, 10**400, "x", "9" * 400, "1e999", [], {}, [[[]]], float("nan"),
            [None, "assumed", "ll"], ["a", {}, []], {"value": 1}]
    sound = load_board("nucleo_h7a3zi_q")
    outcomes = {"board": 0, "refused": 0}
    for _ in range(250):
        raw = json.loads(sound.document)
        node = raw
        while True:
            key = dice.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if not isinstance(node[key], (dict, list)) or not node[key] or dice.random() < 0.2:
                break
            node = node[key]
        node[key] = dice.choice(junk)
        try:
            change_board(replace(sound, document=json.dumps(raw)), {"board.description": "x"})
            outcomes["board"] += 1
        except BoardError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 100 and outcomes["board"] > 0


def test_a_board_changed_the_same_way_is_made_once():
    board = load_board("nucleo_l4r5zi")
    change = {"clocks.cpu.frequency_hz": 80e6}
    assert change_board(board, change) is change_board(board, dict(change))
    followed = change_board(board, change, follow_clock=True)
    assert followed != change_board(board, change)
    assert followed is change_board(board, change, follow_clock=True)
    with pytest.raises(BoardError, match=r"clocks\.cpu\.frequency_hz"):
        change_board(board, {"clocks.cpu.frequency_hz": True})
    with pytest.raises(BoardError, match=r"clocks\.cpu\.frequency_hz"):
        change_board(board, {"clocks.cpu.frequency_hz": [80e6]})


def test_a_current_in_another_unit_is_refused():
    with pytest.raises(BoardError, match=r"activity_ma_per_mhz.*accepted: .*<= 10\b"):
        load_board("nucleo_l4r5zi", overrides={"power.activity_ma_per_mhz.range1_boost": 13})
