"""TFLite Micro's audio front end: window, Fourier transform, filter bank, gain; plain C.

Each is a loop over one kind of element. Instructions of an element are the mean of the functions
below, compiled by gcc 12.2 -O2 and run on the micro_speech shapes; a square root's depend on its
data, which had 40 bits. The transform of n real values is kiss_fft's: n / 2 complex points in
stages of radix 4.

References
----------
tensorflow/tflite-micro, signal/src: ApplyWindow, FftAutoScale, SpectrumToEnergy,
FilterbankAccumulateChannels, FilterbankSqrt, FilterbankSpectralSubtraction,
ApplyPcanAutoGainControlFixed, FilterbankLog; mborgerding/kissfft, kiss_fftr.
"""

from __future__ import annotations

import math

from hwmodels.kernel import Lowered
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import block, plain
from twin.runtimes.reference.detection import read_all, write_all
from twin.runtimes.reference.sequences import COUNTS, Machine

_COUNTS = COUNTS["signal"]


def _count_elements(site: Site) -> int:
    """Return how often the innermost loop runs."""
    if site.op == "signal_filter_bank":
        return site.input(1).elements
    size = site.writes[0].elements
    points = size // 2 - 1
    return size if site.op != "signal_rfft" else points * max(1, math.ceil(math.log(points, 4)))


def _lower(site: Site) -> Lowered:
    machine = Machine(plain(site.dialect), "int16", site=site)
    names = [f"input{place + 1}" if place else "input" for place in range(len(site.layer.inputs))]
    return machine.kernel(
        site.op, "elementwise", (20, 12, 40),
        block("element", machine.loop(_COUNTS[site.op]), _count_elements(site), 1),
        *read_all(site.graph, site.layer.inputs, names), *write_all(site), assumed=True)


_CODE: Codes = {"c": Lowering(lower=_lower)}

KERNELS: Kernels = {
    "signal_window": _CODE,
    "signal_fft_auto_scale": _CODE,
    "signal_rfft": _CODE,
    "signal_energy": _CODE,
    "signal_filter_bank": _CODE,
    "signal_filter_bank_square_root": _CODE,
    "signal_filter_bank_spectral_subtraction": _CODE,
    "signal_pcan": _CODE,
    "signal_filter_bank_log": _CODE,
}
