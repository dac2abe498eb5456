"""A compiler that goes by what the board says its units do, and launches as the board says.

It fits any accelerator whose compiler does nothing unusual. A compiler with rules of its own is a
class beneath it, in a package beside this file or a user's, and the runtime's file names it:
`offload.rules`. One that cuts and cascades otherwise states its own groups and steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from hwmodels.frozen import frozen
from hwmodels.schedule import MULTIPLYING, Npu, UnitKind, UnitWork
from twin.network.graph import DTYPE_BITS, Graph, GraphLayer, Layer
from twin.network.operators import Form, layer_macs, traits
from twin.runtimes.by_role.grouping import plan_groups
from twin.runtimes.by_role.steps import plan_steps
from twin.runtimes.compiler import Compiler, Planner
from twin.runtimes.partition import Grouping, Reason, Step, Why, Work


@frozen
class UnitRules(Compiler):
    """Rules by role: a layer runs on the units whose role fits its operator.

    Notes
    -----
    Multiply-accumulates are spread over all units of a kind at the board's rate for the widths;
    bias, rescaling and clipping are part of them, or cost what the board says of outputs and
    pixels. Any other layer takes one unit and as many operations as the larger of its input and
    output has elements. Weights are streamed by a
    channel of their own; where the accelerator has a staging pool they are brought there first.
    """

    def group(self, graph: Graph, planner: Planner) -> Grouping:
        """Return which layers run where, and which together."""
        return plan_groups(graph, planner, self)

    def schedule(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping) -> tuple[Step, ...]:
        """Return what runs where, in execution order."""
        return plan_steps(graph, planner, pools, grouping, self)

    def explain_host(self, site: GraphLayer, npu: Npu) -> str:
        """Return why a layer of a type and an operator of the NPU stays on the host, or "".

        Parameters
        ----------
        site
            A layer of an operator with roles.
        """
        if not self.multiplies(site.layer) or (unit := self.find_unit(site.layer, npu)) is None:
            return ""
        weights = site.weights
        width = "x".join(map(str, _bits(site)))
        rates = [name for name, _ in unit.macs_per_cycle]
        if width not in rates:
            return f"{width} bits, {unit.kind} computes {', '.join(rates)}"
        stage = npu.staging
        if stage is not None and weights.size_bytes > stage.size_bytes:
            return Reason(f"{weights.size_bytes:,} bytes of weights, {stage.name} holds "
                          f"{stage.size_bytes:,}", Why.MEMORY)
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

    def plan_work(self, site: GraphLayer, npu: Npu) -> Work:
        """Return what a layer asks of the units.

        Parameters
        ----------
        site
            A layer of an operator with roles, and units for them.
        npu
            The accelerator: how many units, at which rate.
        """
        unit = self.find_unit(site.layer, npu)
        assert unit is not None, "a layer without units stays on the host"
        operations = ((site.op, 1),)
        if not self.multiplies(site.layer):
            work = UnitWork(kind=unit.kind, ops=count_elements(site))
            return Work(units=(_add_loops(work, unit, site),), operations=operations)
        weights = site.weights
        stage = npu.staging
        work = UnitWork(kind=unit.kind, count=unit.count, macs=layer_macs(site.graph, site.layer),
                        mac_bits=_bits(site))
        return Work(units=(_add_loops(work, unit, site),),
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
        """Whether a layer may share the task of the one it reads: element by element."""
        return traits(layer).form in (Form.ELEMENTWISE, Form.BROADCAST)


def _bits(site: GraphLayer) -> tuple[int, int]:
    """Widths of a layer's activations and weights."""
    activations, weights = (DTYPE_BITS[tensor.dtype] for tensor in site.reads[:2])
    return activations, weights


def _add_loops(work: UnitWork, unit: UnitKind, site: GraphLayer) -> UnitWork:
    """Return work with its cycles stated where the unit's loops cost more than its operations.

    Notes
    -----
    cycles = (macs or ops) / rate x (1, or lanes where they do not divide the channels)
             + outputs x output_cycles + pixels x pixel_cycles
    """
    if unit.lanes == 1 and not unit.output_cycles and not unit.pixel_cycles:
        return work
    source, shape = (tensor.shape for tensor in site.ends)
    passes = 1 if source[-1] // site.layer.groups % unit.lanes == 0 else unit.lanes
    rate = unit.peak_macs("x".join(map(str, work.mac_bits))) if work.macs else unit.ops_per_cycle
    inner = max(work.macs, work.ops) * passes / (rate * work.count)
    loops = math.prod(shape) * unit.output_cycles + math.prod(shape[:-1]) * unit.pixel_cycles
    total = max(1, math.ceil(inner + loops))
    return replace(work, compute_cycles=total, waits=(("loops", round(loops)),),
                   useful=min(1.0, work.macs / (rate * work.count * total)) if work.macs else None)


def count_elements(site: GraphLayer) -> int:
    """Return the elements of a layer's input or output, whichever has more."""
    return max(site.source.elements, site.output.elements)
