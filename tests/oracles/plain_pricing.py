"""Pricing in its readable form: kernel by kernel, line by line, one prediction at a time.

    bill of a kernel = counts x prices      of a layer = its kernels' and its calls'

The oracle of `twin.pricing`, which does the same for arrays of configurations.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from functools import partial

import numpy as np

from calibration.fitting.cell import UNSEEN_RUNTIME
from calibration.fitting.intervals import (
    BORROWED_SD,
    FLOAT_SD,
    LAYER_REACH,
    LAYER_SD,
    OPERATOR_SD,
    SHOWN,
    TYPICAL,
    remaining_sd,
)
from hwmodels.counts import (
    COPYING,
    CORE_EVENTS,
    EXACT,
    Bill,
    BillLine,
    CountLine,
    Counts,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
)
from hwmodels.paths.exposure import expose, to_counts
from hwmodels.paths.timing import read_timing
from hwmodels.prices import add_background
from twin.deployment.core import lower_network
from twin.deployment.costs import bill_us
from twin.deployment.support import float_layers
from twin.deployment.transfers import count_transfers
from twin.pricing.accelerator.certainty import PARTS, split_time
from twin.pricing.accelerator.energy import path_of
from twin.pricing.calibration import unseen_prices
from twin.pricing.counted_prices import list_counted, list_input_assumptions
from twin.pricing.extrapolation import between_sd, far_sd
from twin.pricing.inference import predict
from twin.pricing.lines import runtime_prices
from twin.pricing.locality import replacement_range
from twin.pricing.operator_evidence import EXTERNAL, OWN_PRICE, list_external, name_operators
from twin.pricing.price_names import (
    ENERGY_PRICES,
    STREAM,
    TIME_PRICES,
    family_of,
    power_of,
    price_of_family,
    waits_on_memory,
)
from twin.pricing.structure import find_structure
from twin.runtimes.runtime import COPY


def price_plainly(deployment, *, cold):
    """Return counts and bill of each layer on the core."""
    structure = find_structure(deployment, partial(lower_network, deployment), cold=cold)
    arrays, board, runtime = structure.arrays, deployment.board, deployment.runtime
    prices = runtime_prices(deployment)
    occurred, exposed = expose(arrays, read_timing(board, arrays.places)[None])
    counted = iter(to_counts(arrays, occurred[0], exposed[0]))
    layers = []
    for layer, kernels in zip(deployment.graph.layers, structure.layers, strict=True):
        own = [(kernel, next(counted)) for kernel in kernels]
        calls = max(sum(kernel.calls for kernel in kernels), int(runtime.dispatches_aliases))
        called = Counts((CountLine(event="kernel_dispatch", occurred=calls, exposed=calls),)
                        if calls else ())
        bills = [make_bill(counts, scale_work(
            prices, runtime, kernel.family, tell_width(deployment.graph, layer)))
                 for kernel, counts in own]
        layers.append((merge_counts([*(counts for _, counts in own), called]),
                       merge_bills([*bills, make_bill(called, prices)])))
    if deployment.transfers is not None:
        added = count_transfers(deployment.transfers,
                                [bill.cycles(board.core.clock) for _, bill in layers])
        layers = [(merge_counts([counts, more]), merge_bills([bill, make_bill(more, prices)]))
                  for (counts, bill), more in zip(layers, added, strict=True)]
    return [(counts, add_background(bill, board, prices)) for counts, bill in layers]


def tell_width(graph, layer):
    """Nought up to 8 output channels, one from 64 on, and so far on a logarithmic scale between."""
    channels = graph.tensors[layer.outputs[0]].shape[-1]
    return round(min(1.0, max(0.0, math.log2(channels / 8) / 3)), 2)


def scale_work(prices, runtime, family, wide):
    """Prices with the efficiencies of a kernel's family, and of copying, on core events.

    Convolutions lie between narrow and wide ones; dense layers have a price of waiting.
    """
    copying = Prices({(event, COPYING): prices.price(event, COPYING) for event in CORE_EVENTS})
    factor = runtime.efficiency.get(family, 1.0)
    if family == "conv":
        factor = (1 - wide) * factor + wide * runtime.efficiency.get("conv_wide", factor)
    work = prices.scaled(CORE_EVENTS, factor)
    if family == "fully_connected":
        waits = {event for event, _ in prices.table if waits_on_memory(event)}
        work = work.scaled(waits, runtime.efficiency.get("stream", 1.0))
    return Prices({**work.table, **copying.scaled(
        CORE_EVENTS, runtime.efficiency.get(COPY, 1.0)).table})


def split_cycles(layer, wide):
    """Cycles of a layer by time price; its kernels share what they execute evenly."""
    row = dict.fromkeys(TIME_PRICES, 0.0)
    for line in layer.bill.lines:
        if waits_on_memory(line.event):
            row["stream" if "fully_connected" in layer.families else "memory"] += line.cycles
        elif line.event == "kernel_dispatch":
            row["call"] += line.cycles
        elif line.event in CORE_EVENTS:
            for family in layer.families:
                price, own = (price_of_family(family_of(family, line.place)),
                              line.cycles / len(layer.families))
                row[price] += own * (1 - wide) if price == "conv" else own
                row["conv_wide"] += own * wide if price == "conv" else 0.0
    return np.array(list(row.values()))


def spread(covariance, shares, learnt, weights):
    """Deviation of a logarithm by its prices, the network and the row."""
    concentration = (weights**2).sum() / TYPICAL
    return math.sqrt(shares @ covariance @ shares + learnt.network_sd**2 * concentration
                     + learnt.row_sd**2)


def leave_open(prediction, calibration, waiting):
    """How far rows of the library leave each layer's cost open."""
    deployment, evidence = prediction.deployment, calibration.operators
    outside = list_external(deployment.board)
    assumed = [layer.assumed for layer in prediction.layers]
    counted = (list_counted(deployment, assumed) if calibration.counted
               else [False for _ in assumed])
    found = []
    for layer, name, known in zip(prediction.layers, name_operators(deployment), counted,
                                  strict=True):
        closed = layer.assumed or deployment.runtime.structure == "assumed"
        shown = any(other.split(" ")[0] in OWN_PRICE and other.split(" ")[1:] == name.split(" ")[1:]
                    for other in evidence)
        assumed_sd = BORROWED_SD if closed else OPERATOR_SD
        own = remaining_sd(evidence.get(name, 0.0), assumed_sd * (SHOWN if shown else 1.0))
        if closed:
            others = [value for other, value in evidence.items()
                      if other.split(" ")[:2] == name.split(" ")[:2]]
            own = min([own, *(math.hypot(OPERATOR_SD, remaining_sd(value, BORROWED_SD))
                              for value in others)])
        if shown and name.split(" ")[0] in OWN_PRICE:
            own = 0.0
        if known:
            floats = {one.index for one in float_layers(deployment.executed)}
            own = FLOAT_SD if (
                layer.index in floats or deployment.runtime.scales_in_float) else 0.0
        if calibration.counted and layer.index in itertools.chain.from_iterable(
                list_input_assumptions(deployment).values()):
            own = OPERATOR_SD
        total = sum(line.cycles for line in layer.bill.lines)
        part = sum(line.cycles for line in layer.bill.lines
                   if line.place in outside) / total if total and waiting else 0.0
        found.append((1 - part) * own + part * remaining_sd(
            evidence.get(EXTERNAL, 0.0), BORROWED_SD))
    return np.array(found)


