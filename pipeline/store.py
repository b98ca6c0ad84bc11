"""What outlives a checkout: the action cache, the proof store, kept replies. Addressed by content, shared by all.

The action cache is bounded and may go at any time at the cost of engine runs; proofs and replies are small, cost
tokens, and stay.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import attrs
import cattrs
import filelock
import platformdirs

from pipeline import process
from pipeline.results import Kill, Test, converter, find, write_bytes

HOME_VARIABLE = "DOIT_MUTATE_HOME"  # moves everything below; CI keeps that folder between jobs
ACTION_CACHE_BYTES = 2 << 30
RESULTS_A_KEY = 32  # how many input lists are remembered for what is known before
PROOFS_A_TEST = 8  # how many states of its inputs a test is known to be proved on
SAME_MEASUREMENT = "the same measurement, made by another run"
T = TypeVar("T")


@attrs.frozen
class Places:
    """Folders of the user's own."""

    data: Path  # proofs and replies
    cache: Path  # action cache and worktrees
    state: Path  # locks over the whole machine: of the user, whatever a plan says, so that two projects share them

    @classmethod
    def of(cls, store: str | None) -> Places:
        """Where the environment says, else the plan, else where the system has such things."""
        dirs = platformdirs.PlatformDirs("doit-mutate", appauthor=False)
        said = os.environ.get(HOME_VARIABLE)
        state = Path(said).absolute() / "state" if said else dirs.user_state_path
        if home := said or store:
            return cls(Path(home).absolute() / "data", Path(home).absolute() / "cache", state)
        return cls(dirs.user_data_path, dirs.user_cache_path, state)


