"""What a pattern matches, by example and against git's own reading of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pipeline import patterns
from pipeline.patterns import Files

FILES = Files(
    [
        "a.js", "a.ts", ".hidden.js", "B.js", "src/a.js", "src/b.jsx", "src/a,b.js", "src/[id].js", "src/{x}.js",
        "src/deep/a.js", "src/deep/er/a.test.js", "src-old/a.js", "test/a.test.js", "test/b.test.js", "x*y.js",
        "xzy.js",
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "found"),
    {
        "a.js": ["a.js"],
        "*.js": [".hidden.js", "B.js", "a.js", "x*y.js", "xzy.js"],
        "?.js": ["B.js", "a.js"],
        "A.js": [],
        "src/*.js": ["src/[id].js", "src/a,b.js", "src/a.js", "src/{x}.js"],
        "src/**": [
            "src/[id].js", "src/a,b.js", "src/a.js", "src/b.jsx", "src/deep/a.js", "src/deep/er/a.test.js",
            "src/{x}.js",
        ],
        "src/**/a.js": ["src/a.js", "src/deep/a.js"],
        "**/a.js": ["a.js", "src-old/a.js", "src/a.js", "src/deep/a.js"],
        "src/**/*.test.js": ["src/deep/er/a.test.js"],
        "src/d**p/a.js": ["src/deep/a.js"],
        "*/a.js": ["src-old/a.js", "src/a.js"],
        "[ab].*": ["a.js", "a.ts"],
        "[!a].js": ["B.js"],
        "[^a].js": ["B.js"],
        "[a-c]*": ["a.js", "a.ts"],
        "src[/-]old/a.js": ["src-old/a.js"],
        "a.{js,ts}": ["a.js", "a.ts"],
        "{a,{b,src/a}}.js": ["a.js", "src/a.js"],
        "{src,test}/**/a.test.js": ["src/deep/er/a.test.js", "test/a.test.js"],
        "src/a,b.js": ["src/a,b.js"],
        "src/a{,\\,b}.js": ["src/a,b.js", "src/a.js"],
        "src/[id].js": ["src/[id].js"],
        "src/{x}.js": ["src/{x}.js"],
        "x*y.js": ["x*y.js"],
        "x\\*y.js": ["x*y.js"],
        "x[*]y.js": ["x*y.js"],
        "[": [],
        "{": [],
        "a\\": [],
        "": [],
    }.items(),
)  # fmt: skip
def test_a_pattern_matches(pattern: str, found: list[str]) -> None:
    assert list(FILES.matching(pattern)) == found


@pytest.mark.parametrize("pattern", ["[z-a].js", "src/[9-0]*"])
def test_a_range_that_goes_backwards_is_no_pattern(pattern: str) -> None:
    with pytest.raises(patterns.BadPattern, match="is no set of characters"):
        FILES.matching(pattern)


def test_of_a_list_each_pattern_acts_on_what_those_before_it_left() -> None:
    assert patterns.combined(FILES, ["src/*.js", "!src/a*.js", "src/a.js"]) == ["src/[id].js", "src/a.js", "src/{x}.js"]
    assert patterns.combined(FILES, ["!a.js", "a.*"]) == ["a.js", "a.ts"]


@given(st.text(alphabet="ab*?[]{},\\!^-/.", min_size=1, max_size=8))
def test_an_escaped_path_matches_itself_alone(path: str) -> None:
    files = Files([path, path + "x", "a", "b"])
    assert files.matching(patterns.escape(path)) == (path,)
    assert patterns.unescape(patterns.escape(path)) == path


def test_the_nearest_file_is_in_the_folder_or_has_the_name_or_is_like_it() -> None:
    assert FILES.nearest("src/deep/b.js") == "src/deep/a.js"
    assert FILES.nearest("lib/b.jsx") == "src/b.jsx"
    assert FILES.nearest("tests/b.test.js") == "test/b.test.js"
    assert FILES.nearest("nothing/like/it.py") is None


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Files]:
    root = tmp_path_factory.mktemp("patterns")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    paths = ["a", "b", "ab", "a.b", "d/a", "d/b", "d/ab", "d/d/a", "d/d/a.b", "d/e/d/a", "e/a", "e/d/b", "-", "d/-a"]
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch() if not (root / path).is_dir() else None
    return root, Files(paths)


PIECES = st.sampled_from(
    ["a", "b", "d", "e", ".", "-", "*", "?", "**", "/", "/", "**/", "/**", "[ab]", "[!a]", "[a-d]"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=6).map("".join))
@example("**/a")
@example("d/**")
@example("d/**/a")
@example("**")
def test_git_reads_a_pattern_as_we_do(repository: tuple[Path, Files], pattern: str) -> None:
    root, files = repository
    parts = pattern.split("/")
    # config normalizes such a path; git reads ** in part of a name otherwise than its manual says.
    odd = "" in parts or "." in parts or any("**" in part and part != "**" for part in parts)
    # To git, a path without wildcards means what is below it as well.
    assume(not odd and any(char in pattern for char in "*?["))
    done = subprocess.run(
        ["git", "ls-files", "-o", "-z", f":(glob){pattern}"], cwd=root, capture_output=True, check=True
    )
    assert list(files.matching(pattern)) == sorted(done.stdout.decode().split("\0")[:-1])


@pytest.mark.parametrize(
    ("declared", "lock"),
    {
        "src/a.js": "src/a.js",
        "src/": "src",
        r"src/\[id\].js": "src/[id].js",
        "gen/**/*.c": "gen",
        "gen/d{a,b}/c.c": "gen",
        "gen/a/?": "gen/a",
        r"gen/\*/[ab]": "gen/*",
        "*.c": ".",
        "./": ".",
    }.items(),
)
def test_a_pattern_locks_the_directory_that_its_wildcards_begin_in(declared: str, lock: str) -> None:
    assert patterns.lock(declared) == lock


SEGMENTS = st.lists(st.sampled_from(["a", "b", "ab", "*", "**", "?", "[ab]", "{a,b}", "{a/b,b}", r"\*"]), max_size=4)


@settings(deadline=None)
@given(SEGMENTS.map("/".join), st.booleans(), st.lists(st.sampled_from(["a", "b", "ab", "*"]), min_size=1, max_size=4))
def test_what_a_declared_path_takes_in_lies_under_what_it_locks(text: str, folder: bool, names: list[str]) -> None:
    """So two patterns that may meet in a file have locks that meet: both are above that file."""
    declared = f"{text or '.'}/" if folder and patterns.unescape(text) is not None else text
    if patterns.takes_in(declared, "/".join(names)):
        lock = patterns.lock(declared)
        assert lock == "." or names[: lock.count("/") + 1] == lock.split("/")