WAITING = [place for place, name in enumerate(TIME_PRICES) if name in ("memory", STREAM)]
"""Columns of `split_cycles` that wait on memories."""


def deviate_plainly(prediction, calibration, *, waiting=True):
    """Return deviations of the logarithms of the time and of each layer's; shares of the time.

    And which part of the time's no row informs. The time's is no further than that of a library
    nobody measured, where no row is of the release on the board.
    """
    entry, deployment = calibration.entry, prediction.deployment
    board, network = deployment.board, deployment.graph.architecture_id
    cycles, warm = (np.array([split_cycles(layer, tell_width(deployment.graph, own))
                              for layer, own in zip(one.layers, deployment.graph.layers,
                                                    strict=True)])
                    for one in (prediction, predict(deployment)))
    if not waiting:
        cycles[:, WAITING] = warm[:, WAITING] = 0.0
    totals = cycles.sum(axis=1)
    weights, one = totals / totals.sum(), np.ones(1)
    open_sd = leave_open(prediction, calibration, waiting)
    filled = np.maximum(cycles - warm, 0).sum(axis=1) * (prediction.temperature == "cold")
    away = OPERATOR_SD * filled / np.where(totals > 0, totals, 1) + far_sd(
        totals.sum(), board.clock(board.core.clock).frequency_hz, entry.support,
        measured=entry.board is not None)
    if calibration.name_changes(deployment):
        away = away + calibration.spread["board"]
    priced = spread(calibration.time.covariance, cycles.sum(axis=0) / totals.sum(), entry.time,
                    weights)
    missing = weights @ (open_sd + away)
    sds = [max(between_sd(network, entry, time=True), priced + missing)]
    sds += [math.hypot(spread(calibration.time.covariance, own / total, entry.time, one),
                       LAYER_SD[deployment.runtime.structure], more) + far if total else 0.0
            for own, total, more, far in zip(cycles, totals, open_sd, away, strict=True)]
    if ((entry.board is None or not entry.time.rows) and not calibration.counted
            and calibration.origin == "shipped" and entry.runtime != UNSEEN_RUNTIME):
        unseen = unseen_prices(board)
        scale = unseen.entry.time.band.up / entry.time.band.up
        sds[0] = min(sds[0], deviate_plainly(prediction, unseen, waiting=waiting)[0][0] * scale)
    return sds, weights, missing / (priced + missing), [totals.sum(), *totals]


