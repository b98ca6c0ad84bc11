"""Stryker.NET for real: real dotnet, git and doit; only the model is scripted.

Where there is no dotnet these are skipped, and say so. One drive over two small classes is shared. What takes more
drives than a check has time for runs where DOIT_MUTATE_DOTNET=all asks for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from conftest import DODO, STANDINS, World, copy_world, kill_tree

from pipeline.engines import Measured, Switch
from pipeline.engines.stryker_net import StrykerNet, dotnet
from pipeline.engines.stryker_net.baseline import SWITCH
from pipeline.measuring import Baseline
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import Status, is_survivor
from pipeline.results import Candidates, Outcome, Proofs, load
from pipeline.sandbox import Sandbox
from pipeline.sandbox import missing as no_sandbox
from pipeline.store import file_name

SHOP_NET = Path(__file__).parent.parent / "examples" / "shop-net"
DOTNET = shutil.which("dotnet")
pytestmark = [
    pytest.mark.skipif(DOTNET is None, reason="dotnet is not installed: Stryker.NET is not tried"),
    pytest.mark.xdist_group("dotnet"),
]
long = pytest.mark.skipif(
    os.environ.get("DOIT_MUTATE_DOTNET") != "all", reason="takes minutes: DOIT_MUTATE_DOTNET=all runs it"
)
NAMES = ("Doors", "Rates")
SCOPES = {f"src/Shop/{name}.cs" for name in NAMES}
DOORS = """\
namespace Shop;

internal static class Doors
{
    internal static bool IsOpen(int hour) => hour >= 9;
}
"""
DOORS_TESTS = """\
namespace Shop.Tests;

public class DoorsTests
{
    [Theory]
    [InlineData(8, false)]
    [InlineData(10, true)]
    public void TheyOpenInTheMorning(int hour, bool open) => Assert.Equal(open, Doors.IsOpen(hour));
}
"""
MODEL = """\
    "Doors": [
        ("TheyOpenAtNine", '''
            Assert.True(Doors.IsOpen(9));'''),
        ("ATestThatDoesNotCompile", '''
            Assert.True(Doors.IsOpen("9"));'''),
        ("ATestThatEndsTheProcess", '''
            Assert.True(Doors.IsOpen(9));
            ATestThatEndsTheProcess();'''),
        ("ATestThatKillsNothing", '''
            Assert.True(Doors.IsOpen(12));'''),
    ],
"""


def shop(root: Path) -> None:
    """A copy of the example with one of its classes, and one that only those see who are let in."""
    ignored = shutil.ignore_patterns("bin", "obj", "cache", "__pycache__")
    shutil.copytree(SHOP_NET, root, ignore=ignored)
    for name in ("Cart", "Pricing", "Slug", "Stock"):
        (root / f"src/Shop/{name}.cs").unlink()
        (root / f"test/Shop.Tests/{name}Tests.cs").unlink()
    (root / "src/Shop/Doors.cs").write_text(DOORS)
    (root / "test/Shop.Tests/DoorsTests.cs").write_text(DOORS_TESTS)
    project = root / "src/Shop/Shop.csproj"
    seen = '  <ItemGroup>\n    <InternalsVisibleTo Include="Shop.Tests" />\n  </ItemGroup>\n\n</Project>'
    project.write_text(project.read_text().replace("</Project>", seen))
    patient = '{"stryker-config": {"additional-timeout": 60000}}'  # a busy machine makes no mutant time out
    (root / "test/Shop.Tests/stryker-config.json").write_text(patient)
    model = root / "scripted-model"
    model.write_text(model.read_text().replace("TESTS = {\n", f"TESTS = {{\n{MODEL}"))


@pytest.fixture(scope="session")
def driven_net_once(tmp_path_factory: pytest.TempPathFactory) -> World:
    place = tmp_path_factory.mktemp("net")
    shop(place / "repo")
    (place / "gitconfig").write_text("[user]\nname = Tess\nemail = t@example.invalid\n[init]\ndefaultBranch = main\n")
    (place / "bin").mkdir()
    counting = f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{place}/dotnet.log"\nexec "{DOTNET}" "$@"\n'
    (place / "bin/dotnet").write_text(counting)
    (place / "bin/dotnet").chmod(0o755)
    path = os.pathsep.join([str(place / "bin"), str(STANDINS), os.environ["PATH"]])
    world = World(place / "repo", place / "home", {"PATH": path})
    world.write("dodo.py", DODO)
    world.write("tasks.yaml", world.read("tasks.yaml") + "\nland: {proof_runs: 2}\n")
    world.edit("tasks.yaml", "  with:\n", "  with:\n    - differential\n")
    world.git("init", "--quiet")
    world.commit("begin")
    world.doit("-n", "2", "mutate", timeout=1500)
    return world


@pytest.fixture
def driven_net(driven_net_once: World, tmp_path: Path) -> World:
    return attrs.evolve(copy_world(driven_net_once, tmp_path / "w"), env=driven_net_once.env)


def programs(world: World) -> list[str]:
    """Each `dotnet` that was started for this drive, and the copies of it, by its words."""
    return (Path(world.env["PATH"].split(os.pathsep)[0]).parent / "dotnet.log").read_text().splitlines()


def proofs(world: World, scope: str) -> Proofs:
    return load(world.root / "cache" / "scopes" / file_name(scope) / "proofs.1.json", Proofs)


@pytest.fixture
def short() -> Iterator[Path]:
    """A temporary folder with a short path, for one test's processes alone: sockets are made in it."""
    with tempfile.TemporaryDirectory(prefix="net") as name:
        yield Path(name)


