"""Who holds which slot; and the door at which a program that an agent runs waits for one (slot.py).

A connection is a claim: it is answered with one byte when there is a slot, and the slot is free again when it ends,
whatever ended the program.
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pipeline import account, process
from pipeline.model import VALIDATION


class Slots:
    """Who holds which slot. Worker threads ask too, for extra ones."""

    def __init__(self, capacity: Mapping[str, int], freed: Callable[[], None]) -> None:
        """freed: called, in the thread that held it, when an extra slot is free again."""
        self.lock = threading.RLock()
        self._free = {pool: set(range(slots)) for pool, slots in capacity.items()}
        self._queue: dict[str, deque[queue.SimpleQueue[int]]] = {pool: deque() for pool in capacity}
        self._capacity, self._freed, self._closed = capacity, freed, False
        self._spare: dict[str, list[int]] = {pool: [] for pool in capacity}  # indices beyond the capacity, not in use
        self._numbers = dict(capacity)  # how many indices there are

    def in_use(self) -> dict[str, int]:
        with self.lock:
            return {pool: slots - len(self._free[pool]) for pool, slots in self._capacity.items()}

    def take(self, pool: str) -> int | None:
        """The lowest free index, None if there is none."""
        with self.lock:
            index = min(self._free[pool], default=None)
            if index is not None:
                self._free[pool].remove(index)
            return index

    def give(self, pool: str, index: int) -> None:
        """To who waits outside first: a draft that holds a slot of its own cannot go on without."""
        with self.lock:
            if self._queue[pool] and not self._closed:
                self._queue[pool].popleft().put(index)
            else:
                self._free[pool].add(index)

    @contextlib.contextmanager
    def waited_for(self, pool: str, gone: Callable[[], bool]) -> Iterator[bool]:
        """Hold a slot once there is one; False where who asked has gone, or the run is stopping, before that."""
        index = self._waited(pool, gone)
        if index is None:
            yield False
        else:
            with self._held(pool, index):
                yield True

    def _waited(self, pool: str, gone: Callable[[], bool]) -> int | None:
        mine: queue.SimpleQueue[int] = queue.SimpleQueue()
        with self.lock:
            index = None if self._closed else self.take(pool)
            if index is not None:
                return index
            self._queue[pool].append(mine)
        with account.span("wait", f"a slot of {pool}"):
            while index is None and not self._closed and not gone():
                with contextlib.suppress(queue.Empty):
                    index = mine.get(timeout=0.1)
        if index is None:
            with self.lock:  # it may have come just now
                with contextlib.suppress(queue.Empty):
                    index = mine.get_nowait()
                if index is None:
                    with contextlib.suppress(ValueError):
                        self._queue[pool].remove(mine)
        return index

    @contextlib.contextmanager
    def lent(self, pool: str) -> Iterator[None]:
        """Who lends its slot keeps the index: another one goes round meanwhile, and that or any is taken back."""
        with account.span("lent", pool):
            with self.lock:
                if not self._spare[pool]:
                    self._spare[pool].append(self._numbers[pool])
                    self._numbers[pool] += 1
                self.give(pool, self._spare[pool].pop())
            self._freed()
            try:
                yield
            finally:
                index = self._waited(pool, lambda: False)
                if index is None:
                    raise process.Stopped("waiting for a slot")
                with self.lock:
                    self._spare[pool].append(index)

    @contextlib.contextmanager
    def extra(self, pool: str) -> Iterator[bool]:
        index = None if self._closed else self.take(pool)
        if index is None:
            yield False
        else:
            with self._held(pool, index):
                yield True

    @contextlib.contextmanager
    def _held(self, pool: str, index: int) -> Iterator[None]:
        """A slot beside that of the task."""
        try:
            with account.span("extra", pool):
                yield
        finally:
            self.give(pool, index)
            self._freed()

    def close(self) -> None:
        """No more extra ones: the run is stopping."""
        self._closed = True


@contextlib.contextmanager
def opened(slots: Slots, folder: Path) -> Iterator[str]:
    """Serve slots of validation at a socket in `folder`; gives its path."""
    path = folder / "slots"
    closing = threading.Event()

    def served(claim: socket.socket) -> None:
        _serve(slots, claim, closing)

    serve = account.carried(served)
    serving: list[threading.Thread] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(0.2)

        def accept() -> None:
            while not closing.is_set():
                with contextlib.suppress(TimeoutError):
                    claim, _ = server.accept()
                    serving.append(threading.Thread(target=serve, args=(claim,), name="slot"))
                    serving[-1].start()

        accepting = threading.Thread(target=accept, name="door")
        accepting.start()
        try:
            yield str(path)
        finally:
            closing.set()
            for thread in (accepting, *serving):
                thread.join()
            path.unlink(missing_ok=True)


def _serve(slots: Slots, claim: socket.socket, closing: threading.Event) -> None:
    def gone() -> bool:
        return closing.is_set() or bool(select.select([claim], [], [], 0)[0])  # it says nothing: what comes is its end

    with claim, slots.waited_for(VALIDATION, gone) as held, contextlib.suppress(OSError):
        if held:
            claim.sendall(b"+")
            while not closing.is_set() and not select.select([claim], [], [], 0.2)[0]:
                pass
