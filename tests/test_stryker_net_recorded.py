"""What Stryker.NET, vstest and dotnet said in real runs of examples/shop-net, read again without .NET."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from pipeline.engines import EngineError, Measured, TestRun
from pipeline.engines.stryker_net import (
    StrykerNet,
    baseline,
    by_engine,
    dotnet,
    host,
    picture,
    projects,
    report,
    running,
    settings,
    stryker,
)
from pipeline.engines.stryker_net.builds import Builds
from pipeline.engines.stryker_net.outcomes import failure
from pipeline.engines.stryker_net.suite import CSharpSuite
from pipeline.engines.stryker_net.testfiles import TestFiles
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import ReportError, Status
from pipeline.process import Finished
from pipeline.results import Outcome

RECORDED = Path(__file__).parent / "recorded" / "stryker_net"
SHOP_NET = Path(__file__).parent.parent / "examples" / "shop-net"
ROOT = "/shop-net"  # what the paths in the records were turned into
NAMES = ("Cart", "Pricing", "Rates", "Slug", "Stock")


def scope(name: str, *more: str) -> Scope:
    files = tuple(f"src/Shop/{n}.cs" for n in (name, *more))
    return Scope(name, files, (f"test/Shop.Tests/{name}Tests.cs",), f"test/Shop.Tests/{name}MutantTests.cs")


@pytest.fixture(scope="module")
def everything() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((RECORDED / "all.json").read_text())
    return loaded


def sources(content: dict[str, Any]) -> dict[str, str]:
    return {key.removeprefix(f"{ROOT}/"): entry["source"] for key, entry in content["files"].items()}


# -- the report


def test_a_scope_of_a_run_over_all_is_told_its_own_mutants_with_paths_of_the_repository(
    everything: dict[str, Any],
) -> None:
    read = report.Report.of(everything, ROOT)
    total = 0
    for name in NAMES:
        s = scope(name)
        measured, ids = report.scope_result(s, read, sources(everything), s.tests or ())
        raw = Counter(m["status"] for m in everything["files"][f"{ROOT}/src/Shop/{name}.cs"]["mutants"])
        assert measured.outcome is Outcome.OK
        assert Counter(str(m.status) for m in measured.mutants) == raw  # each is covered by its own tests alone here
        assert {m.file for m in measured.mutants} == set(s.mutate)
        assert len(ids) == len(measured.mutants) == len(set(ids.values()))
        total += len(measured.mutants)
    assert total == 153


def test_what_only_other_scopes_tests_kill_or_reach_is_not_killed_or_reached_here(everything: dict[str, Any]) -> None:
    read = report.Report.of(everything, ROOT)
    mine = ("test/Shop.Tests/CartTests.cs",)
    measured, _ = report.scope_result(scope("Pricing"), read, sources(everything), mine)
    assert {m.status for m in measured.mutants} == {Status.NO_COVERAGE, Status.IGNORED}
    rates, _ = report.scope_result(scope("Rates"), read, sources(everything), mine)
    assert {m.status for m in rates.mutants if m.static and m.status is not Status.COMPILE_ERROR} == {Status.SURVIVED}


def test_the_tests_that_reach_a_mutant_are_named_one_by_one_and_all_of_them_for_a_static_one(
    everything: dict[str, Any],
) -> None:
    read = report.Report.of(everything, ROOT)
    measured, _ = report.scope_result(scope("Rates"), read, sources(everything), ("test/Shop.Tests/RatesTests.cs",))
    reached = {m.replacement: measured.reached[m.key] for m in measured.mutants if m.static or m.line == 18}
    assert reached["7m - 0m"] == ("test/Shop.Tests/RatesTests.cs",)
    assert reached["net * Of(kind) * 100"] == ("test/Shop.Tests/RatesTests.cs::Shop.Tests.RatesTests.TaxIsAdded",)


def test_a_run_over_one_file_says_the_same_of_it_as_one_over_all(everything: dict[str, Any]) -> None:
    alone = json.loads((RECORDED / "rates.json").read_text())
    s = scope("Rates")

    def told(content: dict[str, Any]) -> dict[str, Status]:
        read = report.Report.of(content, ROOT)
        measured, _ = report.scope_result(s, read, sources(everything), s.tests or ())
        return {m.key: m.status for m in measured.mutants}

    assert told(alone) == told(everything)


def altered(content: dict[str, Any], name: str, **fields: Any) -> dict[str, Any]:
    changed = copy.deepcopy(content)
    for mutant in changed["files"][f"{ROOT}/src/Shop/{name}.cs"]["mutants"]:
        mutant.update(fields)
    return changed


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"status": "Ignored", "statusReason": "Removed by mutate filter"}, Outcome.ALL_FILTERED),
        ({"status": "Ignored", "statusReason": "Removed by excluded mutation filter"}, Outcome.HOLLOW_REPORT),
        ({"status": "Timeout"}, Outcome.HOLLOW_REPORT),
        ({"location": {"start": {"line": 999, "column": 1}, "end": {"line": 999, "column": 2}}}, None),
    ],
)
def test_a_report_that_cannot_be_true_is_never_nothing_to_do(
    everything: dict[str, Any], fields: dict[str, Any], outcome: Outcome | None
) -> None:
    read = report.Report.of(altered(everything, "Rates", **fields), ROOT)
    if outcome is None:
        with pytest.raises(ReportError, match="is at 999:1"):
            report.scope_result(scope("Rates"), read, sources(everything), ())
    else:
        s = scope("Rates")
        assert report.scope_result(s, read, sources(everything), s.tests or ())[0].outcome is outcome


def test_a_file_that_the_report_does_not_know_and_one_without_mutants_are_told_apart(
    everything: dict[str, Any],
) -> None:
    changed = copy.deepcopy(everything)
    changed["files"][f"{ROOT}/src/Shop/Rates.cs"]["mutants"] = []
    read = report.Report.of(changed, ROOT)
    assert report.scope_result(scope("Rates"), read, sources(changed), ())[0].outcome is Outcome.NO_MUTANTS
    measured, _ = report.scope_result(scope("Nowhere"), read, sources(changed), ())
    assert measured.outcome is Outcome.HOLLOW_REPORT and "src/Shop/Nowhere.cs" in measured.detail


# -- what it said


@pytest.mark.parametrize(
    ("log", "outcome", "said"),
    [
        ("fails-first.log", Outcome.TESTS_FAIL_FIRST, "Shop.Tests.SlugTests.WordsAreJoinedByDashes"),
        ("bad-option.log", Outcome.BAD_CONFIG, "Unrecognized option '--no-such-option'"),
        ("bad-config.log", Outcome.BAD_CONFIG, "The given mutation level (Extreme) is invalid"),
        ("no-filter-match.log", Outcome.NO_TESTS, "No projects have test cases matching"),
        ("compile.log", Outcome.BUILD_ERROR, "Pricing.cs(40,16): error CS0103"),
    ],
)
def test_a_run_without_a_report_is_named_by_what_it_said(log: str, outcome: Outcome, said: str) -> None:
    finished = Finished(("dotnet",), 1, (RECORDED / log).read_bytes(), b"", 1.0, None, None)
    measured = failure(finished, Path("log"))
    assert measured.outcome is outcome and said in measured.detail and measured.detail.endswith("(log: log)")


@pytest.mark.parametrize(
    ("exit_code", "timed_out", "outcome"),
    [
        (-9, False, Outcome.SIGNAL), (-15, True, Outcome.TIME_LIMIT), (0, False, Outcome.NO_REPORT),
        (1, False, Outcome.CRASHED),
    ],
)  # fmt: skip
def test_a_run_that_said_nothing_is_named_by_how_it_ended(exit_code: int, timed_out: bool, outcome: Outcome) -> None:
    finished = Finished(("dotnet",), exit_code, b"", b"", 1.0, None, None, timed_out)
    assert failure(finished, Path("log")).outcome is outcome


def test_errors_of_a_build_have_file_and_line_once_each() -> None:
    line = "/r/src/Shop/Pricing.cs(40,16): error CS0103: The name 'x' does not exist [/r/src/Shop/Shop.csproj]"
    nuget = "/r/T.csproj : error NU1101: Unable to find package nunit. [/r/T.csproj]"
    said = f"{line}\n\nBuild FAILED.\n\n{line}\n{nuget}\n    1 Error(s)\n"
    assert list(map(str, dotnet.errors_of(said, Path("/r")))) == [
        "src/Shop/Pricing.cs:40: CS0103: The name 'x' does not exist",
        "T.csproj: NU1101: Unable to find package nunit.",
    ]


# -- tests


def test_a_theory_fails_where_one_of_its_cases_does_and_each_failure_has_its_kind() -> None:
    cases = host.cases_of((RECORDED / "xunit-mutant.trx").read_bytes())
    assert len(cases) == 5 and {c.type for c in cases} == {"Shop.Tests.PricingTests"}
    found = running.results(cases, lambda type_, _: f"{type_}.cs", Path(f"{ROOT}/test/Shop.Tests"))
    assert {(r.title, r.state, r.kind) for r in found} == {
        ("TotalIsPriceTimesQuantity", "failed", "exception"), ("ANegativePriceIsRefused", "failed", "assertion"),
        ("PostageIsFreeForLargeOrders", "passed", ""), ("ABudgetPaysForSoManyPieces", "passed", ""),
    }  # fmt: skip
    assert {r.file for r in found} == {"Shop.Tests.PricingTests.cs"}


TESTS = "/r/test"
CODE = "   at Shop.Pricing.Total(Decimal price)\n"
TEST = "   at Shop.Tests.PricingTests.Adds() in /r/test/PricingTests.cs:line 9\n"
LIBRARY = "   at System.Collections.Generic.Dictionary`2.get_Item(TKey key)\n"


@pytest.mark.parametrize(
    ("message", "stack", "kind"),
    [
        ("Assert.Equal() Failure: Values differ", TEST, "assertion"),
        ("  Assert.That(1, Is.EqualTo(2))\n  Expected: 2\n  But was:  1", TEST, "assertion"),
        ("Assert.AreEqual failed. Expected:<2>. Actual:<1>. ", TEST, "assertion"),
        ("total: it should be two", TEST, "assertion"),
        ("System.DivideByZeroException : Attempted to divide by zero.", CODE + TEST, "exception"),
        ("Shop.OutOfStock : none left", CODE + TEST, "exception"),
        ("System.Collections.Generic.KeyNotFoundException : no key", LIBRARY + CODE + TEST, "exception"),
        ("System.Collections.Generic.KeyNotFoundException : no key", LIBRARY + TEST, "other"),
        ("Test method T.M threw exception: \nSystem.Exception: x", CODE + TEST, "exception"),
        ("System.Exception : x", "   at Shop.Tests.PricingTests.<>c.<Adds>b__0()\n" + CODE, "other"),
        ("System.Exception : x", "   at Shop.Tests.Helpers.Make() in /r/test/Helpers.cs:line 3\n" + CODE, "other"),
        ("System.Exception : x", "", "other"),
        ("OneTimeSetUp: System.Exception : x", CODE, "other"),
        ("[Test Class Cleanup Failure (T)]: System.Exception : x", CODE, "other"),
        ("Test execution timed out after 100 milliseconds", "", "other"),
    ],
)
def test_how_a_test_failed_is_told_by_its_message_and_by_whose_frame_is_the_first(
    message: str, stack: str, kind: str
) -> None:
    case = host.Case("Shop.Tests.PricingTests", "Adds", "Failed", message, stack)
    assert running.kind_of(case, Path(TESTS)) == kind


def test_a_filter_takes_names_for_what_they_are_and_is_left_out_where_it_would_be_too_long() -> None:
    assert running.filter_of(["N.C", "N.D"]) == "FullyQualifiedName~N.C.|FullyQualifiedName~N.D."
    assert running.filter_of([f"N.C{i}" for i in range(9000)]) == ""


def test_what_a_test_host_has_answered_is_read_to_the_test_that_was_running(tmp_path: Path) -> None:
    assert host.read(tmp_path / "answer") == host.Answer()
    begun = [
        "start\tN.C\tOne",
        "end\tN.C\tOne\tFailed\t0.25\tC:\\\\new\\n\\tline\t  at N.C.One()\\r\\n",
        "start\tN.C\tTwo",
    ]
    (tmp_path / "answer").write_text("\n".join(begun) + "\nend\tN")  # the rest of a line may be missing
    answer = host.read(tmp_path / "answer")
    assert answer.cases == (host.Case("N.C", "One", "Failed", "C:\\new\n\tline", "  at N.C.One()\r\n", 0.25),)
    assert (answer.whole, answer.running) == (False, "Two")
    (tmp_path / "answer").write_text("\n".join([*begun, "end\tN.C\tTwo\tPassed\t1\t\t", "error\tx", "done", ""]))
    answer = host.read(tmp_path / "answer")
    assert (answer.whole, answer.running, answer.errors) == (True, "", ("x",))
    assert [c.outcome for c in answer.cases] == ["Failed", "Passed"]


def test_what_was_covered_is_read_from_what_each_assembly_wrote_and_is_unknown_where_none_did(tmp_path: Path) -> None:
    assert running.covered_in(tmp_path) is None
    (tmp_path / "coverage-a1.txt").write_text("3,1;4")
    (tmp_path / "coverage-b2.txt").write_text(";")
    assert running.covered_in(tmp_path) == ("3", "1", "4")


# -- projects

LIBRARY_PROJECT = '<Project Sdk="Microsoft.NET.Sdk"></Project>'
TEST_PROJECT = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>{more}</PropertyGroup><ItemGroup>
<PackageReference Include="{package}" /><ProjectReference Include="..\\{reference}" /></ItemGroup></Project>"""


