"""SIGINT, SIGTERM and SIGHUP during a run: in order the first time, at once the second."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from pipeline import lifetime, process

INTERRUPTED = 130  # exit status
ONE = 0.2  # seconds in which another signal is the first one still: timeout(1) sends it to its child and to the group


class Signals:
    """The first: nothing new starts, every child is ended, `hit` is set. The second, later than that by more than a
    moment: exit now."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.hit = False
        self._wake, self._raising, self._first = wake, False, -ONE
        self._before: dict[int, Any] = {}
        self._stopper: threading.Thread | None = None

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # Ignored: nohup does that, and a shell for what it puts in the background. It stays so.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if self._stopper:
            self._stopper.join()

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """The main thread is in code that knows nothing of `hit`: a signal raises KeyboardInterrupt there."""
        self._raising = True
        try:
            yield
        except KeyboardInterrupt:
            self.hit = True
            raise
        finally:
            self._raising = False

    def stop(self) -> None:
        """As a first signal does, without one."""
        self.hit = True
        self._stopper = threading.Thread(target=process.stop_all)
        self._stopper.start()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # A handler runs in the main thread, which may hold the lock that stop_all takes: hence the threads.
        now = time.monotonic()
        if now - self._first < ONE:
            return
        if self.hit:
            killer = threading.Thread(target=process.stop_all, args=(0.0,))
            killer.start()
            killer.join(2.0)
            os._exit(INTERRUPTED)
        self._first = now
        self.stop()
        self._wake()
        if self._raising:
            raise KeyboardInterrupt


def end_own_children() -> None:
    """End what an ordinary doit action started: it is in our session, and SIGTERM to us alone does not reach it."""
    import psutil

    ours = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(child.pid) == os.getsid(0):
                child.terminate()
                ours.append(child)
    for child in psutil.wait_procs(ours, lifetime.GRACE)[1]:
        with contextlib.suppress(psutil.Error):
            child.kill()


def unread() -> bool:
    """Has the reader of standard output gone? What is written from now on then goes nowhere."""
    poll = select.poll()
    poll.register(1, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return True
