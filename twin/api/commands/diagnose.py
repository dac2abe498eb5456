"""`twin diagnose`: which fault of a set-up explains a measurement."""

from __future__ import annotations

from dataclasses import replace
from os import fspath

from calibration.measurement.measurement import INFERRED, STATED
from twin.api.requests import takes
from twin.api.requests.attribution import Diagnose
from twin.attribution.compatibility import agree, describe_unstated_clock
from twin.attribution.diagnosis import diagnosis
from twin.attribution.diagnosis.again import find_changes
from twin.attribution.diagnosis.counted import weigh_counters
from twin.attribution.diagnosis.finding import Diagnosis
from twin.attribution.diagnosis.marks import clock_hz_of
from twin.attribution.diagnosis.setup import (
    choose_prices,
    deploy_measured,
    is_stand_in,
    other_clock,
    read_healthy,
    read_second,
    unread_build,
)
from twin.attribution.diagnosis.why import Why
from twin.attribution.lower_bound import find_impossible
from twin.attribution.measured import read_folder, side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.deployment.stated import is_known
from twin.errors import UsageError
from twin.pricing.inference import predict


@takes(Diagnose)
def diagnose(asked: Diagnose) -> Diagnosis | Why:
    """Weigh which fault of the set-up explains a measurement.

    Raises
    ------
    UsageError
        For a prediction, or an accelerator none of whose counters was measured.
    """
    measurement, where = read_folder(fspath(asked.folder))
    if measurement.header.kind == "predicted":
        raise UsageError(f"{where} holds a prediction; a measurement is diagnosed")
    right, other_image = read_healthy(asked.healthy, measurement, where)
    also, beside = read_second(asked.also, measurement, where)
    deployment, stand_in = deploy_measured(
        measurement, where, *beside, model=asked.model, board=asked.board, runtime=asked.runtime,
        weights=asked.weights, arena=asked.arena, clock_hz=asked.clock_hz)
    if deployment.accelerated:
        if given := [name for name in ("healthy", "also", "priors") if getattr(asked, name)]:
            raise UsageError(f"--{given[0].removesuffix('s')}: counters of an accelerator are "
                             "weighed by themselves; accepted: none of --healthy, --also, --prior")
        counted = weigh_counters(deployment, measurement, fspath(asked.calibration))
        if counted is None:
            raise UsageError(f"{deployment.runtime.identity} runs on an accelerator, and {where} "
                             "has no counters of its PMU: `twin why MODEL -b BOARD --measured "
                             "TIME` weighs causes, `twin attribute` sets epochs side by side")
        return counted
    stands_in = is_stand_in(deployment, measurement)
    chosen = choose_prices(deployment, measurement, fspath(asked.calibration))
    if chosen is not None and chosen.rests_on(where, measurement.sha256):
        raise UsageError(f"--calibration {fspath(asked.calibration)} was learnt from {where}: its "
                         "faults are in the prices, so that none would show; accepted: prices "
                         "learnt from other measurements, or --calibration auto or none")
    header = measurement.header
    stated = replace(measurement, header=replace(header, runtime=(
        header.facts.get(STATED, header.runtime) if asked.runtime is None else
        header.runtime if is_known(header.runtime) else deployment.runtime.identity)))
    found = diagnosis.diagnose(deployment, stated, stands_in=stands_in, calibration=chosen,
                               healthy=right, priors=asked.priors, on_progress=asked.on_progress,
                               also=also)
    unstated = "" if also is None else describe_unstated_clock(
        clock_hz_of(deployment), also.header.clocks,
        clock_hz_of(deployment.replace(find_changes(deployment, also, measurement))))
    findings = agree(side_of_prediction(predict(deployment)),
                     side_of_measurement(measurement, str(where)))
    other = unread_build(deployment, measurement)
    clock = "" if asked.clock_hz is not None else other_clock(deployment, measurement, asked.board)
    impossible = None if stands_in else find_impossible(
        deployment, measurement.list_cycles(clock_hz_of(deployment)))
    hiding = asked.runtime is None and INFERRED in measurement.header.facts
    return replace(found.of_inferred() if hiding else found, remarks=(
        *found.remarks, *filter(None, (stand_in, other, other_image, str(impossible or ""), clock)),
        *([f"--also {asked.also}: clock cpu: {unstated}"] if unstated else []), *map(str, findings),
        *([f"calibrated: {chosen.description}"] if chosen else [])))
