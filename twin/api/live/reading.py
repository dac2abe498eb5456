"""What a process does that only reads what was uploaded: it loads little else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hwmodels.errors import TwinError
from hwmodels.files import JsonObject
from twin.api.live.state import GONE, is_upload, tell_board
from twin.errors import UsageError
from twin.network.operators import graph_macs
from twin.network.readers import read_model

Operation = Callable[[JsonObject], JsonObject]


class Reader:
    """Answers requests about uploads, one at a time.

    Parameters
    ----------
    folder : Path
        Of what was uploaded: a folder for each SHA-256, with one file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def operations(self) -> Mapping[str, Operation]:
        """Return what can be asked, by name."""
        return {"ready": lambda _: {}, "model": self.read_model, "board": self.read_board}

    def answer(self, request: JsonObject) -> JsonObject:
        """Answer one request; what is refused is an answer, too.

        Parameters
        ----------
        request : mapping
            "do": an operation, and what it needs.
        """
        try:
            return {"found": self.operations()[request["do"]](request)}
        except TwinError as error:
            return {"refused": self._hide(str(error)), "kind": type(error).__name__,
                    **self.tell_beside(request)}
        except MemoryError:
            return {"refused": "takes more memory than is given to it", "kind": "WorkerError"}
        except RecursionError:
            return {"refused": "is nested too deep", "kind": "ModelError"}

    def tell_beside(self, request: JsonObject) -> JsonObject:
        """Return what the page shows beside a refusal."""
        return {}

    def read_model(self, request: JsonObject) -> JsonObject:
        """Read a model that was uploaded, and say what it is."""
        graph = read_model(self.find(request["name"]))
        return {"name": graph.name, "layers": len(graph.layers), "macs": graph_macs(graph)}

    def read_board(self, request: JsonObject) -> JsonObject:
        """Read a board that was uploaded, and say what it is."""
        return tell_board(self.find(request["name"]))

    def find(self, name: str) -> str:
        """Return the file of an upload; other names as they are."""
        if not is_upload(name):
            return name
        files = sorted((self.folder / name.partition(":")[2]).glob("*"))
        if not files:
            raise UsageError(GONE)
        return str(files[0])

    def _hide(self, message: str) -> str:
        """Return a message without the folder of uploads."""
        for one in self.folder.glob("*"):
            message = message.replace(f"{one}/", "")
        return message.replace(str(self.folder), "uploads")
