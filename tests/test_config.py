"""tasks.yaml → Plan: what each document means, and what is said of each mistake and where."""

# ruff: noqa: E501 - what is said of a mistake is one line, and is to be read as one

from __future__ import annotations

import copy
import functools
import json
import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline import config, filescopes, model, source
from pipeline.model import EngineConfig, GenerateConfig, GeneratorConfig, LandConfig, Owns, Scope, Task

HERE = Path(__file__).parent.parent
FILES = (
    "package-lock.json",
    "stryker.config.json",
    "fixtures/dates.json",
    "fixtures/old.json",
    "src/a.js",
    "src/b.js",
    "src/dates/index.js",
    "src/dates/range.js",
    "src/dates/utc.js",
    "test/a.test.js",
    "test/b.test.js",
    "test/dates/range.test.js",
    "test/dates/deep/utc.test.js",
)
EXAMPLE = """\
version: 1
project: shop
store: kept

pools:
  generation: 4
  network: 2

engine:
  use: stryker-js
  concurrency: 2
  needs: [install]
  command: node "my stryker.js" --quiet
  config: ./stryker.config.json
  time_limit: 30m

generate:
  with:
    - differential
    - claude
    - {use: claude, name: larger, model: large, time_limit: 90}
    - {use: command, run: [my-model, --json], time_limit: 1.5h}
  rounds: 3

land:
  branch: mutate/{branch}
  proof_runs: 7

scopes:
  - mutate: src/*.js
    tests: test/{stem}.test.js
    write: test/{stem}.mutants.test.js
  - name: dates
    mutate: [src/dates/*.js, "!src/dates/index.js"]
    tests: test/dates/**/*.test.js
    write: ./test/dates/mutants.test.js
    reads: [fixtures/*.json, "!fixtures/old.json"]

tasks:
  - name: install
    run: npm ci
    reads: [package-lock.json]
    writes: [node_modules/.package-lock.json]
  - name: types
    doc: check the types
    run: [npx tsc, npx tsc -p test]
    reads: [src/**/*.js, node_modules/.package-lock.json]
    needs: [install]
    pool: network
    env: {CI: "1"}
    timeout: 90s
    memory: 1.5GiB
    owns: {lock: build, pause: ./watch stop, resume: [./watch start, ./watch wait]}
"""


def make_project(root: Path, files: Iterable[str] = FILES) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / ".gitignore").write_text("node_modules\n*.log\n")
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "shop")


A_TASK = "tasks: [{name: a, run: make}]\n"


def load(project: Path, text: str) -> model.Plan:
    path = project.parent / "tasks.yaml"
    path.write_text(text)
    return config.load(path)


def problems(project: Path, text: str | bytes) -> list[str]:
    """What is said of a document beside the project."""
    return problems_in(project.parent, text)


def problems_in(folder: Path, text: str | bytes) -> list[str]:
    """What is said of a document in `folder`, each line without the path of the document."""
    path = folder / "tasks.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(config.PlanErrors) as caught:
        config.load(path)
    assert [str(problem) for problem in caught.value.problems] == str(caught.value).splitlines()
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def scoped(text: str) -> str:
    """A document with these scopes; the first stands on line 4."""
    return "version: 1\nproject: shop\nscopes:\n" + dedent(text)


# --- what a document means --------------------------------------------------------------------------------------------


def test_the_whole_example_becomes_a_plan(project: Path) -> None:
    assert load(project, EXAMPLE) == model.Plan(
        path=str(project.parent / "tasks.yaml"),
        root=str(project),
        store=str(project.parent / "kept"),
        pools={"generation": 4, "network": 2},
        engine=EngineConfig(
            "stryker-js", 2, ("install",), ("node", "my stryker.js", "--quiet"), "stryker.config.json", 1800.0
        ),
        generate=GenerateConfig(
            (
                GeneratorConfig("differential", "differential"),
                GeneratorConfig("claude", "claude"),
                GeneratorConfig("claude", "larger", model="large", time_limit=90.0),
                GeneratorConfig("command", "command", ("my-model", "--json"), time_limit=5400.0),
            ),
            3,
        ),
        land=LandConfig("mutate/{branch}", 7),
        scopes=(
            Scope("src/a.js", ("src/a.js",), ("test/a.test.js",), "test/a.mutants.test.js"),
            Scope("src/b.js", ("src/b.js",), ("test/b.test.js",), "test/b.mutants.test.js"),
            Scope(
                "dates",
                ("src/dates/range.js", "src/dates/utc.js"),
                ("test/dates/deep/utc.test.js", "test/dates/range.test.js"),
                "test/dates/mutants.test.js",
                ("fixtures/dates.json",),
            ),
        ),
        tasks=(
            Task("install", ("npm ci",), ("package-lock.json",), ("node_modules/.package-lock.json",)),
            Task(
                "types",
                ("npx tsc", "npx tsc -p test"),
                ("src/**/*.js", "node_modules/.package-lock.json"),
                (),
                ("install",),
                "network",
                "check the types",
                {"CI": "1"},
                90.0,
                1_610_612_736,
                owns=Owns("build", ("./watch stop",), ("./watch start", "./watch wait")),
            ),
        ),
    )  # fmt: skip


def test_what_is_left_out_has_the_model_s_defaults(project: Path) -> None:
    plan = load(project, f"version: 1\nproject: shop\n{A_TASK}")
    assert (plan.engine, plan.generate, plan.land) == (EngineConfig(), GenerateConfig(), LandConfig())
    assert (plan.pools, plan.scopes, plan.store) == ({"generation": 1}, (), None)


def test_without_project_the_root_is_the_folder_of_the_document(project: Path) -> None:
    (project / "tasks.yaml").write_text(f"version: 1\n{A_TASK}")
    assert config.load(project / "tasks.yaml").root == str(project)


def test_a_document_below_the_working_directory_is_named_from_there(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "tasks.yaml").write_text("version: 2\n")
    monkeypatch.chdir(project.parent)
    with pytest.raises(config.PlanErrors, match=r"^shop/tasks\.yaml:1: version: "):
        config.load(project / "tasks.yaml")


def test_anchors_and_merges_work_and_a_mistake_is_where_its_text_stands(project: Path) -> None:
    text = scoped("""\
        - &base
          name: a
          mutate: src/a.js
          write: test/x.js
        - <<: *base
          name: b
          write: test/y.js
        """)
    assert [(s.name, s.mutate, s.write) for s in load(project, text).scopes] == [
        ("a", ("src/a.js",), "test/x.js"),
        ("b", ("src/a.js",), "test/y.js"),
    ]
    assert problems(project, text.replace("src/a.js", "src/c.js")) == [
        "6: scopes[0].mutate: 'src/c.js' matches no file of the project; did you mean 'src/b.js'?",
        "6: scopes[1].mutate: 'src/c.js' matches no file of the project; did you mean 'src/b.js'?",
    ]


