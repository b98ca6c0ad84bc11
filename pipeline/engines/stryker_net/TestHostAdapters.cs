// The tests of an assembly by the adapters of their frameworks that lie beside it, as the test platform's own host runs
// them. Any framework that has one.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.Loader;
using System.Text;
using Microsoft.VisualStudio.TestPlatform.ObjectModel;
using Microsoft.VisualStudio.TestPlatform.ObjectModel.Adapter;
using Microsoft.VisualStudio.TestPlatform.ObjectModel.Logging;

static class Runner
{
    public static void Run(string source, Request request, Answer answer)
    {
        var anyCase = new EnumerationOptions { MatchCasing = MatchCasing.CaseInsensitive };
        foreach (var path in Directory.GetFiles(Path.GetDirectoryName(source)!, "*.testadapter.dll", anyCase))
        {
            var handle = new Handle(answer);
            var types = AssemblyLoadContext.Default.LoadFromAssemblyPath(path).GetExportedTypes()
                .Where(type => type.IsClass && !type.IsAbstract).ToList();
            foreach (var type in types.Where(type => typeof(ITestDiscoverer).IsAssignableFrom(type)))
                ((ITestDiscoverer)Activator.CreateInstance(type)!).DiscoverTests([source], new Context(), handle, handle);
            foreach (var type in types.Where(type => typeof(ITestExecutor).IsAssignableFrom(type)))
                foreach (var some in request.Parts(handle.Found, Name.Of))
                    ((ITestExecutor)Activator.CreateInstance(type)!).RunTests(some, new Context(), handle);
        }
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

sealed class Handle(Answer answer) : IFrameworkHandle, ITestCaseDiscoverySink
{
    public List<TestCase> Found { get; } = [];
    public bool EnableShutdownAfterTestRun { get; set; }

    public void SendTestCase(TestCase test) => Found.Add(test);

    public void SendMessage(TestMessageLevel level, string message)
    {
        if (level == TestMessageLevel.Error) answer.Write("error", message);
    }

    public void RecordStart(TestCase test)
    {
        var (type, method) = Name.Of(test);
        answer.Write("start", type, method);
    }

    public void RecordEnd(TestCase test, TestOutcome outcome) { }

    public void RecordAttachments(IList<AttachmentSet> attachments) { }

    public void RecordResult(TestResult result)
    {
        var (type, method) = Name.Of(result.TestCase);
        answer.End(type, method, result.Outcome.ToString(), result.Duration.TotalSeconds, result.ErrorMessage,
            result.ErrorStackTrace);
    }

    public int LaunchProcessWithDebuggerAttached(
        string file, string? folder, string? arguments, IDictionary<string, string?>? variables) => 0;
}
