// The tests of an assembly by xunit 2 itself, as its adapter runs them, but without the adapter: to compile that one
// at each start takes as long as all else together. What it says of a failure is said here in its words.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Runtime.Loader;
using System.Threading;
using Xunit.Abstractions;
using Xunit.Sdk;

static class Runner
{
    public static void Run(string source, Request request, Answer answer)
    {
        var assembly = AssemblyLoadContext.Default.LoadFromAssemblyPath(source);
        var information = Reflector.Wrap(assembly);
        // The proxy makes the framework that the assembly asks for, by [assembly: TestFramework].
        var framework = new TestFrameworkProxy(information, new NoSources(), new Sink(answer));
        var discoverer = framework.GetDiscoverer(information);
        var found = new Sink(answer);
        if (request.Types is not { } types) found.Wait(() => discoverer.Find(false, found, new Options()));
        else
            foreach (var type in types.Order(StringComparer.Ordinal))
                if (assembly.GetType(type) is not null)
                    found.Wait(() => discoverer.Find(type, false, found, new Options()));
        var executor = framework.GetExecutor(assembly.GetName());
        foreach (var some in request.Parts(found.Cases, Sink.Name))
        {
            var sink = new Sink(answer);
            sink.Wait(() => executor.RunTests(some, sink, new Options()));
        }
    }
}

sealed class NoSources : ISourceInformationProvider
{
    public ISourceInformation? GetSourceInformation(ITestCase test) => null;
    public void Dispose() { }
}

sealed class Options : ITestFrameworkDiscoveryOptions, ITestFrameworkExecutionOptions
{
    readonly Dictionary<string, object?> _values = new()
    {
        ["xunit.discovery.SynchronousMessageReporting"] = true,
        ["xunit.execution.SynchronousMessageReporting"] = true,
        ["xunit.execution.DisableParallelization"] = true,
    };

    public T GetValue<T>(string name) => _values.TryGetValue(name, out var value) ? (T)value! : default!;
    public void SetValue<T>(string name, T value) => _values[name] = value;
}

sealed class Sink : IMessageSink
{
    readonly Answer _answer;
    readonly AutoResetEvent _ended = new(false);

    public Sink(Answer answer) => _answer = answer;

    public List<ITestCase> Cases { get; } = new();

    public static (string Type, string Method) Name(ITestCase test) =>
        (test.TestMethod.TestClass.Class.Name, test.TestMethod.Method.Name);

    public void Wait(Action begin)
    {
        begin();
        _ended.WaitOne();
    }

    public bool OnMessage(IMessageSinkMessage message)
    {
        switch (message)
        {
            case ITestCaseDiscoveryMessage found:
                Cases.Add(found.TestCase);
                break;
            case IDiscoveryCompleteMessage or ITestAssemblyFinished:
                _ended.Set();
                break;
            case ITestStarting starting:
                var (type, method) = Name(starting.TestCase);
                _answer.Write("start", type, method);
                break;
            case ITestPassed passed:
                End(passed, "Passed", null, null);
                break;
            case ITestSkipped skipped:
                End(skipped, "Skipped", skipped.Reason, null);
                break;
            case ITestFailed failed:
                End(failed, "Failed", Said(failed, 0), failed.StackTraces.FirstOrDefault());
                break;
            case IFailureInformation error: // of what is around tests; none of them has failed
                _answer.Write("error", Said(error, 0));
                break;
        }
        return true;
    }

    void End(ITestResultMessage result, string outcome, string? message, string? stack)
    {
        var (type, method) = Name(result.TestCase);
        _answer.End(type, method, outcome, (double)result.ExecutionTime, message, stack);
    }

    /// An exception with those in it. The type is told of one that is no assertion of xunit's own.
    static string Said(IFailureInformation failure, int index)
    {
        var type = failure.ExceptionTypes[index];
        var own = type?.StartsWith("Xunit.Sdk.", StringComparison.Ordinal) ?? true;
        var said = own ? failure.Messages[index] : $"{type} : {failure.Messages[index]}";
        for (var i = index + 1; i < failure.ExceptionTypes.Length; i++)
            if (failure.ExceptionParentIndices[i] == index) said += $"\n---- {Said(failure, i)}";
        return said;
    }
}