def two(root: Path, package: str = "xunit", more: str = "", reference: str = "src\\A\\A.csproj") -> projects.Projects:
    (root / "src/A").mkdir(parents=True)
    (root / "src/B").mkdir(parents=True)
    (root / "test").mkdir()
    for name in "AB":
        (root / f"src/{name}/{name}.csproj").write_text(LIBRARY_PROJECT)
    test = TEST_PROJECT.format(package=package, more=more, reference=reference)
    (root / "test/T.csproj").write_text(test)
    return projects.read(root)


def of(mutate: tuple[str, ...] = ("src/A/a.cs",), write: str = "test/AMutantTests.cs", *tests: str) -> Scope:
    return Scope("s", mutate, tests or None, write)


def test_a_scope_has_the_project_around_its_files_and_the_one_around_what_it_writes(tmp_path: Path) -> None:
    pair = two(tmp_path).pair(of(), EngineConfig())
    assert (pair.source.path, pair.tests.path, pair.tests.runner) == ("src/A/A.csproj", "test/T.csproj", "vstest")


@pytest.mark.parametrize(
    ("package", "more", "runner"),
    [
        ("xunit.v3", "<OutputType>Exe</OutputType>", "mtp"), ("nunit", "", "vstest"), ("MSTest", "", "vstest"),
        ("MSTest.TestFramework", "", "vstest"),
        ("MSTest", "<EnableMSTestRunner>true</EnableMSTestRunner>", "mtp"),
        ("xunit", "<OutputType>Exe</OutputType>", "vstest"),
    ],
)  # fmt: skip
def test_the_runner_is_what_the_test_project_is(tmp_path: Path, package: str, more: str, runner: str) -> None:
    assert two(tmp_path, package, more).pair(of(), EngineConfig()).tests.runner == runner


