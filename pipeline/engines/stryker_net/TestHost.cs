// Runs the tests of one assembly in this process. It opens no socket, starts no other program, and can be told the
// order. It lies in the tests' own folder, and is started with their runtimeconfig.json and deps.json:
//     dotnet exec ... TestHost.dll ASSEMBLY REQUEST ANSWER
// REQUEST, a line each: `type NAME` or `test NAME` (what is run; all where neither is there), `shuffle SEED`,
// `ordered 1`: one test after another, as they are named, `on ID ASSEMBLY`: the mutant that is on, and where it is.
// ANSWER, a line each, fields by tabs: `start TYPE METHOD`, `end TYPE METHOD OUTCOME SECONDS MESSAGE STACK`,
// `error TEXT`, and at the end `done`. In a field \ \t \n \r are escaped by \.
// How tests are found and run is in the other file that this is compiled with, as Runner.Run.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.Loader;

static class TestHost
{
    static void Main(string[] words)
    {
        var folder = AppContext.BaseDirectory;
        var answer = new Answer(words[2]);
        AssemblyLoadContext.Default.Resolving += (context, name) =>
        {
            var path = Path.Combine(folder, name.Name + ".dll");
            return File.Exists(path) ? context.LoadFromAssemblyPath(path) : null;
        };
        var request = new Request(File.ReadAllLines(words[1]));
        File.Delete(words[1]);
        foreach (var (id, name) in request.On) SwitchOn(id, Path.Combine(folder, name));
        Runner.Run(Path.Combine(folder, words[0]), request, answer);
        answer.Write("done");
        Environment.Exit(0); // whatever threads the tests have left
    }

    /// Not by an environment variable: every test could read it.
    static void SwitchOn(int id, string path)
    {
        Type?[] types;
        try
        {
            types = AssemblyLoadContext.Default.LoadFromAssemblyPath(path).GetTypes();
        }
        catch (ReflectionTypeLoadException some)
        {
            types = some.Types;
        }
        types.Single(type => type?.Name == "MutantControl")!.GetField("ActiveMutant")!.SetValue(null, id);
    }
}

/// Of tests that are told apart by class and method, which run and in what order.
sealed class Request
{
    readonly HashSet<string> _types = new();
    readonly List<string> _tests = new();
    readonly int? _seed;
    readonly bool _ordered;

    public List<(int Id, string Assembly)> On { get; } = new();

    public Request(string[] lines)
    {
        foreach (var line in lines)
        {
            var words = line.Split(' ', 2);
            if (words[0] == "type") _types.Add(words[1]);
            if (words[0] == "test") _tests.Add(words[1]);
            if (words[0] == "shuffle") _seed = int.Parse(words[1], CultureInfo.InvariantCulture);
            if (words[0] == "ordered") _ordered = true;
            if (words[0] == "on" && words[1].Split(' ', 2) is [var id, var name])
                On.Add((int.Parse(id, CultureInfo.InvariantCulture), name));
        }
    }

    /// The classes that hold what is wanted; null for all.
    public HashSet<string>? Types
    {
        get
        {
            if (_types.Count + _tests.Count == 0) return null;
            var found = new HashSet<string>(_types);
            foreach (var test in _tests) found.Add(test.Substring(0, Math.Max(test.LastIndexOf('.'), 0)));
            return found;
        }
    }

    /// Those wanted of some tests, in the parts that are run one after another. A framework orders by itself what it is
    /// given at once.
    public List<List<T>> Parts<T>(IEnumerable<T> tests, Func<T, (string Type, string Method)> name)
    {
        var wanted = new List<T>();
        foreach (var test in tests)
        {
            var (type, method) = name(test);
            if (_types.Count + _tests.Count == 0 || _types.Contains(type) || _tests.Contains($"{type}.{method}"))
                wanted.Add(test);
        }
        if (_seed is { } seed)
        {
            var random = new Random(seed);
            return wanted.OrderBy(_ => random.Next()).Select(test => new List<T> { test }).ToList();
        }
        if (!_ordered) return wanted.Count > 0 ? new List<List<T>> { wanted } : new List<List<T>>();
        return wanted.GroupBy(name).OrderBy(group => _tests.IndexOf($"{group.Key.Type}.{group.Key.Method}"))
            .Select(group => group.ToList()).ToList();
    }
}

sealed class Answer
{
    readonly StreamWriter _out;

    public Answer(string path) => _out = new StreamWriter(path) { AutoFlush = true };

    public void End(string type, string method, string outcome, double seconds, string? message, string? stack) =>
        Write("end", type, method, outcome, seconds.ToString(CultureInfo.InvariantCulture), message, stack);

    public void Write(params string?[] fields)
    {
        var line = string.Join('\t', fields.Select(field => (field ?? "")
            .Replace("\\", "\\\\").Replace("\t", "\\t").Replace("\n", "\\n").Replace("\r", "\\r")));
        lock (_out) _out.WriteLine(line);
    }
}
