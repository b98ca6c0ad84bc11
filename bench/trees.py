"""What a worktree costs each task of a large repository: made once a slot, then brought to a task's tree each time.

Two trees of 5,000 files that differ in twenty, in turn, with a file left by the task before to be cleaned away; the
peer is what a worktree of its own would cost each task. Milliseconds of wall clock and of CPU.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path

from bench.measuring import cpu_seconds_of_children
from pipeline.worktree import Worktrees, find_repository


def figures(place: Path, files: int = 5_000, tasks: int = 20) -> None:
    root = place / "large"
    for i in range(files):
        folder = root / f"src/part{i % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{i}.txt").write_text(f"{i}\n" * 20)
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    repository = find_repository(root)
    trees = [repository.git("rev-parse", "HEAD^{tree}").text.strip()]
    for i in range(20):
        (root / f"src/part{i}/f{i}.txt").write_text("edited\n")
    trees.append(repository.snapshot(repository.rev("HEAD"), ()))
    with Worktrees(repository, place / "worktrees", "bench", ()).opened() as worktrees:

        def timed(slot: str, tree: str) -> tuple[float, float]:
            cpu, began = cpu_seconds_of_children(), time.monotonic()
            worktree = worktrees.get(slot)
            worktree.reset(tree)
            spent = time.monotonic() - began, cpu_seconds_of_children() - cpu
            (worktree.top / "left.txt").write_text("by a task")
            return spent

        first = timed("slot", trees[0])
        again = [timed("slot", trees[n % 2]) for n in range(tasks)]
        each = [timed(f"own{n}", trees[n % 2]) for n in range(3)]
    print(f"| a worktree of {files:,} files | wall ms | CPU ms |\n|---|---|---|")
    for what, spent in (("the first", [first]), ("each task after it", again), ("one of its own, the peer", each)):
        wall, cpu = (statistics.median(times) * 1000 for times in zip(*spent, strict=True))
        print(f"| {what} | {wall:.0f} | {cpu:.0f} |", flush=True)