def test_tests_of_tunit_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"test/T.csproj: tests of TUnit cannot be run one by one here"):
        two(tmp_path, "TUnit").pair(of(), EngineConfig())


@pytest.mark.parametrize(
    ("sdk", "more", "runner"),
    [
        ("MSTest.Sdk/3.10.0", "", "mtp"), ("MSTest.Sdk", "", "mtp"),
        ("MSTest.Sdk/4.0.0", "<EnableMSTestRunner>false</EnableMSTestRunner>", "vstest"),
    ],
)  # fmt: skip
def test_a_project_of_mstests_own_sdk_is_one_of_mstest(tmp_path: Path, sdk: str, more: str, runner: str) -> None:
    two(tmp_path)
    reference = '<ItemGroup><ProjectReference Include="../src/A/A.csproj" /></ItemGroup>'
    text = f'<Project Sdk="{sdk}"><PropertyGroup>{more}</PropertyGroup>{reference}</Project>'
    (tmp_path / "test/T.csproj").write_text(text)
    tests = projects.read(tmp_path).pair(of(), EngineConfig()).tests
    assert (tests.is_test, tests.runner) == (True, runner)
    assert "MSTest ([TestMethod]" in CSharpSuite().framework(tmp_path, "test/AMutantTests.cs")


@pytest.mark.parametrize(
    ("package", "said"),
    [("xunit", "xunit ([Fact]"), ("NUnit", "NUnit ([Test]"), ("MSTest", "MSTest ([TestMethod]"), ("Z", "the test fr")],
)
def test_a_prompt_names_the_framework_that_the_test_projects_packages_are_of(
    tmp_path: Path, package: str, said: str
) -> None:
    two(tmp_path, package)
    assert CSharpSuite().framework(tmp_path, "test/AMutantTests.cs").startswith(f"C#, {said}")
    (tmp_path / "test/T.csproj").write_text("no XML")
    assert CSharpSuite().framework(tmp_path, "test/AMutantTests.cs").startswith("C#, the test framework, in the style")


