"""Workers: processes with a deadline and a bound on memory, and the queue in front of them.

Turns are fair between addresses. Users of one machine, or behind one proxy, share an address, so
what a request costs decides, too: long ones leave a worker to all others, and of the requests of
one address the newest is next. Requests of clients that left are dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from calibration.collecting.deadline import patient
from hwmodels.file_cache import keep_newest
from hwmodels.files import JsonObject, parse_json
from hwmodels.processes import command_of, environment
from twin.api.live.frames import read_frame, write_frame
from twin.errors import WorkerError

WORKERS = 2
"""That predict: one may simulate while the other prices again."""

MEMORY_BYTES = 2 << 30
"""A worker may take beside its own."""

DEADLINE_S = 90.0
"""Of one request: the largest networks of the zoo take twenty seconds the first time."""

READ_BYTES, READ_S = 1 << 30, 30.0
"""Memory and time of reading an upload: what `tests/fuzz` holds readers to."""

LONG_S = 5.0
"""A request that takes longer is ended while others wait, if nobody waits for its answer; else one
such goes on, and others are started again when that is done."""

MOST_WAITING = 12
"""Requests in the queue; the address with most of them loses its oldest."""

MOST_REMEMBERED = 256
"""Deployments and addresses the queue knows of."""

CLIENT: ContextVar[str] = ContextVar("CLIENT", default="")
"""Address of who asks, of the request this task serves."""


class Worker:
    """A process that answers one request at a time.

    Parameters
    ----------
    memory_bytes : int
        It may take beside its own.
    command : sequence of str, optional
        What is run instead of `twin.api.live.worker`.
    reads_only : bool
        Whether it reads uploads and predicts nothing.
    """

    def __init__(self, folder: Path, memory_bytes: int, command: Sequence[str] | None = None, *,
                 reads_only: bool = False) -> None:
        self.unwanted = threading.Event()
        self._lock = threading.Lock()
        self._command = command or (*command_of("twin.api.live.worker"), str(folder),
                                    str(memory_bytes), "read" if reads_only else "predict")
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: JsonObject, deadline_s: float) -> JsonObject:
        """Return the answer to a request.

        Parameters
        ----------
        request : mapping
            As `twin.api.live.engine.Engine.answer` takes it.
        deadline_s : float
            After which the process is ended; `TWIN_PATIENCE` makes it longer.

        Raises
        ------
        WorkerError
            When it is late, or its process ends over it; the next request begins another.
        """
        with self._lock:
            process = self._begin()
            if self.unwanted.is_set():
                process.kill()  # `kill` may have come before there was a process.
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
            answer: JsonObject = parse_json(frame.decode())
            return answer

    def kill(self) -> None:
        """End what is asked, of whatever thread: it is refused there."""
        self.unwanted.set()
        process = self._process
        if process is not None:
            process.kill()

    def ask_once(self, request: JsonObject, deadline_s: float) -> JsonObject:
        """Return the answer to a request, and end the process."""
        try:
            return self.ask(request, deadline_s)
        finally:
            self.close()

    def close(self) -> None:
        """End the process, where there is one; what it is at is lost."""
        self.kill()
        with self._lock:
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


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A request on its way through the queue.

    Parameters
    ----------
    request : mapping
        As `Worker.ask` takes it.
    about : str or None
        What it is about: who answered that before has it at hand. None: an upload to read.
    number : int
        In order of arrival.
    answer : Future
        Cancelled where the client left.
    started_s : float
        Since when, by the loop's clock.
    is_long : bool
        Whether it was ended for others, and is started again.
    is_ended : bool
        Whether its worker is being ended.
    """

    request: JsonObject
    about: str | None
    client: str
    number: int
    answer: asyncio.Future[JsonObject]
    worker: Worker = field(init=False)
    started_s: float = 0.0
    is_long: bool = False
    is_ended: bool = False