def test_the_loader_without_c_reads_the_same_and_gives_no_traceback(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = load(project, EXAMPLE)
    monkeypatch.setattr(source, "Loader", yaml.SafeLoader)
    assert load(project, EXAMPLE) == plan
    assert problems(project, SHAPE["pools"][0] + "project: shop\n") == SHAPE["pools"][1]
    deep = "1: nested too deeply, or an alias stands inside itself"
    assert problems(project, "version: 1\nx: " + "[" * 10_000) == [deep]
    assert problems(project, "version: 1\n\nproject: \x07\n") == ["3: character U+0007 may not stand in YAML"]
    said = ["3: scopes[0].write: half a surrogate pair is no character"]
    assert problems(project, 'version: 1\nproject: shop\nscopes: [{mutate: src/a.js, write: "\\ud800"}]') == said


def test_empty_lists_say_nothing(project: Path) -> None:
    text = scoped("- {mutate: src/a.js, write: x.js, reads: []}\n")
    text += "tasks: [{name: a, run: x, reads: [], writes: [], needs: []}]\nengine: {needs: []}\ngenerate: {with: []}\n"
    plan = load(project, text)
    assert plan.tasks == (Task("a", ("x",)),)
    assert plan.generate.generators == ()


def test_a_byte_order_mark_is_no_part_of_the_document(project: Path) -> None:
    assert load(project, f"\ufeffversion: 1\nproject: shop\n{A_TASK}").scopes == ()


@pytest.mark.parametrize(("text", "line"), [("scopes: []\n", 3), ("", 1), (f"scopes: []\n{A_TASK}", 3)])
def test_a_plan_that_asks_for_nothing_is_no_plan(project: Path, text: str, line: int) -> None:
    said = (
        f"{line}: {'scopes: ' if text else ''}nothing is to be mutated; add `- {{mutate: ..., tests: ..., write: ...}}`"
    )
    assert problems(project, f"version: 1\nproject: shop\n{text}") == [said]


def test_without_tests_the_whole_suite_covers_a_scope(project: Path) -> None:
    plan = load(project, scoped("- {mutate: src/a.js, write: test/x.js}"))
    assert plan.scopes == (Scope("src/a.js", ("src/a.js",), None, "test/x.js"),)


def test_dir_and_name_stand_for_the_mutated_file_s(project: Path) -> None:
    make_project(project, ["src/dates/utc.spec.js", "top.js", "top.spec.js"])
    text = scoped("""\
        - {mutate: [src/dates/utc.js, top.js], tests: "{dir}/{stem}.spec.js", write: "{dir}/gen/{name}"}
        """)
    assert [(s.tests, s.write) for s in load(project, text).scopes] == [
        (("src/dates/utc.spec.js",), "src/dates/gen/utc.js"),
        (("top.spec.js",), "gen/top.js"),
    ]


def test_a_path_wins_over_the_pattern_it_looks_like(project: Path) -> None:
    make_project(project, ["pages/[id].js", "pages/i.js", "pages/[id].test.js", "pages/i.test.js", "pages/{x}.js"])
    text = scoped("""\
        - {mutate: "pages/[id].js", tests: "pages/{stem}.test.js", write: "pages/{stem}.gen.js"}
        - {mutate: "pages/{x}.js", write: gen.js}
        """)
    assert load(project, text).scopes == (
        Scope("pages/[id].js", ("pages/[id].js",), ("pages/[id].test.js",), "pages/[id].gen.js"),
        Scope("pages/{x}.js", ("pages/{x}.js",), None, "gen.js"),
    )


def test_tests_and_written_files_beside_the_sources_are_never_mutated(project: Path) -> None:
    make_project(project, ["lib/a.js", "lib/a.test.js", "lib/a.gen.test.js"])
    text = scoped("""\
        - {mutate: lib/*.js, tests: "lib/{stem}.test.js", write: "lib/{stem}.gen.test.js"}
        """)
    (scope,) = load(project, text).scopes
    assert (scope.mutate, scope.write) == (("lib/a.js",), "lib/a.gen.test.js")


def test_a_scope_s_tests_have_its_own_written_file_and_no_other_scope_s(project: Path) -> None:
    make_project(project, ["test/a.gen.test.js", "test/b.gen.test.js"])
    text = scoped("""\
        - {name: a, mutate: src/a.js, tests: test/*.test.js, write: test/a.gen.test.js}
        - {name: b, mutate: src/b.js, tests: test/b.test.js, write: test/b.gen.test.js}
        """)
    assert [scope.tests for scope in load(project, text).scopes] == [
        ("test/a.gen.test.js", "test/a.test.js", "test/b.test.js"),
        ("test/b.gen.test.js", "test/b.test.js"),
    ]


def test_a_pattern_never_matches_node_modules_ignored_deleted_or_linked_directories(project: Path) -> None:
    make_project(project, ["m/a.js", "m/b.log", "m/node_modules/c.js"])
    (project / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "-C", project, "add", "."], check=True)
    (project / "m/a.js").rename(project / "m/new.js")
    (project / "m/link").symlink_to(project / "src")
    text = scoped("- {name: m, mutate: 'm/**', write: x.js}")
    assert load(project, text).scopes[0].mutate == ("m/new.js",)


def test_reads_may_be_ignored_by_git_or_yet_to_be_made(project: Path) -> None:
    (project / "big.log").touch()
    text = scoped("""\
        - {mutate: src/a.js, write: x.js, reads: [big.log, dist/deep/out.js]}
        """)
    text += "tasks: [{name: pack, run: pack, writes: [dist/]}]\n"
    assert load(project, text).scopes[0].reads == ("big.log", "dist/deep/out.js")


def test_every_path_of_a_task_has_one_spelling(project: Path) -> None:
    make_project(project, ["pages/[id].js", "pages/i.js"])
    (project / "linked").symlink_to("src")
    (project / "link.js").symlink_to("src/a.js")
    (project / "away").symlink_to(project.parent)
    spellings = {
        "src/a.js": "src/a.js",
        "./src//dates/../a.js": "src/a.js",
        "linked/a.js": "src/a.js",
        "linked/../linked/a.js": "src/a.js",
        "link.js": "link.js",  # and it locks src/a.js: below
        "src": "src/",
        "linked/": "src/",
        ".": "./",
        "linked/**/*.js": "src/**/*.js",
        "./*.js": "*.js",
        "new/": "new/",
        "new/*/": "new/*/**",
        "pages/[id].js": r"pages/\[id\].js",
        r"pages/\[new\].js": r"pages/\[new\].js",
        "away/tasks.yaml": "away/tasks.yaml",
    }
    for text, spelled in spellings.items():
        plan = load(project, f"version: 1\nproject: shop\ntasks: [{{name: a, run: x, writes: ['{text}']}}]\n")
        assert plan.tasks[0].writes == (spelled,), text
    plan = load(
        project, "version: 1\nproject: shop\ntasks: [{name: a, run: x, writes: [link.js, away/x, 'src/*/x']}]\n"
    )
    assert filescopes.locks(plan.tasks[0]).writes == {"link.js", "src/a.js", "away/x", "../x", "src"}


def test_two_cases_of_a_name_are_one_path_where_the_file_system_takes_them_for_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "version: 1\nproject: shop\ntasks: [{name: a, run: x, writes: [SRC/A.js, src/a.js, Src/New.js, src/NEW.js]}]\n"
    )
    assert len(load(project, text).tasks[0].writes) == 4
    monkeypatch.setattr(config, "folds_case", lambda root: True)  # as on macOS and Windows
    assert load(project, text).tasks[0].writes == ("src/a.js", "src/New.js")


def test_what_a_task_reads_may_be_a_directory_or_yet_to_be_made(project: Path) -> None:
    text = "version: 1\nproject: shop\ntasks:\n  - {name: a, run: x, writes: [gen/**/*.c, out/, top.js]}\n"
    reads = ["src", "gen/deep/*", "gen/deep/x.c", "out/x", "out/*.o", "*.js", "out", "!src/a.js"]
    plan = load(project, f"{text}  - {{name: b, run: x, reads: {reads}}}\n")
    assert plan.tasks[1].reads == (
        "src/",
        "gen/deep/*",
        "gen/deep/x.c",
        "out/x",
        "out/*.o",
        "*.js",
        "out/",
        "!src/a.js",
    )
    assert problems(project, f"{text}  - {{name: b, run: x, reads: [gen/x.h]}}\n") == [
        "5: tasks[1].reads[0]: no file 'gen/x.h', and no task writes it"
    ]