def digest(value: Any) -> str:
    """Hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@attrs.frozen
class ActionCache:
    """Results by the content of all they depend on.

    Looked up as ccache's direct mode does with its manifests (https://ccache.dev/manual/latest.html): what is known
    before -> the input lists recorded for it -> the one whose contents are as they were.
    """

    folder: Path

    @functools.cached_property
    def _converter(self) -> cattrs.Converter:
        """As all results are written, but bytes stand beside them: what many results share is kept once."""

        def put(content: bytes) -> str:
            name = hashlib.sha256(content).hexdigest()
            write_bytes(self.folder / "blobs" / name, content)
            return name

        made = converter.copy()
        made.register_unstructure_hook(bytes, put)
        made.register_structure_hook(bytes, lambda name, _: self._blob(name))
        return made

    def _blob(self, name: str) -> bytes:
        """Raises OSError and ValueError where it is gone or damaged."""
        path = self.folder / "blobs" / name
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != name:
            path.unlink(missing_ok=True)
            raise ValueError("corrupted")
        with contextlib.suppress(OSError):
            os.utime(path)
        return content

    def find(
        self, known: Any, holds: Callable[[Mapping[str, str]], object], type_: type[T], since: float = 0.0
    ) -> T | None:
        """The result recorded for `known` whose inputs (path -> content hash) hold, or None.

        since: time.time(); what was kept before counts as not there.
        """
        for entry in self._entries(known):
            if entry.get("at", 0.0) < since:
                continue
            if holds(entry["inputs"]):
                try:
                    return self._converter.structure(json.loads(self._blob(entry["blob"])), type_)
                except (OSError, ValueError, cattrs.errors.BaseValidationError):
                    continue  # measured again
        return None

    def keep(self, known: Any, inputs: Mapping[str, str], result: Any) -> None:
        content = json.dumps(self._converter.unstructure(result), sort_keys=True).encode()
        name = hashlib.sha256(content).hexdigest()
        write_bytes(self.folder / "blobs" / name, content)
        entry = {"inputs": dict(inputs), "blob": name, "at": time.time()}
        others = [e for e in self._entries(known) if e["inputs"] != entry["inputs"]]
        write_bytes(self._manifest(known), json.dumps([entry, *others][:RESULTS_A_KEY]).encode())

    @contextlib.contextmanager
    def measuring(self, keys: Sequence[Any]) -> Iterator[None]:
        """Held while the results for these keys are made: who wants one of them at the same time waits and uses it."""
        folder = self.folder / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            for name in sorted({digest(k)[:32] for k in keys}):  # one order for all: no deadlock
                stack.enter_context(process.holding(filelock.FileLock(folder / name), SAME_MEASUREMENT))
            yield

    def shrink(self, limit: int = ACTION_CACHE_BYTES) -> None:
        """Drop the blobs that were not used for longest until the rest fits."""
        with contextlib.suppress(OSError):
            blobs = [(p.stat().st_mtime, p.stat().st_size, p) for p in (self.folder / "blobs").iterdir()]
            total = sum(size for _, size, _ in blobs)
            for _, size, path in sorted(blobs):
                if total <= limit:
                    break
                path.unlink(missing_ok=True)
                total -= size

    def _manifest(self, known: Any) -> Path:
        return self.folder / "manifests" / f"{digest(known)}.json"

    def _entries(self, known: Any) -> list[Any]:
        try:
            entries = json.loads(self._manifest(known).read_bytes())
            return [e for e in entries if isinstance(e["inputs"], dict) and isinstance(e["blob"], str)]
        except (OSError, ValueError, TypeError, KeyError):
            return []


@attrs.frozen
class Proof:
    """What was seen of a test at one state of all that it depends on, and what it takes to see it again."""

    inputs: Annotated[Mapping[str, str], "All that was loaded while it was proved: path -> git's hash of the content"]
    kills: Annotated[tuple[Kill, ...], "Each mutant that it made visible in a fresh process, and how"]
    engine: Annotated[str, "The engine's name and version, and the versions of what it runs on"]
    runs: Annotated[int, "Fresh processes in which it passed on the original, its file's tests shuffled"]
    elsewhere: Annotated[Mapping[str, str], "Environment variables under which it passed alone in a process as well"]


@attrs.frozen
class Stored:
    """A test proved once, with its proofs: one file of the proof store. Stored anew whenever it is proved or lands."""

    test: Annotated[Test, "The test; its `kills` are those of the newest proof"]
    since: Annotated[str, "The HEAD that it first landed on; empty where it never did"] = ""
    rejected: Annotated[bool, "A person took it out: it is never offered again"] = False
    as_landed: Annotated[str, "Its text on the branch when it last landed, which a hook may have made"] = ""
    proofs: Annotated[tuple[Proof, ...], "Newest first, one for each state of its inputs, at most 8"] = ()

    @property
    def inputs(self) -> Mapping[str, str]:
        """What it was last proved on: path -> content hash."""
        return self.proofs[0].inputs if self.proofs else {}

    def proved(self, proof: Proof) -> Stored:
        """The same with a proof more."""
        others = [p for p in self.proofs if p.inputs != proof.inputs]
        return attrs.evolve(self, proofs=(proof, *others)[:PROOFS_A_TEST])


def schema() -> dict[str, Any]:
    """The JSON Schema of one file of the proof store."""
    from pipeline import schema

    for class_ in (Test, Kill, Proof, Stored):
        attrs.resolve_types(class_)
    return schema.document("proof.json", Stored)


@attrs.frozen
class ProofStore:
    """The proved tests of one project, by the file they are written to, and what was asked about each survivor."""

    home: Path  # of all projects
    identity: Callable[[], str]  # of this one; asked of git, so only when it is needed

    @functools.cached_property
    def folder(self) -> Path:
        return self.home / self.identity()

    def tests(self, write: str) -> tuple[Stored, ...]:
        """All tests stored for a write file, in an order that does not change."""
        found = (find(p, Stored) for p in sorted(self._of(write).glob("*.json")))
        return tuple(s for s in found if s is not None)

    def put(self, write: str, stored: Stored) -> None:
        name = hashlib.sha256(f"{stored.test.title}\0{stored.test.code}".encode()).hexdigest()[:32]
        content = json.dumps(converter.unstructure(stored), sort_keys=True, indent=1, ensure_ascii=False)
        write_bytes(self._of(write) / f"{name}.json", content.encode())

    def asked(self, question: Any) -> tuple[str, ...]:
        """Names of the kept replies that answered this question, attempt by attempt."""
        try:
            replies = json.loads(self._asked(question).read_bytes())
            return tuple(str(r) for r in replies)
        except (OSError, ValueError, TypeError):
            return ()

    def answered(self, question: Any, attempt: int, reply: str) -> None:
        """Remember that `attempt` (from 0) at this question was answered by this reply."""
        known = self.asked(question)
        if len(known) == attempt:
            write_bytes(self._asked(question), json.dumps([*known, reply]).encode())

    def _of(self, write: str) -> Path:
        return self.folder / "tests" / file_name(write)

    def _asked(self, question: Any) -> Path:
        return self.folder / "asked" / f"{digest(question)[:32]}.json"


@attrs.frozen
class Replies:
    """Every reply of a model, as it came, kept before anybody reads it."""

    folder: Path

    def name(self, prompt: str, generator: Mapping[str, str]) -> str:
        return digest({"prompt": prompt, **generator})[:32]

    def raw(self, name: str) -> Path:
        """Where the program's standard output goes, while it runs and afterwards."""
        return self.folder / name / "reply"

    def note(self, name: str) -> Path:
        """How the program ended, beside it. Its presence says that the reply is whole."""
        return self.folder / name / "ended.json"

    def exit(self, name: str) -> Path:
        """Where an agent's program leaves its exit status, whoever is there to see it end."""
        return self.folder / name / "exit"

    def blob(self, name: str, oid: str) -> Path:
        """A file that the reply changed, before or after, by its content hash."""
        return self.folder / name / "blobs" / oid

    def drop(self, name: str) -> None:
        """Put a reply that is no use aside, so that the question may be asked again; it stays to be read."""
        for path in (self.raw(name), self.note(name), self.exit(name)):
            if path.exists():
                path.replace(path.with_name(f"{path.name}.{len(list(path.parent.iterdir()))}"))

    def lock(self, name: str) -> filelock.FileLock:
        """Held during a call: two runs with one question pay once."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return filelock.FileLock(folder / "lock")


def file_name(name: str) -> str:
    """A name as one path component: readable, reversible while short, never too long."""
    quoted = quote(name, safe=" ()[]{}+,=@!#", errors="surrogateescape")
    if len(quoted) <= 150 and quoted.strip(". ") == quoted:
        return quoted
    return f"{quoted[:100].strip('. ')}-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:16]}"


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