@pytest.mark.parametrize(
    ("scope_", "reference", "said"),
    [
        (of(("src/A/a.cs", "src/B/b.cs")), "src\\A\\A.csproj", "over two projects, src/A/A.csproj and src/B/B.csproj"),
        (of(("docs/a.cs",)), "src\\A\\A.csproj", "no .csproj in the folder of docs/a.cs or above"),
        (of(), "src\\B\\B.csproj", "test/T.csproj does not reference src/A/A.csproj"),
        (of(write="src/A/x.cs"), "src\\A\\A.csproj", "src/A/A.csproj: its tests are in test/T.csproj"),
        (of(write="src/A/x.cs"), "src\\B\\B.csproj", "no test project references it"),
    ],
)  # fmt: skip
def test_a_scope_without_two_projects_is_told_which_are_in_doubt(
    tmp_path: Path, scope_: Scope, reference: str, said: str
) -> None:
    with pytest.raises(EngineError, match=r".") as raised:
        two(tmp_path, reference=reference).pair(scope_, EngineConfig())
    assert said in str(raised.value) and raised.value.outcome is Outcome.BAD_CONFIG


def test_tests_in_two_projects_are_named_and_the_plan_decides(tmp_path: Path) -> None:
    two(tmp_path)
    (tmp_path / "more").mkdir()
    test = TEST_PROJECT.format(package="nunit", more="", reference="src\\A\\A.csproj")
    (tmp_path / "more/U.csproj").write_text(test)
    known = projects.read(tmp_path)
    with pytest.raises(EngineError, match=r"in two projects, more/U.csproj and test/T.csproj"):
        known.pair(of(("src/A/a.cs",), "test/x.cs", "more/y.cs"), EngineConfig())
    config = EngineConfig(tests="more/U.csproj", project="src/A/A.csproj")
    assert known.pair(of(("src/A/a.cs",), "test/x.cs"), config).tests.path == "more/U.csproj"
    with pytest.raises(EngineError, match=r"engine.tests: U.csproj is no project file; there are more/U.csproj"):
        known.pair(of(), EngineConfig(tests="U.csproj"))


def test_what_takes_part_in_a_build_is_the_projects_files_and_what_is_above_them_but_no_output(tmp_path: Path) -> None:
    known = two(tmp_path)
    for name in ("Directory.Build.props", "src/A/a.cs", "src/A/obj/x.cs", "src/B/b.cs", "test/t.cs", "docs.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("<Project />")
    some = known.reached(known.by_path["test/T.csproj"])
    assert projects.files(tmp_path, some, known.by_path.values()) == (
        "Directory.Build.props", "src/A/A.csproj", "src/A/a.cs", "test/T.csproj", "test/t.cs",
    )  # fmt: skip


def test_what_a_project_takes_from_other_folders_takes_part_too(tmp_path: Path) -> None:
    two(tmp_path)
    items = (
        '<Compile Include="..\\Shared\\**\\*.cs;$(Own)/x.cs" Link="x" /><Compile Include="own.cs" />'
        '<Import Project="$(MSBuildThisFileDirectory)../../common.targets" />'
        '<EmbeddedResource Include="../../data file.txt" /><None Include="../../../above.md" />'
        '<Content Include="../[1]/**.t?t; ../.." /><Content Include="../**/none.md" />'
    )
    (tmp_path / "src/A/A.csproj").write_text(f"<Project>{items}</Project>")
    shared = ("src/Shared/a.cs", "src/Shared/more/b.cs", "common.targets", "data file.txt", "src/[1]/more/a.txt")
    for name in (*shared, "src/Shared/obj/c.cs", "src/Shared/d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    known = projects.read(tmp_path)
    found = projects.files(tmp_path, known.reached(known.by_path["test/T.csproj"]), known.by_path.values())
    assert found == tuple(sorted(("src/A/A.csproj", "test/T.csproj", *shared)))


def test_what_is_taken_from_above_the_projects_folder_is_said_before_a_run(tmp_path: Path) -> None:
    root = tmp_path / "sub"
    two(root)
    (tmp_path / ".git").mkdir()
    engine = StrykerNet(EngineConfig(use="stryker-net"))
    assert engine.notes(root, [of()]) == []
    (tmp_path / "Directory.Build.props").write_text("<Project />")
    (root / "src/A/A.csproj").write_text('<Project><ProjectReference Include="../../../lib/L.csproj" /></Project>')
    (note,) = engine.notes(root, [of()])
    assert note.startswith("../Directory.Build.props, ../lib/L.csproj: above the project's folder: no change of it is")


# -- settings and the picture


@pytest.mark.parametrize("name", settings.NAMES)
def test_of_a_stryker_config_what_is_theirs_is_kept_and_the_rest_is_named(tmp_path: Path, name: str) -> None:
    keys = {"mutation-level": "Advanced", "ignore-mutations": ["linq"], "reporters": ["html"], "concurrency": 8}
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / name).write_text(json.dumps({"stryker-config": keys}))
    found = settings.find(tmp_path, "test", None)
    assert found.theirs == {"mutation-level": "Advanced", "ignore-mutations": ["linq"]}
    assert found.note == f"test/{name}: concurrency, reporters: set by doit-mutate, the rest is respected"


def test_what_of_a_stryker_config_does_not_count_is_said_once_before_a_run(tmp_path: Path) -> None:
    two(tmp_path)
    engine = StrykerNet(EngineConfig(use="stryker-net"))
    scopes = [of(), of(("src/A/b.cs",)), of(write="nowhere.cs")]
    assert engine.notes(tmp_path, scopes) == []
    (tmp_path / "test/stryker-config.json").write_text('{"stryker-config": {"since": {"enabled": true}}}')
    assert engine.notes(tmp_path, scopes[:2]) == [
        "test/stryker-config.json: since: set by doit-mutate, the rest is respected"
    ]


def test_a_config_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "stryker-config.json").write_text("{}")
    with pytest.raises(EngineError, match=r"stryker-config.json: not a stryker-config"):
        settings.find(tmp_path, "", None)
    with pytest.raises(EngineError, match=r"engine.config: x.json is not a file"):
        settings.find(tmp_path, "", "x.json")


