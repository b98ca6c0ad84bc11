"""What tasks.yaml says: frozen values, no I/O. Paths are relative to the project's root, with forward slashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

VALIDATION = "validation"
GENERATION = "generation"
INHERIT = "inherit"  # in place of a model or an effort: the program is told none
Confidence = Literal["high", "medium", "low"]
LANES = ("generate", "draft", "repair")  # what models are asked for

# What each program takes for an effort, by its documentation; one that is not here (`command`) takes any text.
EFFORTS: Mapping[str, tuple[str, ...]] = {
    "claude": ("low", "medium", "high", "xhigh", "max"),
    "codex": ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"),
    "gemini": (),
}
GATE = "gate"  # the pool of one slot that landings through the gate take
LOOK = "look"  # the pool of one slot in which a person looks: it costs none of the others
LARGEST = 32  # changes in one build, however few are to blame: what is red after hours is told late


@attrs.frozen
class EngineConfig:
    """The program that mutates and tests."""

    use: Literal["stryker-js", "stryker-net"] = "stryker-js"
    concurrency: int | Literal["auto"] = "auto"  # worker processes of one engine run; auto: cores // n, at least 1
    needs: tuple[str, ...] = ()  # declared tasks that must have run before any baseline
    command: tuple[str, ...] = ()  # another engine binary, with leading arguments; () means the project's own
    config: str | None = None  # the engine's own configuration file, where it isn't found by itself
    time_limit: float = 3600.0  # seconds for one engine run
    max_age: float | None = None  # seconds after which a measurement is made anew; None: only when its inputs change
    project: str | None = None  # stryker-net: the project file that is mutated; None: the one that the files lie in
    tests: str | None = None  # stryker-net: the test project's file; None: the one that `write` lies in


@attrs.frozen
class GeneratorConfig:
    """One generator of `generate.with`. `name` tells two entries of one kind apart in the ledger."""

    use: str  # differential | claude | command
    name: str
    run: tuple[str, ...] = ()  # use: command only: the program and its arguments
    model: str | None = None  # as the entry says it; of the config that a call is made by: the program's own name
    time_limit: float = 600.0  # seconds for one call
    effort: str | None = None

    @property
    def embedded(self) -> bool:
        """Embedded generators spend no token and run in `search`; the others are called in rounds."""
        return self.use == "differential"


@attrs.frozen
class Budget:
    """Of one run, for calls that ask for tests. None: no limit."""

    tokens: int | None = None  # fresh input, cache writes and output together
    cost: float | None = None  # USD
    tokens_per_kill: int | None = None  # a scope whose last round paid more is asked about no more


@attrs.frozen
class GenerateConfig:
    generators: tuple[GeneratorConfig, ...] = (GeneratorConfig("differential", "differential"),)
    rounds: int = 2  # for each generator that isn't embedded
    budget: Budget = Budget()

    @property
    def models(self) -> tuple[GeneratorConfig, ...]:
        return tuple(g for g in self.generators if not g.embedded)

    @property
    def last_round(self) -> int:
        """Round 0 is search; round r ≥ 1 asks a model."""
        return self.rounds * len(self.models)

    def of_round(self, round_: int) -> tuple[GeneratorConfig, int]:
        """The generator that round `round_` ≥ 1 asks, and which of its attempts (from 0) that is."""
        return self.models[(round_ - 1) // self.rounds], (round_ - 1) % self.rounds


@attrs.frozen
class Wish:
    """Which model, and how hard it is to think, as far as somebody says; None: not here, INHERIT: no flag."""

    model: str | None = None
    effort: str | None = None


@attrs.frozen
class ModelsConfig:
    """Who is asked, by what is known of the work; choice.py chooses."""

    names: Mapping[str, Wish] = attrs.field(factory=dict)  # the plan's names -> what the program is told
    ladder: tuple[str, ...] = ()  # names of models, each below the one before it
    by_confidence: Mapping[Confidence, Wish] = attrs.field(factory=dict)
    lanes: Mapping[str, Wish] = attrs.field(factory=dict)  # one of LANES -> its default
    tries: int = 4  # calls of one model, where the provider's gateway fails
    backoff: float = 5.0  # seconds before the second of them; twice as long before each further one

    @property
    def declared(self) -> tuple[str, ...]:
        """The names that stand for a model; () where a plan declares none, and every name is the program's own."""
        return tuple(dict.fromkeys((*self.names, *self.ladder)))


@attrs.frozen
class LandConfig:
    branch: str = "mutate/{branch}"
    proof_runs: int = 5  # k: fresh runs on the original that every test must pass
    time_limit: float = 600.0  # seconds for one commit with the user's hooks


@attrs.frozen
class Scope:
    """A set of files to mutate, the tests that cover them, and the one test file that may be written.

    In tasks.yaml `mutate` and `tests` are patterns and a scope without a name stands for one scope per matched file;
    here they are expanded: concrete files, sorted.
    """

    name: str
    mutate: tuple[str, ...]
    tests: tuple[str, ...] | None  # None: the whole suite, as the engine finds it
    write: str
    reads: tuple[str, ...] = ()
    wish: Wish = Wish()
    confidence: Confidence | None = None
    lines: tuple[tuple[str, int, int], ...] | None = None  # of a narrowed plan: (file, first, last); None: all

    def takes_in(self, file: str, first: int, last: int) -> bool:
        """Whether a stretch of lines is among those that the scope is about."""
        return self.lines is None or any(file == of and a <= first and last <= b for of, a, b in self.lines)


