"""What ST's compiler makes of a layer: units, and the compute cycles they take with ideal memory.

The compiler is closed; the rules are read off its published outputs, named in `neural-art.yaml`.
A stream carries one element a cycle and a unit passes one on, so a layer takes at least as many
cycles as it has outputs. A convolution unit holds three columns of a kernel over several channels,
so a kernel of one column fills a third of it, and its rows pass one after another. Values of a
channel (scale and bias, slopes) and the segments of a function are written into the units by the
driver before an epoch, up to what they hold; more are streamed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from hwmodels.frozen import frozen
from hwmodels.schedule import Npu, UnitKind, UnitWork
from twin.errors import RuntimeRefusedError
from twin.network.graph import DTYPE_BITS, GraphLayer, Layer
from twin.network.operators import Form, layer_macs, traits
from twin.runtimes.by_role.grouping import has_second_operand
from twin.runtimes.compiler import CompiledTasks
from twin.runtimes.neural_art import listing, profile
from twin.runtimes.neural_art.compiled import list_tasks
from twin.runtimes.neural_art.compiler_output import is_compiled, read_compiled
from twin.runtimes.partition import Work
from twin.runtimes.units import UnitRules, count_elements

_NAMES = {"average_pool_2d": "avgpool", "max_pool_2d": "maxpool", "mean": "avgpool",
          "logistic": "sigmoid", "quantize": "sub"}
"""Operators as the profiler names them, where it differs from ours."""

_KERNEL_ROWS = 3
"""Rows and columns of the kernel a convolution unit holds."""

_FUNCTIONS = ("logistic", "tanh", "hard_swish")
"""Activations that are tables of segments; the others are a slope or a limit."""


@frozen
class NeuralArt(UnitRules):
    """Rules of the Neural-ART compiler.

    Parameters
    ----------
    group_channels
        Channels of one dense group of a grouped depthwise convolution, block-diagonal.
    group_outputs
        Outputs a channel from which depthwise convolutions are grouped; below, channel by channel.
    strided_inputs_per_cycle
        Inputs a strided depthwise convolution takes in a cycle.
    channel_tables
        Values a channel that arithmetic units hold for a convolution: its bias, its scale.
    kernels_at_once
        Kernels a convolution unit computes side by side, at most; they divide the outputs.
    unit_weights
        Weights a unit holds of a 1x1 convolution that it computes an input channel a cycle.
    least_deep_channels, deep_channels
        Input channels from which on a unit takes several of them in a cycle, and how many it holds.
    window_channels, window_kernels
        Input channels and kernels of a dense window that a unit holds at once, at most; half as
        many kernels where no activation clips the input.
    deep_units
        Units that hold the input channels of a deep 1x1 convolution together, at most.
    chained_units
        Units a 1x1 convolution is spread over that one could compute, at most.
    packed_weight_bytes_per_cycle
        Weights a stream delivers per cycle where a unit takes as many channels; else one.
    pool_window_elements
        Largest averaging window the pooling unit takes.
    channel_coefficients
        Channels an arithmetic unit holds values of.
    function_coefficients
        Values of a function an activation unit is given.
    """

    task_name: ClassVar[str] = "epoch"
    host_task: ClassVar[str] = "software epoch"
    channel_name: ClassVar[str] = "stream engine"
    kinds: ClassVar[Mapping[str, str]] = {
        "task": "hw", "move": "hybrid", "host": "sw", "copy": "copy"}
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"epoch_controller": ("true", "false")}

    group_channels: int
    group_outputs: int
    strided_inputs_per_cycle: int
    channel_tables: int
    kernels_at_once: int
    unit_weights: int
    least_deep_channels: int
    deep_channels: int
    window_channels: int
    window_kernels: int
    deep_units: int
    chained_units: int
    packed_weight_bytes_per_cycle: int
    pool_window_elements: int
    channel_coefficients: int
    function_coefficients: int

    wrote = staticmethod(is_compiled)

    def read(self, path: str, npu: Npu) -> CompiledTasks:
        """Return the epochs of a c_info.json as tasks."""
        return list_tasks(read_compiled(path), npu)

    # What ST's profiler counts of an epoch and prints.
    describe_runs = staticmethod(profile.describe_runs)
    count_runs = staticmethod(profile.count_runs)
    describe_counters = staticmethod(profile.describe_counters)
    list_task, list_model = staticmethod(listing.list_task), staticmethod(listing.list_model)

    def name_task(self, name: str) -> str:
        """Return an epoch's name as ST's profiler writes it."""
        return name.replace("epoch_", "EpochBlock_")

    def follows(self, layer: Layer) -> bool:
        """Whether a layer may share an epoch: element by element, or a maximum without padding."""
        return super(NeuralArt, self).follows(layer) or (
            layer.op == "max_pool_2d" and layer.window is not None
            and not any(layer.window.padding))

    def explain_host(self, site: GraphLayer, npu: Npu) -> str:
        """Return why a layer stays on the host: it averages too many elements; or ""."""
        averaged = _averaged(site)
        return (f"averages {averaged} elements, at most {self.pool_window_elements}"
                if averaged > self.pool_window_elements else "")

    def list_roles(self, layer: Layer) -> tuple[tuple[str, ...], ...]:
        """Return the roles a layer needs: an arithmetic unit adds a bias, and takes slopes."""
        own = super(NeuralArt, self).list_roles(layer)
        slopes = layer.op == "prelu"
        return (*own, ("arithmetic",)) if slopes or traits(layer).filters is not None else own

    def plan_work(self, site: GraphLayer, npu: Npu) -> Work:
        """Return what a layer asks of the units; its compute cycles are with ideal memory."""
        if self.multiplies(site.layer):
            return self._plan_convolution(site, npu)
        elements = count_elements(site)
        held = self._count_held(site)
        unit = UnitWork(
            kind=self._unit(npu, site.layer).kind, ops=elements, compute_cycles=elements,
            coefficients=(self.function_coefficients if site.op in _FUNCTIONS
                          else 0 if site.op == "prelu" else held))
        if site.op == "prelu" and held != 1:
            # slope x + (1 - slope) relu(x): the activation unit has one slope for all channels.
            slopes = replace(unit, kind=_arithmetic(npu).kind, coefficients=held)
            return Work(units=(unit, slopes), operations=(("relu", 1), ("add", 1)), loaded=held > 0)
        return Work(units=(unit,), operations=((_NAMES.get(site.op, site.op), 1),), loaded=held > 0)

    def _count_held(self, site: GraphLayer) -> int:
        """Values of a constant second operand that a unit holds; 0: none, or it is streamed."""
        if not has_second_operand(site.layer):
            return 0
        operand, channels = site.weights, site.output.channels
        held = operand.is_constant and operand.elements in (1, channels)
        return operand.elements if held and operand.elements <= self.channel_coefficients else 0

    def _unit(self, npu: Npu, layer: Layer) -> UnitKind:
        unit = self.find_unit(layer, npu)
        assert unit is not None, "a layer without units stays on the host"
        return unit

    def _plan_convolution(self, site: GraphLayer, npu: Npu) -> Work:
        weights, outputs, channels = site.weights, site.output.elements, site.output.channels
        depthwise = site.op == "depthwise_conv_2d"
        alone = depthwise and outputs < self.group_outputs * channels
        group = self.group_channels if depthwise and not alone else 1
        stored = weights.elements * (_inflation(site.layer) if alone else group)
        bits = DTYPE_BITS[weights.dtype]
        stored_bytes = math.ceil(stored * bits / 8)
        macs = layer_macs(site.graph, site.layer) * group
        unit, arithmetic = self._unit(npu, site.layer), _arithmetic(npu)
        if depthwise or site.layer.kernel != (1, 1):
            # A unit that holds a whole kernel has its peak left for peak / 9 channels side by side.
            count = 1 if depthwise else min(_list_counts(npu, unit)[-1], math.ceil(
                weights.channels * _KERNEL_ROWS**2 / _peak_macs(unit, 8)))
            passes = math.ceil(macs / count / min(_peak_macs(unit, bits), self.kernels_at_once
                                                  * min(site.layer.kernel[1], _KERNEL_ROWS)))
            if not depthwise and site.layer.kernel[1] > 1:
                count, passes = self._pass_windows(site, npu)
            cycles = self._count_cycles(site, passes, stored_bytes, alone)
        else:
            count, cycles = self._share(site, macs, stored_bytes, [
                number for number in _list_counts(npu, unit)
                if weights.channels % number == 0], _peak_macs(unit, bits))
        units = [UnitWork(kind=unit.kind, count=count, macs=macs, mac_bits=(8, max(bits, 4)),
                          compute_cycles=cycles)]
        # Scale, bias and clipping take a unit each; where there are fewer, one does the rest, too.
        turns = self.channel_tables + bool(site.layer.activation)
        taken = min(turns, arithmetic.count)
        held = channels if channels <= self.channel_coefficients else 0
        rounds = math.ceil(turns / taken) * outputs
        units += [UnitWork(kind=arithmetic.kind, ops=rounds, compute_cycles=rounds,
                           coefficients=held if place < self.channel_tables else 0)
                  for place in range(taken)]
        operations = {"conv": count, "add": 1} | (
            {"mul": self.channel_tables - 1} if self.channel_tables > 1 else {}) | (
            {"sub": 1} if site.layer.activation else {})
        if bits < 8:
            units.insert(0, UnitWork(kind=_decoder(npu).kind, ops=stored,
                                     compute_cycles=stored_bytes))
            operations = {"decun": 1, **operations}
        return Work(units=tuple(units), operations=tuple(operations.items()),
                    weight_bytes=stored_bytes, weight_streams=count,
                    scattered=alone, unpacked=bits < 8)

    def _count_cycles(self, site: GraphLayer, mac_cycles: int, stored_bytes: int,
                      alone: bool) -> int:
        """Compute cycles of a window's kernel: the slowest of units, results, weights, inputs."""
        inputs, outputs = site.source.elements, site.output.elements
        kernel, depthwise = site.layer.kernel, site.op == "depthwise_conv_2d"
        if alone:
            passes = math.ceil(kernel[0] / _KERNEL_ROWS) * math.ceil(kernel[1] / _KERNEL_ROWS)
            return max(outputs * passes * _inflation(site.layer), stored_bytes)
        packed = (self.packed_weight_bytes_per_cycle if outputs <= inputs and not depthwise else 1)
        taken = self.strided_inputs_per_cycle if depthwise and _inflation(site.layer) > 1 else 1
        rows = kernel[0] if kernel[1] == 1 else 1
        return max(mac_cycles, outputs * rows, math.ceil(stored_bytes / packed),
                   math.ceil(inputs / taken))

    def _pass_windows(self, site: GraphLayer, npu: Npu) -> tuple[int, int]:
        """Return units and cycles of a dense window; the input passes once for some kernels.

        Units in a chain share channels and parts of 3x3 of a larger kernel; what they cannot hold
        takes a round more, with sums in memory.
        """
        source, result = site.source, site.output
        depth, outputs = source.channels, result.channels
        channels = _divide(depth, self.window_channels)
        narrow = site.layer.source_id in site.graph.inputs or _is_clipped(site)
        kernels = _divide(outputs, self.window_kernels if narrow else self.window_kernels // 2)
        parts = depth // channels * math.prod(
            -(-size // _KERNEL_ROWS) for size in site.layer.kernel)
        count = _divide(parts, _list_counts(npu, self._unit(npu, site.layer))[-1])
        return count, parts // count * (outputs // kernels) * max(
            source.elements // depth * channels, result.elements // outputs * kernels)

    def _share(self, site: GraphLayer, macs: int, stored_bytes: int,
               counts: Sequence[int], peak_macs: float) -> tuple[int, int]:
        """Return units and compute cycles of a 1x1 convolution: the fewest that are fastest.

        Chained units pass partial sums from one to the next, each with a stream of weights.
        """
        output, depth = site.output, site.source.channels
        packed = self.packed_weight_bytes_per_cycle
        kernels = next(number for number in range(self.kernels_at_once, 0, -1)
                       if output.channels % number == 0)
        clipped = _is_clipped(site)
        deep = clipped and depth >= self.least_deep_channels
        ways = [(count, kernels * (1 if clipped else 2), 1) for count in counts
                if kernels * depth <= self.unit_weights * count
                and (count <= self.chained_units or not deep)]
        if deep:
            held = [count for count in counts if count <= self.deep_units
                    and depth <= self.deep_channels * count]
            ways += [(count, kernels * packed, packed) for count in {1, *held[:1]}]
        cycles, count = min((max(math.ceil(macs / (count * min(peak_macs, rate))), output.elements,
                                 math.ceil(stored_bytes / stream)), count)
                            for count, rate, stream in ways or [(counts[-1], kernels, 1)])
        return count, cycles


def _is_clipped(site: GraphLayer) -> bool:
    """Whether an activation clips what a layer reads at zero; else it is 16 bits wide."""
    return any(other.target_id == site.layer.source_id and bool(other.activation or not (
        traits(other).filters is not None or traits(other).form is Form.BROADCAST))
        for other in site.graph.layers)


def _divide(total: int, most: int) -> int:
    """Largest divisor of a total up to a limit."""
    return next(number for number in range(most, 0, -1) if total % number == 0)


def _list_counts(npu: Npu, unit: UnitKind) -> range:
    """How many units may share a convolution: an engine brings the input, one takes the result."""
    return range(1, max(1, min(unit.count, npu.engines - 2)) + 1)


def _arithmetic(npu: Npu) -> UnitKind:
    unit = npu.unit_for("arithmetic")
    assert unit is not None, "a layer without units stays on the host"
    return unit


def _decoder(npu: Npu) -> UnitKind:
    unit = npu.unit_for("weight_decode")
    if unit is None:
        raise RuntimeRefusedError(f"{npu.name}: the accelerator has no unit that unpacks weights "
                                  "(role weight_decode); accepted: 8-bit weights")
    return unit


def _averaged(site: GraphLayer) -> int:
    """Elements an averaging operator takes for each output, 1 for any other."""
    if site.op == "mean":
        inputs = site.source.elements
        return inputs // max(1, site.output.elements)
    if site.op == "average_pool_2d":
        return math.prod(site.layer.kernel)
    return 1


def _inflation(layer: Layer) -> int:
    """How much larger an ungrouped depthwise kernel is stored: a strided one is twice as wide."""
    return 2 if layer.window is not None and layer.window.stride != (1, 1) else 1


def _peak_macs(unit: UnitKind, weight_bits: int) -> float:
    rates = dict(unit.macs_per_cycle)
    return rates.get(f"8x{weight_bits}") or rates["8x8"]
