"""What each verb does, in a line: the help of `twin` lists verbs it does not load."""

from __future__ import annotations

from collections.abc import Mapping

SUMMARIES: Mapping[str, str] = {
    "predict": "Predict cycles, time and energy per layer, and say why; of several a row each.",
    "whatif": "Predict before and after a change, and say which causes moved.",
    "transform": "Change a network and write it, or list what could be changed of it on a board.",
    "cache": "Show what a network's accesses meet in the data caches, layer by layer.",
    "port": "Predict for a board nobody measured: physics first, what other boards taught second.",
    "check": "Say whether models fit boards and meet limits.",
    "advise": "Find the cheapest change that meets limits; exit 1 where none does.",
    "accuracy": "Measure how often a network is right on your data, before and after changes.",
    "sweep": "Predict every combination of models, boards and settings; mark the Pareto front.",
    "select": "Rank boards and libraries for networks; exit 1 where none meets the limits.",
    "scenario": "Run a device over time: duty cycle, sleep, deadlines, heat, a battery.",
    "plan": "Rank micro-benchmarks by how much they would narrow a prediction; name the best two.",
    "measure": "Measure a network on a board, or on this machine (-b host): raw samples and "
               "what they say.",
    "import": "Read a log of a public tool into a measurement folder.",
    "energy": "Integrate a recording over the marks of the board; intervals say what the "
              "meter can tell.",
    "firmware": "Build the image of a network, flash it, run it, compare compilers.",
    "compare": "Set predictions beside published results, or beside a measurement.",
    "attribute": "Set a prediction beside a measurement: gaps per layer, by cause, and what "
                 "explains them.",
    "diagnose": "Rank misconfigurations by how well they explain the whole pattern over layers.",
    "diff": "Compare two predictions, or two measurements: what changed, and the cause of "
            "each change.",
    "calibrate": "Learn prices from measurements and write them as an overlay.",
    "boards": "List the boards (--virtual: the emulators), show one (`twin boards NAME "
              "--sources`: with its sources), or describe a new one.",
    "runtimes": "List the runtimes, or show one with every number and its source.",
    "models": "List the networks of the zoo, or export one.",
    "explain": "Explain a term of the reports; without one, list them.",
}
"""Beginning of each verb's own help; one without a line here is loaded for it."""
