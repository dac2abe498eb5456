"""What was measured nearest to a cell: whole networks, never sums over several."""

from types import SimpleNamespace

from twin.learning.beyond import network_cycles


def test_layers_of_two_networks_are_not_added_together():
    rows = [SimpleNamespace(source="a", network=network, cycles=cycles, whole=False)
            for network, cycles in (("ad layer 0", 1.0), ("ad layer 1", 2.0), ("sww", 10.0))]
    assert network_cycles(rows) == [3.0, 10.0]
    whole = SimpleNamespace(source="a", network="kws", cycles=7.0, whole=True)
    assert network_cycles([*rows, whole]) == [7.0]
