"""The main job from end to end: real git, real doit, real StrykerJS. Only the model is a stand-in."""

from __future__ import annotations

from conftest import World

ALL = {"src/cart.js", "src/label.js", "src/price.js"}


def test_a_cold_run_lands_one_commit_a_scope_and_leaves_the_checkout_alone(world: World) -> None:
    before = world.git("status", "--porcelain", "--branch"), world.git("rev-parse", "HEAD")
    done = world.doit("-n", "4", "mutate")
    assert "lanes: validation 3 (width of the plan)" in done.out or "lanes: validation" in done.out
    assert {s: done.ending(s) for s in ALL} == dict.fromkeys(ALL, "landed")
    assert len(world.subjects()) == 3
    assert (world.git("status", "--porcelain", "--branch"), world.git("rev-parse", "HEAD")) == before
    assert world.git("worktree", "list").count("\n") == 1
    changed = world.git("diff", "--name-only", "HEAD", "mutate/main").split()
    assert changed == [f"test/{stem}.mutants.test.js" for stem in ("cart", "label", "price")]
    assert world.measured() == ALL


def test_the_same_again_runs_and_writes_nothing(driven: World) -> None:
    targets = {p: p.stat().st_mtime_ns for p in (driven.root / "cache" / "scopes").rglob("*.json")}
    tip = driven.git("rev-parse", "mutate/main")
    done = driven.doit("-n", "4", "mutate")
    assert "nothing to do: 0 engine runs, 0 calls" in done.out
    assert not any(driven.ran(kind) for kind in ("baseline", "search", "validate", "generate", "land", "confirm"))
    assert {p: p.stat().st_mtime_ns for p in (driven.root / "cache" / "scopes").rglob("*.json")} == targets
    assert driven.git("rev-parse", "mutate/main") == tip


def test_a_comment_edited_costs_one_baseline_and_its_proofs_and_is_held_until_committed(driven: World) -> None:
    driven.edit("src/label.js", "// A word", "// Some word")
    done = driven.doit("-n", "2", "mutate")
    assert driven.measured() == driven.ran("baseline") == driven.ran("validate") == {"src/label.js"}
    assert driven.ran("generate") == set()
    assert done.ending("src/label.js") == "held"
    assert "commit src/label.js, run again: 2 tests land for nothing" in done.out
    titles = driven.titles("test/label.mutants.test.js")
    driven.commit()
    done = driven.doit("-n", "2", "mutate")
    assert driven.ran("baseline") == driven.ran("validate") == set()  # what was proved on the edit is proved
    assert done.ending("src/label.js") == "landed"
    assert driven.titles("test/label.mutants.test.js") == titles != []
    assert len(driven.subjects()) == 3


def test_a_line_of_logic_edited_reruns_the_scopes_that_load_that_file(driven: World) -> None:
    driven.edit("src/price.js", "total > 100", "total > 90")
    driven.doit("-n", "2", "mutate", code=None)
    assert driven.ran("baseline") == {"src/price.js", "src/cart.js"}


def test_a_helper_two_imports_away_makes_its_scopes_stale_and_no_other(driven: World) -> None:
    driven.edit("src/lib/round.js", "return Math", "// half up\n  return Math")
    driven.doit("-n", "2", "baseline")
    assert driven.ran("baseline") == {"src/price.js", "src/cart.js"}


def test_a_branch_and_back_costs_no_engine_run(driven: World) -> None:
    driven.git("switch", "--quiet", "--create", "other")
    driven.edit("src/label.js", "name.length > width", "name.length >= width")
    driven.commit()
    driven.doit("-n", "2", "mutate", code=None)
    driven.git("switch", "--quiet", "main")
    done = driven.doit("-n", "2", "mutate")
    assert driven.measured() == set()
    assert {s: done.ending(s) for s in ALL} == dict.fromkeys(ALL, "landed")


def test_what_was_measured_longer_ago_than_max_age_is_measured_anew_and_asks_for_nothing_else(driven: World) -> None:
    plan = driven.read("tasks.yaml")
    driven.write("tasks.yaml", f"{plan}engine: {{max_age: 24h}}\n")
    driven.doit("-n", "2", "mutate")
    assert driven.measured() == set()
    driven.write("tasks.yaml", f"{plan}engine: {{max_age: 0.001s}}\n")
    done = driven.doit("-n", "2", "mutate")
    assert driven.measured() == driven.ran("baseline") == ALL
    assert driven.ran("search") == driven.ran("validate") == set()
    assert {s: done.ending(s) for s in ALL} == dict.fromkeys(ALL, "landed")
