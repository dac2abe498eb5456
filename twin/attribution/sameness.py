"""Whether two sides are of the same network, board and set-up."""

from __future__ import annotations

from twin.attribution.sides import Side
from twin.errors import UsageError


def check_same(predicted: Side, measured: Side) -> None:
    """Refuse sides that are swapped, or of other networks or boards."""
    if not predicted.predicted and measured.predicted:
        raise UsageError("the arguments are swapped: the prediction comes first, the measurement "
                         f"second: twin attribute {measured.label} {predicted.label}")
    if not predicted.predicted:
        raise UsageError(f"{predicted.label} is {predicted.kind}; the first argument is a "
                         "prediction. Two measurements are compared by `twin diff`")
    if measured.predicted:
        raise UsageError(f"{measured.label} is a prediction; the second argument is a "
                         "measurement. Two predictions are compared by `twin diff`")
    check_same_network(predicted, measured)
    if predicted.board != measured.board:
        raise UsageError(f"{measured.label} was taken on {measured.board}, the prediction is of "
                         f"{predicted.board}; predict with -b {measured.board}")



def check_same_network(first: Side, second: Side) -> None:
    """Refuse other networks: by hash, by architecture, by parts."""
    ids = (first.architecture_id, second.architecture_id)
    hashes = (first.model_sha256, second.model_sha256)
    for what, (one, other) in (("architecture", ids), ("model file", hashes)):
        if one and other:
            if one == other:
                return
            if what == "architecture":
                raise UsageError(f"{second.label} is of {second.model!r} (architecture {other}), "
                                 f"the prediction of {first.model!r} ({one}): other networks are "
                                 "not set side by side")
    if first.part == second.part and second.parts:
        known = {part.index for part in first.parts}
        strange = [part.index for part in second.parts if part.index not in known]
        if strange:
            raise UsageError(f"{second.label} has {second.part} {strange[0]}, the prediction of "
                             f"{first.model!r} has {len(first.parts)} of them: other networks are "
                             "not set side by side")



def compare_setups(predicted: Side, measured: Side) -> list[str]:
    """Say where a measurement's set-up is not the prediction's."""
    notes = []
    if predicted.model_sha256 and measured.model_sha256 \
            and predicted.model_sha256 != measured.model_sha256:
        notes.append("the model files differ (same architecture): other weights")
    elif not measured.model_sha256:
        notes.append(f"the measurement names no model file: that it is {predicted.model!r} is "
                     "taken from its layers only")
    if predicted.runtime != measured.runtime and (
            predicted.runtime.partition("@")[0] != measured.runtime):
        notes.append(f"predicted for {predicted.runtime}, measured with {measured.runtime}: other "
                     "kernels, their difference is part of every gap")
    if measured.temperature and predicted.temperature != measured.temperature:
        notes.append(f"predicted {predicted.temperature}, measured {measured.temperature}")
    for name, hertz in predicted.clocks_hz.items():
        other = measured.clocks_hz.get(name)
        if other is not None and abs(other / hertz - 1) > 1e-3:
            notes.append(f"clock {name}: predicted at {hertz / 1e6:g} MHz, the board says "
                         f"{other / 1e6:g} MHz")
    for role, memory in predicted.placement.items():
        other_memory = measured.placement.get(role)
        if other_memory is not None and other_memory != memory:
            notes.append(f"{role}: predicted in {memory}, measured in {other_memory}")
    return notes

