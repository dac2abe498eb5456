"""One inference predicted: its layers priced, its set-up, and what a reader must know of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.board.power import Idle
from hwmodels.counts import Bill, CountLine, Counts, Prices, make_bill, merge_bills, merge_counts
from hwmodels.errors import check_word
from hwmodels.prices import add_background
from hwmodels.quantities import format_frequency, format_size, list_first
from twin.deployment.costs import LayerCost, bill_us, convert_us
from twin.deployment.deployment import Deployment
from twin.deployment.placement import requantisation_bytes
from twin.errors import UsageError
from twin.network.operators import FUNCTION, is_alias, layer_macs, list_work
from twin.pricing.counted_prices import list_input_assumptions
from twin.pricing.extrapolation import say_assumed_currents
from twin.pricing.lines import list_doubtful, list_guessed_reads, price_on_core, runtime_prices
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.pricing.structure import is_layer_assumed

TEMPERATURES = ("warm", "cold")
"""Warm: caches as the previous inference left them. Cold: caches empty."""

SLOWEST_HZ = 1e6
"""Below it a file's clock is doubted: kilohertz in place of megahertz."""

_SHOWN = 12
"""Layers a warning names one by one."""

MOST_ON_HOST = 0.5
"""Share of the time on an accelerator's host above which a warning says why (assumed)."""


def predict(deployment: Deployment, *, temperature: str = "warm") -> Prediction:
    """Predict cycles, time and energy of one inference, and why.

    Parameters
    ----------
    deployment
        From `twin.deploy`.
    temperature
        "warm" (after at least one inference) or "cold" (caches empty).

    Returns
    -------
    Prediction
        Pure: the same deployment gives the same prediction.

    Notes
    -----
    bill = counts x prices, per kernel; a layer's bill is the sum of its kernels' and of the call
    overhead of its runtime; the total is the sum of the layers'. Who prices them is the runtime's
    target: on an accelerator, layers are what their tasks cost, and the host's caches start
    empty in either temperature.
    """
    check_word("temperature", temperature, TEMPERATURES, UsageError)
    prices = runtime_prices(deployment)
    costs, tasks = deployment.target.price(deployment, prices, price_on_core,
                                            cold=temperature == "cold")
    layers = tuple(_predict_layers(deployment, costs))
    bill = merge_bills(layer.bill for layer in layers)
    cycles, hertz = bill.clock_cycles(), deployment.board.hertz
    clock = _main_clock(deployment.board.core.clock, cycles, hertz)
    return Prediction(
        deployment=deployment, temperature=temperature, layers=layers,
        setup=setup_bill(deployment, prices), bill=bill, clock=clock,
        cycles=cycles.get(clock, 0.0), time_us=convert_us(cycles, hertz), tasks=tasks,
        warnings=_warnings(deployment, layers, temperature), energy_uj=bill.energy_uj())


def _main_clock(core: str, cycles: Mapping[str, float], hertz: Mapping[str, float]) -> str:
    """Return the clock most time passes in; the core's where none passes."""
    return max((core, *cycles), key=lambda clock: cycles.get(clock, 0.0) / hertz[clock])


def _predict_layers(deployment: Deployment,
                    costs: Sequence[LayerCost]) -> Iterator[LayerPrediction]:
    graph, hertz, core = (deployment.graph, deployment.board.hertz, deployment.board.core.clock)
    clocks_hz, live_bytes = tuple(hertz.items()), deployment.placement.live_bytes
    for cost, layer, (macs, moved), live in zip(costs, graph.layers, list_work(graph), live_bytes,
                                                strict=True):
        cycles = cost.bill.clock_cycles()
        clock = _main_clock(core, cycles, hertz)
        yield LayerPrediction(
            index=layer.index, name=layer.name, op=str(layer.option("called", layer.op)),
            output_shape=graph.output(layer).shape, macs=macs, bytes_moved=moved,
            alias=is_alias(layer), kernels=cost.kernels, clock=clock,
            assumed=cost.assumed or is_layer_assumed(deployment, layer, cost.kernels),
            cycles=cycles.get(clock, 0.0), time_us=convert_us(cycles, hertz),
            energy_uj=cost.bill.energy_uj(), bill=cost.bill,
            counts=cost.counts, instructions=cost.instructions, accesses=cost.accesses,
            misses=cost.misses, tasks=cost.tasks, clocks_hz=clocks_hz,
            live_bytes=None if layer.op == FUNCTION else live,
            repeats=layer.repeats, families=cost.families, called=layer.op == FUNCTION)


