"""How a compiler maps layers onto the units of an accelerator, and which share an epoch.

`UnitRules` goes by what the board says its units do, and fits any accelerator whose compiler does
nothing unusual. A compiler with rules of its own is a class beneath it, in a package beside this
file, and the runtime's file names it: `offload.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.npu import MULTIPLYING, Npu, UnitKind, UnitWork
from twin.network.graph import DTYPE_BITS, Graph, Layer
from twin.network.operators import Form, layer_macs, traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A layer on the accelerator.

    Parameters
    ----------
    units : tuple of UnitWork
        In dataflow order.
    operations : tuple of (str, int)
        Kind and number, as the profiler lists them.
    weight_bytes : int
        Brought from the weights' pool, in the form the compiler stores them.
    weight_streams : int
        Engines that stream them to the units; 0 where they are staged, or there are none.
    staged_in : str
        Pool they are brought to before the layer begins; "": they are streamed.
    scattered : bool
        Whether it walks channel by channel, an element at a time.
    unpacked : bool
        Whether the first of `units` unpacks the weights.
    loaded : bool
        Whether a constant second operand is written into a unit, not streamed.
    """

    units: tuple[UnitWork, ...]
    operations: tuple[tuple[str, int], ...]
    weight_bytes: int = 0
    weight_streams: int = 0
    staged_in: str = ""
    scattered: bool = False
    unpacked: bool = False
    loaded: bool = False


def has_second_operand(layer: Layer) -> bool:
    """Whether a layer has a second input that is streamed in: an activation, or a constant."""
    return (traits(layer).form is Form.BROADCAST and len(layer.inputs) > 1
            and layer.inputs[1] >= 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRules:
    """Rules by role: a layer runs on the units whose role fits its operator.

    Notes
    -----
    Multiply-accumulates are spread over all units of a kind at the board's rate for the widths;
    bias, rescaling and clipping are part of them. Any other layer takes one unit and as many
    operations as the larger of its input and output has elements. Weights are streamed by an
    engine of their own; where the accelerator has a staging pool they are brought there first.
    """

    def explain_host(self, graph: Graph, layer: Layer, npu: Npu) -> str:
        """Return why a layer of a type and an operator of the NPU stays on the host, or "".

        Parameters
        ----------
        graph : Graph
            The network.
        layer : Layer
            Of an operator with roles.
        npu : Npu
            The accelerator.
        """
        if not self.multiplies(layer) or (unit := self.find_unit(layer, npu)) is None:
            return ""
        weights = graph.tensors[layer.inputs[1]]
        width = f"8x{DTYPE_BITS[weights.dtype]}"
        rates = [name for name, _ in unit.macs_per_cycle]
        if width not in rates:
            return f"{width} bits, {unit.kind} computes {', '.join(rates)}"
        stage = npu.staging
        if stage is not None and weights.size_bytes > stage.size_bytes:
            return (f"{weights.size_bytes:,} bytes of weights, {stage.name} holds "
                    f"{stage.size_bytes:,}")
        return ""

    def list_roles(self, layer: Layer) -> tuple[tuple[str, ...], ...]:
        """Return the roles a layer needs units for; of each, any of several will do.

        Of the first is the unit that computes it. None: the compiler has no way to run it.
        """
        roles = traits(layer).roles
        return (roles,) if roles else ()

    def multiplies(self, layer: Layer) -> bool:
        """Whether a layer multiplies and accumulates against weights."""
        return any(role in MULTIPLYING for roles in self.list_roles(layer)[:1] for role in roles)

    def find_unit(self, layer: Layer, npu: Npu) -> UnitKind | None:
        """Return the units that compute a layer; None where the accelerator has none."""
        roles = self.list_roles(layer)
        return npu.unit_for(*roles[0]) if roles else None

    def plan_work(self, graph: Graph, layer: Layer, npu: Npu) -> Work:
        """Return what a layer asks of the units.

        Parameters
        ----------
        graph : Graph
            The network.
        layer : Layer
            Of an operator with roles, and units for them.
        npu : Npu
            The accelerator: how many units, at which rate.
        """
        unit = self.find_unit(layer, npu)
        assert unit is not None, "a layer without units stays on the host"
        operations = ((layer.op, 1),)
        if not self.multiplies(layer):
            return Work(units=(UnitWork(kind=unit.kind, ops=count_elements(graph, layer)),),
                        operations=operations)
        weights = graph.tensors[layer.inputs[1]]
        stage = npu.staging
        return Work(units=(UnitWork(kind=unit.kind, count=unit.count,
                                    macs=layer_macs(graph, layer),
                                    mac_bits=(8, DTYPE_BITS[weights.dtype])),),
                    operations=operations, weight_bytes=weights.size_bytes,
                    weight_streams=0 if stage is not None else 1,
                    staged_in=stage.name if stage is not None else "")

    def joins(self, layer: Layer, reader: Layer) -> bool:
        """Whether a pad, or a change of 8-bit types, disappears into the layer that reads it."""
        before, behind = traits(layer), traits(reader)
        if before.form is Form.PAD:
            return behind.form is Form.WINDOW
        return before.converts and (self.multiplies(reader) or behind.form is Form.PAD)

    def follows(self, layer: Layer) -> bool:
        """Whether a layer may share the epoch of the one it reads: element by element."""
        return traits(layer).form in (Form.ELEMENTWISE, Form.BROADCAST)


def count_elements(graph: Graph, layer: Layer) -> int:
    """Return the elements of a layer's input or output, whichever has more."""
    return max(graph.tensors[layer.inputs[0]].elements, graph.tensors[layer.outputs[0]].elements)
