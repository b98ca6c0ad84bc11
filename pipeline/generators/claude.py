"""Claude Code as a generator: `claude -p --output-format json`, without tools, for one turn.

What it says is one JSON object, the envelope. That an API call failed stands in it (`is_error`), with exit code 0 in
some versions and 1 in others, so the envelope is judged and the exit code only where there is none. Fields come and go
between versions: none is taken for granted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from ..results import Outcome
from .base import NOT_MEASURED, Reply, Tokens, one_line
from .command import Command, failure, silence

Envelope = Mapping[str, Any]

# How a failed call says so. Only ever matched against the text of a failure: a test about a rate limit, or one that
# holds the number 502, is a reply like any other.
_STATUS: Mapping[str, Outcome] = {
    "400": Outcome.BAD_CONFIG, "404": Outcome.BAD_CONFIG,
    "401": Outcome.NOT_LOGGED_IN, "403": Outcome.NOT_LOGGED_IN,
    "429": Outcome.RATE_LIMITED,
    "502": Outcome.OVERLOADED, "503": Outcome.OVERLOADED, "504": Outcome.OVERLOADED, "529": Outcome.OVERLOADED,
}  # fmt: skip
_PHRASES: tuple[tuple[str, Outcome], ...] = (
    (r"not logged in|run /login|invalid api key|authentication_error|oauth token", Outcome.NOT_LOGGED_IN),
    (r"credit balance|selected model|prompt is too long", Outcome.BAD_CONFIG),
    (r"hit your (?!rate).*limit|(session|usage|weekly|hour) limit", Outcome.SESSION_LIMIT),
    (r"rate.?limit|limit reached", Outcome.RATE_LIMITED),
    (r"overloaded|bad gateway|gateway time-?out|service unavailable", Outcome.OVERLOADED),
)
_REMEDY: Mapping[Outcome, str] = {
    Outcome.BAD_CONFIG: "see this generator's entry in tasks.yaml, and the account",
    Outcome.NOT_LOGGED_IN: "log in (start claude, then /login), or set its API key, and run again",
    Outcome.SESSION_LIMIT: "run again when it has been reset; nothing that is finished is lost",
    Outcome.RATE_LIMITED: "run again later; nothing that is finished is lost",
    Outcome.OVERLOADED: "run again later; nothing that is finished is lost",
}


@attrs.frozen
class Claude(Command):
    """`use: claude`, with `model` and `effort` if others than its defaults are wanted."""

    @property
    def argv(self) -> tuple[str, ...]:
        # `--tools ""` had no effect in some versions, and a user's settings may allow every tool: those that change
        # anything are also named. The options that take a list are followed by another option, which ends the list.
        no_tools = ("--tools", "", "--disallowedTools", "Bash,Edit,Write,NotebookEdit", "--strict-mcp-config")
        model = ("--model", self.config.model) if self.config.model else ()
        effort = ("--effort", self.config.effort) if self.config.effort else ()
        return ("claude", "-p", "--output-format", "json", *no_tools, "--max-turns", "1", *model, *effort)

    def classify(
        self,
        exit_code: int | None,
        raw: bytes,
        err: bytes = b"",
        *,
        timed_out: bool = False,
        too_much_output: bool = False,
    ) -> Reply:
        # Whole and paid for: a reply that arrived counts, whatever the program did afterwards.
        envelope = find_envelope(raw.decode(errors="replace"))
        reply = judged(envelope) if envelope is not None else None
        if reply is None:
            reply = _refused_options(err) or failure("claude", exit_code, err or raw, timed_out, too_much_output)
        if reply is None and not raw.strip():
            reply = silence("claude", exit_code)
        if reply is None:
            said = one_line([raw.decode(errors="replace")], 120)
            detail = f"claude's reply is not the JSON object it is documented to be: {said}"
            reply = Reply(Outcome.UNPARSABLE, detail=detail, tokens=NOT_MEASURED)
        return attrs.evolve(reply, model=reply.model or self.config.model)


def find_envelope(text: str) -> Envelope | None:
    """The result object in what claude said: alone, last of a list, or on a line of its own after warnings."""
    for candidate in (text, *reversed(text.splitlines())):
        if not candidate.lstrip().startswith(("{", "[")):
            continue
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        for item in reversed(value if isinstance(value, list) else [value]):
            if isinstance(item, dict) and (item.get("type") == "result" or "result" in item):
                return item
    return None


def judged(envelope: Envelope, program: str = "claude") -> Reply:
    """What came of a call, by its envelope alone. program: that said it, for people."""
    subtype = str(envelope.get("subtype") or "success")
    result = envelope.get("result")
    text = result if isinstance(result, str) else ""
    tokens = count(envelope)
    answered = Reply(Outcome.OK, tokens=tokens, model=_model(envelope))
    if subtype != "success":  # error_max_turns, error_during_execution, error_max_budget_usd, ...
        outcome = Outcome.BAD_CONFIG if "budget" in subtype else Outcome.CRASHED
        detail = one_line([f"{program}: {subtype}", text, str(envelope.get("errors") or "")])
        return attrs.evolve(answered, outcome=outcome, detail=detail)
    if envelope.get("is_error", text.startswith("API Error")):
        outcome = outcome_of(text)
        detail = f"{program}: {one_line([text]) or 'an error without a text'}"
        if outcome in _REMEDY:
            detail += f"; {_REMEDY[outcome]}"
        return attrs.evolve(answered, outcome=outcome, detail=detail)
    if not text.strip() or (tokens.source == "envelope" and not tokens.output):
        return attrs.evolve(answered, outcome=Outcome.EMPTY_REPLY, detail=f"{program}: success, but an empty reply")
    return attrs.evolve(answered, text=text)


def outcome_of(text: str) -> Outcome:
    """What the text of a failed call means; `crashed` where nobody has seen it before."""
    status = re.match(r"API Error: (\d{3})\b", text)
    if status and status[1] in _STATUS:
        return _STATUS[status[1]]
    return next((o for phrase, o in _PHRASES if re.search(phrase, text, re.IGNORECASE)), Outcome.CRASHED)


def count(envelope: Envelope) -> Tokens:
    """The tokens that the envelope states, to the digit; not measured where it states none."""
    usage = envelope.get("usage")
    if not isinstance(usage, Mapping) or not usage:
        return NOT_MEASURED
    cost = envelope.get("total_cost_usd")
    return Tokens(
        fresh_input=_whole(usage.get("input_tokens")),
        cache_write=_whole(usage.get("cache_creation_input_tokens")),
        cache_read=_whole(usage.get("cache_read_input_tokens")),
        output=_whole(usage.get("output_tokens")),
        cost=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _model(envelope: Envelope) -> str | None:
    """Which model answered. Small ones do side work in the same call: it is the one that wrote most."""
    used = envelope.get("modelUsage")
    if not isinstance(used, Mapping) or not used:
        return None
    written = {str(n): _whole(u.get("outputTokens")) if isinstance(u, Mapping) else 0 for n, u in used.items()}
    return max(sorted(written), key=lambda name: written[name])


def _refused_options(err: bytes) -> Reply | None:
    said = re.search(
        r"^error: (unknown option|option .*|unknown command).*$", err.decode(errors="replace"), re.MULTILINE
    )
    if not said:
        return None
    return Reply(Outcome.BAD_CONFIG, detail=f"claude: {one_line([said[0]])}; its version is too old for us: update it")
