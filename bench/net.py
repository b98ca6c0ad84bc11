"""The second engine: what its baselines and a round's validation cost, against plain `dotnet stryker`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.measuring import ROOT, Ran, Row, doit, in_audit, run
from pipeline.engines.stryker_net.dotnet import ALONE

SHOP_NET = ROOT / "examples" / "shop-net"
ROUND = ("Cart", "Stock")  # of whose tests ten are candidates
PLAN = """\
version: 1
engine: {use: stryker-net}
generate: {with: [{use: command, run: ./round-model}], rounds: 1}
scopes:
  - name: round
    mutate: [src/Shop/Cart.cs, src/Shop/Stock.cs]
    tests: [test/Shop.Tests/CartTests.cs, test/Shop.Tests/StockTests.cs]
    write: test/Shop.Tests/RoundMutantTests.cs
"""
MODEL = """\
#!/usr/bin/env python3
import json, pathlib, re, runpy, sys
example = runpy.run_path(str(pathlib.Path(__file__).with_name("scripted-model")))
numbers = [int(n) for n in re.findall(r"^### Mutant (\\d+):", sys.stdin.read(), re.MULTILINE)]
tests = [*example["TESTS"]["Cart"], *example["TESTS"]["Stock"][:2]]
said = [{"kills": numbers, "title": t, "imports": [], "code": example["method"](t, b)} for t, b in tests]
print("```json", json.dumps({"tests": said}), "```", sep="\\n")
"""


def repository(place: Path, *, one_round: bool = False) -> Path:
    root = place / "repo"
    shutil.copytree(SHOP_NET, root, ignore=shutil.ignore_patterns("bin", "obj", "cache", "__pycache__"))
    if one_round:
        (root / "tasks.yaml").write_text(PLAN)
        (root / "round-model").write_text(MODEL)
        (root / "round-model").chmod(0o755)
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def plain(root: Path, place: Path, *mutate: str) -> Ran:
    """One plain run. Without `mutate` over all files, in a checkout that has built nothing. Without build servers, as
    ours: their seconds would be counted nowhere, and the next run would find them warm."""
    if not mutate:
        subprocess.run(["git", "clean", "-ffdxq"], cwd=root, check=True)
    words = ["dotnet", "stryker", "-p", "Shop.csproj", "--skip-version-check", "-r", "json", "-c", "2"]
    with tempfile.TemporaryDirectory(prefix="net") as out:
        more = [word for path in mutate for word in ("-m", path)]
        alone = ["env", *(f"{name}={value}" for name, value in ALONE.items())]
        return run([*alone, *words, "-O", out, *more], root / "test/Shop.Tests", place / "home")


def attempts(root: Path, kind: str) -> list[dict[str, float | str]]:
    lines = (root / "cache/ledger.jsonl").read_text().splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == "attempt" and e["kind"] == kind and e["lane"]]


def counted(root: Path) -> str:
    """How many candidates met how many mutants."""
    folder = next((root / "cache/scopes").iterdir())
    candidates, survivors = (json.loads((folder / n).read_text()) for n in ("candidates.1.json", "survivors.0.json"))
    proofs = json.loads((folder / "proofs.1.json").read_text())
    return (
        f"{len(candidates['tests'])} candidates, {len(survivors['survivors'])} mutants, "
        f"{len(proofs['proved'])} tests proved"
    )


def net(place: Path, pairs: int) -> list[Row]:
    """Cold baselines of five scopes, and a round's validation, pair by pair with the plain runs. Both on the wall clock
    and in CPU seconds, which count where others use the machine as well."""
    baselines: list[Ran] = []
    audits: list[float] = []
    audits_cpu: list[float] = []
    validations: list[dict[str, float | str]] = []
    everything: list[Ran] = []
    scoped: list[Ran] = []
    for i in range(pairs):
        root = repository(place / f"ours{i}")
        baselines.append(run(doit("-n", "2", "baseline"), root, place / f"home{i}"))
        audits.append(sum(in_audit(e) for e in attempts(root, "baseline")))  # one by one
        audits_cpu.append(sum(float(e.get("audit_cpu_seconds") or 0) for e in attempts(root, "baseline")))
        root = repository(place / f"round{i}", one_round=True)
        run(doit("-n", "1", "validate:round:1"), root, place / f"home-round{i}")  # as in a drive: measured before
        validations.append(attempts(root, "validate")[-1])
        print(f"the round: {counted(root)}", flush=True)
        theirs = repository(place / f"theirs{i}")
        everything.append(plain(theirs, place))
        scoped.append(plain(theirs, place, *(f"{name}.cs" for name in ROUND)))  # all is built
    wall = [ran.seconds for ran in everything]
    cpu = [ran.cpu_seconds for ran in everything]
    return [
        Row(
            "Stryker.NET: five baselines, without their audits",
            [b.seconds - a for b, a in zip(baselines, audits, strict=True)], wall, "1.10",
        ),
        Row(
            "the same in CPU seconds",
            [b.cpu_seconds - a for b, a in zip(baselines, audits_cpu, strict=True)], cpu, "-",
        ),
        Row("Stryker.NET: five baselines, with their audits", [b.seconds for b in baselines], wall, "-"),
        Row("the same in CPU seconds", [b.cpu_seconds for b in baselines], cpu, "-"),
        Row(
            "Stryker.NET: a round's validation, against a run of that scope",
            [float(v["ended"]) - float(v["started"]) for v in validations], [ran.seconds for ran in scoped], "0.50",
        ),
        Row(
            "the same in CPU seconds",
            [float(v["cpu_seconds"]) for v in validations], [ran.cpu_seconds for ran in scoped], "-",
        ),
    ]  # fmt: skip