@attrs.frozen
class Agent:
    """Who drafts a task's change: a program that calls a model and edits files."""

    brief: str  # what it is to do, as text
    use: str = "claude"  # claude | codex | gemini | command
    run: tuple[str, ...] = ()  # use: command only: the program and its arguments
    model: str | None = None
    effort: str | None = None
    time_limit: float = 3600.0  # seconds for one draft
    budget: int | None = None  # tokens, fresh input and cache writes and output together, of one draft

    @property
    def name(self) -> str:
        return self.use


@attrs.frozen
class Owns:
    """What commands have for themselves while they run, beside an output folder, {out} in them."""

    lock: str | None = None  # held over the whole machine: no other run of this user's holds it meanwhile
    pause: tuple[str, ...] = ()  # shell commands that stop a watcher, before the first
    resume: tuple[str, ...] = ()  # and that start it again, whatever came of them


@attrs.frozen
class Lint:
    """A linter whose findings are held against a baseline. Runs in the checkout, or in a worktree as a condition."""

    name: str
    run: str  # a shell command
    format: Literal["sarif", "regex", "lines"]
    baseline: str
    pattern: str = ""  # for regex, with groups of the names path, line, rule, message
    exit: tuple[int, ...] = (0, 1)  # codes with which it has come to its end
    timeout: float = 600.0  # seconds


@attrs.frozen
class Condition:
    """One thing that must hold of a task's change: a shell command, run in the project's root of a worktree."""

    name: str
    run: tuple[str, ...]  # one after another
    hidden: bool = False  # the agent is told neither of it nor of what it says
    timeout: float = 3600.0  # seconds
    owns: Owns | None = None
    lint: Lint | None = None  # it holds where this finds nothing new

    @property
    def told(self) -> str:
        """What an agent is told of it."""
        only = f" (nothing that is not in {self.lint.baseline})" if self.lint else ""
        return f"{self.name}: {'; '.join(self.run)}{only}"


@attrs.frozen
class Look:
    """A look at what has landed: shell commands in a worktree, in the project's root; {out}: a folder that stays."""

    run: tuple[str, ...]
    by: Literal["person", "tool"] = "person"  # who ends it: a person gets the terminal, and needs one
    timeout: float | None = None  # seconds; None: an hour for a tool, for a person no end


@attrs.frozen
class GateConfig:
    """The build that judges changes before they land, several at a time."""

    build: tuple[str, ...]  # shell commands in the project's root of a worktree
    each: tuple[str, ...] = ()  # a cheap condition of every task's check, before all others
    batch: int | Literal["auto"] = "auto"  # the most changes of one build
    timeout: float = 3600.0  # seconds for one build, and for one `each`
    owns: Owns | None = None


@attrs.frozen
class Task:
    """A declared task: commands with file scopes, run in the checkout, as doit's tasks do; or, with `agent`, a change
    that is drafted, checked and landed in worktrees of ours.

    `reads` and `writes` are in the language of patterns.py and in one spelling each, so that two of one file are equal:
    a path; a directory with all that is in it, which ends with a slash; a pattern; in `reads` what ! takes out again.
    """

    name: str
    run: tuple[str, ...]  # shell commands, one after another; none for an agent's task
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    pool: str = VALIDATION
    doc: str = ""
    env: Mapping[str, str] = attrs.field(factory=dict)
    timeout: float | None = None  # seconds, for all of `run` together
    memory: int | None = None  # bytes, of all its processes together
    owns: Owns | None = None
    links: Mapping[str, str] = attrs.field(factory=dict)  # paths among those that are symbolic links -> where to
    agent: Agent | None = None
    check: tuple[Condition, ...] = ()  # in the order in which they are judged: hidden ones last
    look: Look | None = None
    confidence: Confidence | None = None  # how sure its author is that it will go well


@attrs.frozen
class Plan:
    """One tasks.yaml, expanded. `root` is the absolute path of the project's root in the checkout."""

    path: str  # absolute path of tasks.yaml
    root: str
    store: str | None  # absolute path of what outlives a checkout; None: the user's own directories
    pools: Mapping[str, int]  # without `validation`: that one is what -n says
    engine: EngineConfig
    generate: GenerateConfig
    land: LandConfig
    scopes: tuple[Scope, ...]
    tasks: tuple[Task, ...]
    models: ModelsConfig = ModelsConfig()
    lints: tuple[Lint, ...] = ()
    compose: Mapping[str, str] = attrs.field(factory=dict)  # path -> who makes it of the fragments in PATH.d
    gate: GateConfig | None = None  # what agents' changes land through
    since: str = ""  # the ref that the scopes are narrowed by (narrow.py)

    @property
    def commands(self) -> tuple[Task, ...]:
        """The tasks that run commands in the checkout."""
        return tuple(task for task in self.tasks if task.agent is None)

    @property
    def changes(self) -> tuple[Task, ...]:
        """The tasks whose change an agent drafts."""
        return tuple(task for task in self.tasks if task.agent is not None)
