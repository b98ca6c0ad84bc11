"""What prompts say and what replies may hold where tests are methods in C#. Pure; prompt.py and reply.py use it."""

from __future__ import annotations

import re

from ..engines import csharp
from ..engines.stryker_net import suite

TESTS = """\

# How tests are written here

The first line below is about the framework. Your tests become methods of a class of their own, in the file on the
second line.
"""
REPLY = """\

# Reply

Reply with exactly one fenced block, and nothing that needs reading outside of it:

```json
{"tests": [{"kills": [1], "title": "WhatTheCodeDoes", "imports": ["using System.Text;"],
            "code": "[Fact]\\npublic void WhatTheCodeDoes()\\n{\\n    ...\\n}"}]}
```

- kills: the numbers of the mutants that the test kills.
- title: the method's name, as in the code, different from every title that is taken.
- imports: using directives that the code needs beside those of the existing tests; [] for none.
- code: one whole public test method, with the attribute that this framework wants, that holds at least one assertion.
  No helper, field or type beside it. It must compile with nullable references on.
"""

_USING = re.compile(r"using\s+(?P<name>[A-Za-z_][\w.]*)\s*;")
_CLOSED = r"System\s*\.\s*(?:IO|Net|Diagnostics|Reflection|Runtime|Threading(?!\s*\.\s*Tasks))\b|Microsoft\b"


def _type(*names: str) -> str:
    """One of these types by its own name, or by System's; a member of something else may be called so."""
    return rf"(?<![\w.])(?:System\s*\.\s*(?:\w+\s*\.\s*)*)?(?:{'|'.join(names)})\b"


_ASSERTION = re.compile(r"\b(?:\w*Assert|Check)\s*\.|\.\s*Should\w*\b|\bVerify\s*\(")
_FORBIDDEN: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern))
    for reason, pattern in (
        ("skipped", r"\bSkip\w*\s*=|\[\s*(?:Ignore|Explicit)\b"),
        ("an escape in a name", r"\\[uU]"),
        ("what it has no business with", _CLOSED),
        ("another process", _type("Process", "ProcessStartInfo")),
        (
            "files",
            _type("File", "Directory", "FileStream", "StreamWriter", "StreamReader", "Path", "DriveInfo", "FileInfo"),
        ),
        ("environment", _type("Environment", "AppDomain", "AppContext", "Console")),
        (
            "reflection",
            r"\bGetType\s*\(|\bBindingFlags\b|\btypeof\s*\([^()]*\)\s*[.?!]|\.\s*InvokeMember\b|\.\s*GetMethods?\b|"
            + _type("Assembly", "Activator", "RuntimeHelpers")
            + "|"
            + _type("Type")
            + r"\s*\.",
        ),
        ("network", _type("HttpClient", "TcpClient", "Socket", "WebRequest", "Dns")),
        ("native code", r"\bDllImport\b|\bLibraryImport\b|\bunsafe\b|" + _type("Marshal", "NativeLibrary")),
        (
            "threads or timers",
            r"\bTask\s*\.\s*(?:Run|Delay|Factory)\b|\bnew\s+Task\b|"
            + _type("Thread", "ThreadPool", "Timer", "Parallel"),
        ),
        (
            "a clock or random numbers",
            r"\b(?:Random|Stopwatch|TimeProvider)\b|\bGuid\s*\.\s*(?:NewGuid|CreateVersion7)\b|"
            r"\bDateTime(?:Offset)?\s*\.\s*(?:(?:Utc)?Now|Today)\b",
        ),
    )
)


def tests(code: str) -> tuple[str, ...] | None:
    """The test methods that `code` is made of; None where it is anything else or more."""
    wrapped = f"class C\n{{\n{code}\n}}\n"
    members = csharp.members(wrapped)
    if members is None or not members or members[0].name != "C" or len([m for m in members if not m.inside]) != 1:
        return None
    methods = suite.tests_of(wrapped)
    if len(methods) != len(members) - 1 or any(m.inside != "C" for m in methods):
        return None
    return suite.CSharpSuite().bodies(wrapped) or None


def title(code: str) -> str | None:
    """The name of a test method."""
    return next(iter(suite.CSharpSuite().titles(f"class C\n{{\n{code}\n}}\n")), None)


def why_not_import(statement: str) -> str | None:
    """Only using directives, none of them for what a test has no business with."""
    match = _USING.fullmatch(statement) if len(statement) < 1000 else None
    if not match:
        return "not one using directive"
    if re.match(_CLOSED, match["name"]) or "stryker" in match["name"].lower():
        return f"using {match['name'][:60]}: a test has no business with it"
    return None


def why_not(code: str) -> str | None:
    """What speaks against trying this test, or None."""
    if "stryker" in code.lower() or "MutantControl" in code:
        return "it looks at the switch that chooses the mutant"
    if re.search(r"^\s*#", code, re.MULTILINE):
        return "a preprocessor directive"
    text = csharp.blank(code) or ""
    for reason, pattern in _FORBIDDEN:
        if pattern.search(text):
            return reason
    return None if _ASSERTION.search(text) else "no assertion"
