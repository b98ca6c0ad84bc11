"""C# as text: what stands where in a file, how tests get in and out of one, and what a reply may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines import csharp
from pipeline.engines.stryker_net.suite import CSharpSuite, classes_of
from pipeline.generators import csharp as replies
from pipeline.generators import reply
from pipeline.generators.base import Ask, Question
from pipeline.mutants import Raw, Status, identify
from pipeline.results import Outcome, Survivor, Test

SUITE = CSharpSuite()
WRITE = "test/Shop.Tests/CartMutantTests.cs"
EXISTING = """\
using System.Text;

namespace Shop.Tests;

public class CartTests
{
    private readonly int[] _sizes = { 1, 2 };

    public int Size { get; set; } = 3;

    [Theory]
    [InlineData("}", 1)]
    public void Adds(string name, int pieces = 2)
    {
        Assert.Equal($"{name}: {(pieces > 1 ? "some" : "one")}", "{ // no comment");
    }

    // Says [Fact] and { only here.
    [Fact]
    public async Task Waits() => await Task.FromResult('"');

    private static int Helper(int n) => n;
}
"""
HEADER = ("using System.Text;", "namespace Shop.Tests;", "public class CartMutantTests")


def method(name: str, body: str = "Assert.Equal(1, 1);") -> str:
    return f"[Fact]\npublic void {name}()\n{{\n    {body}\n}}"


def fact(name: str, body: str = "Assert.Equal(1, 1);", imports: tuple[str, ...] = HEADER) -> Test:
    return Test(name, method(name, body), imports)


def test_tests_are_told_from_helpers_properties_and_what_stands_in_strings_and_comments() -> None:
    assert SUITE.titles(EXISTING) == ("Adds", "Waits")
    assert classes_of(EXISTING) == ("Shop.Tests.CartTests",)
    assert SUITE.bodies(EXISTING)[1] == "[Fact]\npublic async Task Waits() => await Task.FromResult('\"');"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("namespace A.B\n{\n  class C\n  {\n    class D { [Test] public void T() {} }\n  }\n}\n", ("A.B.C+D",)),
        ('[TestFixture] class C : Base\n{\n  [TestCase(1), Category("x")] public void T(int n) { }\n}\n', ("C",)),
        ("public record R(int X);\nclass CTests : Base { }\n", ("CTests",)),
        ("#if NET8_0\nclass C { [Fact] void T() { } }\n#endif\n", ("C",)),
    ],
)
def test_a_class_has_the_name_that_a_filter_knows_it_by(text: str, names: tuple[str, ...]) -> None:
    assert classes_of(text) == names


@pytest.mark.parametrize(
    "code",
    [
        'var a = @"C:\\";', 'var b = $@"{x}""{{";', 'var c = """\n  { " } ""\n  """;', 'var d = $$"""{ {{x}} }""";',
        "var e = '\\'';", 'var f = $"{(y ? $"{z}" : "}")}";', "/* { */ // }",
    ],
)  # fmt: skip
def test_braces_in_every_kind_of_string_and_comment_count_for_nothing(code: str) -> None:
    blanked = csharp.blank(code)
    assert blanked is not None and len(blanked) == len(code) and not set("{}") & set(blanked)


@pytest.mark.parametrize("code", ['var a = "x', "{", ")", "/* x", 'var a = @"x', "'"])
def test_what_is_not_closed_is_refused(code: str) -> None:
    assert csharp.blank(code) is None


def test_a_new_file_is_made_of_what_the_first_test_brings() -> None:
    assert SUITE.add("", [fact("One")]) == (
        "using System.Text;\n\nnamespace Shop.Tests;\n\npublic class CartMutantTests\n{\n"
        "    // Pins what the code does today, to detect mutants (aafcef63).\n"
        "    [Fact]\n    public void One()\n    {\n        Assert.Equal(1, 1);\n    }\n}\n"
    )