def test_a_thousand_scopes_expand_in_well_under_a_second(tmp_path: Path) -> None:
    names = [f"{kind}{n}{ending}" for n in range(1000) for kind, ending in (("src/m", ".js"), ("test/m", ".test.js"))]
    project = make_project(tmp_path / "shop", names)
    (project.parent / "tasks.yaml").write_text(
        scoped("- {mutate: src/*.js, tests: '**/{stem}.test.js', write: 'test/{stem}.gen.test.js'}")
    )
    started = time.process_time()
    plan = config.load(project.parent / "tasks.yaml")
    assert time.process_time() - started < 1
    assert len(plan.scopes) == 1000
    assert plan.scopes[0] == Scope("src/m0.js", ("src/m0.js",), ("test/m0.test.js",), "test/m0.gen.test.js")


# --- mistakes ---------------------------------------------------------------------------------------------------------

A_NAME = "a name (no space, none of : = * ?, not - or / first)"
A_COUNT = "a whole number from 1 to 1000"
A_TIME = 'seconds, or text such as "90s", "30m" or "1h", and at most 31 days'
SECTIONS = "compose, engine, gate, generate, land, lint, models, pools, project, scopes, since, store, tasks, version"
QUOTE = "put text in quotes if it begins with one of * & ! % @ or holds any of { } [ ] # or ': '"