def looked(what: Callable[[], bool]) -> bool:
    """Whether that came true within a few looks."""
    for _ in range(30):
        if what():
            return True
        time.sleep(0.1)
    return False


def test_the_picture_is_of_the_mutated_assembly_and_of_no_other(tmp_path: Path) -> None:
    assembly = tmp_path / "Shop.dll"
    assembly.write_bytes(b"MutantControl of another run")
    with picture.taken(assembly) as found:
        time.sleep(0.4)
        assert found.content is None  # the original does not lie beside it: nobody tests with it now
        assembly.write_bytes(b"original")
        (tmp_path / "Shop.dll.stryker-unchanged").write_bytes(b"original")
        time.sleep(0.4)
        assert found.content is None
        assembly.write_bytes(b"with MutantControl")
        assert looked(lambda: found.content is not None)
        (tmp_path / "Shop.dll.stryker-unchanged").replace(assembly)
        time.sleep(0.4)
    assert attrs.astuple(found) == (b"with MutantControl", False)


@pytest.mark.parametrize("between", [b"original", None], ids=["built-again", "written-over"])
def test_an_assembly_that_is_mutated_twice_in_one_run_is_also_another_runs(
    tmp_path: Path, between: bytes | None
) -> None:
    assembly = tmp_path / "Shop.dll"
    (tmp_path / "Shop.dll.stryker-unchanged").write_bytes(b"original")
    assembly.write_bytes(b"MutantControl one")
    with picture.taken(assembly) as found:
        assert looked(lambda: found.content is not None) and not found.disturbed
        if between is not None:
            assembly.write_bytes(between)
            time.sleep(0.4)
        assembly.write_bytes(b"MutantControl one" if between else b"MutantControl two")
        assert looked(lambda: found.disturbed)


def test_what_a_run_that_was_ended_has_left_is_put_away_before_the_next_one(tmp_path: Path) -> None:
    assembly = tmp_path / "Shop.dll"
    assembly.write_bytes(b"MutantControl of one that was ended")
    (tmp_path / "Shop.dll.stryker-unchanged").write_bytes(b"original")
    picture.put_right(assembly)
    assert not list(tmp_path.iterdir())  # the build puts the assembly there again
    assembly.write_bytes(b"original")
    picture.put_right(assembly)
    assert assembly.read_bytes() == b"original"


# -- many scopes in one run

FIRST, ALONE, OWN = "9001", "9002", "9003"  # ids that the record does not have


def shared(content: dict[str, Any]) -> dict[str, Any]:
    """The report of a run that has ended at the first failure: of Pricing's mutants one was killed by a test of Cart's
    before its own came to it, one by a test of Cart's that alone runs through it, one by its own."""
    changed = copy.deepcopy(content)
    mutants = changed["files"][f"{ROOT}/src/Shop/Pricing.cs"]["mutants"]
    killed = [m for m in mutants if m["status"] == "Killed" and m["coveredBy"]]
    cart = changed["testFiles"][f"{ROOT}/test/Shop.Tests/CartTests.cs"]["tests"][0]["id"]
    killed[0] |= {"id": FIRST, "coveredBy": [*killed[0]["coveredBy"], cart], "killedBy": [cart]}
    killed[1] |= {"id": ALONE, "coveredBy": [cart], "killedBy": [cart]}
    killed[2] |= {"id": OWN, "coveredBy": [*killed[2]["coveredBy"], cart]}
    return changed