def test_a_drive_lands_what_was_proved_and_drops_each_bad_test_alone(driven_net_once: World) -> None:
    world = driven_net_once
    assert len(world.subjects()) == 2
    assert world.git("status", "--porcelain") == ""
    changed = world.git("diff", "--name-only", "HEAD", "mutate/main").split()
    assert changed == [f"test/Shop.Tests/{name}MutantTests.cs" for name in NAMES]
    assert 'id="d-bundle"' in world.read("cache/report/index.html")  # Stryker's mutant browser, out of its assembly
    doors, rates = (proofs(world, f"src/Shop/{name}.cs") for name in NAMES)
    assert {p.test.title for p in doors.proved} == {"TheyOpenAtNine"}
    assert {p.test.title for p in rates.proved} == {"BooksAreReduced", "ToysAreNot"}
    dropped = {d.title: d for d in (*doors.dropped, *rates.dropped)}
    assert {t: d.outcome for t, d in dropped.items()} == {
        "ATestThatDoesNotCompile": Outcome.BUILD_ERROR, "ATestThatEndsTheProcess": Outcome.CRASHED,
        "ATestThatKillsNothing": Outcome.REJECTED, "ATestThatIsWrong": Outcome.REJECTED,
    }  # fmt: skip
    assert "DoorsMutantTests.cs:" in dropped["ATestThatDoesNotCompile"].reason
    assert "it fails on the original" in dropped["ATestThatIsWrong"].reason
    assert {kind for p in (*doors.proved, *rates.proved) for kind in p.how.values()} == {"assertion"}
    for scope in SCOPES:
        found = load(world.root / "cache" / "scopes" / file_name(scope) / "candidates.0.json", Candidates)
        assert (found.detail, found.tests) == ("differential is for JavaScript so far, and is skipped", ())
    assert world.measured() == SCOPES  # by baseline and confirm: no round has asked the engine
    runs = [e for e in world.events() if e.get("engine_run")]
    assert {(e["kind"], e["scope"]) for e in runs} == {(k, s) for k in ("baseline", "confirm") for s in SCOPES}
    assert len({e["started"] for e in runs}) == 2  # one for both scopes each time


def test_the_same_again_starts_no_dotnet_at_all(driven_net: World) -> None:
    before = programs(driven_net)
    done = driven_net.doit("-n", "2", "mutate", timeout=600)
    assert "nothing to do: 0 engine runs, 0 calls" in done.out
    asked = Counter(words.split()[0] for words in programs(driven_net)[len(before) :])
    assert not asked.keys() - {"--version", "stryker"}, asked  # which versions they are is asked, and no more
    assert not list((driven_net.root / "cache" / "logs").glob(f"{driven_net.events('run-started')[-1]['run']}-*"))