UNREADABLE = {
    "an empty document": (b"", "1: the document is empty; begin with `version: 1`"),
    "only a comment": (b"# nothing\n", "1: the document is empty; begin with `version: 1`"),
    "not UTF-8": (b"version: 1\nproject: caf\xe9\n", "2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
    "a control character": (b"version: 1\n\nproject: \x07\n", "3: character U+0007 may not stand in YAML"),
    "a tab": (b"version: 1\npools:\n\tgeneration: 1\n", "3:1: not YAML: a tab cannot indent YAML; indent with spaces"),
    "a bracket left open": (
        b"version: 1\ntasks: [a,\n",
        f"3:1: not YAML: while parsing a flow node, did not find expected node content; {QUOTE}",
    ),
    "a star without quotes": (
        b"version: 1\nscopes:\n  - mutate: *.js\n",
        "3:14: not YAML: while scanning an alias, did not find expected alphabetic or numeric character; " + QUOTE,
    ),
    "an unknown alias": (b"version: 1\nproject: *x\n", f"2:10: not YAML: found undefined alias; {QUOTE}"),
    "an alias in itself": (
        b"version: 1\nscopes: &all [*all]\n",
        "2:9: not YAML: an alias stands inside what it names; see the YAML specification",
    ),
    "two documents": (
        b"version: 1\n---\nversion: 1\n",
        "2:1: not YAML: expected a single document in the stream, but found another document; "
        "see the YAML specification",
    ),
    "a key that is a list": (
        b"version: 1\n? [a]\n: b\n",
        "2:3: not YAML: a key must be text, not a list; see the YAML specification",
    ),
    "a bad merge": (
        b"version: 1\n<<: 3\n",
        "2:5: not YAML: while constructing a mapping, expected a mapping or list of mappings for merging, "
        "but found scalar; see the YAML specification",
    ),
}


@pytest.mark.parametrize(("raw", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_yaml_is_told_with_its_place(project: Path, raw: bytes, said: str) -> None:
    assert problems(project, raw) == [said]


def test_nesting_without_end_is_told_without_a_traceback(project: Path) -> None:
    (said,) = problems(project, "version: 1\n" + "[" * 100_000)
    assert said.startswith("2:1000: not YAML: while increasing flow level, exceeded maximum nesting depth")


SHAPE = {
    "a list": (
        "- a\n",
        [
            "1: expected a mapping with version, project, store, pools, since, engine, generate, models, land, scopes, tasks, lint, gate, compose, got a list"
        ],
    ),
    "no version": ("pools: {}\n", ["1: `version` is missing; begin with `version: 1`"]),
    "another version": ("version: 2\n", ["1: version: expected 1, the version of this format, got 2"]),
    "true is not 1": ("version: true\n", ["1: version: expected 1, the version of this format, got true"]),
    "1.0 is not 1": ("version: 1.0\n", ["1: version: expected 1, the version of this format, got 1.0"]),
    "an unknown key": ("version: 1\nscops: []\n", ["2: scops: no key 'scops' here; did you mean 'scopes'?"]),
    "a key like no other": ("version: 1\nzz: 1\n", [f"2: zz: no key 'zz' here; choose from {SECTIONS}"]),
    "a key given twice": (
        "version: 1\npools:\n  a: 1\n  b: 2\n  a: 3\n",
        ["5: pools.a: given twice (first on line 3); keep one"],
    ),
    "a key that is no text": ("version: 1\non: 1\n", ["2: on: a key must be text, got on; put it in quotes: 'on'"]),
    "a key for nothing": (
        "version: 1\nscopes:\nmodels:\n  ladder:\ngate:\n",
        [
            "2: scopes: expected a list, got nothing; write [x, y], or one `- x` a line",
            "4: models.ladder: expected a list, got nothing; write [x, y], or one `- x` a line",
            "5: gate: expected a mapping with build, each, batch, timeout, owns, got nothing",
        ],
    ),
    "a mapping for a list": (
        "version: 1\ntasks: {a: b}\n",
        ["2: tasks: expected a list, got a mapping; write [x, y], or one `- x` a line"],
    ),
    "a tag": (
        "version: 1\nproject: !src x\n",
        ["2: project: the tag !src means nothing here; put text that begins with ! in quotes"],
    ),
    "a number of five thousand digits": (
        f"version: 1\npools:\n  a: {'9' * 5000}\n",
        [f"3: pools.a: {'9' * 57}... is no int that can be read"],
    ),
    "a number that is too large": (
        "version: 1\npools:\n  a: 99999999999999999999\n",
        [f"3: pools.a: expected {A_COUNT}, got 99999999999999999999"],
    ),
    "pools": (
        "version: 1\npools:\n  a: 0\n  b: yes\n  c: 1.5\n  d: four\n  validation: 2\n  e f: 1\n",
        [
            f"3: pools.a: expected {A_COUNT}, got 0",
            f"4: pools.b: expected {A_COUNT}, got yes",
            f"5: pools.c: expected {A_COUNT}, got 1.5",
            f"6: pools.d: expected {A_COUNT}, got 'four'",
            "7: pools.validation: validation is what -n says, not the plan; leave it out",
            f"8: pools['e f']: expected {A_NAME} for a key",
        ],
    ),
    "engine": (
        "version: 1\nengine:\n  use: striker-js\n  concurrency: true\n  needs: install\n  command: a 'b\n  time_limit: 1d\n",
        [
            "3: engine.use: no such name, got 'striker-js'; did you mean 'stryker-js'?",
            f"4: engine.concurrency: expected auto, or {A_COUNT}, got true",
            "5: engine.needs: expected a list, got 'install'; write [x, y], or one `- x` a line",
            '6: engine.command: a shell cannot read it (no closing quotation), got "a \'b"',
            f"7: engine.time_limit: expected {A_TIME}, got '1d'",
        ],
    ),
    "nothing to run": (
        "version: 1\npools: 3\ngenerate:\n  with:\n    - use: command\n      run: ''\n",
        ["2: pools: expected a mapping, got 3", "6: generate.with[0].run: expected text, got ''"],
    ),
    "times": (
        "version: 1\nengine: {time_limit: .nan}\ngenerate:\n  with:\n    - {use: claude, time_limit: -1}\n"
        "    - {use: claude, name: b, time_limit: .inf}\n    - {use: claude, name: c, time_limit: 0s}\n",
        [
            f"2: engine.time_limit: expected {A_TIME}, got .nan",
            f"5: generate.with[0].time_limit: expected {A_TIME}, got -1",
            f"6: generate.with[1].time_limit: expected {A_TIME}, got .inf",
            f"7: generate.with[2].time_limit: expected {A_TIME}, got '0s'",
        ],
    ),
    "generators": (
        "version: 1\ngenerate:\n  with:\n    - claud\n    - {name: x}\n    - {use: claude, modle: x}\n    - 3\n  rounds: .nan\n",
        [
            "4: generate.with[0]: no such name, got 'claud'; did you mean 'claude'?",
            "5: generate.with[1]: `use` is missing: differential spends no token; command runs a program of your own",
            "6: generate.with[2].modle: no key 'modle' here; did you mean 'model'?",
            "7: generate.with[3]: expected a mapping with use, name, run, model, effort, time_limit, got 3",
            f"8: generate.rounds: expected {A_COUNT}, got .nan",
        ],
    ),
    "scopes": (
        "version: 1\nscopes:\n  - mutate: 3\n    write: ''\n  - wirte: x\n    mutate: []\n  - {mutate: /src/a.js, write: x, name: no}\n",
        [
            "3: scopes[0].mutate: expected text, or a list that isn't empty, got 3",
            "4: scopes[0].write: expected a path or pattern, relative to the project, got ''",
            "5: scopes[1]: `write` is missing: the one test file that may be written; "
            "{stem}, {name} and {dir} are the mutated file's",
            "5: scopes[1].wirte: no key 'wirte' here; did you mean 'write'?",
            "6: scopes[1].mutate: expected text, or a list that isn't empty, got a list",
            "7: scopes[2].mutate: expected a path or pattern, relative to the project, got '/src/a.js'",
            f"7: scopes[2].name: expected {A_NAME}, got no; put it in quotes",
        ],
    ),
    "tasks": (
        "version: 1\ntasks:\n  - name: plan\n    run: ' '\n  - {name: a=b, run: x, env: {A: 1}, reads: []}\n  - {name: c, run: [x, 3]}\n",
        [
            "3: tasks[0].name: 'plan' is a name of ours; choose another",
            "4: tasks[0].run: expected text, got ' '",
            "5: tasks[1].env.A: expected text, got 1; put it in quotes",
            f"5: tasks[1].name: expected {A_NAME}, got 'a=b'",
            "6: tasks[2].run[1]: expected text, got 3; put it in quotes",
        ],
    ),
}


@pytest.mark.parametrize(("text", "said"), SHAPE.values(), ids=SHAPE)
def test_a_value_of_the_wrong_shape_is_told_with_line_path_and_what_was_expected(
    project: Path, text: str, said: list[str]
) -> None:
    assert problems_in(project, text) == said


NAMES = {
    "unknown tasks and pools": (
        "engine:\n  needs: [instal]\ntasks:\n  - {name: install, run: x, pool: generatoin}\n  - {name: b, run: x, needs: [install, zzz]}\n",
        [
            "2: engine.needs[0]: no task is called 'instal'; did you mean 'install'?",
            "4: tasks[0].pool: no pool is called 'generatoin'; did you mean 'generation'?",
            "5: tasks[1].needs[1]: no task is called 'zzz'; choose from b, install",
        ],
    ),
    "a broken task is a task all the same": (
        "tasks:\n  - {name: a}\n  - {name: b, run: x, needs: [a]}\n",
        ["2: tasks[0]: `run` is missing: shell commands, one after another"],
    ),
    "a place after a broken item": (
        "tasks:\n  - 5\n  - {name: b, run: x, needs: [3, zzz]}\n",
        [
            "2: tasks[0]: expected a mapping with name, run, reads, writes, needs, pool, doc, env, timeout, memory, agent, check, confidence, owns, look, got 5",
            f"3: tasks[1].needs[0]: expected {A_NAME}, got 3; put it in quotes",
            "3: tasks[1].needs[1]: no task is called 'zzz'; choose from b",
        ],
    ),
    "what follows from a wrong name or a wrong pattern alone is no mistake": (
        "scopes:\n  - {name: no, mutate: src/*.js, write: x.js}\n  - {name: b, mutate: [src/*.js, 3], write: y.js}\n"
        "generate:\n  with: [claude, {use: claude, name: no}]\n",
        [
            f"2: scopes[0].name: expected {A_NAME}, got no; put it in quotes",
            "3: scopes[1].mutate[1]: expected a path or pattern, relative to the project, got 3; put it in quotes",
            f"5: generate.with[1].name: expected {A_NAME}, got no; put it in quotes",
        ],
    ),
    "two tasks of one name": (
        "tasks:\n  - {name: a, run: x}\n  - {name: a, run: y}\n",
        ["3: tasks[1].name: two tasks are called 'a' (also tasks[0], line 2); a name is given once"],
    ),
    "the shortest of two cycles": (
        "tasks:\n  - {name: a, run: x, needs: [b]}\n  - {name: b, run: x, needs: [c, d]}\n"
        "  - {name: c, run: x, needs: [a]}\n  - {name: d, run: x, needs: [b]}\n",
        ["3: tasks[1].needs: no task of a cycle can ever start: b → d → b; take one of these `needs` out"],
    ),
    "a task that needs itself": (
        "tasks:\n  - {name: a, run: x, needs: [a]}\n",
        ["2: tasks[0].needs: no task of a cycle can ever start: a → a; take one of these `needs` out"],
    ),
    "generators": (
        "generate:\n  with:\n    - claude\n    - claude\n    - command\n    - {use: differential, model: x, run: y}\n",
        [
            "4: generate.with[1]: two generators are called 'claude' (also generate.with[0], line 3); give each a `name`",
            "5: generate.with[2]: `run` is missing; `use: command` runs the program that `run` names",
            "6: generate.with[3].model: differential asks no model; leave `model` out",
            "6: generate.with[3].run: differential runs no program of yours; `run` goes with `use: command`",
        ],
    ),
    "files of tasks": (
        "tasks:\n  - name: a\n    run: x\n    reads: [pakage-lock.json, lib/*.c, '[z-a]']\n    writes: [out/*.js]\nengine:\n  config: striker.config.json\n",
        [
            "4: tasks[0].reads[0]: no file 'pakage-lock.json', and no task writes it; did you mean 'package-lock.json'?",
            "4: tasks[0].reads[1]: 'lib/*.c' matches no file of the project",
            "4: tasks[0].reads[2]: '[z-a]' is no pattern: [z-a] is no set of characters",
            "7: engine.config: no file 'striker.config.json', and no task writes it; did you mean 'stryker.config.json'?",
        ],
    ),
    "file scopes": (
        "tasks:\n  - name: a\n    run: x\n    writes:\n      - ../x\n      - src/../../x/*.c\n      - '!out/'\n      - .git/hooks/x\n"
        "      - src/a.js/x\n      - src/a.js/\n      - gen/*/../x\n      - '[z-a]'\n"
        "  - name: b\n    run: x\n    reads: [../y, nothing/, gen/../../*, src/b.js/]\n",
        [
            "5: tasks[0].writes[0]: '../x' lies outside the project; a task's files are the project's",
            "6: tasks[0].writes[1]: 'src/../../x/*.c' lies outside the project; a task's files are the project's",
            "7: tasks[0].writes[2]: '!out/' takes something out of `writes`; name what the task may change",
            "8: tasks[0].writes[3]: '.git/hooks/x' lies in .git; name files of the project",
            "9: tasks[0].writes[4]: 'src/a.js/x' lies below src/a.js, which is a file; name a directory",
            "10: tasks[0].writes[5]: 'src/a.js/' is a file; leave out the slash",
            "11: tasks[0].writes[6]: 'gen/*/../x' goes up from what a wildcard matches; name the directory that it's to go to",
            "12: tasks[0].writes[7]: '[z-a]' is no pattern: [z-a] is no set of characters",
            "15: tasks[1].reads[0]: '../y' lies outside the project; a task's files are the project's",
            "15: tasks[1].reads[1]: no directory 'nothing/', and no task writes it",
            "15: tasks[1].reads[2]: 'gen/../../*' lies outside the project; a task's files are the project's",
            "15: tasks[1].reads[3]: 'src/b.js/' is a file; leave out the slash",
        ],
    ),
    "what a task owns": (
        "tasks:\n  - {name: a, run: x, owns: {pause: x}}\n  - {name: b, run: x, owns: {lock: 'a b'}}\n"
        "  - {name: c, run: x, owns: {out: x}}\n  - {name: d, run: x, owns: {lock: x, resume: y}}\n",
        [
            "2: tasks[0].owns: what is paused stays so: `resume` is missing; say how the watcher is started again",
            f"3: tasks[1].owns.lock: expected {A_NAME}, got 'a b'",
            "4: tasks[2].owns.out: no key 'out' here; choose from lock, pause, resume",
        ],
    ),
    "the gate": (
        "gate: {each: x, owns: {pause: x}}\ntasks:\n"
        "  - {name: gate, run: x}\n  - {name: a, agent: do it, writes: [x], check: {each: x}, owns: {}}\npools: {gate: 2}\n",
        [
            "1: gate: `build` is missing: shell commands in the project's root of a worktree: all end with 0, or nothing lands",
            "3: tasks[0].name: 'gate' is a name of ours; choose another",
            "4: tasks[1].owns: `owns` is for `run`; each condition of `check` may have its own",
            "5: pools.gate: the gate has one slot; leave it out",
        ],
    ),
    "what the gate asks": (
        "gate: {build: x, each: x, batch: 33, owns: {pause: x}}\ntasks:\n"
        "  - {name: a, agent: do it, writes: [x], check: {each: x, b: {run: x, owns: {pause: x}}}}\n",
        [
            "1: gate.batch: expected a whole number from 1 to 32, or auto, got 33",
            "1: gate.owns: what is paused stays so: `resume` is missing; say how the watcher is started again",
            "3: tasks[0].check.b.owns: what is paused stays so: `resume` is missing; say how the watcher is started again",
            "3: tasks[0].check.each: that is what `gate.each` is called in every check; choose another name",
        ],
    ),
    "tasks of agents": (
        "tasks:\n  - {name: a, check: {build: make}}\n"
        "  - name: b\n    agent: {brief: docs/nothing.md, use: cloude, budget: many}\n    writes: [b.c]\n    check: {build: make}\n"
        "  - name: c\n    agent: {brief: docs/nothing.md, budget: 1.5}\n    writes: [c.c]\n    check: {a b: make, c: {run: make, hidden: 1}}\n"
        "  - name: d\n    agent: {brief: docs/nothing.md}\n    run: make\n    pool: generation\n    timeout: 5\n"
        "  - name: e\n    agent: {brief: Write it., use: command}\n    writes: [e.c]\n    check: {build: make}\n"
        "  - name: f\n    agent: {brief: Write it., run: mine}\n    writes: [f.c, node_modules/x.js]\n    check: {build: make}\n"
        "  - {name: g, run: make, needs: [f]}\n"
        "  - {name: h, agent: {use: claude}, check: {build: make}}\n"
        "  - {name: i, agent: {brief: src}, writes: [i.c], check: {build: make}, look: {run: show, by: nobody}}\n"
        "  - {name: j, run: make, look: ./show}\n",
        [
            "2: tasks[0]: `run` is missing: shell commands, one after another; `check` goes with `run` or `agent`",
            "4: tasks[1].agent.brief: no file 'docs/nothing.md'; name a file of the project, or say in words what is to be done",
            "4: tasks[1].agent.budget: expected a whole number of tokens, or text such as \"500k\" or \"2M\", at most 1,000,000,000, got 'many'",
            "4: tasks[1].agent.use: no such name, got 'cloude'; did you mean 'claude'?",
            "8: tasks[2].agent.brief: no file 'docs/nothing.md'; name a file of the project, or say in words what is to be done",
            "8: tasks[2].agent.budget: expected a whole number of tokens, or text such as \"500k\" or \"2M\", at most 1,000,000,000, got 1.5",
            "10: tasks[2].check.c.hidden: expected true or false, got 1",
            "10: tasks[2].check['a b']: expected a name of letters, digits, - and _ for a key",
            "11: tasks[3]: `check` is missing: what must hold of the change; without it nothing lands",
            "11: tasks[3]: `writes` is missing: files, directories and patterns that the agent may change",
            "12: tasks[3].agent: `agent` stands in the place of `run`; take one of the two out",
            "12: tasks[3].agent.brief: no file 'docs/nothing.md'; name a file of the project, or say in words what is to be done",
            "14: tasks[3].pool: `pool` is for `run`; leave it out",
            "15: tasks[3].timeout: `timeout` is for `run`; an agent has `time_limit`, and each condition of `check` a `timeout`",
            "17: tasks[4].agent: `run` is missing; `use: command` runs the program that `run` names",
            "21: tasks[5].agent.run: claude runs no program of yours; `run` goes with `use: command`",
            "22: tasks[5].writes: 'node_modules/x.js' is ignored by git, so it could never be committed; name a file that git would keep",
            "24: tasks[6].needs[0]: 'f' lands on a branch, and `run` works in the checkout, which lacks that; let it be an agent's task too, or take the need out",
            "25: tasks[7].agent: `brief` is missing: what it is to do: a file of the project (one word), or the text itself",
            "26: tasks[8].agent.brief: 'src' cannot be read: Is a directory; name a file of the project, or say in words what is to be done",
            "26: tasks[8].look.by: no such name, got 'nobody'; choose from person, tool",
            "27: tasks[9].look: `look` is for the change of an agent, once it has landed; look at what `run` does in a task of its own",
        ],
    ),
    "models of agents": (
        "models: {ladder: [big, small], by_confidence: {low: {model: big, effort: max}}}\ntasks:\n"
        "  - {name: a, agent: {brief: Write it., model: bug, effort: hihg}, writes: [a.c], check: {b: make}}\n",
        [
            "3: tasks[0].agent.effort: no effort is called 'hihg'; say one of low, medium, high, xhigh, max, inherit",
            "3: tasks[0].agent.model: no model is called 'bug'; say one of big, small, inherit; a program's own name goes under `models: names`",
        ],
    ),
    "an effort that the plan chooses for an agent that has none": (
        "models: {ladder: [big, small], by_confidence: {low: {model: big, effort: max}}}\ntasks:\n"
        "  - {name: b, agent: {brief: Write it., use: gemini}, confidence: low, writes: [b.c], check: {b: make}}\n",
        [
            "3: tasks[0].agent: gemini knows no effort 'max' (confidence low); say one of inherit",
            "3: tasks[0].agent: gemini knows no effort 'max' (one step down from big); say one of inherit",
        ],
    ),
    "a task of an agent and a scope of one name": (
        "scopes:\n  - {name: x, mutate: src/a.js, write: test/x.js}\ntasks:\n"
        "  - {name: x, agent: Write it., writes: [x.c], check: {build: make}}\n",
        ["4: tasks[0].name: a scope and an agent's task are called 'x'; choose another name for the task"],
    ),
    "memory": (
        "tasks:\n" + "".join(f"  - {{name: a{i}, run: x, memory: {m}}}\n" for i, m in enumerate(["0", "2 GiB", "1.5", "2000TiB", "2GiB"])),
        [
            f"{i + 2}: tasks[{i}].memory: expected bytes, or text such as \"500MB\" or \"2GiB\", and at most 1024 TiB, got {got}"
            for i, got in enumerate(["0", "'2 GiB'", "1.5", "'2000TiB'"])
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), NAMES.values(), ids=NAMES)
def test_names_that_do_not_fit_together_are_told_with_the_nearest(project: Path, text: str, said: list[str]) -> None:
    assert problems_in(project, text + "version: 1\n") == said


@pytest.mark.parametrize(
    "branch", ["a b", "/a", "a/", "a//b", "a..b", "a.lock", ".a", "a.", "a~1", "a^", "a:b", "a?", "a[", "a\\", "@", "-a", "a@{b", "HEAD", "{branch"],
)  # fmt: skip
def test_a_name_that_git_takes_for_no_branch_is_refused(project: Path, branch: str) -> None:
    (said,) = problems(project, f"version: 1\nproject: shop\nland:\n  branch: {json.dumps(branch)}\n")
    assert said == f"4: land.branch: git takes no branch of the name {branch!r}; mutate/{{branch}} will do"


@pytest.mark.parametrize("branch", ["mutate/{branch}", "{branch}-mutants", "a", "x/@/b", "fürst", "a.b", "{branch}.x"])
def test_a_name_that_git_takes_for_a_branch_is_kept(project: Path, branch: str) -> None:
    text = f"version: 1\nproject: shop\nland:\n  branch: {json.dumps(branch)}\n{A_TASK}"
    assert load(project, text).land.branch == branch
    name = branch.replace("{branch}", "main")
    assert subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True).returncode == 0


def test_the_landing_branch_is_never_the_one_that_is_checked_out(project: Path) -> None:
    start = "version: 1\nproject: shop\nland:\n  branch: "
    assert problems(project, start + "'{branch}'\n") == [
        "4: land.branch: that is the branch that is checked out, which is never written; mutate/{branch} will do"
    ]
    assert problems(project, start + "'{brunch}'\n") == [
        "4: land.branch: no placeholder {brunch}; {branch} is the only one"
    ]
    subprocess.run(["git", "symbolic-ref", "HEAD", "refs/heads/trunk"], cwd=project, check=True)
    assert problems(project, start + f"trunk\n{A_TASK}") == [
        "4: land.branch: 'trunk' is checked out, and what is checked out is never written; "
        "mutate/{branch} will do; or switch to the branch that the tests are for"
    ]
    assert load(project, start + f"trunk/x\n{A_TASK}").land.branch == "trunk/x"


def test_a_project_must_be_a_directory_inside_a_git_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    path = tmp_path / "tasks.yaml"

    def said(project: str) -> str:
        path.write_text(f"version: 1\n\nproject: {project}\n")
        with pytest.raises(config.PlanErrors) as caught:
            config.load(path)
        return str(caught.value).removeprefix(f"{path}:")

    remedy = "name the directory that holds the code under test"
    assert said("nowhere") == f"3: project: no directory 'nowhere' beside this file; {remedy}"
    assert said("tasks.yaml") == f"3: project: no directory 'tasks.yaml' beside this file; {remedy}"
    assert said("plain") == f"3: project: {tmp_path}/plain lies in no git repository; run `git init` there and commit"


def test_what_git_has_against_a_project_is_told_in_its_words(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", project.parent / "bare"], check=True)
    assert problems(project, "version: 1\nproject: bare\n") == [
        "2: project: git says: fatal: this operation must be run in a work tree"
    ]
    link = f"160000,{'1' * 40},sub"
    subprocess.run(["git", "-C", project, "update-index", "--add", "--cacheinfo", link], check=True)
    assert problems(project, scoped("- {mutate: src/a.js, write: sub/x.js}")) == [
        "3: scopes: whether a `write` file is ignored can't be told: "
        "git says: fatal: Pathspec 'sub/x.js' is in submodule 'sub'"
    ]
    monkeypatch.setenv("PATH", str(project / "src"))
    assert problems(project, "version: 1\nproject: shop\n") == [
        "2: project: git is not installed, and the project must lie in a git repository; install git"
    ]


def test_a_missing_document_is_told_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(config.PlanErrors, match=r"tasks.yaml:1: no such file; write one, beginning with `version: 1`"):
        config.load(tmp_path / "tasks.yaml")
    with pytest.raises(config.PlanErrors, match="1: cannot be read: Is a directory"):
        config.load(tmp_path)


SCOPES = {
    "patterns that match nothing": (
        """\
        - mutate: [src/*.jsx, scr/a.js, src, "x.log"]
          write: x.js
        - {mutate: "!src/*.js", write: y.js}
        - {mutate: [src/a.js, "!src/*"], write: z.js}
        - {mutate: "src/[z-a].js", write: w.js}
        """,
        [
            "4: scopes[0].mutate[0]: 'src/*.jsx' matches no file of the project; did you mean 'src/b.js'?",
            "4: scopes[0].mutate[1]: 'scr/a.js' matches no file of the project; did you mean 'src/a.js'?",
            "4: scopes[0].mutate[2]: 'src' matches no file of the project; src is a directory: did you mean 'src/**'?",
            "4: scopes[0].mutate[3]: 'x.log' matches no file of the project; git ignores it",
            "6: scopes[1].mutate: takes files out of nothing; begin with a pattern without !",
            "7: scopes[2].mutate: its ! patterns take out every file that the others match",
            "8: scopes[3].mutate: 'src/[z-a].js' is no pattern: [z-a] is no set of characters",
        ],
    ),
    "tests that match nothing": (
        """\
        - mutate: src/**/*.js
          tests: test/{stem}.spec.js
          write: test/{stem}.gen.js
        - name: dates
          mutate: src/dates/*.js
          tests: [test/dates/range.test.js, test/dates/range.tests.js]
          write: test/dates/gen.js
        """,
        [
            "5: scopes[0].tests: 'test/{stem}.spec.js' matches no file for src/a.js, src/b.js, src/dates/index.js and 2 more; "
            "write a first test, or leave out `tests` to run the whole suite",
            "9: scopes[1].tests[1]: 'test/dates/range.tests.js' matches no file; did you mean 'test/dates/range.test.js'? "
            "Or write a first test, or leave out `tests` to run the whole suite",
        ],
    ),
    "tests that another scope writes": (
        """\
        - {name: a, mutate: src/a.js, tests: test/b.test.js, write: test/x.js}
        - {name: b, mutate: src/b.js, write: test/b.test.js}
        """,
        [
            "4: scopes[0].tests: nothing is left without the files that other scopes write; "
            "write a first test, or leave out `tests` to run the whole suite",
        ],
    ),
    "tests that are to be mutated": (
        """\
        - {mutate: [src/a.js, test/*.js], tests: test/*.js, write: x.js}
        - {mutate: src/b.js, write: src/b.js}
        """,
        [
            "4: scopes[0].mutate[1]: 'test/*.js' matches only what `tests` or `write` name, which is never mutated: "
            "test/a.test.js, test/b.test.js (also scopes[0].tests, line 4); correct the one or the other",
            "5: scopes[1].mutate: 'src/b.js' matches only what `tests` or `write` name, which is never mutated: "
            "src/b.js (also scopes[1].write, line 5); correct the one or the other",
        ],
    ),
    "placeholders": (
        """\
        - {mutate: "src/{stem}.js", write: x.js}
        - {mutate: src/a.js, tests: "test/{stam}.js", write: "{folder}/x.js"}
        - {name: c, mutate: src/a.js, write: "{stem}.js"}
        """,
        [
            "4: scopes[0].mutate: {stem} is a part of a mutated file's path: not for `mutate`; use *",
            "5: scopes[1].tests: no placeholder {stam}; did you mean 'stem'?",
            "5: scopes[1].write: no placeholder {folder}; choose from dir, name, stem",
            "6: scopes[2].write: {stem} stands for nothing in a scope with `name`, which has many files; "
            "leave out `name`, or write the path",
        ],
    ),
    "one file written twice": (
        """\
        - {mutate: src/a.js, write: test/all.js}
        - {mutate: src/b.js, write: ./test/../test/all.js}
        - {mutate: src/dates/*.js, write: test/dates/all.js}
        - {name: x, mutate: src/dates/*.js, write: out.js}
        tasks: [{name: pack, run: x, writes: [./out.js]}]
        """,
        [
            "5: scopes[1].write: two scopes write 'test/all.js' (also scopes[0], line 4); give each a file of its own",
            "6: scopes[2].write: two scopes write 'test/dates/all.js', src/dates/index.js and src/dates/range.js; "
            "give each a file of its own, by {stem} and {dir}",
            "7: scopes[3].write: a scope and a task write 'out.js' (also tasks[0].writes, line 8); "
            "give each a file of its own",
        ],
    ),
    "one name given twice": (
        """\
        - {mutate: src/*.js, write: "test/{stem}.gen.js"}
        - {mutate: src/a.js, write: x.js}
        - {name: src/b.js, mutate: src/dates/utc.js, write: y.js}
        """,
        [
            "5: scopes[1].mutate: two scopes are called 'src/a.js' (also scopes[0], line 4); one file, or one name, is one scope",
            "6: scopes[2].name: two scopes are called 'src/b.js' (also scopes[0], line 4); one file, or one name, is one scope",
        ],
    ),
    "files that may not be written": (
        """\
        - {name: a, mutate: src/a.js, write: ../x.js}
        - {name: b, mutate: src/a.js, write: test}
        - {name: c, mutate: src/a.js, write: new/}
        - {name: d, mutate: src/a.js, write: node_modules/x.js}
        - {name: e, mutate: src/a.js, write: .git/x.js}
        - {name: f, mutate: src/a.js, write: x.log}
        - {name: g, mutate: src/a.js, write: "test/*.js"}
        - {name: h, mutate: src/a.js, write: src/b.js/x.js}
        - {name: i, mutate: src/a.js, write: out/x.js}
        - {name: j, mutate: src/a.js, write: .}
        """,
        [
            "4: scopes[0].write: '../x.js' lies outside the project; name a test file of the project",
            "5: scopes[1].write: 'test' is a directory; name a test file of the project",
            "6: scopes[2].write: 'new' is a directory; name a test file of the project",
            "7: scopes[3].write: 'node_modules/x.js' lies in node_modules; name a test file of the project",
            "8: scopes[4].write: '.git/x.js' lies in .git; name a test file of the project",
            "9: scopes[5].write: 'x.log' is ignored by git, so it could never be committed; "
            "name a test file of the project",
            "10: scopes[6].write: 'test/*.js' is a pattern, and a scope writes one file; name it",
            "11: scopes[7].write: 'src/b.js/x.js' lies below src/b.js, which is a file; "
            "name a test file of the project",
            "12: scopes[8].write: 'out/x.js' is reached through a symbolic link, to OUTSIDE/x.js; "
            "name a test file of the project",
            "13: scopes[9].write: '.' is a directory; name a test file of the project",
        ],
    ),
    "reads": (
        "- {mutate: src/a.js, write: x.js, reads: [fixtures/date.json, 'fixtures/*.yaml']}\n",
        [
            "4: scopes[0].reads[0]: no file 'fixtures/date.json', and no task writes it; did you mean 'fixtures/dates.json'?",
            "4: scopes[0].reads[1]: 'fixtures/*.yaml' matches no file of the project; did you mean 'fixtures/old.json'?",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), SCOPES.values(), ids=SCOPES)
def test_a_scope_that_cannot_be_worked_on_is_told_with_its_files(project: Path, text: str, said: list[str]) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (project / "out").symlink_to(outside)
    (project / "x.log").touch()
    assert problems(project, scoped(text)) == [line.replace("OUTSIDE", str(outside)) for line in said]


def test_a_file_whose_name_no_task_can_have_is_told(project: Path) -> None:
    make_project(project, ["odd/[a]*.js", "odd/a=b.js", "odd/c\nd.js"])
    (project / os.fsdecode(b"odd/\xff.js")).touch()
    assert problems(project, scoped("- {mutate: odd/*, write: 'test/{stem}.js'}")) == [
        "4: scopes[0].mutate: a path with =, * or a control character can name no task: "
        "'odd/[a]*.js', 'odd/a=b.js', 'odd/c\\nd.js' and 1 more; rename the file, or take it out with a ! pattern"
    ]


def test_mistakes_of_every_kind_are_told_at_once_in_the_order_of_their_lines(project: Path) -> None:
    said = problems(
        project,
        """\
version: 1
project: shop
pools: {generation: 0}
engine: {needs: [instal]}
generate: {with: [claud]}
land: {branch: "a b"}
scopes:
  - {mutate: src/c.js, write: x.js}
  - {mutate: src/a.js, wirte: x.js}
  - {mutate: src/b.js, write: x.log}
tasks:
  - {name: install, run: npm ci, needs: [install]}
  - {name: install, run: npm ci, pool: nowhere}
  - {name: lint, run: x}
  - {name: last, run: x, name: last}
""",
    )
    assert [line.split(": ")[:2] for line in said] == [
        ["3", "pools.generation"],
        ["4", "engine.needs[0]"],
        ["5", "generate.with[0]"],
        ["6", "land.branch"],
        ["8", "scopes[0].mutate"],
        ["9", "scopes[1]"],
        ["9", "scopes[1].wirte"],
        ["10", "scopes[2].write"],
        ["12", "tasks[0].needs"],
        ["13", "tasks[1].name"],
        ["13", "tasks[1].pool"],
        ["14", "tasks[2].name"],
        ["15", "tasks[3].name"],
    ]


def test_names_that_lead_out_of_their_folder_are_none(project: Path) -> None:
    for name in ("..", "a/../../b", "a//b", "./a"):
        text = scoped(f"- {{name: {name}, mutate: src/a.js, write: x.js}}")
        assert problems(project, text) == [f"4: scopes[0].name: expected {A_NAME}, got {name!r}"]


def test_a_thousand_tasks_that_all_need_one_unknown_name_are_told_in_seconds(project: Path) -> None:
    tasks = "".join(f"  - {{name: task{n}, run: x, needs: [tusk0, task{n - 1}]}}\n" for n in range(1000))
    started = time.process_time()
    said = problems(project, f"version: 1\nproject: shop\ntasks:\n{tasks}")
    assert time.process_time() - started < 5
    assert len(said) == 1001
    assert said[0] == "4: tasks[0].needs[0]: no task is called 'tusk0'; did you mean 'task0'?"


def test_a_thousand_mistakes_are_told_in_seconds(tmp_path: Path) -> None:
    project = make_project(tmp_path / "shop", [f"src/module{n}.js" for n in range(1000)])
    text = scoped("".join(f"- {{mutate: scr/module{n}.js, write: test/{n}.js}}\n" for n in range(1000)))
    started = time.process_time()
    said = problems(project, text)
    assert time.process_time() - started < 5
    assert len(said) == 1000
    assert said[0].endswith("did you mean 'src/module0.js'?")


# --- the schema -------------------------------------------------------------------------------------------------------


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(config.schema())


def test_the_schema_is_a_schema_and_the_one_in_docs() -> None:
    jsonschema.Draft202012Validator.check_schema(config.schema())
    written = (HERE / "docs/tasks.schema.json").read_text()
    assert json.loads(written) == config.schema(), "run: python -m pipeline.config > docs/tasks.schema.json"


def test_every_key_of_the_schema_is_described_and_no_other_is_let_in() -> None:
    def objects(part: Any) -> Iterable[dict[str, Any]]:
        if isinstance(part, dict):
            if "properties" in part:
                yield part
            for inner in part.values():
                yield from objects(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from objects(inner)

    found = list(objects(config.schema()))
    # The document, engine, generate, its budget, a generator, models and the five places of a wish in it, land, a scope,
    # a task, an agent, a condition, what these two own, a look, a linter alone and one of several, the gate and what it
    # owns.
    assert len(found) == 23
    for each in found:
        assert each["additionalProperties"] is False
        assert all(value["description"] for value in each["properties"].values())


@pytest.mark.parametrize("path", [None, *sorted(HERE.glob("tasks.yaml")), *sorted(HERE.glob("examples/*/tasks.yaml"))])
def test_the_schema_takes_every_example(path: Path | None) -> None:
    data = yaml.safe_load(EXAMPLE if path is None else path.read_text())
    assert [error.message for error in validator().iter_errors(data)] == []


# A schema sees neither tags nor what Python can't count, a key given twice as one, and to JSON 1.0 is 1.
SEEN_BY_CONFIG_ALONE = {"a key given twice", "a tag", "a number of five thousand digits", "1.0 is not 1"}


@pytest.mark.parametrize("name", SHAPE.keys() - SEEN_BY_CONFIG_ALONE)
def test_the_schema_refuses_what_has_the_wrong_shape(name: str) -> None:
    assert not validator().is_valid(yaml.safe_load(SHAPE[name][0]))


# --- whatever is written ----------------------------------------------------------------------------------------------

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, True, False, 0, 1, -1, 10**30, 1.5, float("nan"), float("inf"), "", " ", "1h", "\0", "a" * 300, "auto",
        "claude", "install", "validation", "src/a.js", "src/*.js", "**", "!src/a.js", "[z-a]", "[", "{", "{a,b", "{stem}",
        "{branch}", "../x", "/x", ".", "test/", "test/a.test.js", "\\", "'", [], {}, [[]], [None], {"a": 1}, {"name": "a"},
    ]
) | st.text(max_size=6)  # fmt: skip
KEYS = st.sampled_from(
    ["name", "use", "with", "mutate", "write", "tests", "reads", "needs", "env", "validation", "x y"]
)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(data, dict):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


@st.composite
def changed_examples(draw: st.DrawFn) -> Any:
    data = yaml.safe_load(EXAMPLE)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(places(data), key=repr)))
        parent = data
        for step in path[:-1]:
            parent = parent[step]
        change = draw(st.sampled_from(["replace", "replace", "delete", "add", "repeat"]))
        if change == "replace":
            parent[path[-1]] = draw(JUNK)
        elif change == "delete":
            del parent[path[-1]]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[path[-1]]) if change == "repeat" else draw(JUNK))
        else:
            parent[draw(KEYS)] = draw(JUNK)
        if not list(places(data)):
            break
    return data


