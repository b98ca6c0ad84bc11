"""Stryker.NET for real, on two classes of examples/shop-net: real dotnet, git and doit; only the model is scripted.

Where there is no dotnet these are skipped, and say so. One drive is shared; what changes it works on a copy.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from conftest import DODO, World, copy_world, kill_tree

from pipeline.engines.stryker_net import StrykerNet
from pipeline.model import EngineConfig, Scope
from pipeline.results import Outcome, Proofs, load
from pipeline.store import file_name

SHOP_NET = Path(__file__).parent.parent / "examples" / "shop-net"
pytestmark = [
    pytest.mark.skipif(shutil.which("dotnet") is None, reason="dotnet is not installed: Stryker.NET is not tried"),
    pytest.mark.xdist_group("dotnet"),
]
CLASSES = ("Pricing", "Rates")
SCOPES = {f"src/Shop/{name}.cs" for name in CLASSES}
PRICING_TESTS = "test/Shop.Tests/PricingMutantTests.cs"


def shop(root: Path) -> None:
    """A copy of the example with two of its classes."""
    ignored = shutil.ignore_patterns("bin", "obj", "cache", "__pycache__")
    shutil.copytree(SHOP_NET, root, ignore=ignored)
    for name in ("Cart", "Slug", "Stock"):
        (root / f"src/Shop/{name}.cs").unlink()
        (root / f"test/Shop.Tests/{name}Tests.cs").unlink()


@pytest.fixture(scope="session")
def driven_net_once(tmp_path_factory: pytest.TempPathFactory) -> World:
    place = tmp_path_factory.mktemp("net")
    shop(place / "repo")
    (place / "gitconfig").write_text("[user]\nname = Tess\nemail = t@example.invalid\n[init]\ndefaultBranch = main\n")
    world = World(place / "repo", place / "home")
    world.write("dodo.py", DODO)
    world.write("tasks.yaml", world.read("tasks.yaml") + "\nland: {proof_runs: 2}\n")
    world.git("init", "--quiet")
    world.commit("begin")
    world.doit("-n", "2", "mutate", timeout=1500)
    return world


@pytest.fixture
def driven_net(driven_net_once: World, tmp_path: Path) -> World:
    return copy_world(driven_net_once, tmp_path / "w")


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
    assert changed == [f"test/Shop.Tests/{name}MutantTests.cs" for name in CLASSES]
    pricing, rates = (proofs(world, f"src/Shop/{name}.cs") for name in CLASSES)
    assert {p.test.title for p in pricing.proved} == {
        "NothingCostsNothing", "TheRefusalOfAPriceSaysWhy", "TenPiecesAreATenthCheaper", "PostageAtItsBounds",
        "TheWholeBudgetMayBeSpent", "NoMoreThanAThousandPieces",
    }  # fmt: skip
    dropped = {d.title: d for d in (*pricing.dropped, *rates.dropped)}
    assert {t: d.outcome for t, d in dropped.items()} == {
        "ATestThatDoesNotCompile": Outcome.BUILD_ERROR, "ATestThatKillsNothing": Outcome.REJECTED,
        "ATestThatIsWrong": Outcome.REJECTED,
    }  # fmt: skip
    assert "PricingMutantTests.cs:" in dropped["ATestThatDoesNotCompile"].reason
    assert "it fails on the original" in dropped["ATestThatIsWrong"].reason
    assert {kind for p in (*pricing.proved, *rates.proved) for kind in p.how.values()} <= {"assertion", "exception"}
    assert world.measured() == SCOPES  # by baseline and confirm: no round has asked the engine
    runs = [e for e in world.events() if e.get("engine_run")]
    assert {(e["kind"], e["scope"]) for e in runs} == {(k, s) for k in ("baseline", "confirm") for s in SCOPES}


def test_what_the_engine_says_of_the_landed_branch_agrees_with_every_proof(driven_net_once: World) -> None:
    import json

    for scope in SCOPES:
        folder = driven_net_once.root / "cache" / "scopes" / file_name(scope)
        confirmed: dict[str, Any] = json.loads((folder / "confirmed.json").read_text())
        assert (confirmed["outcome"], confirmed["disagreements"]) == ("ok", [])
        left = json.loads((folder / "survivors.1.json").read_text())["survivors"]
        counts = confirmed["statuses"]
        assert counts.get("Survived", 0) + counts.get("NoCoverage", 0) == len(left)


def test_the_same_again_runs_no_engine_and_builds_nothing(driven_net: World) -> None:
    done = driven_net.doit("-n", "2", "mutate", timeout=600)
    assert "nothing to do: 0 engine runs, 0 calls" in done.out
    assert not list((driven_net.root / "cache" / "logs").glob(f"{driven_net.events('run-started')[-1]['run']}-*"))


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


def test_zero_tests_and_a_build_that_fails_are_outcomes_and_a_changed_source_is_built_again(
    built: tuple[StrykerNet, Path],
) -> None:
    engine, root = built
    files = ["test/Shop.Tests/PricingTests.cs"]
    run = engine.test(root, files, timeout=300, record=True)
    assert run.green and run.files == tuple(files)
    assert run.passed == {
        "TotalIsPriceTimesQuantity", "ANegativePriceIsRefused", "PostageIsFreeForLargeOrders",
        "ABudgetPaysForSoManyPieces",
    }  # fmt: skip
    assert "src/Shop/Rates.cs" in run.inputs and not any("/obj/" in p for p in run.inputs)
    assert engine.test(root, ["test/Shop.Tests/GlobalUsings.cs"], timeout=300).outcome is Outcome.NO_TESTS
    one = engine.test(root, [f"{files[0]}::Shop.Tests.PricingTests.ANegativePriceIsRefused"], timeout=300)
    assert one.passed == {"ANegativePriceIsRefused"}
    with edited(root / "src/Shop/Pricing.cs", "price * quantity;", "price + quantity;"):
        failed = engine.test(root, files, timeout=300)
        assert {(t.title, t.kind) for t in failed.failed} == {("TotalIsPriceTimesQuantity", "assertion")}
    with edited(root / "src/Shop/Pricing.cs", "return pieces;", "return piecess;"):
        broken = engine.test(root, files, timeout=300)
        assert broken.outcome is Outcome.BUILD_ERROR and broken.failed == ()
        assert "src/Shop/Pricing.cs:40: CS0103" in broken.detail


def test_a_test_that_fails_first_is_told_for_its_scope_alone_and_before_the_engine_runs(
    built: tuple[StrykerNet, Path], tmp_path: Path
) -> None:
    engine, root = built
    ends_badly = StrykerNet(EngineConfig(use="stryker-net", command=("/bin/false",)), builds=engine.builds)
    scopes = [
        Scope(n, (f"src/Shop/{n}.cs",), (f"test/Shop.Tests/{n}Tests.cs",), f"test/Shop.Tests/{n}MutantTests.cs")
        for n in CLASSES
    ]
    with edited(root / "test/Shop.Tests/RatesTests.cs", "119m", "118m"):
        measured = ends_badly.measure(root, scopes, workers=1, log=tmp_path / "log")
    assert measured["Rates"].outcome is Outcome.TESTS_FAIL_FIRST
    assert "Shop.Tests.RatesTests.TaxIsAdded fails before any mutant" in measured["Rates"].detail
    assert measured["Pricing"].outcome is Outcome.CRASHED  # for it alone the engine was started


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
