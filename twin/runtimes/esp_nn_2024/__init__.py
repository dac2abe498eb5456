"""ESP-NN 1.1.0 to 1.2.0: generic C, and vectors of the ESP32-P4 in convolutions without padding.

References
----------
espressif/esp-nn v1.1.0 (562ffb4), v1.2.0: include/esp_nn_esp32p4.h says which code an operator has.
"""

from __future__ import annotations

from functools import partial

from hwmodels.kernel import Lowered
from twin.errors import RuntimeRefusedError
from twin.runtimes.esp_nn.others import SOFTMAX
from twin.runtimes.esp_nn.windows import KERNELS as WINDOWS
from twin.runtimes.esp_nn.windows import lower_conv_p4
from twin.runtimes.esp_nn_ansi.kernels import KERNELS as ANSI
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site


def _refuse(site: Site) -> Lowered:
    raise RuntimeRefusedError(f"layer {site.layer.name}: the ESP32-S3's assembly of this release "
                              "was not counted; accepted: --runtime esp-nn@1.2.3")


_S3: Codes = {"pie": Lowering(lower=_refuse)}

KERNELS: Kernels = {
    "add": {**ANSI["add"], **_S3},
    "average_pool_2d": {**ANSI["average_pool_2d"], **_S3},
    "conv_2d": {**WINDOWS["conv_2d"], "xesp": Lowering(lower=partial(lower_conv_p4, True)), **_S3},
    "depthwise_conv_2d": {"c": WINDOWS["depthwise_conv_2d"]["c"], **_S3},
    "fully_connected": {**ANSI["fully_connected"], **_S3},
    "max_pool_2d": {**ANSI["max_pool_2d"], **_S3},
    "mul": {**ANSI["mul"], **_S3},
    "relu6": {**ANSI["relu6"], **_S3},
    "softmax": {"c": SOFTMAX["c"], **_S3},
}