@st.composite
def changed_texts(draw: st.DrawFn) -> bytes:
    raw = EXAMPLE.encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        end = start + draw(st.integers(0, 12))
        snippet = st.sampled_from(
            [b"\t", b"\n", b"- ", b": ", b"&a ", b"*a", b"<<: ", b"!x ", b"{", b"[", b"'", b'"', b"#", b"|\n"]
        )
        raw = raw[:start] + draw(snippet | st.binary(max_size=3)) + raw[end:]
    return raw


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("random") / "shop")


def outcome(shop: Path, raw: bytes) -> model.Plan | Sequence[config.Problem]:
    """A plan that keeps its promises, or mistakes on lines that there are."""
    path = shop.parent / "tasks.yaml"
    path.write_bytes(raw)
    try:
        plan = config.load(path)
    except config.PlanErrors as errors:
        assert errors.problems
        for problem in errors.problems:
            assert 1 <= problem.line <= len(raw.splitlines()) + 1
            assert "\n" not in str(problem)
        return errors.problems
    written = [scope.write for scope in plan.scopes]
    assert len(set(written)) == len(written)
    assert not set(written) & {path for task in plan.tasks for path in task.writes}
    assert len({scope.name for scope in plan.scopes}) == len(plan.scopes)
    mutated = {path for scope in plan.scopes for path in scope.mutate}
    for scope in plan.scopes:
        assert scope.mutate
        assert scope.tests != ()
        assert not mutated & {scope.write, *(scope.tests or ())}
        assert not set(scope.tests or ()) & set(written) - {scope.write}
        assert all((Path(plan.root) / path).is_file() for path in (*scope.mutate, *(scope.tests or ())))
    return plan


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changed_examples())
def test_a_changed_document_is_a_plan_or_mistakes_and_what_the_schema_refuses_is_refused(shop: Path, data: Any) -> None:
    found = outcome(shop, yaml.safe_dump(data, allow_unicode=True).encode())
    if not validator().is_valid(data):
        assert not isinstance(found, model.Plan)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changed_texts())