def setup_bill(deployment: Deployment, prices: Prices) -> Bill:
    """Price preparing the network once: operators, requantised channels, weights copied.

    While they are copied the core waits; all the while an accelerator idles. What a program does
    before its billed part is not known: nothing is priced.
    """
    if deployment.target.executes:
        return Bill(())
    graph = deployment.executed
    channels = sum(requantisation_bytes(graph, layer) // 8 for layer in graph.layers)
    amounts = {"setup": len(graph.layers), "setup channels": channels}
    counts = Counts(tuple(
        CountLine(event="kernel_dispatch", place=place, occurred=amount, exposed=amount)
        for place, amount in amounts.items() if amount))
    board, copied = deployment.board, deployment.target.count_setup(deployment)
    made = add_background(make_bill(merge_counts([counts, copied]), prices), board, prices)
    if not deployment.accelerated:
        return made
    waited = bill_us(make_bill(copied, prices), board) * 1e-6 * board.hertz[board.core.clock]
    idle = bill_us(made, board) * 1e-6 * board.hertz[board.accelerator.clock]
    return merge_bills([made, make_bill(Counts(tuple(
        CountLine(event=event, place="", occurred=amount, exposed=0)
        for event, amount in {"sleep": waited, "npu_idle": idle}.items()
        if amount and prices.price(event, "").pj != 0)), prices)])


def _warnings(deployment: Deployment, layers: tuple[LayerPrediction, ...],
              temperature: str) -> tuple[str, ...]:
    runtime = deployment.runtime
    warnings = [*deployment.notes, *deployment.target.remarks(deployment, temperature)]
    warnings += _describe_host(deployment.plan.reasons, layers)
    if runtime.structure == "assumed":
        taken = ("runs loops taken to be those of the reference kernels"
                 if runtime.library == "reference" else
                 f"{runtime.unread}; {deployment.target.borrowed}")
        warnings.append(f"structural assumption: {runtime.identity} {taken}")
    if runtime.learnt is not None:
        sources = runtime.learnt.sources
        own = any(f" running {deployment.graph.name}," in source for source in sources)
        warnings.append(f"structure read from {', '.join(sources)}: instructions and accesses "
                        "simulated, counted by running ELF" + (
                            "; this network is one of those learnt from" if own
                            else "; shapes other than those seen are fitted"))
    changed = {fact.path for fact in deployment.board.facts if fact.source == WHAT_IF_SOURCE}
    if f"clocks.{deployment.board.core.clock}.frequency_hz" in changed:
        warnings += [f"{fact.path} stays {fact.value} at this clock, too, as stated for another; "
                     f"--set {fact.path}=N states it" for fact in deployment.board.facts
                     if fact.path.endswith(".wait_states") and fact.path not in changed]
    if not changed and (hertz := deployment.board.core_clock.frequency_hz) < SLOWEST_HZ:
        warnings.append(f"clock: its file states {format_frequency(hertz)}; is {hertz / 1e3:g}MHz "
                        "meant?")
    warnings += [f"cache: {format_size(cache.size_bytes)} before the flash is a guess, and the "
                 f"interval of the time covers there being none; caches.{cache.name}.size_bytes "
                 "in the file, or --set, states it"
                 for cache in list_doubtful(deployment.board)[:1]]
    warnings += [f"{one.name}: {one.wait_states} wait states and {one.read_bytes} bytes a read are "
                 "guesses, and the interval of the time covers none and twice as many; wait_states "
                 f"and read_bytes of memories.{one.name} in the file state them"
                 for one in list_guessed_reads(deployment.board)]
    decided = list_input_assumptions(deployment)
    listed = {f"inputs decide the cost ({taken}) of layer": places
              for taken, places in decided.items()}
    listed["assumed: no source or data stands behind the cost of layer"] = [
        layer.index for layer in layers
        if layer.assumed and not any(layer.index in places for places in decided.values())]
    warnings += [f"{text}{'s' if len(places) > 1 else ''} "
                 f"{list_first([str(place) for place in places], _SHOWN)}"
                 for text, places in listed.items() if places]
    after = deployment.executed
    if after is not deployment.graph:
        live = sum(layer_macs(after, layer) for layer in after.layers)
        nominal = sum(layer.macs for layer in layers)
        if live < nominal:
            warnings.append(f"dead channels dropped by {runtime.identity}: {live:,} of "
                            f"{nominal:,} MACs are computed")
    if deployment.transfers is not None:
        from twin.deployment.transfers import describe_transfers

        clock = deployment.board.core.clock
        warnings.append(describe_transfers(
            deployment.transfers, sum(layer.bill.cycles(clock, "dma_wait") for layer in layers),
            sum(layer.bill.cycles(clock) for layer in layers)))
    if any(layer.energy_uj is None for layer in layers):
        warnings.append(f"energy is not known: {deployment.board.name} has no complete current "
                        "figures")
    elif (idle := deployment.board.idle()) is not None:
        warnings.append(say_above_idle(idle))
    elif deployment.board.assumed_current_sd:
        warnings.append(say_assumed_currents(deployment.board))
    return tuple(warnings)


def _describe_host(reasons: Sequence[str], layers: Sequence[LayerPrediction]) -> list[str]:
    """Say what keeps most of the time on an accelerator's host, where most is."""
    kept = [(layer, reason) for layer, reason in zip(layers, reasons, strict=False) if reason]
    host_us = sum(layer.time_us for layer, _ in kept)
    total_us = sum(layer.time_us for layer in layers)
    if host_us <= MOST_ON_HOST * total_us:
        return []
    longest, reason = max(kept, key=lambda pair: pair[0].time_us)
    return [f"{host_us / total_us:.0%} of the time passes on the host, most in layer "
            f"{longest.index} {longest.op}: {reason}"]


def say_above_idle(idle: Idle) -> str:
    """Say what a predicted energy leaves out; views that add it say so instead."""
    return (f"energy above idle lacks {idle} of idling"
            + " at its file's clocks" * (idle.low_mw == idle.high_mw) + "; limits count it")
