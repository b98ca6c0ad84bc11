"""A draft's change on another commit, the order of tasks, the envelopes of agents, and the slots that they wait for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from agent_project import Project, make_project, task, writing

from pipeline import drafts, ledger, slot
from pipeline.account import MERGE_LOCK
from pipeline.agents import AGENTS
from pipeline.agenttasks import Order
from pipeline.drafts import Applied, FileChange
from pipeline.host import Slot
from pipeline.model import VALIDATION, Agent, Task
from pipeline.reports import phases
from pipeline.slots import Slots
from pipeline.worktree import Repository, Worktree, find_repository

# -- a change on another commit


@attrs.frozen
class Place:
    project: Project
    repository: Repository

    def commit(self, files: Mapping[str, str | bytes | None], base: str = "HEAD") -> str:
        """A commit on top of `base` with these files otherwise."""
        self.project.git("checkout", "--quiet", "--detach", base)
        for path, text in files.items():
            place = self.project.root / path
            if text is None:
                self.project.git("rm", "--quiet", "-r", path)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text.encode() if isinstance(text, str) else text)
        return self.project.commit("x")

    def change(self, base: str, files: Mapping[str, str | bytes | None]) -> dict[str, FileChange]:
        """What git says that a worktree at `base` was changed by."""
        worktree = Worktree(self.repository, self.project.root, self.project.root.parent / "excludes", {})
        worktree.excludes.touch()
        self.project.git("checkout", "--quiet", "--detach", base)
        for path, text in files.items():
            place = self.project.root / path
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text.encode() if isinstance(text, str) else text)
        found, _ = drafts.collected(worktree, base)
        drafts.keep(self.repository, found, self.blob)
        self.project.git("reset", "--quiet", "--hard", base)
        self.project.git("clean", "--quiet", "-fd")
        return found

    def blob(self, oid: str) -> Path:
        return self.project.root.parent / "blobs" / oid

    def applied(self, start: str, change: Mapping[str, FileChange]) -> Applied:
        return drafts.applied(self.repository, start, change, self.blob, self.project.root.parent)

    def read(self, tree: str, path: str) -> str | None:
        return self.repository.read(tree, path)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    project = make_project(tmp_path)
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    return Place(project, find_repository(project.root))


LINES = "".join(f"line {number}\n" for number in range(20))


def test_a_change_lands_on_what_it_was_made_from_and_merges_into_what_moved_elsewhere_in_the_file(place: Place) -> None:
    base = place.commit({"a.txt": LINES, "gone.txt": "x\n", "bin": b"\0\1"})
    change = place.change(base, {
        "a.txt": LINES.replace("line 3\n", "mine\n"), "new/deep.txt": "new\n", "gone.txt": None, "bin": b"\0\2",
    })  # fmt: skip
    there = place.applied(base, change)
    assert sorted(there.paths) == ["a.txt", "bin", "gone.txt", "new/deep.txt"]
    assert there.conflicts == ()
    assert sorted(there.as_before) == ["a.txt", "bin", "gone.txt", "new/deep.txt"]
    assert place.read(there.tree, "gone.txt") is None
    moved = place.commit({"a.txt": LINES.replace("line 15\n", "theirs\n"), "other.txt": "o\n"}, base)
    there = place.applied(moved, change)
    assert there.conflicts == ()
    assert (place.read(there.tree, "a.txt") or "").split("\n")[3:16:12] == ["mine", "theirs"]
    assert place.read(there.tree, "other.txt") == "o\n"
    assert "a.txt" not in there.as_before
    done = place.commit(
        {"a.txt": LINES.replace("line 3\n", "mine\n"), "new/deep.txt": "new\n", "gone.txt": None, "bin": b"\0\2"}, base
    )
    assert place.applied(done, change).paths == (), "a change that is there is none"


def test_what_does_not_merge_is_a_conflict_with_its_markers_in_the_tree(place: Place) -> None:
    base = place.commit({"a.txt": "one\n", "gone.txt": "x\n", "bin": b"\0\1", "dir/file": "f\n"})
    change = place.change(base, {
        "a.txt": "mine\n", "gone.txt": "edited\n", "bin": b"\0\2", "same": "mine\n", "sub": "a file\n", "two/x": "x\n",
    })  # fmt: skip
    moved = place.commit(
        {"a.txt": "theirs\n", "gone.txt": None, "bin": b"\0\3", "same": "theirs\n", "sub/x": "x\n", "two": "file\n"},
        base,
    )
    there = place.applied(moved, change)
    assert sorted(there.conflicts) == ["a.txt", "bin", "gone.txt", "same", "sub", "two/x"]
    assert (place.read(there.tree, "a.txt") or "").startswith("<<<<<<< landed\ntheirs\n")
    assert place.read(there.tree, "sub/x") == "x\n"
    assert place.read(there.tree, "two") == "file\n"


def test_what_is_executable_or_a_link_stays_so_and_contents_outlive_git(place: Place) -> None:
    base = place.commit({"run": "#!/bin/sh\n", "a b": "x\n"})
    (place.project.root / "run").chmod(0o755)
    (place.project.root / "link").symlink_to("run")
    change = place.change(base, {"a b": "y\n", "ü": "z\n"})
    assert change["link"].after.startswith("120000 ")
    assert change["run"].after.startswith("100755 ")
    assert change["ü"].before == ""
    place.project.git("reflog", "expire", "--expire=now", "--all")
    place.project.git("gc", "--quiet", "--prune=now")
    gone = place.project.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert change["ü"].after.split(" ")[1] not in gone, "nothing in git held it"
    there = place.applied(base, change)
    assert place.read(there.tree, "ü") == "z\n"
    assert "120000 blob" in place.project.git("ls-tree", there.tree, "link")
    assert "100755 blob" in place.project.git("ls-tree", there.tree, "run")


# -- the order


def made(name: str, writes: str, reads: str = "", needs: str = "") -> Task:
    return Task(name, (), tuple(reads.split()), tuple(writes.split()), tuple(needs.split()), agent=Agent("x"))


def test_tasks_that_write_one_file_go_in_the_order_of_the_waves_and_others_beside_them() -> None:
    order = Order([made("a", "x"), made("b", "x y"), made("c", "z"), made("d", "y", needs="c"), made("e", "w", "z")])
    assert ("b" in order.after["a"]) != ("a" in order.after["b"])
    assert order.after["c"] == ()
    assert set(order.after["d"]) >= {"c"}
    assert ("b" in order.after["d"]) != ("d" in order.after["b"])
    assert order.after["e"] == ("c",), "who makes what it reads comes first"
    assert order.blockers["e"] == ("c",)
    assert order.blockers["a"] == order.blockers["b"] == (), "a neighbour in a group stops nobody"
    assert [sorted(group) for group in order.groups] == [["a", "b", "d"]]


def test_a_directory_meets_what_is_in_it() -> None:
    order = Order(
        [made("a", "src/"), made("b", "src/x/y.c"), made("c", "lib/*.c"), made("d", "lib/a.c"), made("e", "doc/z")]
    )
    assert [sorted(group) for group in order.groups] == [["a", "b"], ["c", "d"]]
    assert order.after["e"] == ()


# -- envelopes


def told(use: str, *lines: object, code: int | None = 0) -> tuple[str, int, int, int]:
    raw = "\n".join(json.dumps(line) if isinstance(line, dict) else str(line) for line in lines).encode()
    agent = AGENTS[use](Agent("x", use, ("mine",)))
    reply = agent.classify(code, raw)
    tokens = reply.tokens
    fresh, cached, output = (tokens.fresh_input, tokens.cache_read, tokens.output) if tokens else (0, 0, 0)
    return str(reply.outcome), fresh, cached, output


def test_what_an_agent_ends_with_is_read_by_its_envelope_and_by_nothing_that_it_says() -> None:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5, "output_tokens": 7}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "usage": usage}
    talk = {"type": "assistant", "message": {"content": "API Error: 529 overloaded"}}
    assert told("claude", talk, result) == ("ok", 10, 5, 7)
    assert told("claude", {**result, "is_error": True, "result": "API Error: 529 {}"})[0] == "overloaded"
    assert told("claude", talk, code=None)[0] == "unparsable"
    done = {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9}}
    assert told("codex", {"type": "item.completed"}, done) == ("ok", 40, 60, 9)
    failed = {"type": "turn.failed", "error": {"message": "rate limit reached"}}
    assert told("codex", done, failed)[0] == "rate-limited"
    assert told("codex", {"type": "item.completed"}, code=None)[0] == "lost"
    assert told("codex", code=127)[0] == "bad-config"
    stats = {"total_tokens": 20, "input_tokens": 12, "cached": 2, "output_tokens": 8}
    assert told("gemini", {"type": "result", "status": "success", "stats": stats}) == ("ok", 10, 2, 8)
    models = {"stats": {"models": {"m": {"tokens": {"prompt": 9, "candidates": 2, "cached": 4, "thoughts": 1}}}}}
    assert told("gemini", models) == ("ok", 5, 4, 3)
    assert (
        told("gemini", {"type": "result", "status": "error", "error": {"message": "not logged in"}})[0]
        == "not-logged-in"
    )
    assert told("command", "anything at all") == ("ok", 0, 0, 0)
    assert told("command", "anything at all", code=None)[0] == "lost", "its edits may be half done"
    assert told("command", "no", code=2)[0] == "crashed"


def test_a_stream_tells_what_was_spent_so_far_with_the_last_record_of_each_message() -> None:
    def message(id_: str, output: int) -> dict[str, object]:
        return {"type": "assistant", "message": {"id": id_, "usage": {"input_tokens": 1, "output_tokens": output}}}

    raw = "\n".join(map(json.dumps, (message("a", 1), message("a", 50), message("b", 7)))).encode()
    assert AGENTS["claude"](Agent("x")).spent(raw + b'\n{"type": "assist') == 59


def test_model_and_effort_are_passed_where_they_are_said_and_no_flag_where_not() -> None:
    for use, model, effort in (
        ("claude", ["--model", "m"], ["--effort", "high"]),
        ("codex", ["--model", "m"], ["--config", 'model_reasoning_effort="high"']),
        ("gemini", ["--model", "m"], []),
    ):
        said = AGENTS[use](Agent("x", use, model="m", effort="high")).argv
        plain = AGENTS[use](Agent("x", use)).argv
        assert all(word in said for word in (*model, *effort))
        assert not {"--model", "--effort", *effort}.intersection(plain) - {"--config"}


# -- slots


def test_a_program_that_an_agent_runs_waits_for_a_slot_and_gives_it_back_however_it_ends(tmp_path: Path) -> None:
    freed: list[float] = []
    slots = Slots({VALIDATION: 1, "generation": 1}, lambda: freed.append(time.monotonic()))
    taken = slots.take(VALIDATION)
    assert taken == 0

    def start(door: str, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-IS", slot.__file__, *command], env={slot.DOOR: door, "PATH": "/bin:/usr/bin"}
        )

    with Slot("generation", 0, 1, slots).door(tmp_path) as door:
        first = start(door, "touch", str(tmp_path / "first"))
        time.sleep(0.5)
        assert not (tmp_path / "first").exists(), "there is none"
        slots.give(VALIDATION, 0)
        assert first.wait(10) == 0
        assert (tmp_path / "first").exists()
        killed = start(door, "sleep", "60")
        deadline = time.monotonic() + 10
        while slots.in_use()[VALIDATION] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert slots.in_use()[VALIDATION] == 1
        assert slots.take(VALIDATION) is None
        waiting = start(door, "false")
        killed.kill()
        killed.wait()
        assert waiting.wait(10) == 1, "the exit status is the command's"
        nested = start(door, sys.executable, "-IS", slot.__file__, "sh", "-c", f'test -z "${slot.DOOR}"')
        assert nested.wait(10) == 0, "who holds a slot needs no second one"
        while slots.in_use()[VALIDATION] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert slots.in_use()[VALIDATION] == 0
    assert freed
    assert threading.active_count() == 1 or not any(t.name in ("door", "slot") for t in threading.enumerate())
    assert start("/no/such/socket", "true").wait(10) == 0, "where no run serves slots any more, nothing is waited for"
    assert start("", "no-such-program").wait(10) == 127


def test_what_drafts_run_through_slot_is_never_more_than_the_lane_has_room_for(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    names = ("one", "two", "three")
    project.plan([task(name, f"src/{name}.c") for name in names], pools={"generation": 3})
    project.commit("plan")
    log = tmp_path / "slots.log"
    step = f"slot sh -c 'echo + >> {log}; sleep 0.3; echo - >> {log}'"
    project.agent(*(writing(name, run=[step]) for name in names))
    project.doit("-n", "1", "build")
    assert log.read_text().split() == ["+", "-"] * 3
    drafts_ = [e for e in project.events() if e["kind"] == "draft"]
    assert max(e["started"] for e in drafts_) < min(e["ended"] for e in drafts_), (
        "the drafts themselves ran side by side"
    )
    assert all(e["cpu_seconds"] > 0 for e in drafts_)


def test_an_agent_that_is_not_installed_is_told_before_anything_runs(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.plan([task("one", "src/one.c", agent={"run": "no-such-agent"}), {"name": "first", "run": "touch ran"}])
    project.commit("plan")
    said = project.doit("-n", "2", "first", "build", code=3).both
    assert "task one: agent: no-such-agent is not installed: put it on PATH" in said
    assert not (project.root / "ran").exists()


# -- where the time went


def test_the_phases_of_a_run_tell_useful_work_from_recovery_and_failures_by_their_cause() -> None:
    def attempt(kind: str, began: float, ended: float, outcome: str = "ok", **more: object) -> dict[str, object]:
        times = {"ready": began - 1, "started": began, "ended": ended, "lane": "validation"}
        return {"event": "attempt", "kind": kind, "scope": "a", "outcome": outcome, **times, **more}

    def condition(phase: str, began: float, ended: float) -> dict[str, object]:
        return {"event": "condition", "scope": "a", "phase": phase, "started": began, "ended": ended}

    waited = [("wait", MERGE_LOCK, 15, 17)]
    found = phases.of(ledger.by_event([
        attempt("draft", 0, 10), attempt("check", 10, 15), condition("check", 11, 15),
        attempt("land", 15, 25, "check-failed", then="repair:a", spans=waited), condition("rerun", 18, 24),
        attempt("repair", 25, 31), attempt("land", 31, 33, repaired=True), attempt("land", 0, 99),
        attempt("draft", 40, 43, "time-limit"), attempt("check", 43, 44, "time-limit"),
        attempt("draft", 50, 60, "exhausted", waited=7.5), condition("lint", 3, 4),
    ]))  # fmt: skip
    assert found.seconds == {
        "check": 4.0 + 1.0 + 1.0, "rerun": 6.0, "wait for a slot": 8.0, "draft": 10.0, "land": 2.0 + 2.0,
        "wait for the merge lock": 2.0, "repair": 6.0, "failed draft": 3.0 + 2.5, "back-off": 7.5, "lint": 1.0,
    }  # fmt: skip
    assert (found.count["check"], found.count["land"], found.count["rerun"]) == (1, 2, 1)
    assert found.causes == {"check-failed": (1, 10.0), "time-limit": (1, 3.0), "exhausted": (1, 10.0)}


def test_a_build_of_the_gate_is_counted_once_for_all_that_waited_for_it_and_the_same_again_is_a_rerun() -> None:
    def build(tree: str, began: float, ended: float, cached: bool = False) -> dict[str, object]:
        return {"event": "build", "tree": tree, "cached": cached, "started": began, "ended": ended}

    both = {"event": "attempt", "kind": "land", "outcome": "ok", "ready": 0, "started": 0, "ended": 20, "lane": "gate"}
    landings = [{**both, "scope": scope, "share": 0.5, "repaired": False} for scope in "ab"]
    found = phases.of(
        ledger.by_event([build("x", 1, 6), build("x", 6, 10), build("y", 10, 10, cached=True), *landings])
    )
    assert found.seconds == {"build": 5.0, "rerun": 4.0, "wait for a slot": 0.0, "land": 20.0 - 9.0}
