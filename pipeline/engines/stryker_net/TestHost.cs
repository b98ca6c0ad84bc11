// Runs the tests of one assembly in this process, by the adapter of their framework, as the test platform's own host
// does; but it opens no socket, starts no other program, and can be told the order. It lies in the tests' own folder,
// and is started with their runtimeconfig.json and deps.json:
//     dotnet exec ... TestHost.dll ASSEMBLY REQUEST ANSWER
// REQUEST, a line each: `type NAME` or `test NAME` (what is run; all where neither is there), `shuffle SEED`, or
// `ordered 1`: one test after another, as they are named.
// ANSWER, a line each, fields by tabs: `start TYPE METHOD`, `end TYPE METHOD OUTCOME SECONDS MESSAGE STACK`,
// `error TEXT`, and at the end `done`. In a field \ \t \n \r are escaped by \.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Runtime.Loader;
using System.Text;
using Microsoft.VisualStudio.TestPlatform.ObjectModel;
using Microsoft.VisualStudio.TestPlatform.ObjectModel.Adapter;
using Microsoft.VisualStudio.TestPlatform.ObjectModel.Logging;

static class TestHost
{
    static void Main(string[] words)
    {
        var folder = AppContext.BaseDirectory;
        var source = Path.Combine(folder, words[0]);
        var request = File.ReadAllLines(words[1]).Select(line => line.Split(' ', 2)).ToLookup(w => w[0], w => w[1]);
        var answer = new Answer(words[2]);
        AssemblyLoadContext.Default.Resolving += (context, name) =>
        {
            var path = Path.Combine(folder, name.Name + ".dll");
            return File.Exists(path) ? context.LoadFromAssemblyPath(path) : null;
        };
        var anyCase = new EnumerationOptions { MatchCasing = MatchCasing.CaseInsensitive };
        foreach (var path in Directory.GetFiles(folder, "*.testadapter.dll", anyCase))
        {
            var types = AssemblyLoadContext.Default.LoadFromAssemblyPath(path).GetExportedTypes()
                .Where(type => type.IsClass && !type.IsAbstract).ToList();
            foreach (var type in types.Where(type => typeof(ITestDiscoverer).IsAssignableFrom(type)))
                ((ITestDiscoverer)Activator.CreateInstance(type)!).DiscoverTests([source], new Context(), answer, answer);
            var wanted = answer.Found.Where(test => Wanted(test, request)).ToList();
            answer.Found.Clear();
            foreach (var type in types.Where(type => typeof(ITestExecutor).IsAssignableFrom(type)))
                foreach (var some in InOrder(wanted, request))
                    ((ITestExecutor)Activator.CreateInstance(type)!).RunTests(some, new Context(), answer);
        }
        answer.Write("done");
        Environment.Exit(0); // whatever threads the tests have left
    }

    static bool Wanted(TestCase test, ILookup<string, string> request)
    {
        var (type, method) = Name.Of(test);
        return !(request.Contains("type") || request.Contains("test"))
            || request["type"].Contains(type) || request["test"].Contains($"{type}.{method}");
    }

    /// What is run at once: a framework orders what it is given at once by itself.
    static IEnumerable<List<TestCase>> InOrder(List<TestCase> tests, ILookup<string, string> request)
    {
        if (request["shuffle"].FirstOrDefault() is { } seed)
        {
            var random = new Random(int.Parse(seed, CultureInfo.InvariantCulture));
            return tests.OrderBy(_ => random.Next()).Select(test => new List<TestCase> { test }).ToList();
        }
        if (!request.Contains("ordered")) return tests.Count > 0 ? [tests] : [];
        var names = request["test"].ToList();
        return tests.GroupBy(test => Name.Of(test)).OrderBy(group => names.IndexOf($"{group.Key.Type}.{group.Key.Method}"))
            .Select(group => group.ToList()).ToList();
    }
}

static class Name
{
    /// Class and method, without a fixture's or a case's arguments.
    public static (string Type, string Method) Of(TestCase test)
    {
        var plain = new StringBuilder();
        var (depth, quote) = (0, '\0');
        for (var i = 0; i < test.FullyQualifiedName.Length; i++)
        {
            var c = test.FullyQualifiedName[i];
            if (quote != '\0')
            {
                if (c == '\\') i++;
                else if (c == quote) quote = '\0';
            }
            else if (depth > 0 && c is '"' or '\'') quote = c;
            else if (c == '(') depth++;
            else if (c == ')') depth--;
            else if (depth == 0) plain.Append(c);
        }
        var name = plain.ToString();
        var dot = name.LastIndexOf('.');
        return dot < 0 ? ("", name) : (name[..dot], name[(dot + 1)..]);
    }
}

sealed class Context : IRunContext, IRunSettings
{
    public bool KeepAlive => false;
    public bool InIsolation => false;
    public bool IsDataCollectionEnabled => false;
    public bool IsBeingDebugged => false;
    public string? TestRunDirectory => Path.GetTempPath();
    public string? SolutionDirectory => null;
    public IRunSettings? RunSettings => this;
    public string? SettingsXml => """
        <RunSettings><RunConfiguration><DisableAppDomain>true</DisableAppDomain>
        <DisableParallelization>true</DisableParallelization></RunConfiguration></RunSettings>
        """;
    public ISettingsProvider? GetSettings(string? name) => null;
    public ITestCaseFilterExpression? GetTestCaseFilter(
        IEnumerable<string>? properties, Func<string, TestProperty?> provider) => null;
}

sealed class Answer(string path) : IFrameworkHandle, ITestCaseDiscoverySink
{
    readonly StreamWriter _out = new(path) { AutoFlush = true };

    public List<TestCase> Found { get; } = [];
    public bool EnableShutdownAfterTestRun { get; set; }

    public void SendTestCase(TestCase test) => Found.Add(test);

    public void SendMessage(TestMessageLevel level, string message)
    {
        if (level == TestMessageLevel.Error) Write("error", message);
    }

    public void RecordStart(TestCase test)
    {
        var (type, method) = Name.Of(test);
        Write("start", type, method);
    }

    public void RecordEnd(TestCase test, TestOutcome outcome) { }

    public void RecordAttachments(IList<AttachmentSet> attachments) { }

    public void RecordResult(TestResult result)
    {
        var (type, method) = Name.Of(result.TestCase);
        var seconds = result.Duration.TotalSeconds.ToString(CultureInfo.InvariantCulture);
        Write("end", type, method, result.Outcome.ToString(), seconds, result.ErrorMessage, result.ErrorStackTrace);
    }

    public int LaunchProcessWithDebuggerAttached(
        string file, string? folder, string? arguments, IDictionary<string, string?>? variables) => 0;

    public void Write(params string?[] fields)
    {
        var line = string.Join('\t', fields.Select(field => (field ?? "")
            .Replace("\\", "\\\\").Replace("\t", "\\t").Replace("\n", "\\n").Replace("\r", "\\r")));
        lock (_out) _out.WriteLine(line);
    }
}
