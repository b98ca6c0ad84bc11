"""doit's runner on schedule.py: tasks with a pool in lanes, all else as doit would.

In: doit tasks, those with `meta["pool"]` made of one `Step` each. Out: their steps performed in lanes, doit's database
kept task by task, one event for each attempt to the host.

The main thread decides, judges, reports and saves; it alone touches doit. A worker thread performs one set of tasks
after another. A task without a pool (a group, an ordinary doit task of the same dodo) takes no slot and runs in the
main thread, one at a time, as doit would; results that arrive meanwhile wait for it.
"""

from __future__ import annotations

import queue
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from doit import runner
from doit.exceptions import BaseFail, InvalidTask

from pipeline import clock, live, process, schedule
from pipeline.action import check_pool, meta
from pipeline.host import Attempt, Host, Slot
from pipeline.memory import Memory
from pipeline.over import Over, needs
from pipeline.priorities import Priorities, Work
from pipeline.results import Outcome
from pipeline.running import Crew, Running, Waiting
from pipeline.signals import Signals, end_own_children, unread
from pipeline.slots import Slots
from pipeline.state import State
from pipeline.telling import Teller


class LanesRunner(runner.Runner):  # type: ignore[misc]
    """Asks doit for tasks until it has none to give, starts what schedule.startable says, and saves what ends."""

    def __init__(
        self, *args: Any, host: Host, plan: Sequence[Any], lanes: schedule.Lanes, memory: Memory, signals: Signals,
        inbox: queue.SimpleQueue[Running | None],
    ) -> None:  # fmt: skip
        super().__init__(*args)
        self._host, self._lanes, self._memory, self._signals, self._inbox = host, lanes, memory, signals, inbox
        self.teller = Teller(self.reporter, lanes, quiet=self.stream.verbosity == 0)
        self._state = State(self.dep_manager, [task.name for task in plan])
        self._slots = Slots(lanes.capacity, lambda: inbox.put(None))
        self._priorities = Priorities(_work(task, host) for task in plan)
        self._over = Over(plan)
        self._dispatcher: Any = None
        self._exhausted = self._held = False  # doit has no more tasks; none until another has ended
        self._order = 0
        self._done: deque[Any] = deque()  # nodes to give back to doit
        self._blocked: dict[str, list[Any]] = defaultdict(list)  # by the kind that they wait for
        self._ready: dict[str, Waiting] = {}
        self._line = schedule.Line(self._priorities)  # the same tasks, in order
        self._running: list[Running] = []
        self._crew = Crew(inbox)
        self._told = False  # that it is stopping
        self.watched = False  # somebody looks
        self.alone = False  # nobody else has written in doit's database; told at the end
        self._left, self._reckon_at = 0.0, 0.0  # seconds, and when that is reckoned anew

    @property
    def _stopped(self) -> bool:
        return bool(self._stop_running or self._signals.hit)

    def run_tasks(self, task_dispatcher: Any) -> None:
        self._dispatcher = task_dispatcher
        try:
            self._guarded(self._greet)
            while self._guarded(self._turn):
                pass
        except BaseException:
            self._slots.close()
            process.stop_all()
            raise
        finally:
            self._crew.dismiss()

    def _guarded(self, act: Callable[[], bool]) -> bool:
        """Where nobody reads standard output any more (`| head`), stop as for a signal."""
        try:
            return act()
        except process.Stopped:  # a signal came while a task was judged: git and the engine are asked there
            return True
        except BrokenPipeError:
            if self._signals.hit or not unread():
                raise
            self._signals.stop()
            return True

    def _greet(self) -> bool:
        self.teller.greet(self._host)
        return True

    def _turn(self) -> bool:
        """Start what can start, then wait for one thing to end. False when all is over."""
        if self._stopped:
            self._slots.close()
        else:
            self._release()
            self._pull()
            self._start()
            if self._done:
                return True
        if not self._running:
            return not self._stopped and self._unblock()
        if self._signals.hit and not self._told:
            self._told = True
            self.teller.say("stopping: running tasks are being ended; once more to kill them")
        sys.stdout.flush()
        self._reckon()
        ended = self._inbox.get()
        if ended is not None:  # None: a signal came, or an extra slot is free again
            self._end(ended)
        return True

    def _pull(self) -> None:
        """Take nodes from doit until it holds on. One at a time if serial, so that its order is doit's own, but for a
        batch, whose other members come later."""
        while not self._exhausted and not self._stopped:
            enough = self._lanes.serial and (
                self._running or any(not waiting.ready.batch for waiting in self._ready.values())
            )
            if not self._done and (self._held or enough):
                return
            try:
                got = self._dispatcher.generator.send(self._done.popleft() if self._done else None)
            except StopIteration:
                self._exhausted = True
                break
            self._held = got == "hold on"
            if self._held:
                continue
            kind = meta(got.task, "after")
            if kind and got.run_status is None and self._over.unfinished(kind):
                self._blocked[kind].append(got)
            else:
                self._consider(got)
        self._done.clear()  # doit has nothing more to give for them

    def _release(self) -> None:
        """`after: K` is over when every task of kind K has ended."""
        for kind in [kind for kind in self._blocked if not self._over.unfinished(kind)]:
            for node in self._blocked.pop(kind):
                self._consider(node)

    def _unblock(self) -> bool:
        """Nothing runs and nothing can start. True where what was waited for will never run, so that all is over."""
        nodes = self._dispatcher.nodes
        never = [kind for kind in self._blocked if nodes.keys().isdisjoint(self._over.unfinished(kind))]
        for kind in never:
            self._over.never(kind)
        if not never and not (self._exhausted and not self._blocked):
            stuck = [*self._dispatcher.waiting, *(node for nodes in self._blocked.values() for node in nodes)]
            raise InvalidTask(f"tasks wait for each other: {', '.join(sorted({node.task.name for node in stuck}))}")
        return bool(never)

    def _consider(self, node: Any) -> None:
        """A node whose dependencies have ended. What has locks is judged when it holds them, all else now."""
        task, meta = node.task, node.task.meta or {}
        check_pool(task, self._lanes)
        self._order += 1
        ready = schedule.Ready(
            task.name, self._order, meta.get("pool"), tuple(meta.get("reads", ())),
            tuple(meta.get("writes", ())), meta.get("batch"), self._memory.of(task.name),
        )  # fmt: skip
        waiting = Waiting(node, clock.now(), ready, after=self._over.last(task))
        if not waiting.locked and not self._judge(waiting):
            return
        if not task.actions and not waiting.locked:
            self._run_here(waiting)
        else:
            self._wait(waiting)

    def _judge(self, waiting: Waiting) -> bool:
        """Must it run? If not (up to date, ignored, a dependency failed, setup tasks first) it is doit's again."""
        node = waiting.node
        if self.select_task(node, self._dispatcher.tasks):
            return True
        if node.run_status == "up-to-date" and waiting.ready.pool:
            now = clock.now()
            self._record(waiting, None, now, now, Outcome.CACHED, {})
        self._give_back(node, None)
        return False

    def _give_back(self, node: Any, seconds: float | None) -> None:
        self._done.append(node)
        if node.run_status != "run":
            task = node.task
            self._priorities.ended(task.name, seconds)
            self._over.ended(task, up_to_date=node.run_status == "up-to-date")
            if self._over.joins(task):
                group = {"task": task.name, "kind": "group", "lane": None, "needs": needs(task)}
                self._host.record({**group, "outcome": str(Outcome.CACHED)})

    def _start(self) -> None:
        if not self._ready or self._stopped:
            return
        with self._slots.lock:
            holds = [running.start for running in self._running]
            memory = self._memory.to_share(sum(each.memory for each in holds), self._line.most_memory)
            starts = self._line.take(
                self._lanes.capacity, self._slots.in_use(), holds, serial=self._lanes.serial, memory=memory
            )
            taken = [self._slots.take(start.pool) if start.pool else None for start in starts]
        for name in self._line.short:
            self._ready[name].short = self._ready[name].short or clock.now()
        here: list[Waiting] = []
        for start, index in zip(starts, taken, strict=True):
            members = [self._ready.pop(name) for name in start.names]
            members = [
                each for each in members if not self._stopped and (each.leg or not each.locked or self._judge(each))
            ]
            if start.pool is None or index is None:
                here += members
            elif members and not self._stopped:
                self._launch(members, Slot(start.pool, index, self._lanes.workers, self._slots))
            else:
                self._slots.give(start.pool, index)
        for each in here:
            if not self._stopped:
                self._run_here(each)

    def _launch(self, members: Sequence[Waiting], slot: Slot) -> None:
        for each in members:
            if each.leg:
                continue
            self._state.begin(each.task)
            if each.task.teardown:
                self.teardown_list.append(each.task)
            self.reporter.execute_task(each.task)
            each.task.executed = True
        running = Running(schedule.Start.of([each.ready for each in members]), members, slot)
        self._host.began(running.beginning())
        self._running.append(running)
        self._crew.begin(running)

    def _end(self, running: Running) -> None:
        self._running.remove(running)
        self._slots.give(running.slot.lane, running.slot.index)
        for waiting in running.members:
            task, step = waiting.task, waiting.task.actions[0]
            attempt = running.attempts.get(step.key)
            if attempt is not None:
                self.teller.show(task, attempt)
            going_on = attempt is not None and attempt.then is not None and running.error is None
            if going_on and attempt is not None:
                self._go_on(waiting, running, attempt)
                continue
            fail = self.process_task_result(waiting.node, running.verdict(task, attempt, ending=self._signals.hit))
            if attempt is not None and attempt.line:
                self.teller.say(f"   {waiting.name}: {attempt.line}")
            outcome = attempt.outcome if attempt else Outcome.INTERRUPTED if self._signals.hit else Outcome.CRASHED
            if fail is not None and outcome in (Outcome.OK, Outcome.CACHED):
                outcome = Outcome.CRASHED
            failure = {"failure": fail.message} if fail else {}
            fields = {**(attempt.fields if attempt else {}), **running.shared, **failure, **running.told(waiting)}
            self._record(waiting, running.slot.lane, running.started, running.ended, outcome, fields)
            self._give_back(waiting.node, (running.ended - running.started) / len(running.members))

    def _go_on(self, waiting: Waiting, running: Running, attempt: Attempt) -> None:
        """A task that is not over waits for its next slot as any other does, holding nothing."""
        leg = attempt.then
        assert leg is not None
        if attempt.line:
            self.teller.say(f"   {waiting.name}: {attempt.line}")
        fields = {**attempt.fields, **running.shared, "then": leg.name, **running.told(waiting)}
        self._record(waiting, running.slot.lane, running.started, running.ended, attempt.outcome, fields)
        ready = attrs.evolve(waiting.ready, pool=leg.pool, batch=leg.batch)
        self._wait(Waiting(waiting.node, clock.now(), ready, leg))

    def _wait(self, waiting: Waiting) -> None:
        self._ready[waiting.task.name] = waiting
        self._line.add(waiting.ready)

    def _run_here(self, waiting: Waiting) -> None:
        """A task without a pool, in the main thread."""
        node, task = waiting.node, waiting.task
        if task.actions:
            self._state.begin(task)
        started = clock.now()
        try:
            with self._signals.raising():
                fail = self.execute_task(task)
        except KeyboardInterrupt:
            end_own_children()
            return
        ended = clock.now()
        fail = self.process_task_result(node, fail)
        if task.actions:
            outcome = Outcome.OK if fail is None else Outcome.CRASHED
            self._record(waiting, None, started, ended, outcome, {})
        self._give_back(node, ended - started)

    def process_task_result(self, node: Any, base_fail: BaseFail | None) -> BaseFail | None:
        """As doit's, with the state of the inputs when the task began; what can't be saved is the task's failure."""
        fail = base_fail or self._state.save(node.task)
        if fail is None:
            node.run_status = "successful"
            self.reporter.add_success(node.task)
        else:
            self._handle_task_error(node, fail)
        return fail

    def _handle_task_error(self, node: Any, base_fail: BaseFail) -> None:
        super()._handle_task_error(node, base_fail)
        self._state.commit()

    def _record(
        self, waiting: Waiting, lane: str | None, started: float, ended: float, outcome: Outcome,
        fields: Mapping[str, object],
    ) -> None:  # fmt: skip
        plan = {key: meta(waiting.task, key) for key in ("kind", "scope", "round")}
        plan |= {"kind": waiting.leg.kind} if waiting.leg else {}
        if outcome is not Outcome.CACHED or lane is not None:  # what was not run waited for nothing
            plan |= {key: value for key in ("reads", "writes") if (value := meta(waiting.task, key))}
            asked = {"memory": waiting.ready.memory, "short": waiting.short, "after": waiting.after}
            plan |= {key: value for key, value in asked.items() if value}
            plan |= {"needs": needed} if (needed := needs(waiting.task)) else {}
        times = {"ready": waiting.since, "started": started, "ended": ended}
        self._host.record({**fields, "task": waiting.name, **plan, "lane": lane, **times, "outcome": outcome.value})

    def look(self) -> live.State:
        """What goes on. For another thread: it may see a task that has just ended."""
        doing = [live.Doing(each.slot.lane, each.start.names, each.started) for each in list(self._running)]
        left = [f"about {live.span(self._left)} left"] if self._left else []
        said = [*self._over.told, *self._host.progress(), *left]
        return live.State(self._lanes.capacity, self._slots.in_use(), doing, said)

    def _reckon(self) -> None:
        """The time left, for who looks: of all tasks of the plan, so not at every turn of a big one."""
        if self.watched and (began := time.monotonic()) >= self._reckon_at:
            self._left = self._priorities.left(self._lanes.capacity)
            self._reckon_at = max(began + live.EVERY, began + 500 * (time.monotonic() - began))

    def finish(self) -> int:
        """doit's, without the end of the report: that waits for the host's summary."""
        self.alone = self._state.alone()
        self.dep_manager.close()
        self.teardown()
        # What is told now wants the memory that 10,000 tasks have taken.
        del self._dispatcher, self._line, self._priorities
        self._state.forget()
        result: int = self.final_result
        return result


def _work(task: Any, host: Host) -> Work:
    meta = task.meta or {}
    return Work(
        task.name, (*task.task_dep, *task.setup_tasks, *task.calc_dep), meta.get("kind"), meta.get("scope"),
        (*meta.get("reads", ()), *meta.get("writes", ())),
        host.estimate(task.name) if meta.get("pool") else 0.0, meta.get("pool"),
    )  # fmt: skip
