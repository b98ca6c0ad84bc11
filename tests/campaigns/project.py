"""A project of eight scopes whose drive comes to every ending that needs no person, as cheap as a drive can be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PLAN = """\
version: 1
engine: {{command: ["{engine}"]}}
generate:
  with: [{{use: claude, time_limit: 60}}]
  rounds: 1
land: {{proof_runs: 1}}
pools: {{generation: 2}}
scopes:
  - mutate: src/*.js
    tests: test/{{stem}}.test.js
    write: test/{{stem}}.mutants.test.js
"""
ANSWERED = ("ant", "dog", "elk", "hen")  # the model knows a test
LOST = "fox"  # the model knows none: exhausted
WHOLE = ("bee", "cow", "gnu")  # no survivors: converged

_SOURCE = "export function {name}(n) {{\n  return n > 3 ? 'many' : '{name}';\n}}\n"
_TEST = """\
import assert from 'node:assert/strict';
import {{ {name} }} from '../src/{name}.js';

it('{title}', () => {{
{lines}
}});
"""


def make_project(place: Path) -> Path:
    """Write the project: one function a file, a test file for each; one of them loads another's file."""
    (place / "src").mkdir(parents=True)
    (place / "test").mkdir()
    (place / "package.json").write_text('{ "name": "eight", "private": true, "type": "module" }\n')
    for name in (*ANSWERED, LOST, *WHOLE):
        source, inputs = _SOURCE.format(name=name), (2, 9)
        if name == "hen":
            source = "import { ant } from './ant.js';\n\n" + source.replace(": 'hen'", ": ant(n).replace('ant', 'hen')")
        if name in WHOLE:
            inputs = (3, 4)
        (place / "src" / f"{name}.js").write_text(source)
        lines = [f"  assert.equal({name}({n}), '{'many' if n > 3 else name}');" for n in inputs]
        test = _TEST.format(name=name, title=f"{name} works", lines="\n".join(lines))
        (place / "test" / f"{name}.test.js").write_text(test)
    return place


def script(delay: float) -> list[dict[str, Any]]:
    """What the stand-in for the model answers, after so many seconds."""
    answers = ({"match": f"src/{name}.js", "text": json.dumps({"tests": [_answer(name)]})} for name in ANSWERED)
    return [{**rule, "delay": delay} for rule in (*answers, {"match": "*", "text": '{"tests": []}'})]


def _answer(name: str) -> dict[str, Any]:
    return {
        "kills": [1],
        "title": f"{name} knows three",
        "imports": ["import assert from 'node:assert/strict';", f"import {{ {name} }} from '../src/{name}.js';"],
        "code": f"it('{name} knows three', () => {{\n  assert.equal({name}(3), '{name}');\n}});",
    }
