"""The tests of one test project, by file: which classes a file has, and what of them is to run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline.engines.stryker_net import projects
from pipeline.engines.stryker_net.host import Only
from pipeline.engines.stryker_net.projects import Project
from pipeline.engines.stryker_net.suite import classes_of, tests_of


@attrs.frozen
class TestFiles:
    __test__ = False

    files: tuple[str, ...]  # those that hold tests
    files_of: Mapping[str, tuple[str, ...]]  # class -> files: a partial one is in several
    file_of_test: Mapping[tuple[str, str], str]  # class and method -> file

    @classmethod
    def of(cls, root: Path, project: Project, known: projects.Projects) -> TestFiles:
        files_of: dict[str, tuple[str, ...]] = {}
        file_of_test: dict[tuple[str, str], str] = {}
        for file in projects.files(root, [project], known.by_path.values()):
            if file.endswith(".cs"):
                text = (root / file).read_text(encoding="utf-8-sig", errors="replace")
                for type_ in classes_of(text):
                    files_of[type_] = (*files_of.get(type_, ()), file)
                file_of_test |= {(test.inside, test.name): file for test in tests_of(text)}
        return cls(tuple(sorted({file for files in files_of.values() for file in files})), files_of, file_of_test)

    def file_of(self, type_: str, method: str) -> str:
        """Where a test stands; of one that a class inherits, where the class does; "" of neither."""
        return self.file_of_test.get((type_, method)) or next(iter(self.files_of.get(type_, ())), "")

    def classes(self, files: Collection[str]) -> frozenset[str]:
        return frozenset(type_ for type_, some in self.files_of.items() if not set(some).isdisjoint(files))

    def chosen(self, files: Sequence[str] | None, titles: Sequence[str] | None = None) -> Only | None:
        """What is to run: None for all of it. files: paths, or path::name for one test; None: all. titles: of tests."""
        whole = {f for f in files or () if "::" not in f}
        if titles is not None:
            classes = self.classes(self.files if files is None else {f.partition("::")[0] for f in files})
            return Only((), [f"{type_}.{title}" for title in titles for type_ in sorted(classes)], len(titles) > 1)
        if files is None or whole >= set(self.files):
            return None
        return Only(self.classes(whole), sorted({f.partition("::")[2] for f in files if "::" in f}))
