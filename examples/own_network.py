"""A network of one's own, from TFLite file to bill: where its time goes, and what would change it.

    python examples/own_network.py network.tflite nucleo_h7a3zi_q
"""

from __future__ import annotations

import sys

import twin

PATHS = {"weights in RAM": {"placement.weights": "sram"},
         "data cache off": {"caches.l1d.enabled": "false"},
         "data cache twice as large": {"caches.l1d.size_bytes": "32KiB"}}


def main(model: str, board: str) -> None:
    """Print the three most expensive layers and the effect of three changes."""
    deployment = twin.deploy(model, board)
    before = twin.predict(deployment)
    print(f"{before.time_us / 1e3:.2f} ms on {board} with {deployment.runtime.identity}")
    for layer in sorted(before.layers, key=lambda layer: -layer.time_us)[:3]:
        print(f"  {layer.index:3} {layer.op:20} {layer.time_us / before.time_us:6.1%}  "
              f"{layer.largest_cause}, {layer.bound}-bound")
    for name, changes in PATHS.items():
        try:
            after = twin.predict(deployment.replace(changes))
        except twin.TwinError as refusal:
            print(f"  {name}: {refusal}")
            continue
        print(f"  {name}: {after.time_us / before.time_us - 1:+.1%}")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ("ic", "nucleo_h7a3zi_q")))