@pytest.mark.parametrize(
    ("ran", "status"),
    [
        (
            [running.Ran(Outcome.OK, cases=(host.Case("a", "b", "Failed"), host.Case("a", "c", "Passed")))],
            Status.KILLED,
        ),
        ([running.Ran(Outcome.OK, cases=(host.Case("a", "c", "Passed"),))], Status.SURVIVED),
        ([running.Ran(Outcome.TIME_LIMIT)], Status.TIMEOUT),
        ([running.Ran(Outcome.CRASHED)], Status.SURVIVED),  # the engine is asked again, and names every killer
        ([], Status.SURVIVED),  # there is no picture: the same
    ],
    ids=["killed", "survived", "endless", "died", "no-picture"],
)
def test_of_a_mutant_that_others_tests_killed_first_the_scopes_own_are_asked(
    everything: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[running.Ran], status: Status
) -> None:
    for path, text in sources(everything).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    scopes = [scope("Pricing"), scope("Cart")]
    read = report.Report.of(shared(everything), ROOT)
    started: list[stryker.Question] = []
    tests: list[tuple[str | None, host.Only | None]] = []

    def engine(
        config: EngineConfig, builds: Builds, root: Path, asked: stryker.Question, halt: stryker.Halt | None = None
    ) -> stryker.Run:
        started.append(asked)
        return stryker.Run(read, b"MutantControl" if ran else b"", None, asked.killers)

    def process(*words: Any, **more: Any) -> running.Ran:
        tests.append((more["mutant"], more["only"]))
        if more["mutant"] == FIRST:
            return ran[0]
        mutant = more["mutant"] is not None
        cases = (host.Case(f"Shop.Tests.{n}Tests", "T", "Failed" if mutant else "Passed") for n in ("Cart", "Pricing"))
        return running.Ran(Outcome.OK, cases=tuple(cases), seconds=1.0)

    monkeypatch.setattr("pipeline.engines.stryker_net.stryker.run", engine)
    monkeypatch.setattr("pipeline.engines.stryker_net.running.run", process)
    measured = baselines(tmp_path, *scopes).measure(scopes)
    again = status is Status.SURVIVED and (not ran or ran[0].outcome is Outcome.CRASHED)
    assert [(q.killers, len(q.files)) for q in started] == [(False, 2)] + [(True, 1)] * again
    assert measured["Pricing"].outcome is measured["Cart"].outcome is Outcome.OK
    ids = measured["Pricing"].switch.ids if measured["Pricing"].switch else {}
    statuses = {ids[m.key]: m.status for m in measured["Pricing"].mutants}
    assert statuses[FIRST] is status and statuses[ALONE] is Status.NO_COVERAGE and statuses[OWN] is Status.KILLED
    asked = [only for mutant, only in tests if mutant == FIRST]
    assert len(asked) == len(ran)
    for only in asked:
        assert only and only.tests and all(t.startswith("Shop.Tests.PricingTests.") for t in only.tests)
        assert not only.types


