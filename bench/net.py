"""The second engine: what its baselines and a round's validation cost, against plain `dotnet stryker`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.measuring import ROOT, Row, doit, run

SHOP_NET = ROOT / "examples" / "shop-net"
SCOPE = "src/Shop/Cart.cs"  # eight candidates and fourteen survivors


def repository(place: Path) -> Path:
    root = place / "repo"
    shutil.copytree(SHOP_NET, root, ignore=shutil.ignore_patterns("bin", "obj", "cache", "__pycache__"))
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def plain(root: Path, place: Path, *mutate: str) -> float:
    """Seconds of one plain run in a checkout that has built nothing."""
    subprocess.run(["git", "clean", "-ffdxq"], cwd=root, check=True)
    words = ["dotnet", "stryker", "-p", "Shop.csproj", "--skip-version-check", "-r", "json", "-c", "2"]
    with tempfile.TemporaryDirectory(prefix="net") as out:
        more = [word for path in mutate for word in ("-m", path)]
        return run([*words, "-O", out, *more], root / "test/Shop.Tests", place / "home").seconds


def attempts(root: Path, kind: str) -> list[dict[str, float | str]]:
    lines = (root / "cache/ledger.jsonl").read_text().splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == "attempt" and e["kind"] == kind and e["lane"]]


def net(place: Path, pairs: int) -> list[Row]:
    """Cold baselines of five scopes, and a round's validation, pair by pair with the plain runs."""
    baselines: list[float] = []
    measured: list[float] = []
    validations: list[float] = []
    everything: list[float] = []
    scoped: list[float] = []
    for i in range(pairs):
        root = repository(place / f"ours{i}")
        home = place / f"home{i}"
        baselines.append(run(doit("-n", "2", "baseline"), root, home).seconds)
        audits = sum(float(e.get("audit_seconds") or 0) for e in attempts(root, "baseline"))  # one after another
        measured.append(baselines[-1] - audits)
        run(doit("-n", "1", f"validate:{SCOPE}:1"), root, home)
        validation = attempts(root, "validate")[-1]
        validations.append(float(validation["ended"]) - float(validation["started"]))
        theirs = repository(place / f"theirs{i}")
        everything.append(plain(theirs, place))
        scoped.append(plain(theirs, place, "Cart.cs"))
    return [
        Row("Stryker.NET: five baselines, without their audits", measured, everything, "1.10"),
        Row("Stryker.NET: five baselines, with their audits", baselines, everything, "-"),
        Row("Stryker.NET: a round's validation, against a run of that scope", validations, scoped, "0.50"),
    ]
