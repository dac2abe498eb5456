"""Subgraphs of a .tflite file put in line: the bodies of loops, branches and calls.

A loop's body becomes operators that run as often as the loop turns, between a copy of each state
into the loop and one out of it. How often that is follows from the counters its condition
compares with constants, as Keras writes recurrent layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hwmodels.frozen import frozen
from twin.errors import ModelError
from twin.network.graph import Tensor, TensorIds
from twin.network.readers.budget import check_operators
from twin.network.readers.tflite_nodes import Node

MAX_TURNS = 2**20
"""More turns, loops in loops multiplied, than a network for a microcontroller makes."""

MAX_DEPTH = 16
"""Subgraphs in subgraphs."""

RESOURCE = "resource"
"""Type of what names a variable."""

_COUNTS = ("int32", "int64", "bool", RESOURCE)


@frozen
class Subgraph:
    """A graph of the file, its tensors numbered as the whole network's are.

    Parameters
    ----------
    ids
        Number in the network of each tensor; an inlined operator's results are renamed in it.
    inputs, outputs
        Places in `ids`.
    """

    number: int
    ids: list[int]
    inputs: TensorIds
    outputs: TensorIds


class Inliner:
    """Puts subgraphs in line; the reader's functions say how a file is read.

    Parameters
    ----------
    path
        Of the file, for errors.
    read
        (subgraph) -> its operators, in order.
    open_graph
        (number) -> a subgraph with fresh tensors.
    add
        Tensor -> index.
    tensor
        index -> Tensor.
    """

    def __init__(self, path: str, count: int, read: Callable[[Subgraph], list[Node]],
                 open_graph: Callable[[int], Subgraph], add: Callable[[Tensor], int],
                 tensor: Callable[[int], Tensor]) -> None:
        self._path, self._count, self._read, self._open = path, count, read, open_graph
        self._add, self._tensor = add, tensor
        self._seen = 0
        self.notes: list[str] = []
        self.starters: list[Node] = []  # operators that run once, before the first inference

    def inline(self, graph: Subgraph, turns: int = 1, depth: int = 0) -> list[Node]:
        """Return a subgraph's operators and, in place of those that run others, theirs.

        Parameters
        ----------
        graph
            What to read; its `ids` change where an inlined operator's result is another's tensor.
        turns
            How often it runs.
        """
        if depth > MAX_DEPTH:
            raise ModelError(f"{self._path}: subgraphs {depth} deep; at most {MAX_DEPTH}")
        if turns > MAX_TURNS:
            raise ModelError(f"{self._path}: a loop of {turns:,} turns; at most {MAX_TURNS:,}")
        made: list[Node] = []
        nodes = self._read(graph)
        self._seen += len(nodes)
        check_operators(self._path, self._seen)
        for stored in nodes:
            node = replace(stored, repeats=turns, inputs=self._now(graph, stored.inputs),
                           outputs=self._now(graph, stored.outputs))
            if node.builtin == "WHILE":
                made += self._loop(graph, stored, node, turns, depth)
            elif node.builtin in ("IF", "CALL"):
                made += self._call(graph, stored, node, turns, depth)
            elif node.builtin == "CALL_ONCE":  # it only fills variables before the start
                number = self._number(node, node.options("CallOnceOptions").InitSubgraphIndex())
                inner = self._open(number)
                self.starters += [replace(each, inputs=self._now(inner, each.inputs),
                                          outputs=self._now(inner, each.outputs))
                                  for each in self._read(inner)]
            else:
                made.append(node)
        return made

    def _now(self, graph: Subgraph, places: Sequence[int]) -> TensorIds:
        return tuple(graph.ids[place] if place >= 0 else -1 for place in places)

    def _number(self, node: Node, number: int) -> int:
        if not 0 <= number < self._count:
            raise ModelError(f"{node.place}: subgraph {number} does not exist; there are "
                             f"{self._count}")
        return number

    def _call(self, graph: Subgraph, stored: Node, node: Node, turns: int,
              depth: int) -> list[Node]:
        """Operators of a branch, or of a graph that is called, its tensors those of the call."""
        given = node.inputs
        if node.builtin == "CALL":
            number = node.options("CallOptions").Subgraph()
        else:
            options, given = node.options("IfOptions"), node.inputs[1:]
            number = options.ThenSubgraphIndex()
            known = self._tensor(node.inputs[0]).data
            if known is not None and not known.reshape(-1)[0]:
                number = options.ElseSubgraphIndex()
            elif known is None:
                self.notes.append("IF: the first branch is taken (assumed)")
        inner = self._open(self._number(node, number))
        self._connect(node, inner, given)
        made = self.inline(inner, turns, depth + 1)
        self._name_results(node, graph, stored, self._now(inner, inner.outputs))
        return made

    def _connect(self, node: Node, inner: Subgraph, given: Sequence[int]) -> None:
        if len(inner.inputs) != len(given):
            raise ModelError(f"{node.place}: {len(given)} values for subgraph {inner.number}, "
                             f"which takes {len(inner.inputs)}")
        for place, index in zip(inner.inputs, given, strict=True):
            inner.ids[place] = index

    def _name_results(self, node: Node, graph: Subgraph, stored: Node,
                      results: Sequence[int]) -> None:
        if len(results) < len(stored.outputs):
            raise ModelError(f"{node.place}: {len(stored.outputs)} results of a subgraph that "
                             f"has {len(results)}")
        for place, index in zip(stored.outputs, results, strict=False):
            graph.ids[place] = index

    def _loop(self, graph: Subgraph, stored: Node, node: Node, turns: int,
              depth: int) -> list[Node]:
        """Operators of a loop's body, each as often as it turns."""
        options = node.options("WhileOptions")
        body = self._open(self._number(node, options.BodySubgraphIndex()))
        condition = self._open(self._number(node, options.CondSubgraphIndex()))
        if len(body.outputs) != len(node.inputs) or len(stored.outputs) != len(node.inputs):
            raise ModelError(f"{node.place}: {len(node.inputs)} values around a loop, "
                             f"{len(body.outputs)} come back")
        times = self._count_turns(node, body, condition)
        kept = [own == back for own, back in zip(body.inputs, body.outputs, strict=True)]
        entered, made = [], []
        for index, stays in zip(node.inputs, kept, strict=True):
            carried = index
            if not stays and self._tensor(index).dtype not in _COUNTS:
                carried = self._add(replace(self._tensor(index), data=None,
                                            name=f"{self._tensor(index).name}/state"))
                made.append(replace(node, builtin="copy", inputs=(index,), outputs=(carried,)))
            entered.append(carried)
        self._connect(node, body, entered)
        inside = self.inline(body, turns * times, depth + 1)
        results = self._now(body, body.outputs)
        made += _store_items(inside, entered, results, self._tensor)
        for place, result, stays in zip(stored.outputs, results, kept, strict=True):
            if stays or self._tensor(result).dtype in _COUNTS:
                graph.ids[place] = result
            else:
                made.append(replace(node, builtin="copy", inputs=(result,), repeats=turns * times,
                                    outputs=(graph.ids[place],)))
        return made

    def _count_turns(self, node: Node, body: Subgraph, condition: Subgraph) -> int:
        """Return how often a loop turns: the fewest any of its counters allows."""
        bounds = []
        inside = self._read(condition)
        steps = {one.outputs[0]: one for one in self._read(body) if one.outputs}
        for test in inside:
            if test.builtin not in ("LESS", "LESS_EQUAL", "GREATER"):
                continue
            left, right = test.inputs[::-1] if test.builtin == "GREATER" else test.inputs
            turns = self._turns_of(node, body, condition, steps, left, right)
            if turns is not None:
                bounds.append(turns + (test.builtin == "LESS_EQUAL"))
        if bounds:
            return max(1, min(bounds))
        shapes = [self._tensor(index).shape for index in node.inputs]
        guess = max((shape[0] for shape in shapes if len(shape) >= 2), default=1)
        self.notes.append(f"{node.builtin} at operator {node.index}: how often it turns is not "
                          f"known; {guess} times are taken (assumed)")
        return guess

    def _turns_of(self, node: Node, body: Subgraph, condition: Subgraph,
                  steps: Mapping[int, Node], counter: int, bound: int) -> int | None:
        """Return the turns until a counter reaches a bound; None where either is not constant."""
        if counter not in condition.inputs:
            return None
        place = condition.inputs.index(counter)
        last = self._value(node, body, condition, bound)
        first = _whole(self._tensor(node.inputs[place]))
        step = steps.get(body.outputs[place])
        if last is None or first is None or step is None or step.builtin != "ADD":
            return None
        added = [self._value(node, body, body, one) for one in step.inputs
                 if one != body.inputs[place]]
        if len(added) != 1 or not added[0] or added[0] < 0:
            return None
        return -(-(last - first) // added[0])

    def _value(self, node: Node, body: Subgraph, inner: Subgraph, place: int) -> int | None:
        """Return the whole number a tensor holds in every turn; None where it changes."""
        if place in inner.inputs:
            number = inner.inputs.index(place)
            stays = body.inputs[number] == body.outputs[number]
            return _whole(self._tensor(node.inputs[number])) if stays else None
        return _whole(self._tensor(inner.ids[place]))


def _store_items(nodes: list[Node], lists: Sequence[int], results: Sequence[int],
                 tensor: Callable[[int], Tensor]) -> list[Node]:
    """Make one copy of what a turn does to write an item of a list.

    Notes
    -----
    The list up to the item, the item and the rest are joined, with lengths that grow and shrink
    from turn to turn; together they are always as long as the list.
    """
    makers = {node.outputs[0]: node for node in nodes if node.outputs}
    changed: dict[int, Node | None] = {}
    for whole, result in zip(lists, results, strict=True):
        join = makers.get(result)
        if join is None or join.builtin != "CONCATENATION":
            continue
        cuts = [makers[i] for i in join.inputs if i in makers
                and makers[i].builtin == "SLICE" and makers[i].inputs[0] == whole]
        items = [i for i in join.inputs if all(i != cut.outputs[0] for cut in cuts)]
        if cuts and len(items) == 1:
            changed |= {id(cut): None for cut in cuts}
            changed[id(join)] = replace(join, builtin="copy", inputs=(whole, items[0]))
            join.amend(result, replace(tensor(whole), name=f"{tensor(whole).name}/written"))
    kept = (changed.get(id(node), node) for node in nodes)
    return [node for node in kept if node is not None]


def _whole(tensor: Tensor) -> int | None:
    return None if tensor.data is None or tensor.data.size != 1 else int(tensor.data.reshape(-1)[0])