@pytest.mark.parametrize("style", ["namespace Shop.Tests;", "namespace Shop.Tests"], ids=["file-scoped", "block"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_tests_come_in_one_by_one_or_together_and_go_again_to_the_byte(style: str, newline: str, bom: str) -> None:
    header = ("using System;", style, "public class CartMutantTests")
    first = bom + SUITE.add("", [fact("Zero", imports=header)]).replace("\n", newline)
    a = fact("A", 'Assert.Equal(@"x\n y", "x");', (*header, "using System.Linq;"))
    b = fact("B", "Assert.True(true);", header)
    both = SUITE.add(first, [a, b])
    assert SUITE.add(SUITE.add(first, [a]), [b]) == both
    assert SUITE.titles(both) == ("Zero", "A", "B")
    assert [SUITE.find(both, t.title) for t in (a, b)] == [a.code, b.code]
    assert both.startswith(bom) and (newline == "\n" or both.count("\n") == both.count("\r\n"))
    assert SUITE.remove(SUITE.remove(both, "B"), "A") == first.replace(
        f"using System;{newline}", f"using System;{newline}using System.Linq;{newline}"
    )


def test_somebodys_own_class_keeps_every_byte_when_a_test_joins_and_leaves() -> None:
    joined = SUITE.add(EXISTING, [fact("Joins")])
    assert SUITE.find(joined, "Joins") == method("Joins")
    assert SUITE.remove(joined, "Joins") == EXISTING
    assert SUITE.remove(EXISTING, "Nobody") == EXISTING


def test_a_file_takes_namespace_and_class_from_the_tests_beside_it() -> None:
    assert SUITE.imports(EXISTING, "test/Shop.Tests/CartTests.cs", WRITE) == HEADER
    mstest = "namespace T\n{\n    [TestClass]\n    public class C { [TestMethod] public void M() { } }\n}\n"
    assert SUITE.imports(mstest, "C.cs", "D.Tests.cs") == ("namespace T", "[TestClass] public class D")


def test_a_prompt_shows_the_member_alone_and_its_type_by_signatures() -> None:
    line = EXISTING.split("\n").index(
        '        Assert.Equal($"{name}: {(pieces > 1 ? "some" : "one")}", "{ // no comment");'
    )
    first, end = SUITE.excerpt(EXISTING, line + 1)
    assert EXISTING.split("\n")[first:end][0] == "    [Theory]" and EXISTING.split("\n")[end - 1] == "    }"
    outline = SUITE.outline(EXISTING, line + 1)
    assert "namespace Shop.Tests;\npublic class CartTests" in outline
    assert "private static int Helper(int n)" in outline and "FromResult" not in outline


def test_comments_and_layout_are_nothing_to_a_compiler_and_everything_else_is() -> None:
    code = 'class C // one\n{\n    string S => "a  // b"; /* two */\n}\n'
    assert csharp.essence(code) == csharp.essence('class C\n{\n\n  string S => "a  // b";\n}')
    assert csharp.essence(code) != csharp.essence(code.replace("a  //", "a //"))
    assert csharp.essence("#if A\nint a;\n#endif") != csharp.essence("#if A\nint a;\n\n#endif")
    assert csharp.essence('"') is None


IDENTICAL = """\
class C
{
    int One(int n)
    {
        return n + 1;
    }

    int Two(int n)
    {
        return n + 1;
    }
}
"""


def test_a_mutant_is_told_by_the_head_of_its_method_where_braces_have_lines_of_their_own() -> None:
    def key(source: str) -> str:
        line = source.split("\n").index("    int Two(int n)") + 3
        raw = Raw("7", "Arithmetic", "n - 1", Status.SURVIVED, line, 16, line, 21, False, (), None, "")
        return identify([raw], "c.cs", source)[0].key

    shorter = IDENTICAL.replace("    int One(int n)\n    {\n        return n + 1;\n    }\n\n", "")
    assert key(IDENTICAL) == key(shorter) == key(IDENTICAL.replace("One", "Uno"))
    assert key(IDENTICAL) != key(IDENTICAL.replace("class C", "class D"))


ASK = Ask(
    scope="src/Cart.cs", files=("src/Cart.cs",), write=WRITE, framework="", language="csharp", module_imports=HEADER,
    titles_taken=("Taken",),
    questions=(Question(Survivor("k", "src/Cart.cs", "M", "o", "r", ""), 1, 1, 1, 2, "o", 1, "r", "Survived"),),
)  # fmt: skip


def parsed(code: str, imports: str = "[]") -> reply.Parsed:
    import json

    return reply.parse(f'{{"tests": [{{"kills": [1], "imports": {imports}, "code": {json.dumps(code)}}}]}}', ASK)


def test_a_test_of_a_reply_brings_what_its_file_needs() -> None:
    (test,) = parsed(f"    {method('New')}".replace("\n", "\n    "), '["using System.Linq;"]').tests
    assert test == Test("New", method("New"), (*HEADER, "using System.Linq;"), ("k",))


def test_a_block_of_methods_without_json_is_read_as_the_tests_in_it() -> None:
    got = reply.parse(f"Here:\n```csharp\n{method('One')}\n\n{method('Two')}\n```\n", ASK)
    assert [t.title for t in got.tests] == ["One", "Two"]
    assert reply.parse(f"```csharp\nint x;\n{method('One')}\n```\n", ASK).outcome is Outcome.UNPARSABLE


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (method("Taken"), "the title is taken"),
        (method("T", "var x = 1;"), "no assertion"),
        (f"int x;\n{method('T')}", "not one whole test method"),
        (f"{method('T')}\n{method('U')}", "not one whole test method"),
        (f"}} class D {{ {method('T')}", "not one whole test method"),
        (method("T").replace("[Fact]", '[Fact(Skip = "no")]'), "skipped"),
        (method("T", "System.IO.File.Delete(f); Assert.True(true);"), "what it has no business with"),
        (method("T", "File.Delete(f); Assert.True(true);"), "files"),
        (method("T", "Process.Start(f); Assert.True(true);"), "another process"),
        (method("T", "Assert.True(typeof(C).GetMethod(n) is null);"), "reflection"),
        (method("T", "Assert.True(Environment.Exit(0));"), "environment"),
        (method("T", "Assert.True(MutantControl.IsActive(1));"), "it looks at the switch that chooses the mutant"),
        (method("T", "Assert.Null(System.Environment.GetEnvironmentVariable(n));"), "environment"),
        (method("T", "Assert.Null(global::System . AppContext.GetData(n));"), "environment"),
        (method("T", "Assert.Null(\\u0045nvironment.GetEnvironmentVariable(n));"), "an escape in a name"),
        (method("T", "Assert.Empty(typeof(C).GetFields());"), "reflection"),
        (method("T", "Assert.Equal(1, DateTime.Today.Day);"), "a clock or random numbers"),
        (method("T", "Assert.NotEqual(a, Guid.NewGuid());"), "a clock or random numbers"),
        (method("T", "Assert.True(TimeProvider.System.GetUtcNow() > a);"), "a clock or random numbers"),
        (method("T", "new Task(f).Start(); Assert.True(x);"), "threads or timers"),
        (method("T", "System.Console.Write(1); Assert.True(x);"), "environment"),
        (method("T", "\n#pragma warning disable\nAssert.True(true);"), "a preprocessor directive"),
    ],
)  # fmt: skip
def test_what_a_test_has_no_business_with_is_refused_by_name(code: str, reason: str) -> None:
    assert [r.reason for r in parsed(code).refused] == [reason]


def test_what_a_thing_calls_its_own_is_no_type_of_systems() -> None:
    code = method("T", "Assert.Equal(order.Type.Name, order.Path.Console.File + typeof(Cart).Name.Length);")
    assert replies.why_not(code.replace("typeof(Cart).Name.Length", "new Shop.Process().Timer")) is None
    assert replies.why_not(code) == "reflection"


def test_only_using_directives_are_imports() -> None:
    assert replies.why_not_import("using Shop.Parts;") is None
    for line in (
        "using System.IO;",
        "using static System.Environment;",
        "namespace X;",
        "using X = System.IO.File;",
        "extern alias A;",
        "using A; using B;",
    ):
        assert replies.why_not_import(line)


NAMES = st.lists(st.sampled_from([f"T{i}" for i in range(6)]), min_size=1, max_size=6, unique=True)


@given(NAMES, st.data())
def test_whatever_goes_in_and_out_the_rest_stays(names: list[str], data: st.DataObject) -> None:
    text = SUITE.add("", [fact(n) for n in names])
    for gone in data.draw(st.permutations(names)):
        text = SUITE.remove(text, gone)
        names = [n for n in names if n != gone]
        assert text == SUITE.add("", [fact(n) for n in names]) or not names
