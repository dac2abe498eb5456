"""emlearn: dense layers in plain C, in float; a layer's activation is a loop behind its products.

References
----------
emlearn/emlearn 578d89d, emlearn/eml_net.h.
"""

from twin.runtimes.counted.terms.nnom import describe_layer
from twin.runtimes.counted.work import Terms

TERMS: Terms = dict.fromkeys(
    ("fully_connected", "relu", "logistic", "tanh", "softmax"), describe_layer)