@pytest.mark.parametrize("workers", [1, 2])
def test_where_a_test_fails_first_the_engine_that_has_been_started_is_ended_and_asked_without_that_scope(
    everything: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """With one worker it is not started before the tests have run: such tests may not meet themselves."""
    (tmp_path / "src/Shop").mkdir(parents=True)
    (tmp_path / "src/Shop/Cart.cs").write_text(sources(everything)["src/Shop/Cart.cs"])
    scopes = [scope("Cart"), scope("Rates")]
    begun, events = threading.Event(), []

    def engine(
        config: EngineConfig, builds: Builds, root: Path, asked: stryker.Question, halt: stryker.Halt | None = None
    ) -> stryker.Run | Measured:
        events.append(f"engine {asked.only}")
        if len(asked.files) > 1:
            begun.set()
            assert halt and looked(halt)
            return Measured(Outcome.SIGNAL)
        return stryker.Run(report.Report.of(everything, ROOT), b"", None)

    def process(*words: Any, **more: Any) -> running.Ran:
        assert workers == 1 or begun.wait(10)
        events.append("tests")
        cases = (
            host.Case("Shop.Tests.CartTests", "A", "Passed"),
            host.Case("Shop.Tests.RatesTests", "B", "Failed", "!"),
        )
        return running.Ran(Outcome.OK, cases=cases)

    monkeypatch.setattr("pipeline.engines.stryker_net.stryker.run", engine)
    monkeypatch.setattr("pipeline.engines.stryker_net.running.run", process)
    measured = baselines(tmp_path, *scopes, workers=workers).measure(scopes)
    assert measured["Rates"].outcome is Outcome.TESTS_FAIL_FIRST and "RatesTests.B fails" in measured["Rates"].detail
    assert measured["Cart"].outcome is Outcome.OK and measured["Cart"].mutants
    both = "engine FullyQualifiedName~Shop.Tests.CartTests.|FullyQualifiedName~Shop.Tests.RatesTests."
    alone = "engine FullyQualifiedName~Shop.Tests.CartTests."
    assert events == [both, "tests", alone][workers == 1 :]


# -- without a picture


def test_without_a_picture_one_engine_run_for_a_text_says_which_tests_kill_each_mutant(
    everything: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = two(tmp_path)
    asked: list[stryker.Question] = []

    def run(config: EngineConfig, builds: Builds, root: Path, question: stryker.Question) -> stryker.Run:
        asked.append(question)
        return stryker.Run(report.Report.of(everything, ROOT), b"", None)

    monkeypatch.setattr("pipeline.engines.stryker_net.stryker.run", run)
    pair = known.pair(of(), EngineConfig())
    place = tmp_path / "engine.json"
    place.write_bytes(by_engine.request(pair, ["src/Shop/Pricing.cs"]))
    asking = by_engine.ByEngine(EngineConfig(), Builds())
    statuses = set()

    def told(mutant: str, name: str) -> TestRun:
        inputs, classes = ["test/T.csproj"], [f"Shop.Tests.{name}Tests"]
        return asking.test(tmp_path, place, known, inputs, mutant, [f"test/Shop.Tests/{name}Tests.cs"], classes)

    for name in ("Pricing", "Slug"):
        tests = everything["testFiles"][f"{ROOT}/test/Shop.Tests/{name}Tests.cs"]["tests"]
        titles = {t["id"]: t["name"].partition("(")[0].rpartition(".")[2] for t in tests}
        for mutant in everything["files"][f"{ROOT}/src/Shop/{name}.cs"]["mutants"]:
            ran = told(mutant["id"], name)
            statuses.add(mutant["status"])
            if mutant["status"] == "Timeout":
                assert ran.outcome is Outcome.TIME_LIMIT
                continue
            killers = {titles[t] for t in mutant.get("killedBy") or () if t in titles}
            assert {t.title for t in ran.failed} == (killers if mutant["status"] == "Killed" else set())
            assert {t.kind for t in ran.failed} <= {"engine"}
            assert {*ran.passed, *(t.title for t in ran.failed)} == set(titles.values())
    assert statuses >= {"Killed", "Survived", "Timeout"}
    assert [(q.files, q.only, q.killers) for q in asked] == [
        (["src/Shop/Pricing.cs"], f"FullyQualifiedName~Shop.Tests.{name}Tests.", True) for name in ("Pricing", "Slug")
    ]
    (tmp_path / "test/T.csproj").write_text("<Project />")
    told("1", "Slug")
    assert len(asked) == 3


def test_a_partial_class_is_run_for_each_of_its_files_and_each_test_is_of_its_own(tmp_path: Path) -> None:
    part = "namespace L;\npublic partial class CalcTests {{ [Fact] public void {}() {{ }} }}\n"
    for name in ("One", "Two"):
        (tmp_path / f"{name}.cs").write_text(part.format(name))
    project = projects.Project("T.csproj", (), frozenset(), (), {})
    tests = TestFiles.of(tmp_path, project, projects.Projects({"T.csproj": project}))
    assert tests.files == ("One.cs", "Two.cs")
    assert tests.classes({"One.cs"}) == tests.classes({"Two.cs"}) == {"L.CalcTests"}
    assert [tests.file_of("L.CalcTests", name) for name in ("Two", "One", "Inherited")] == [
        "Two.cs",
        "One.cs",
        "One.cs",
    ]


def baselines(root: Path, *scopes: Scope, workers: int = 1) -> baseline.Group:
    """A group of scopes whose pair is built, as far as it says."""
    pair = projects.Pair(*(projects.Project(f"{n}/{n}.csproj", (), frozenset(), (), {}) for n in "AT"))
    built = dotnet.Built({"T": root / "T.dll"}, root)
    mine = {s.name: s.tests or () for s in scopes}
    files = {f"Shop.Tests.{n}Tests": f"test/Shop.Tests/{n}Tests.cs" for n in NAMES}
    tests = TestFiles(tuple(sorted(files.values())), {type_: (file,) for type_, file in files.items()}, {})
    return baseline.Group(
        EngineConfig(use="stryker-net"),
        Builds(),
        host.Hosts(),
        root,
        pair,
        workers,
        root / "log",
        (),
        built,
        tests,
        mine,
    )


def test_a_run_without_a_picture_is_a_measurement_that_says_so_and_one_that_its_picture_denies_is_none(
    everything: dict[str, Any], tmp_path: Path
) -> None:
    for path, text in sources(everything).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    s = scope("Rates")
    group = baselines(tmp_path, s)
    for content in (b"", b"MutantControl"):
        run = stryker.Run(report.Report.of(everything, ROOT), content, None)
        measured = group.of_scope(s, run, 1.0)
        assert measured.outcome is Outcome.OK and measured.fresh == bool(content) and measured.switch is not None
        assert list(measured.switch.files) == [f".doit-mutate/switch/{'A.dll' if content else 'engine.json'}"]


# -- machines where it cannot work


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A folder on a machine whose `dotnet` is this shell text, and that has no tool installed."""

    def make(text: str) -> Path:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/dotnet").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin/dotnet").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        monkeypatch.setenv("DOTNET_CLI_HOME", str(tmp_path / "nobody"))
        (tmp_path / "project").mkdir()
        return tmp_path / "project"

    return make


NO_TOOL = "Could not execute because the specified command or file was not found."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo 6.0.428", r"\.NET SDK 6.0.428 is too old: 8.0 or newer is needed; install the .NET SDK"),
        ("echo No .NET SDKs were found. >&2; exit 1", r"no \.NET SDK fits .*No \.NET SDKs were found.*install the"),
        (
            f'[ "$1" = --version ] && echo 10.0.401 && exit; echo "{NO_TOOL}"; exit 1',
            r"Stryker\.NET is not installed: `dotnet tool install --global dotnet-stryker`",
        ),
    ],
)
def test_what_a_machine_lacks_is_said_with_what_to_install(
    machine: Callable[[str], Path], text: str, said: str
) -> None:
    with pytest.raises(EngineError, match=said) as raised:
        StrykerNet(EngineConfig(use="stryker-net")).version(machine(text))
    assert raised.value.outcome is Outcome.BAD_CONFIG


def test_a_run_without_dotnet_is_refused_before_anything_runs(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    shutil.copytree(SHOP_NET, root, ignore=shutil.ignore_patterns("bin", "obj", "cache", "__pycache__"))
    for words in ("init -q -b main", "add -A", "-c user.name=n -c user.email=n@n commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").symlink_to(shutil.which("git") or "")
    env = {"PATH": str(tmp_path / "bin"), "DOIT_MUTATE_HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "doit", "-n", "1", "baseline"], cwd=root, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "dotnet not found: install the .NET SDK" in ran.stderr and "Traceback" not in ran.stderr
    assert not (root / "cache/ledger.jsonl").exists()


def test_a_global_tool_is_found_though_path_does_not_name_its_folder_yet(machine: Callable[[str], Path]) -> None:
    root = machine('[ "$1" = --version ] && echo 10.0.401 && exit; exec dotnet-stryker')
    tool = root.parent / "nobody/.dotnet/tools/dotnet-stryker"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho Version: 5.1.0\n")
    tool.chmod(0o755)
    assert StrykerNet(EngineConfig(use="stryker-net")).version(root) == "Stryker.NET 5.1.0 SDK 10.0.401"
    assert tool in dotnet.installed()


def test_an_sdk_that_is_older_than_the_project_wants_is_told_from_an_error_in_the_code(
    machine: Callable[[str], Path],
) -> None:
    error = "/sdk/T.targets(1,2): error NETSDK1045: The current .NET SDK does not support targeting .NET 99.0. [{}]"
    root = machine(f"echo '{error}'; exit 1")
    built = dotnet.build(root, "a.csproj", restore=True, alone=False, timeout=60)
    assert built.outcome is Outcome.BAD_CONFIG and "install the .NET SDK" in built.detail
    assert "does not support targeting .NET 99.0" in built.detail


def test_what_is_built_is_what_stryker_is_told_to_build(machine: Callable[[str], Path], tmp_path: Path) -> None:
    """In any other output folder the mutated assembly is never seen: then each proof takes an engine run."""
    out = tmp_path / "made"
    for framework in ("net9.0", "net10.0", "net8.0", "net48"):
        (out / framework).mkdir(parents=True)
    lines = " ".join(f"'  T -> {out}/{framework}/T.dll'" for framework in ("net9.0", "net10.0", "net8.0", "net48"))
    root = machine(f"echo \"$*\" >> ../words; printf '%s\\n' {lines}")
    known = two(root)
    config = {"configuration": "Release", "target-framework": "net9.0"}
    (root / "own.json").write_text(json.dumps({"stryker-config": config}))
    project = known.by_path["test/T.csproj"]
    builds = StrykerNet(EngineConfig(use="stryker-net", config="own.json")).builds
    assert builds.build(root, project, ["test/T.csproj"], None).outcome is Outcome.OK
    assert "--configuration Release" in (tmp_path / "words").read_text()
    assert builds.folder(root, project) == out / "net9.0"
    (root / "own.json").write_text('{"stryker-config": {"configuration": "Debug"}}')
    (root / "test/t.cs").write_text("")
    builds.build(root, project, ["test/T.csproj", "test/t.cs"], None)
    assert "--no-dependencies" not in (tmp_path / "words").read_text()  # of what it references no Debug was built
    assert builds.folder(root, project) == out / "net10.0"  # nothing said: the newest that runs everywhere


def test_of_several_frameworks_stryker_is_told_which_has_been_built_to_be_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[dict[str, Any]] = []
    lists: set[str] = set()

    def run(words: list[str], **more: Any) -> Finished:
        config = (more["cwd"] / words[words.index("-f") + 1]).resolve()
        said.append(json.loads(config.read_text())["stryker-config"])
        lists.add(more["env"]["CleanFile"])
        return Finished(tuple(words), 1, b"", b"", 1.0, None, None)

    monkeypatch.setattr("pipeline.process.run", run)
    monkeypatch.setattr(Builds, "folder", lambda self, root, project: tmp_path / "test/bin/Debug/net10.0")
    for more in ("<TargetFramework>net10.0</TargetFramework>", "<TargetFrameworks>net9.0;net10.0</TargetFrameworks>"):
        known = two(tmp_path / str(len(said)), more=more)
        asked = stryker.Question(known.pair(of(), EngineConfig()), ["src/A/a.cs"], "", False, 1, tmp_path / "log")
        config = EngineConfig(command=("stryker",))
        assert isinstance(stryker.run(config, Builds(), tmp_path / str(len(said)), asked), Measured)
    assert said == [{}, {"target-framework": "net10.0"}]
    assert len(lists) == 2  # what one run has built, the next does not clean either


def test_an_sdk_is_found_where_dotnet_says_that_it_is(machine: Callable[[str], Path]) -> None:
    list_ = "echo '8.0.100 [/usr/a b/sdk]'; echo '10.0.401 [/opt/[x]/sdk]'"
    root = machine(f'[ "$1" = --version ] && echo 10.0.401 && exit; {list_}')
    assert dotnet.sdk_folder(root) == Path("/opt/[x]/sdk/10.0.401")


def test_a_test_project_whose_tests_cannot_be_run_one_by_one_is_told_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "TUnit.Core.dll").write_text("")
    with pytest.raises(EngineError, match=r"T: to run its tests one by one takes xunit.v3, or Microsoft.NET.Test.Sdk"):
        host.Hosts().prepare(tmp_path, tmp_path, "T", tmp_path, None, None)


@pytest.mark.parametrize("text", ["", "{}", '{"runtimeOptions": {"framework": {"version": "?"}}}'])
def test_a_runtime_configuration_that_somebody_writes_meanwhile_is_told_by_name(tmp_path: Path, text: str) -> None:
    config = tmp_path / "T.runtimeconfig.json"
    config.write_text(text)
    with pytest.raises(EngineError, match=r"T\.runtimeconfig\.json, as it was built, cannot be read") as told:
        host._framework(tmp_path, config)
    assert told.value.outcome is Outcome.CRASHED
