"""Only what has changed since a ref: measured, answered and landed beside what is known of the whole."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import quick
from conftest import World

from pipeline import config, narrow
from pipeline.worktree import find_repository

LABEL = "src/label.js"
NARROW = f"{LABEL}@HEAD~1"


def test_a_changed_line_is_answered_alone_and_nothing_of_the_whole_is_touched(driven: World) -> None:
    def whole() -> dict[str, str]:
        targets = [*driven.root.glob("cache/scopes/*/*.json"), driven.root / "cache/report/index.html"]
        return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in targets if "@" not in p.parent.name}

    before, tip = whole(), driven.git("rev-parse", "mutate/main")
    driven.edit(LABEL, "if (name.length > width) {", "if (name.length > width && width >= 0) {")
    driven.edit("src/cart.js", "\n", "\n\n")  # a line that holds no mutant
    driven.commit()
    listed = driven.doit("list", "--all", "since=HEAD~1").out
    assert f"baseline:{NARROW}" in listed and "baseline:src/price.js" not in listed
    done = driven.doit("-n", "2", "mutate", "since=HEAD~1")
    assert done.ending(NARROW) == "landed"
    assert driven.ran("baseline") == {NARROW, "src/cart.js@HEAD~1"}
    assert done.ending("src/cart.js@HEAD~1") == "converged"
    (target,) = [
        p
        for p in driven.root.glob("cache/scopes/*/baseline.json")
        if "label" in p.parent.name and "HEAD" in p.parent.name
    ]
    mutants = json.loads(target.read_text())["mutants"]
    assert {m["line"] for m in mutants} == {2} and len(mutants) >= 4
    assert whole() == before
    assert "changed since HEAD~1" in driven.read("cache/report/since/index.html")
    assert driven.git("rev-parse", "mutate/main") == tip
    assert driven.titles("test/label.mutants.test.js", "mutate/main-since") != []
    assert "nothing to do" in driven.doit("-n", "2", "mutate", "since=HEAD~1").out
    report = json.loads(driven.doit("report", "--json", "since=HEAD~1").out)
    assert [scope["scope"] for scope in report["scopes"]] == ["src/cart.js@HEAD~1", NARROW]
    # Where the time went is told of the last run of the plan that is asked about, as narrow as it is.
    whole_report = json.loads(driven.doit("report", "--json").out)
    narrowed = {run["run"]: run["since"] for run in whole_report["runs"]}
    assert narrowed[report["figures"]["run"]] == "HEAD~1" and narrowed[whole_report["figures"]["run"]] == ""
    assert f"{report['figures']['run']} since HEAD~1 " in driven.doit("report", "--since", "2").out
    # The plan may say it; where nothing has changed there is nothing to do.
    assert "no task" not in driven.doit("list", "since=HEAD").both
    assert "since=HEAD: no line of any scope has changed" in driven.doit("-n", "2", "mutate", "since=HEAD").err
    driven.write("tasks.yaml", f"since: HEAD~1\n{driven.read('tasks.yaml')}")
    assert f"baseline:{NARROW}" in driven.doit("list", "--all").out
    unnamed = driven.doit("list", "--all", "since=")
    assert f"baseline:{LABEL} " in unnamed.out and "since= names no commit: this is the whole plan" in unnamed.err
    refused = driven.doit("-n", "2", "mutate", "since=no-such", code=3)
    assert "since=no-such: no commit of that name here; `git fetch` what it is, or name another" in refused.both
    assert "Traceback" not in refused.both


def test_a_file_in_brackets_has_its_own_changed_lines_and_not_those_of_one_that_the_brackets_would_match(
    tmp_path: Path,
) -> None:
    place = quick.Place(tmp_path)
    place.git("init", "--quiet")
    place.git("config", "user.name", "A Person")
    place.git("config", "user.email", "person@example.org")
    place.write("tasks.yaml", "version: 1\nscopes:\n  - {mutate: 'src/*.js', write: 'test/{stem}.mutants.test.js'}\n")
    files = "src/[id].js", "src/i.js"
    for file in files:
        place.write(file, "one\ntwo\nthree\n")
    place.commit()
    for file, text in zip(files, ("ONE\ntwo\nthree\n", "one\ntwo\nTHREE\n"), strict=True):
        place.write(file, text)
    plan = narrow.narrowed(config.load(tmp_path / "tasks.yaml"), "HEAD", find_repository(tmp_path))
    assert {scope.mutate[0]: scope.lines for scope in plan.scopes} == {
        "src/[id].js": (("src/[id].js", 1, 1),),
        "src/i.js": (("src/i.js", 3, 3),),
    }


def test_lines_between_two_changes_are_unchanged_whatever_git_is_configured_to_show(tmp_path: Path) -> None:
    place = quick.Place(tmp_path)
    place.git("init", "--quiet")
    settings = {"user.name": "A Person", "user.email": "person@example.org", "diff.interHunkContext": "10"}
    for name, value in {**settings, "diff.joined.textconv": "tr -d '\\n' <"}.items():
        place.git("config", name, value)
    place.write("tasks.yaml", "version: 1\nscopes:\n  - {mutate: src/a.js, write: test/a.mutants.test.js}\n")
    place.write(".gitattributes", "*.js diff=joined\n")
    place.write("src/a.js", "one\ntwo\nthree\n")
    place.commit()
    place.write("src/a.js", "ONE\ntwo\nTHREE\n")
    (scope,) = narrow.narrowed(config.load(tmp_path / "tasks.yaml"), "HEAD", find_repository(tmp_path)).scopes
    assert scope.lines == (("src/a.js", 1, 1), ("src/a.js", 3, 3))


def test_in_a_shallow_clone_what_the_ref_has_changed_since_is_not_taken_for_ours(tmp_path: Path) -> None:
    place = quick.Place(tmp_path / "origin")
    place.root.mkdir()
    place.git("init", "--quiet", "--initial-branch", "main")
    place.git("config", "user.name", "A Person")
    place.git("config", "user.email", "person@example.org")
    place.write("tasks.yaml", "version: 1\nscopes:\n  - {mutate: 'src/*.js', write: 'test/{stem}.mutants.test.js'}\n")
    place.write("src/a.js", "one\n")
    place.write("src/b.js", "one\n")
    place.commit()
    place.git("checkout", "--quiet", "-b", "ours")
    place.write("src/a.js", "ONE\n")
    place.commit()
    place.git("checkout", "--quiet", "main")
    place.write("src/b.js", "ONE\n")
    place.commit()
    place.git("clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=ours", place.root.as_uri(), "../clone")
    clone = tmp_path / "clone"

    def changed() -> list[str]:
        plan = narrow.narrowed(config.load(clone / "tasks.yaml"), "origin/main", find_repository(clone))
        return [scope.name for scope in plan.scopes]

    with pytest.raises(narrow.NoSuchRef, match=r"this clone is shallow.*`git fetch --unshallow`"):
        changed()
    place.git("-C", str(clone), "fetch", "--quiet", "--unshallow")
    assert changed() == ["src/a.js@origin/main"]
