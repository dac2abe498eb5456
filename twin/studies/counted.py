"""The process an interpreter runs a network in: what a file does to it ends with it.

Reads a pickled request of its parent from stdin; writes a JSON document to stdout.
"""

from __future__ import annotations

import json
import pickle

import numpy as np

from hwmodels.errors import TwinError, tell_in_one_line
from hwmodels.processes import limit_memory, take_request
from twin.studies.accuracy import open_litert, open_onnx, store_input

MEMORY_BYTES = 1 << 30
"""It may take beside its own and ten times what it is given."""


def main() -> None:
    """Serve the one request there is."""
    asked, answers = take_request()
    try:
        kind, content, data, entry = pickle.loads(asked)
        limit_memory(MEMORY_BYTES + 10 * len(asked))
        if kind == "onnx":
            run, by, entry = open_onnx(content)
        else:
            run, by = open_litert(content)
        right = sum(int(np.argmax(run(store_input(one, entry)))) == int(label)
                    for one, label in zip(data.inputs, data.labels, strict=True))
        answer = {"right": right, "by": by}
    except TwinError as error:
        answer = {"refused": type(error).__name__, "why": str(error)}
    except MemoryError:
        answer = {"refused": "NotApplicableError", "why": "takes more memory than is given to it"}
    except Exception as error:  # whatever an interpreter raises over a file
        answer = {"refused": "NotApplicableError", "why": tell_in_one_line(
            f"the interpreter does not run it: {error}")}
    json.dump(answer, answers)
    answers.flush()


if __name__ == "__main__":
    main()