def test_once_it_is_merged_what_we_say_of_each_mutant_is_what_a_plain_run_says(driven_net: World, short: Path) -> None:
    driven_net.git("merge", "--quiet", "mutate/main")
    driven_net.doit("-n", "2", "mutate", timeout=600)
    assert driven_net.measured() == set() and driven_net.events("call") == []
    ours: dict[tuple[str, int, int, str, str], str] = {}
    for scope in SCOPES:
        folder = driven_net.root / "cache" / "scopes" / file_name(scope)
        confirmed: dict[str, Any] = json.loads((folder / "confirmed.json").read_text())
        assert (confirmed["outcome"], confirmed["disagreements"]) == ("ok", [])
        mutants = load(folder / "baseline.json", Baseline).mutants
        ours |= {(m.file, m.line, m.column, m.mutator, m.replacement): str(m.status) for m in mutants}
        assert sum(is_survivor(m.final) for m in mutants) == {"src/Shop/Doors.cs": 0, "src/Shop/Rates.cs": 3}[scope]
    words = ["stryker", "-p", "Shop.csproj", "--skip-version-check", "-r", "json", "-O", str(short / "out"), "-c", "2"]
    environment = {**driven_net.environment, **dotnet.ALONE, "TMPDIR": str(short)}
    folder = driven_net.root / "test/Shop.Tests"
    subprocess.run([DOTNET or "", *words], cwd=folder, env=environment, check=True, capture_output=True, timeout=1500)
    report = json.loads((short / "out/reports/mutation-report.json").read_text())
    theirs = {
        (Path(file).relative_to(driven_net.root.resolve()).as_posix(), m["location"]["start"]["line"],
         m["location"]["start"]["column"], m["mutatorName"], m["replacement"]): m["status"]
        for file, entry in report["files"].items() for m in entry["mutants"]
    }  # fmt: skip
    assert ours == theirs and len(theirs) > 12


def test_after_a_comment_was_edited_that_scope_alone_is_measured_and_nobody_is_asked(
    driven_net: World, short: Path, no_orphans: Callable[[str], list[str]]
) -> None:
    driven_net = attrs.evolve(driven_net, env={**driven_net.env, "TMPDIR": str(short)})
    driven_net.edit("src/Shop/Doors.cs", "    internal static bool", "    // Edited.\n    internal static bool")
    done = driven_net.doit("-n", "2", "mutate", timeout=1500)
    assert driven_net.measured() == driven_net.ran("baseline") == {"src/Shop/Doors.cs"}
    assert driven_net.events("call") == []  # what was answered is read again
    assert done.ending("src/Shop/Doors.cs") == "held"
    assert no_orphans(str(driven_net.home)) == no_orphans(str(short)) == []
    assert list(short.iterdir()) == []


@long
def test_killed_in_mid_engine_after_a_comment_was_edited_the_next_run_measures_that_one_scope_and_asks_nobody(
    driven_net: World, short: Path, no_orphans: Callable[[str], list[str]]
) -> None:
    driven_net = attrs.evolve(driven_net, env={**driven_net.env, "TMPDIR": str(short)})
    driven_net.edit("src/Shop/Rates.cs", "/// <summary>Value", "// Edited.\n/// <summary>Value")
    process = driven_net.start("-n", "2", "mutate")
    home = str(driven_net.home)
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and not mutated(driven_net.home):
        assert process.poll() is None, (driven_net.root.parent / "out").read_text()
        time.sleep(0.05)
    assert mutated(driven_net.home), "the mutated assembly was never there"
    kill_tree(process)
    done = driven_net.doit("-n", "2", "mutate", timeout=1500)
    assert driven_net.measured() == driven_net.ran("baseline") == {"src/Shop/Rates.cs"}
    assert driven_net.events("call") == []  # what was answered is read again
    assert done.ending("src/Shop/Rates.cs") == "held"
    assert no_orphans(home) == []
    assert not mutated(driven_net.home)
    assert list(short.iterdir()) == []
    driven_net.commit()
    assert driven_net.doit("-n", "2", "mutate", timeout=1500).ending("src/Shop/Rates.cs") == "landed"
    assert driven_net.ran("baseline") == driven_net.ran("validate") == set()