def bound_plainly(prediction, calibration):
    """Return (low, high) of time and of energy, of the whole and of each layer; None without.

    Of a prediction of a deployment the calibration was applied to.
    """
    entry, deployment, one = calibration.entry, prediction.deployment, np.ones(1)
    network = deployment.graph.architecture_id
    sds, weights, part_open, _ = deviate_plainly(prediction, calibration)
    policies = replacement_range(deployment)
    lesser = [lower_ends(prediction, calibration, waiting=False)]  # waiting on memories only adds
    if prediction.temperature == "cold":
        lesser.append(lower_ends(predict(deployment), calibration))  # so does filling caches
    times, energies = [], []
    for place, (part, sd, floors) in enumerate(zip(
            [prediction, *prediction.layers], sds, zip(*lesser, strict=True), strict=True)):
        widest = (1.0, 1.0) if place else (policies.low, policies.high)
        band = reach_of(calibration, place, part_open)
        if sd:
            band = dataclasses.replace(band, down=min(band.down, *(
                math.log(part.time_us / floor) / sd for floor in floors if floor)))
        times.append((part.time_us * math.exp(-band.down * sd) * widest[0],
                      part.time_us * math.exp(band.up * sd) * widest[1]))
        least = 0.0 if place else between_sd(network, entry, time=False)
        energies.append(bound_energy(part, calibration, (sd, band),
                                     one if place else weights, least))
    return times, energies


def lower_ends(prediction, calibration, *, waiting=True):
    """Return lower ends in us of the time of the whole and of each layer, alone or unwaited."""
    sds, _, part_open, cycles = deviate_plainly(prediction, calibration, waiting=waiting)
    clock_us = prediction.time_us / prediction.cycles
    return [total * clock_us * math.exp(-reach_of(calibration, place, part_open).down * sd)
            for place, (total, sd) in enumerate(zip(cycles, sds, strict=True))]


def reach_of(calibration, place, part_open):
    """Return how many deviations an interval reaches, of the whole (place 0) or of a layer."""
    band = calibration.entry.time.band.band()
    if place:
        return band if calibration.origin != "shipped" else dataclasses.replace(
            band, down=LAYER_REACH, up=LAYER_REACH)
    # What no row informs goes as far either way as the farther side.
    return dataclasses.replace(band, **{
        side: (1 - part_open) * own + part_open * max(band.down, band.up)
        for side, own in (("down", band.down), ("up", band.up))})


