"""Which MobileNet: width, depth and resolution under limits of RAM and energy, by Optuna.

    python examples/search_mobilenet.py [TRIALS [BOARD]]

Accuracy is not predicted: `capacity` stands in for it. Put what you train and measure there.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import optuna

import twin
from twin.network.zoo.networks import MOBILENET_V1_DEPTHS, mobilenet_v1

MAX_RAM_BYTES, MAX_ENERGY_MJ = 64 * 1024, 8.0
"""What the application leaves of the board's RAM, and of its battery for each inference."""

BATCH = 8
"""Networks asked for at a time: one call of `predict_many`."""


def build(trial: Any, board: str) -> twin.Deployment | None:
    """Return the deployment a trial suggests; None where it does not fit the board."""
    width = trial.suggest_categorical("width", [0.125, 0.25, 0.375, 0.5, 0.75, 1.0])
    blocks = trial.suggest_int("blocks", *MOBILENET_V1_DEPTHS)
    side = trial.suggest_int("side", 48, 160, step=16)
    graph = mobilenet_v1(f"mobilenet_{width}_{blocks}_{side}", width, side, 2, blocks=blocks)
    try:
        return twin.deploy(graph, board)
    except twin.TwinError:
        return None


def capacity(asked: dict[str, float]) -> float:
    """Return a stand-in for accuracy, no more: it grows with each of the three."""
    return asked["width"] * asked["blocks"] * asked["side"]


def search(trials: int, board: str) -> dict[tuple[float, ...], tuple[float, float, int]]:
    """Return ms, mJ and bytes of RAM of every network asked for that fits, by what was asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Optuna 4 knows no other way.
        sampler = optuna.samplers.NSGAIISampler(
            seed=0, population_size=2 * BATCH, constraints_func=lambda one: one.user_attrs["over"])
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    known: dict[tuple[float, ...], tuple[float, float, int]] = {}
    for _ in range(0, trials, BATCH):
        asked = [study.ask() for _ in range(BATCH)]
        built = {tuple(one.params.values()): made for one in asked
                 if (made := build(one, board)) is not None}
        new = {params: made for params, made in built.items() if params not in known}
        batch = twin.predict_many(list(new.values()))
        known |= {params: (float(batch.time_us[row]) / 1e3, float(batch.energy_uj[row]) / 1e3,
                           int(batch.ram_bytes[row])) for row, params in enumerate(new)}
        for trial in asked:
            found = known.get(tuple(trial.params.values()))
            trial.set_user_attr("over", [1.0, 1.0] if found is None else [
                found[1] / MAX_ENERGY_MJ - 1, found[2] / MAX_RAM_BYTES - 1])
            if found is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, [capacity(trial.params), found[1]])
    return known


def is_met(found: tuple[float, float, int]) -> bool:
    """Whether a network meets the limits."""
    return found[1] <= MAX_ENERGY_MJ and found[2] <= MAX_RAM_BYTES


def list_front(known: dict[tuple[float, ...], tuple[float, float, int]],
               ) -> list[tuple[tuple[float, ...], tuple[float, float, int]]]:
    """Return the networks that meet the limits and that none of more capacity beats in energy."""
    front: list[tuple[tuple[float, ...], tuple[float, float, int]]] = []
    names = ("width", "blocks", "side")
    met = [item for item in known.items() if is_met(item[1])]
    for item in sorted(met, key=lambda one: -capacity(dict(zip(names, one[0], strict=True)))):
        if not front or item[1][1] < front[-1][1][1]:
            front.append(item)
    return front


def main(trials: int = 120, board: str = "nucleo_l4r5zi") -> None:
    """Print the front of the networks that meet the limits."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    known = search(trials, board)
    front = list_front(known)
    print(f"{board}: {len(known)} networks predicted, {sum(map(is_met, known.values()))} meet "
          f"{MAX_RAM_BYTES // 1024} KiB and {MAX_ENERGY_MJ:g} mJ; the front:")
    print("width  blocks  side      ms    mJ    KiB")
    for (width, blocks, side), (time_ms, energy_mj, ram_bytes) in front:
        print(f"{width:5}  {blocks:6}  {side:4}  {time_ms:6.1f}  {energy_mj:4.2f}  "
              f"{ram_bytes / 1024:5.0f}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]), *sys.argv[2:3])