def test_a_changed_text_is_a_plan_or_mistakes(shop: Path, raw: bytes) -> None:
    outcome(shop, raw)


def test_a_wrong_key_in_one_of_many_named_values_is_told_with_its_name(project: Path) -> None:
    """A mistake whose place was not found was looked for again, for ever."""
    assert problems_in(
        project,
        "version: 1\nmodels: {names: {large: {modle: x}}}\nlint: {l: {run: x, format: lines, baselin: b}}\n"
        "tasks:\n  - {name: t, agent: do it now, writes: [a.c], check: {a: {rn: x}, b: {run: x, hiden: true}}}\n",
    ) == [
        "2: models.names.large.modle: no key 'modle' here; did you mean 'model'?",
        "3: lint.l: `baseline` is missing: the file of known findings; `doit lint --accept` writes it",
        "3: lint.l.baselin: no key 'baselin' here; did you mean 'baseline'?",
        "5: tasks[0].check.a: `run` is missing: shell commands, one after another",
        "5: tasks[0].check.a.rn: no key 'rn' here; did you mean 'run'?",
        "5: tasks[0].check.b.hiden: no key 'hiden' here; did you mean 'hidden'?",
    ]


def test_a_budget_is_tokens_in_short_and_money(project: Path) -> None:
    plan = load(
        project,
        f"version: 1\nproject: shop\ngenerate: {{budget: {{tokens: 2M, cost: 5, tokens_per_kill: 1.5k}}}}\n{A_TASK}",
    )
    assert plan.generate.budget == model.Budget(2_000_000, 5.0, 1500)
    said = problems_in(project, "version: 1\nproject: shop\ngenerate: {budget: {tokens: 2m, cost: free}}\n")
    assert any("generate.budget.tokens: expected a whole number of tokens, or text such as" in line for line in said)
    assert any(
        "generate.budget.cost: expected an amount in USD, more than 0 and at most 1,000,000, got 'free'" in line
        for line in said
    )