class Pool:
    """Several workers, and whose turn it is; used in one event loop.

    Parameters
    ----------
    workers : sequence of Worker, optional
        That predict; while an upload is read, one of them rests.
    long_s : float
        As `LONG_S`; `TWIN_PATIENCE` makes it longer.
    """

    def __init__(self, folder: Path, workers: Sequence[Worker] = (), *,
                 long_s: float = LONG_S) -> None:
        self.workers = tuple(workers) or tuple(Worker(folder, MEMORY_BYTES) for _ in range(WORKERS))
        self._folder, self._long_s = folder, patient(long_s)
        self._waiting: list[Job] = []
        self._running: dict[Worker, Job] = {}  # By the worker whose place it has, oldest first.
        self._known: OrderedDict[str, Worker] = OrderedDict()
        self._served: OrderedDict[str, int] = OrderedDict()
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def ask(self, request: JsonObject, about: str | None) -> JsonObject:
        """Return the answer of a worker, when it is the client's turn.

        Parameters
        ----------
        request : mapping
            As `Worker.ask` takes it.
        about : str or None
            What it is about: who answered that before has it at hand. None: an upload, read by a
            process of its own, which ends with it.

        Raises
        ------
        WorkerError
            As `Worker.ask`, or when newer requests took its place in the queue.
        """
        job = self._make_job(request, about, CLIENT.get())
        self._waiting.append(job)
        if len(self._waiting) > MOST_WAITING:
            busiest = Counter(each.client for each in self._waiting).most_common(1)[0][0]
            oldest = next(each for each in self._waiting if each.client == busiest)
            oldest.answer.set_exception(WorkerError("busy with newer requests; ask again"))
            self._waiting.remove(oldest)
        self._advance()
        try:
            return await job.answer
        finally:
            if job in self._waiting:
                self._waiting.remove(job)
            self._advance()

    def close(self) -> None:
        """End all processes."""
        self._is_closed = True
        for job in [*self._running.values()]:
            job.worker.close()
        for worker in self.workers:
            worker.close()

    def _advance(self) -> None:
        """Begin what can be, and end what others have waited for too long."""
        if self._is_closed:
            return
        while (found := self._find_next()) is not None:
            self._waiting.remove(found[0])
            self._begin(*found)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        late = self._find_late()
        if late is None:
            return
        loop = asyncio.get_running_loop()
        left_s = late.started_s + self._long_s - loop.time()
        if left_s > 0:
            self._timer = loop.call_later(left_s, self._advance)
        else:
            late.is_ended = True
            late.worker.kill()

    def _find_next(self) -> tuple[Job, Worker] | None:
        """Return the request whose turn it is, and the worker whose place it gets."""
        idle = [worker for worker in self.workers if worker not in self._running]
        if not idle:
            return None
        running = Counter(job.client for job in self._running.values())
        since_s = asyncio.get_running_loop().time() - self._long_s
        taken = sum(job.is_long or job.started_s <= since_s for job in self._running.values())
        for job in sorted(self._waiting, key=lambda job: (
                running[job.client], self._served.get(job.client, -1), job.is_long, -job.number)):
            if self._is_near(job) or (job.is_long and taken and taken >= len(self.workers) - 1):
                continue
            known = self._known.get(job.about or "")
            return job, known if known in idle else idle[0]
        return None

    def _is_near(self, job: Job) -> bool:
        """Whether what a drag is priced from is being made: it waits for that worker."""
        known = self._known.get(job.about or "")
        beside = None if known is None else self._running.get(known)
        return job.request["do"] == "reprice" and beside is not None and beside.about == job.about

    def _find_late(self) -> Job | None:
        """Return what is ended once it is long: others wait, and no worker is left to them."""
        if len(self._running) < len(self.workers) or all(
                job.is_long or self._is_near(job) for job in self._waiting):
            return None
        running = [*self._running.values()]
        if any(job.is_ended or job.request["do"] == "ready" for job in running):
            return None  # Its worker is about to be free.
        abandoned = [job for job in running if job.answer.done()]
        return next(iter(abandoned or [job for job in running[::-1] if not job.is_long]), None)

    def _make_job(self, request: JsonObject, about: str | None, client: str) -> Job:
        return Job(request=request, about=about, client=client, number=next(self._numbers),
                   answer=asyncio.get_running_loop().create_future())

    def _begin(self, job: Job, worker: Worker) -> None:
        loop = asyncio.get_running_loop()
        if job.about is None:
            job.worker = Worker(self._folder, READ_BYTES, reads_only=True)
            answer = partial(job.worker.ask_once, job.request, READ_S)
        else:
            job.worker = worker
            answer = partial(worker.ask, job.request, DEADLINE_S)
            keep_newest(self._known, job.about, worker, MOST_REMEMBERED)
        job.worker.unwanted.clear()
        job.started_s = loop.time()
        self._running[worker] = job
        keep_newest(self._served, job.client, next(self._numbers), MOST_REMEMBERED)
        loop.run_in_executor(None, answer).add_done_callback(partial(self._finish, job, worker))

    def _finish(self, job: Job, worker: Worker, done: asyncio.Future[JsonObject]) -> None:
        del self._running[worker]
        error, was_ended = done.exception(), job.is_ended
        if job.answer.done():
            pass  # Nobody waits for it.
        elif error is None:
            job.answer.set_result(done.result())
        elif job.is_ended and isinstance(error, WorkerError):
            job.is_long, job.is_ended = True, False
            self._waiting.append(job)
        else:
            job.answer.set_exception(error)
        if was_ended and not self._is_closed:  # Starting again is nobody's time.
            self._begin(self._make_job({"do": "ready"}, "", ""), worker)
        self._advance()
