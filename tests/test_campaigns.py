"""The campaigns that change our own code notice what is missed, and what nobody misses. Neither needs a real drive."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from campaigns import guards, mutants
from campaigns.guards import NOTICED, SPOILT, UNNOTICED, Guard

ROOT = Path(__file__).parents[1]
TINY = """\
def small(n: int) -> bool:
    return n < 3


def label(n: int) -> str:
    return "few" if small(n) else "many"
"""
TESTS = """\
import time

from pipeline.tiny import label, small


def test_a_slow_one():
    time.sleep(0.05)
    assert label(1) == "few"


def test_a_quick_one():
    assert small(1) and not small(9)
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A project with one module, and its tests."""
    project = {"pipeline/__init__.py": "", "pipeline/tiny.py": TINY, "tests/test_tiny.py": TESTS, "pyproject.toml": ""}
    for path, text in project.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def changed(place: Path, *changes: tuple[str, str], options: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """What the command says of these changes to the module: its exit status, its lines."""
    program = f"""
        import sys
        from pathlib import Path
        from campaigns import mutants

        def every(source):
            for old, new in {changes!r}:
                at = source[:source.index(old)].count("\\n")
                yield mutants.Mutant("Change", at + 1, old, new, source.replace(old, new))

        mutants.ROOT, mutants.TESTS, mutants.mutants = Path({str(place)!r}), {{"tiny": "test_tiny.py"}}, every
        mutants.CPU = 2
        sys.argv[1:] = ["tiny", *{options!r}]
        sys.exit(mutants.main())
    """
    return python(program, place)


def python(program: str, cwd: Path) -> tuple[int, list[str]]:
    words = [sys.executable, "-c", textwrap.dedent(program)]
    env = {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout.splitlines()


def test_of_changes_to_a_module_those_that_no_test_notices_are_printed_and_all_are_counted(tiny: Path) -> None:
    code, said = changed(
        tiny, ("n < 3", "n < 4"), ("n < 3", "n < 0"), ('"many"', '"a lot"'), ("n < 3", "[0 for _ in iter(int, 1)]"),
        ("def small", "no_such_name\n\n\ndef small"), ("n < 3", "n is 3"),
    )  # fmt: skip
    assert (code, said[:-1]) == (0, ["pipeline/tiny.py:2: Change: n < 3 -> n < 4",
                                     'pipeline/tiny.py:6: Change: "many" -> "a lot"'])  # fmt: skip
    assert said[-1] == "tiny: 6 mutants, 6 run, {'killed': 3, 'killed by a limit': 1, 'survived': 2}"


def test_what_a_record_says_was_killed_is_counted_and_not_run_again(tiny: Path) -> None:
    changes, options = (("n < 3", "n < 4"), ("n < 3", "n < 0")), ("--record", str(tiny / "record"))
    changed(tiny, *changes, options=options)
    (tiny / "tests/test_tiny.py").write_text(
        "from pipeline.tiny import small\n\n\ndef test_it():\n    assert not small(3)\n"
    )
    said = [changed(tiny, *changes, options=options)[1] for _ in range(2)]  # nothing asks about small(0) any more
    assert said == [["tiny: 2 mutants, 2 run, {'killed': 2}"]] * 2
    assert len((tiny / "record").read_text().splitlines()) == 3


def test_a_module_whose_tests_fail_as_it_is_has_no_score(tiny: Path) -> None:
    (tiny / "tests/test_tiny.py").write_text("def test_it():\n    assert False\n")
    assert changed(tiny, ("n < 3", "n < 4")) == (1, ["the tests of tiny fail on the code as it is"])


def test_a_change_is_met_by_the_tests_that_come_to_its_statement_the_quickest_first() -> None:
    source = textwrap.dedent("""\
        import enum


        class Size:
            many = 3

            def label(self, n):
                if (
                    n <
                    self.many
                ):
                    return "few"
                return (lambda: "many")()
        """)
    seen = {
        "slow": mutants.Seen(2.0, [8, 9, 10, 12]),
        "quick": mutants.Seen(1.0, [9, 13]),
        "none": mutants.Seen(0.5, []),
    }

    def met(line: int) -> list[str]:
        return mutants.tests_for(mutants.Mutant("", line, "", "", ""), source, seen)

    assert (met(8), met(10), met(12), met(13)) == (["quick", "slow"], ["quick", "slow"], ["slow"], ["quick"])
    assert met(5) == met(7) == ["none", "quick", "slow"]


def test_the_lines_that_a_test_comes_to_are_noted(tiny: Path) -> None:
    program = f"""
        import json
        from pathlib import Path
        from campaigns import mutants

        mutants.ROOT = Path({str(tiny)!r})
        note = Path({str(tiny / "note")!r})
        list(mutants.run("tiny", [({TINY!r}, ["tests/test_tiny.py"])], 1, note))
        print(json.dumps([sorted(seen["lines"]) for seen in json.loads(note.read_text()).values()]))
    """
    assert python(program, tiny) == (0, ["[[2, 6], [2]]"])


def test_each_change_that_means_something_is_one_mutant_and_annotations_mean_nothing() -> None:
    pytest.importorskip("cosmic_ray", reason="pip install -e '.[mutants]'")
    found = list(mutants.mutants(TINY))
    assert {m.after for m in found} >= {"return n <= 3", "return n > 3"}
    assert len({m.code for m in found}) == len(found) > 4
    assert all(m.line in (2, 6) for m in found)


def test_a_guard_that_is_taken_away_is_noticed_or_not_and_its_file_is_put_back(tiny: Path) -> None:
    def guard(old: str, new: str, test: str) -> Guard:
        return Guard("", "tiny.py", old, new, f"test_tiny.py{test}")

    taken = [
        guard("n < 3", "True", "::test_a_quick_one"),
        guard("n < 3", "n < 4", ""),
        guard("n < 3", "n <", ""),
        guard("n < 3", "True", "::test_a_slow_one"),
    ]
    assert [how for _, how in guards.run(taken, tiny)] == [NOTICED, UNNOTICED, SPOILT, UNNOTICED]
    assert (tiny / "pipeline/tiny.py").read_text() == TINY
    with pytest.raises(ValueError, match="has 'n' 9 times"):
        list(guards.run([guard("n", "m", "")], tiny))


def test_each_guard_is_where_its_entry_says_and_the_docs_name_it_with_its_test() -> None:
    known = guards.load()
    for guard in known:
        assert guard.without((ROOT / "pipeline" / guard.file).read_text())
        file, _, test = guard.test.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / "tests" / file).read_text()
    section = (ROOT / "docs/trust.md").read_text().split("\n## Guards\n")[1]
    rows = re.findall(r"^\| guard \|.*\n(?:\|.*\n?)*", section, re.MULTILINE)
    assert [rows[0].strip()] == [guards.table(known)]