def mutated(home: Path) -> bool:
    """Whether some worktree is in the middle of a run."""
    return any((home / "cache" / "worktrees").glob("*/*/*/test/Shop.Tests/bin/*/*/Shop.dll.stryker-unchanged"))


@contextlib.contextmanager
def edited(path: Path, old: str, new: str) -> Iterator[None]:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    try:
        yield
    finally:
        path.write_text(text)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[StrykerNet, Path]:
    """An engine, and a copy of the example that it has built."""
    root = tmp_path_factory.mktemp("built") / "shop"
    shop(root)
    return StrykerNet(EngineConfig(use="stryker-net")), root


FILES = ("test/Shop.Tests/RatesTests.cs",)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One for each `dotnet build`: whether of the test project alone."""
    real, seen = dotnet.build, list[bool]()

    def build(*args: Any, alone: bool, **more: Any) -> dotnet.Built:
        seen.append(alone)
        return real(*args, alone=alone, **more)

    monkeypatch.setattr("pipeline.engines.stryker_net.dotnet.build", build)
    return seen


def test_a_state_is_built_once_and_zero_tests_and_a_build_that_fails_are_outcomes(
    built: tuple[StrykerNet, Path], counted: list[bool]
) -> None:
    engine, root = built
    run = engine.test(root, FILES, timeout=300, record=True)
    assert run.green and run.files == FILES and run.passed == {"FoodIsReduced", "TaxIsAdded"}
    assert "src/Shop/Doors.cs" in run.inputs and not any("/obj/" in p for p in run.inputs)
    first = len(counted)
    theory = engine.test(root, ["test/Shop.Tests/DoorsTests.cs"], timeout=300, shuffle=3)
    assert [(t.title, t.state) for t in theory.tests] == [("TheyOpenInTheMorning", "passed")]  # of two rows
    assert engine.test(root, ["test/Shop.Tests/GlobalUsings.cs"], timeout=300).outcome is Outcome.NO_TESTS
    one = engine.test(root, [f"{FILES[0]}::Shop.Tests.RatesTests.TaxIsAdded"], timeout=300)
    assert one.passed == {"TaxIsAdded"}
    assert [t.title for t in engine.test(root, FILES, timeout=300, only=["TaxIsAdded", "FoodIsReduced"]).tests] == [
        "TaxIsAdded", "FoodIsReduced",
    ]  # fmt: skip
    assert len(counted) == first
    with edited(root / "src/Shop/Rates.cs", "net + tax", "net - tax"):
        failed = engine.test(root, FILES, timeout=300)
        assert {(t.title, t.kind) for t in failed.failed} == {("TaxIsAdded", "assertion")}
        assert len(counted) == first + 1 and not counted[-1]
    assert engine.test(root, FILES, timeout=300).green and len(counted) == first + 1  # as it was: that is known
    with edited(root / "test/Shop.Tests/RatesTests.cs", "119m", "one"):
        broken = engine.test(root, FILES, timeout=300)
        assert broken.outcome is Outcome.BUILD_ERROR and [t.title for t in broken.failed] == ["TaxIsAdded"]
        assert "test/Shop.Tests/RatesTests.cs:15: CS0103" in broken.detail
        assert engine.test(root, FILES, timeout=300) == broken and len(counted) == first + 2


FAILING = """\
namespace Shop.Tests;
public class Opened : IDisposable { public void Dispose() => throw new InvalidOperationException("it does not close"); }
public class FailingTests
{
    [Fact] public void Passes() { }
    [Fact(Skip = "not now")] public void IsSkipped() { }
    [Fact] public void Differs() => Assert.Equal([1, 2], new[] { 1, 3 });
    [Fact] public void Throws() => Doors.IsOpen(int.Parse("x"));
    [Fact] public void ThrowsWithAReason() => throw new ArgumentException("what", new FormatException("why"));
    [Fact] public async Task ThrowsLater() { await Task.Yield(); throw new AggregateException("all", new Exception()); }
    [Theory, InlineData(1), InlineData(2)] public void FailsInOne(int one) => Assert.Equal(1, one);
    public static TheoryData<int> None => [];
    [Theory, MemberData(nameof(None))] public void HasNoData(int one) => Assert.Equal(1, one);
    [Fact] public void FailsByAll() => Assert.Multiple(() => Assert.True(false, "first"), () => Assert.True(false));
    public class Inner { [Fact] public void Fails() => Assert.Fail("here"); }
}
public class ClosedTests : IClassFixture<Opened> { [Fact] public void IsNotClosed() { } }
public class BrokenTests : IDisposable
{
    [Fact] public void IsBroken() { }
    public void Dispose() => throw new NotSupportedException("broken");
}
"""


def test_xunit_says_by_itself_what_it_says_by_its_adapter(
    built: tuple[StrykerNet, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, root = built
    file = root / "test/Shop.Tests/FailingTests.cs"
    file.write_text(FAILING)
    wanted = ["test/Shop.Tests/FailingTests.cs"]
    try:
        by_itself = engine.test(root, wanted, timeout=300)
        with monkeypatch.context() as patch:
            patch.setattr("pipeline.engines.stryker_net.host._XUNIT", ("nowhere.dll",))
            by_adapter = engine.test(root, wanted, timeout=300)
        shuffled = engine.test(root, wanted, timeout=300, shuffle=1)
        one = engine.test(root, wanted, timeout=300, only=["Differs"])
    finally:
        file.unlink()
    assert by_itself.outcome is by_adapter.outcome is Outcome.OK
    assert {(t.file, t.title): t for t in by_itself.tests} == {(t.file, t.title): t for t in by_adapter.tests}
    assert {t.title for t in by_itself.failed} > {"Differs", "Throws", "FailsInOne", "FailsByAll", "Fails"}
    assert {(t.title, t.state) for t in shuffled.tests} == {(t.title, t.state) for t in by_itself.tests}
    assert [t.title for t in one.tests] == ["Differs"]


HOSTILE = """\
using System.Diagnostics;
using System.Net.Sockets;
namespace Shop.Tests;
public class HostileTests
{
    static readonly string Root = AppContext.BaseDirectory;
    [Fact] public void ItMayReadAndUseItsOwnTemporaryFolder() => File.WriteAllText(Path.GetTempFileName(), "x");
    [Fact] public void ItWritesIntoTheOutput() => File.WriteAllText(Path.Combine(Root, "x.txt"), "x");
    [Fact] public void ItWritesIntoTheProject() => File.WriteAllText(Path.Combine(Root, "../../../x.cs"), "x");
    [Fact] public void ItRemovesASource() => File.Delete(Path.Combine(Root, "../../../RatesTests.cs"));
    [Fact] public void ItChangesAMode() => File.SetUnixFileMode(Path.Combine(Root, "Shop.dll"), UnixFileMode.None);
    [Fact] public void ItListens() => new TcpListener(System.Net.IPAddress.Loopback, 0).Start();
    [Fact] public void ItSends() => new UdpClient().Send([1], 1, "127.0.0.1", 9);
    [Fact] public void ItOpensAUnixSocket() => _ = new Socket(AddressFamily.Unix, SocketType.Stream, 0);
    [Fact] public void ItWritesByAnotherProgram()
    {
        var touch = Process.Start("touch", Path.Combine(Root, "y.txt"));
        touch.WaitForExit();
        Assert.Equal(0, touch.ExitCode);
    }
    [Fact] public void ItTakesAllTheMemory()
    {
        var all = new List<byte[]>();
        while (true) { all.Add(GC.AllocateUninitializedArray<byte>(64 << 20)); Array.Fill(all[^1], (byte)1); }
    }
}
"""


SWITCHED = """\
namespace Shop.Tests;
public class SwitchTests
{
    [Fact] public void SomeMutantIsOn() => Assert.Equal(4711, MutantControl.ActiveMutant);
    [Fact] public void NoneIsOn() => Assert.Equal(-2, MutantControl.ActiveMutant);
    [Fact] public void NothingTellsWhich()
    {
        Assert.DoesNotContain("4711", Environment.GetEnvironmentVariables().Values.Cast<string>());
        foreach (var word in Environment.GetCommandLineArgs())
            Assert.False(File.Exists(word) && word.EndsWith("request"));
    }
}
"""


def test_a_test_of_xunit_2_cannot_tell_which_mutant_is_on(built: tuple[StrykerNet, Path]) -> None:
    engine, root = built
    control = "public static class MutantControl { public static int ActiveMutant = -2; }"
    wanted = ["test/Shop.Tests/SwitchTests.cs"]
    (root / "src/Shop/Control.cs").write_text(control)
    (root / wanted[0]).write_text(SWITCHED)
    try:
        assert engine.test(root, wanted, timeout=300).passed == {"NoneIsOn", "NothingTellsWhich"}
        # net10.0 alone: beside it may lie net10.0-STATE, an output that is kept.
        (assembly,) = (root / "test/Shop.Tests/bin").glob("Debug/net*.?/Shop.dll")
        Switch({f"{SWITCH}/Shop.dll": assembly.read_bytes()}, {}).lay(root)
        on = engine.test(root, wanted, timeout=300, mutant="4711")
        assert on.passed == {"SomeMutantIsOn", "NothingTellsWhich"}, on
        assert engine.test(root, wanted, timeout=300, mutant="").passed == {"NoneIsOn", "NothingTellsWhich"}
    finally:
        shutil.rmtree(root / SWITCH, ignore_errors=True)
        (root / "src/Shop/Control.cs").unlink()
        (root / wanted[0]).unlink()


@pytest.mark.skipif(bool(no_sandbox()), reason="this system has no sandbox")
def test_in_the_sandbox_a_test_reads_and_nothing_else(built: tuple[StrykerNet, Path]) -> None:
    engine, root = built
    file = "test/Shop.Tests/HostileTests.cs"
    (root / file).write_text(HOSTILE)
    try:
        titles = [t for t in engine.suite.titles(HOSTILE) if "Memory" not in t]
        run = engine.test(root, [file], timeout=300, sandbox=Sandbox(()), only=titles)
        greedy = engine.test(root, [file], timeout=300, sandbox=Sandbox(()), only=["ItTakesAllTheMemory"])
    finally:
        (root / file).unlink()
    assert run.outcome is Outcome.OK and run.passed == {"ItMayReadAndUseItsOwnTemporaryFolder"}, run
    assert len(run.failed) == len(titles) - 1
    assert not (root / "test/Shop.Tests/x.cs").exists() and (root / FILES[0]).exists()
    assert greedy.failed or greedy.outcome in (Outcome.MEMORY, Outcome.CRASHED)


def test_a_test_that_fails_first_is_told_for_its_scope_alone_and_before_the_engine_runs(
    built: tuple[StrykerNet, Path], tmp_path: Path
) -> None:
    engine, root = built
    ends_badly = StrykerNet(EngineConfig(use="stryker-net", command=("/bin/false",)), builds=engine.builds)
    scopes = [
        Scope(n, (f"src/Shop/{n}.cs",), (f"test/Shop.Tests/{n}Tests.cs",), f"test/Shop.Tests/{n}MutantTests.cs")
        for n in NAMES
    ]
    with edited(root / "test/Shop.Tests/RatesTests.cs", "119m", "118m"):
        measured = ends_badly.measure(root, scopes, workers=1, log=tmp_path / "log")
    assert measured["Rates"].outcome is Outcome.TESTS_FAIL_FIRST
    assert "Shop.Tests.RatesTests.TaxIsAdded fails before any mutant" in measured["Rates"].detail
    assert measured["Doors"].outcome is Outcome.CRASHED  # for it alone the engine was started


def test_a_package_source_out_of_reach_is_said_with_what_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop(tmp_path / "shop")
    monkeypatch.setenv("RestoreSources", str(tmp_path / "nowhere"))
    monkeypatch.setenv("NUGET_PACKAGES", str(tmp_path / "packages"))
    engine = StrykerNet(EngineConfig(use="stryker-net"))
    scope = Scope("Rates", ("src/Shop/Rates.cs",), None, "test/Shop.Tests/RatesMutantTests.cs")
    measured = engine.measure(tmp_path / "shop", [scope], workers=1, log=tmp_path / "log")["Rates"]
    assert measured.outcome is Outcome.BAD_CONFIG and "dotnet nuget list source" in measured.detail


def test_an_sdk_that_a_global_json_asks_for_and_that_is_not_there_is_said_with_what_to_install(tmp_path: Path) -> None:
    from pipeline.engines import EngineError

    (tmp_path / "global.json").write_text('{"sdk": {"version": "99.0.100", "rollForward": "disable"}}')
    with pytest.raises(EngineError, match=r"no .NET SDK fits .*install the .NET SDK"):
        StrykerNet(EngineConfig(use="stryker-net")).version(tmp_path)


def test_without_dotnet_the_user_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.engines import EngineError

    monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", "/bin"]))
    with pytest.raises(EngineError, match=r"dotnet not found: install the .NET SDK"):
        StrykerNet(EngineConfig(use="stryker-net")).version(tmp_path / "elsewhere")


@long
def test_two_runs_in_one_checkout_are_caught(tmp_path: Path, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short))
    root = tmp_path / "shop"
    shop(root)
    scope = Scope("Rates", ("src/Shop/Rates.cs",), None, "test/Shop.Tests/RatesMutantTests.cs")
    found: list[Measured] = []

    def measure(number: int) -> None:
        engine = StrykerNet(EngineConfig(use="stryker-net"))
        found.append(engine.measure(root, [scope], workers=1, log=tmp_path / f"log{number}")["Rates"])

    threads = [threading.Thread(target=measure, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(2)
    for thread in threads:
        thread.join()
    caught = (Outcome.HOLLOW_REPORT, Outcome.UNVERIFIED, Outcome.NO_KILLS, Outcome.CRASHED, Outcome.BUILD_ERROR)
    told = [(m.outcome, m.detail, Counter(x.status for x in m.mutants)) for m in found]
    assert any(outcome in caught for outcome, *_ in told), told
    alone = Counter({Status.KILLED: 6, Status.SURVIVED: 5, Status.COMPILE_ERROR: 2, Status.IGNORED: 1})
    assert all(counts == alone for outcome, _, counts in told if outcome is Outcome.OK), told


@long
def test_without_a_picture_a_drive_lands_what_stryker_itself_says_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop(tmp_path / "repo")
    (tmp_path / "gitconfig").write_text("[user]\nname = Tess\nemail = t@example.invalid\n")
    (tmp_path / "blind/sitecustomize.py").parent.mkdir()
    (tmp_path / "blind/sitecustomize.py").write_text(
        "from pipeline.engines.stryker_net import picture\npicture.is_mutated = lambda content: False\n"
    )
    world = World(tmp_path / "repo", tmp_path / "home", {"PYTHONPATH": str(tmp_path / "blind")})
    world.write("dodo.py", DODO)
    world.write("tasks.yaml", world.read("tasks.yaml") + "\nland: {proof_runs: 2}\n")
    world.git("init", "--quiet", "--initial-branch=main")
    world.commit("begin")
    done = world.doit("-n", "1", "mutate", timeout=2400)
    assert "no picture" in done.out, done.out
    doors, rates = (proofs(world, f"src/Shop/{name}.cs") for name in NAMES)
    assert {p.test.title for p in doors.proved} == {"TheyOpenAtNine"}
    assert {p.test.title for p in rates.proved} == {"BooksAreReduced", "ToysAreNot"}
    assert {kind for p in (*doors.proved, *rates.proved) for kind in p.how.values()} == {"engine"}
    assert {done.ending(scope) for scope in SCOPES} == {"landed"}
    for scope in SCOPES:
        confirmed = json.loads((world.root / "cache/scopes" / file_name(scope) / "confirmed.json").read_text())
        assert (confirmed["outcome"], confirmed["disagreements"]) == ("ok", [])


PROJECT = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework><ImplicitUsings>enable</ImplicitUsings><Nullable>enable</Nullable>{more}
  </PropertyGroup>
  <ItemGroup>{packages}<ProjectReference Include="../../src/Shop/Shop.csproj" /></ItemGroup>
</Project>
"""
SDK = ("Microsoft.NET.Test.Sdk", "18.0.1")
NUNIT_TESTS = """\
namespace Shop.Tests
{
    [TestFixture]
    public class DoorsTests
    {
        [TestCase(8, false)]
        [TestCase(10, true)]
        public void TheyOpenInTheMorning(int hour, bool open) => Assert.That(Doors.IsOpen(hour), Is.EqualTo(open));
    }
}
"""
FRAMEWORKS = {
    "nunit": (
        [SDK, ("NUnit", "4.3.2"), ("NUnit3TestAdapter", "5.0.0")], "", "NUnit.Framework", NUNIT_TESTS,
        "[Test]\npublic void {title}() => Assert.That(Doors.IsOpen({hour}), Is.True);",
    ),
    "xunit.v3": (
        [("xunit.v3", "3.2.2")], "<OutputType>Exe</OutputType>", "Xunit", DOORS_TESTS,
        "[Fact]\npublic void {title}() => Assert.True(Doors.IsOpen({hour}));",
    ),
}  # fmt: skip


