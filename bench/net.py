"""The second engine: what its baselines and a round's validation cost, against plain `dotnet stryker`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.measuring import ROOT, Ran, Row, doit, run

SHOP_NET = ROOT / "examples" / "shop-net"
SCOPE = "src/Shop/Cart.cs"  # eight candidates and fourteen survivors
_TIMES = ("started", "ended", "cpu_seconds")


def repository(place: Path) -> Path:
    root = place / "repo"
    shutil.copytree(SHOP_NET, root, ignore=shutil.ignore_patterns("bin", "obj", "cache", "__pycache__"))
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def plain(root: Path, place: Path, *mutate: str) -> Ran:
    """One plain run. Without `mutate` over all files, in a checkout that has built nothing."""
    if not mutate:
        subprocess.run(["git", "clean", "-ffdxq"], cwd=root, check=True)
    words = ["dotnet", "stryker", "-p", "Shop.csproj", "--skip-version-check", "-r", "json", "-c", "2"]
    with tempfile.TemporaryDirectory(prefix="net") as out:
        more = [word for path in mutate for word in ("-m", path)]
        return run([*words, "-O", out, *more], root / "test/Shop.Tests", place / "home")


def attempts(root: Path, kind: str) -> list[dict[str, float | str]]:
    lines = (root / "cache/ledger.jsonl").read_text().splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == "attempt" and e["kind"] == kind and e["lane"]]


def net(place: Path, pairs: int) -> list[Row]:
    """Cold baselines of five scopes, and a round's validation, pair by pair with the plain runs. Both on the wall clock
    and in CPU seconds, which count where others use the machine as well."""
    baselines: list[Ran] = []
    audits: list[float] = []
    validations: list[dict[str, float]] = []
    everything: list[Ran] = []
    scoped: list[Ran] = []
    for i in range(pairs):
        root = repository(place / f"ours{i}")
        baselines.append(run(doit("-n", "2", "baseline"), root, place / f"home{i}"))
        audits.append(sum(float(e.get("audit_seconds") or 0) for e in attempts(root, "baseline")))  # one by one
        root = repository(place / f"round{i}")
        run(doit("-n", "1", f"validate:{SCOPE}:1"), root, place / f"home-round{i}")  # as in a drive: measured before
        validations.append({k: float(v) for k, v in attempts(root, "validate")[-1].items() if k in _TIMES})
        theirs = repository(place / f"theirs{i}")
        everything.append(plain(theirs, place))
        scoped.append(plain(theirs, place, "Cart.cs"))  # all is built
    wall = [ran.seconds for ran in everything]
    cpu = [ran.cpu_seconds for ran in everything]
    return [
        Row(
            "Stryker.NET: five baselines, without their audits",
            [b.seconds - a for b, a in zip(baselines, audits, strict=True)], wall, "1.10",
        ),
        Row("Stryker.NET: five baselines, with their audits", [b.seconds for b in baselines], wall, "-"),
        Row("the same in CPU seconds", [b.cpu_seconds for b in baselines], cpu, "-"),
        Row(
            "Stryker.NET: a round's validation, against a run of that scope",
            [v["ended"] - v["started"] for v in validations], [ran.seconds for ran in scoped], "0.50",
        ),
        Row("the same in CPU seconds", [v["cpu_seconds"] for v in validations], [r.cpu_seconds for r in scoped], "-"),
    ]  # fmt: skip
