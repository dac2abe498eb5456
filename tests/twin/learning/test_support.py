"""What was measured nearest to a cell: whole networks, never sums over several."""

from types import SimpleNamespace

from twin.learning.beyond import find_support, network_cycles


def test_layers_of_two_networks_are_not_added_together():
    rows = [SimpleNamespace(source="a", network=network, cycles=cycles, whole=False)
            for network, cycles in (("ad layer 0", 1.0), ("ad layer 1", 2.0), ("sww", 10.0))]
    assert network_cycles(rows) == [3.0, 10.0]
    whole = SimpleNamespace(source="a", network="kws", cycles=7.0, whole=True)
    assert network_cycles([*rows, whole]) == [7.0]


def test_sizes_of_a_measured_board_are_those_of_its_library():
    def observe(board, cycles):
        return SimpleNamespace(
            cell=SimpleNamespace(library="one", board=board, core=f"core of {board}"),
            network=f"{cycles:g}", whole=True, cycles=cycles, clock_hz=cycles * 10, source="a",
            supply_v=None, arena="sram")

    rows = [observe("here", 1e6), observe("here", 2e6), observe("there", 4e8)]
    own = find_support(rows, rows[0].cell)
    assert own.cycles == (1e6, 4e8) and own.boards == ("here",) and own.clocks_hz == (1e7, 2e7)
    # a board nobody measured takes those of its core alone
    other = SimpleNamespace(library="one", board="", core="core of there")
    assert find_support(rows, other).cycles == (4e8, 4e8)