@long
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_tests_of_another_framework_are_proved_and_land(tmp_path: Path, name: str) -> None:
    packages, more, using, tests, method = FRAMEWORKS[name]
    shop(tmp_path / "repo")
    (tmp_path / "gitconfig").write_text("[user]\nname = Tess\nemail = t@example.invalid\n")
    world = World(tmp_path / "repo", tmp_path / "home")
    for gone in ("src/Shop/Rates.cs", "test/Shop.Tests/RatesTests.cs"):
        (world.root / gone).unlink()
    lines = "".join(f'<PackageReference Include="{p}" Version="{v}" />' for p, v in packages)
    world.write("test/Shop.Tests/Shop.Tests.csproj", PROJECT.format(more=more, packages=lines))
    world.write("test/Shop.Tests/GlobalUsings.cs", f"global using {using};\n")
    world.write("test/Shop.Tests/DoorsTests.cs", tests)
    titles = {"TheyOpenAtNine": 9, "ATestThatIsWrong": 8, "ATestThatDoesNotCompile": '"9"'}
    said = [
        {"kills": [1], "title": t, "imports": [], "code": method.format(title=t, hour=h)} for t, h in titles.items()
    ]
    world.write("scripted-model", f"#!/bin/sh\ncat <<'END'\n```json\n{json.dumps({'tests': said})}\n```\nEND\n")
    world.write("dodo.py", DODO)
    world.git("init", "--quiet", "--initial-branch=main")
    world.commit("begin")
    world.doit("-n", "1", "mutate", timeout=1500)
    found = proofs(world, "src/Shop/Doors.cs")
    assert [p.test.title for p in found.proved] == ["TheyOpenAtNine"]
    assert set(found.proved[0].how.values()) == {"assertion"}
    assert {d.title: d.outcome for d in found.dropped} == {
        "ATestThatIsWrong": Outcome.REJECTED, "ATestThatDoesNotCompile": Outcome.BUILD_ERROR,
    }  # fmt: skip
    folder = world.root / "cache" / "scopes" / file_name("src/Shop/Doors.cs")
    confirmed: dict[str, Any] = json.loads((folder / "confirmed.json").read_text())
    assert (confirmed["outcome"], confirmed["disagreements"]) == ("ok", [])
    landed = world.on_branch("test/Shop.Tests/DoorsMutantTests.cs") or ""
    assert ("[Fact]" if name == "xunit.v3" else "[Test]") in landed
    assert world.on_branch("src/Shop/Shop.csproj") == world.read("src/Shop/Shop.csproj")  # who may look in: as it was
