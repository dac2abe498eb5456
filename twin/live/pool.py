"""Workers: processes that are given a deadline and a bound on memory, and begun again when lost."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibration.collecting.deadline import patient
from hwmodels.files import parse_json
from hwmodels.processes import command_of, environment
from twin.errors import WorkerError
from twin.live.frames import read_frame, write_frame

WORKERS = 2
"""That predict: one may simulate while the other prices again."""

MEMORY_BYTES = 2 << 30
"""A worker may take beside its own."""

DEADLINE_S = 90.0
"""Of one request: the largest networks of the zoo take twenty seconds the first time."""

READ_BYTES, READ_S = 1 << 30, 30.0
"""Memory and time of reading an upload: what `tests/fuzz` holds readers to."""


class Worker:
    """A process that answers one request at a time.

    Parameters
    ----------
    folder : Path
        Of uploads.
    memory_bytes : int
        It may take beside its own.
    command : sequence of str, optional
        What is run instead of `twin.live.worker`.
    reads_only : bool
        Whether it reads uploads and predicts nothing.
    """

    def __init__(self, folder: Path, memory_bytes: int, command: Sequence[str] | None = None, *,
                 reads_only: bool = False) -> None:
        self.lock = threading.Lock()
        self._command = command or (*command_of("twin.live.worker"), str(folder),
                                    str(memory_bytes), "read" if reads_only else "predict")
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: Mapping[str, Any], deadline_s: float) -> dict[str, Any]:
        """Return the answer to a request.

        Parameters
        ----------
        request : mapping
            As `twin.live.engine.Engine.answer` takes it.
        deadline_s : float
            After which the process is ended; `TWIN_PATIENCE` makes it longer.

        Raises
        ------
        WorkerError
            When it is late, or its process ends over it; the next request begins another.
        """
        with self.lock:
            process = self._begin()
            late = threading.Event()

            def end() -> None:
                late.set()
                process.kill()

            timer = threading.Timer(patient(deadline_s), end)
            timer.daemon = True
            timer.start()
            assert process.stdin is not None and process.stdout is not None
            try:
                write_frame(process.stdin, json.dumps(request).encode())
                frame = read_frame(process.stdout)
            except OSError:
                frame = None
            finally:
                timer.cancel()
            if frame is None:
                self._end()
                raise WorkerError("took more time than is given to it, and was ended"
                                  if late.is_set() else
                                  "took more memory than is given to it, or ended its process")
            answer: dict[str, Any] = parse_json(frame.decode())
            return answer

    def close(self) -> None:
        """End the process, where there is one; what it is at is lost."""
        process = self._process
        if process is not None:
            process.kill()
        with self.lock:
            self._end()

    def _begin(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, cwd=self._folder, start_new_session=True,
                env=environment())
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class Pool:
    """Several workers; one that knows a deployment is asked about it again.

    Parameters
    ----------
    folder : Path
        Of uploads.
    workers : int
        Processes at most.
    """

    def __init__(self, folder: Path, workers: int = WORKERS) -> None:
        self._folder = folder
        self._workers = tuple(Worker(folder, MEMORY_BYTES) for _ in range(workers))
        self._known: OrderedDict[str, Worker] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, request: Mapping[str, Any], about: str) -> dict[str, Any]:
        """Return the answer of a worker.

        Parameters
        ----------
        request : mapping
            As `Worker.ask` takes it.
        about : str
            What it is about: who answered that before has it at hand.
        """
        with self._lock:
            worker = self._known.get(about) or self._choose()
            if request["do"] != "reprice" and worker.lock.locked():
                worker = self._choose()
            self._known[about] = worker
            self._known.move_to_end(about)
            while len(self._known) > 256:
                self._known.popitem(last=False)
        return worker.ask(request, DEADLINE_S)

    def read(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have an upload read by a process of its own, which ends with it."""
        worker = Worker(self._folder, READ_BYTES, reads_only=True)
        try:
            return worker.ask(request, READ_S)
        finally:
            worker.close()

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.close()

    def _choose(self) -> Worker:
        """Return an idle worker, else the one asked least lately."""
        idle = [one for one in self._workers if not one.lock.locked()]
        if idle:
            return idle[0]
        recent = list(self._known.values())[::-1]
        return max(self._workers, key=lambda one: recent.index(one) if one in recent
                   else len(recent))
