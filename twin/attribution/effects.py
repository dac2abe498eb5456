"""What a what-if did not do, or did against expectation, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hwmodels.errors import TwinError
from hwmodels.quantities import Settings
from twin.pricing.prediction import Prediction


def list_effects(before: Prediction, after: Prediction, changes: Settings,
                 predict_with: Callable[[Settings], Prediction]) -> Iterator[str]:
    """Yield the warnings of a what-if.

    Parameters
    ----------
    before, after
        Without and with all changes.
    changes
        Dotted path to value.

    Yields
    ------
    str
        Paths that change nothing; more units that come out slower, fewer that come out faster.
    """
    def does_nothing(path: str) -> bool:
        if len(changes) == 1:
            return same_result(before, after)
        others = {other: value for other, value in changes.items() if other != path}
        try:
            return same_result(predict_with(others), after)
        except TwinError:
            return False  # Without it the others are refused.

    for path in filter(does_nothing, changes):
        yield (f"no effect: {path}={changes[path]} changes nothing here"
               + _explain_idle(path, before, after))
    yield from _explain_units(before, after, changes)


def same_result(one: Prediction, other: Prediction) -> bool:
    """Whether two predictions say the same of time, energy and memory."""
    return (one.bill == other.bill and one.setup == other.setup
            and one.time_us == other.time_us
            and (one.ram_bytes, one.flash_bytes) == (other.ram_bytes, other.flash_bytes))


def _explain_idle(path: str, before: Prediction, after: Prediction) -> str:
    """Why a path may do nothing, where that is known."""
    deployment = after.deployment
    values = [next((fact.value for fact in prediction.board.facts
                    if fact.path == path), None) for prediction in (before, after)]
    places = [getattr(prediction.deployment, path.removeprefix("placement."), None)
              for prediction in (before, after)]
    if path.startswith("placement.") and places[0] != places[1]:
        return f": no time is spent in {places[0]} or {places[1]} for it"
    if (path.startswith("placement.") or (values[0] is not None and values[0] == values[1])
            or (path.startswith("npu.")
                and before.board.npu == after.board.npu)):
        return ": it is that already"
    if path.startswith("npu.") and not after.tasks:
        return f": {deployment.runtime.identity} does not use the NPU"
    if path == "offload.host":
        return ": what it names is on the host already, or moves no data"
    if path.startswith("npu.cache"):
        return ": every byte in its reach is read once and in order"
    most = _most_used(path, after)
    if most is not None:
        return f": no {after.compiler.task_name} uses more than {most}"
    if path.startswith("npu.pools.") and deployment.accelerated:
        name = path.split(".")[2]
        return ("" if name in dict(deployment.plan.used)
                else f": nothing but weights, if at all, is in {name}")
    return ""


def _most_used(path: str, prediction: Prediction) -> int | None:
    """Engines, or units of a kind, of the task that uses most; None for other paths."""
    tasks = [task.run.task for task in prediction.tasks]
    if path == "npu.engines":
        return max((len(task.transfers) for task in tasks), default=0)
    parts = path.split(".")
    if parts[:2] != ["npu", "units"] or parts[-1] != "count":
        return None
    return max((sum(unit.count for unit in task.units if unit.kind == parts[2])
                for task in tasks), default=0)


def _explain_units(before: Prediction, after: Prediction, changes: Settings) -> Iterator[str]:
    if not before.tasks or not after.tasks or after.time_us == before.time_us:
        return
    old, new = before.board.accelerator, after.board.accelerator
    slower = after.time_us > before.time_us
    for unit in old.units:
        more = new.unit(unit.kind).count > unit.count
        changed = (f"npu.units.{unit.kind}.count" in changes
                   and new.unit(unit.kind).count != unit.count)
        if changed and more == slower:
            core, handed = (_part_us(after, part) - _part_us(before, part)
                            for part in ("npu_us", "hand_over_us"))
            yield (f"{'more' if more else 'fewer'} {unit.kind} come out "
                   f"{'slower' if slower else 'faster'}: the NPU takes {core:+.1f} us, the host "
                   f"{handed:+.1f} us to set units up; the compiler uses the units there are and "
                   "does not count that")


def _part_us(prediction: Prediction, part: str) -> float:
    coverage = prediction.coverage
    return 0.0 if coverage is None else float(getattr(coverage, part))