def bound_energy(part, calibration, sure, weights, least):
    """Ends of an energy: those of the time, and of the power besides."""
    learnt, estimate = calibration.entry.energy, calibration.energy
    if learnt is None or estimate is None or not part.energy_uj:
        return None
    terms = dict.fromkeys(ENERGY_PRICES, 0.0)
    for line in part.bill.lines:
        terms[power_of(line.event)] += line.energy_pj
    drawn = np.array(list(terms.values()))
    sd = max(spread(estimate.covariance, drawn / drawn.sum(), learnt, weights), least)
    (time_sd, time), power = sure, learnt.band
    ends = (part.energy_uj * math.exp(-math.hypot(time.down * time_sd, power.down * sd)),
            part.energy_uj * math.exp(math.hypot(time.up * time_sd, power.up * sd)))
    if calibration.entry.powers_are_own:
        return ends
    stated = float((drawn / estimate.factors).sum()) * 1e-6
    return min(ends[0], stated), max(ends[1], stated)


def bound_offloaded_plainly(prediction):
    """Return `bound_plainly` of a prediction of an accelerator."""
    board, graph = prediction.deployment.board, prediction.deployment.executed
    spread = prediction.deployment.runtime.offload.spread
    unsure = {fact.path: fact.rel_sd or 0.0 for fact in board.facts}
    whole, alone = dict.fromkeys(PARTS, 0.0), {}
    variance = spread.network**2
    for epoch in prediction.tasks:
        parts = dict(zip(PARTS, split_time(epoch, board, spread, all(
            graph.layers[i].op in spread.host_known for i in epoch.step.layers)), strict=True))
        total = sum(parts.values())
        variance += (parts["hardware"] / prediction.time_us * spread.task)**2
        alone[epoch.name] = math.hypot(
            spread.schedule, parts["hardware"] / total * spread.task,
            *(time / total * spread.sd(name) for name, time in parts.items())) if total else 0.0
        whole = {name: whole[name] + time for name, time in parts.items()}
    variance += sum((time / prediction.time_us * spread.sd(name))**2
                    for name, time in whole.items())
    sds = [math.sqrt(variance), *(max((alone[name] for name in layer.tasks), default=0.0)
                                  for layer in prediction.layers)]
    times, energies = [], []
    for part, sd in zip([prediction, *prediction.layers], sds, strict=True):
        times.append((part.time_us * math.exp(-spread.reach * sd),
                      part.time_us * math.exp(spread.reach * sd)))
        if not part.energy_uj:
            energies.append(None)
            continue
        relative = sum(line.energy_pj * unsure.get(path_of(line.event, line.place, board), 0.0)
                       for line in part.bill.lines) / (part.energy_uj * 1e6)
        width = math.hypot(spread.reach * sd, 1.645 * math.sqrt(math.log1p(relative**2)))
        energies.append((part.energy_uj * math.exp(-width), part.energy_uj * math.exp(width)))
    return times, energies


def split_plainly(counts, shares):
    """Part counts by shares, in 64ths; the largest share takes what rounding leaves."""
    heir = shares.index(max(shares))

    def part(amount):
        parts = [math.floor(amount * share * EXACT) / EXACT for share in shares]
        parts[heir] = amount - (sum(parts) - parts[heir])
        return parts

    parts = [[] for _ in shares]
    for line in counts.lines:
        for own, occurred, exposed in zip(parts, part(line.occurred), part(line.exposed),
                                          strict=True):
            if occurred or exposed or len(shares) == 1:
                own.append(dataclasses.replace(line, occurred=occurred, exposed=exposed))
    return [Counts(tuple(own)) for own in parts]


def add_time_plainly(bill, board, prices):
    """Add what being powered costs while a bill's time passes: host, its waiting, the idle NPU."""
    npu, host, cycles = board.npu, board.core.clock, bill.clock_cycles()
    passed_us, host_hz = bill_us(bill, board), board.hertz[host]
    npu_us = cycles.get(npu.clock, 0.0) / npu.frequency_hz * 1e6
    quantities = (("sleep", host, npu_us * 1e-6 * host_hz),
                  ("clock_tree", host, passed_us * 1e-6 * host_hz),
                  ("leakage", host, passed_us * 1e3),
                  ("npu_idle", npu.clock, (passed_us - npu_us) * 1e-6 * npu.frequency_hz))
    return Bill((*bill.lines, *(
        BillLine(event=event, place="", operand="", clock=clock, occurred=quantity, exposed=0.0,
                 cycles=0.0, energy_pj=quantity * prices.price(event, "").pj)
        for event, clock, quantity in quantities if quantity)))
