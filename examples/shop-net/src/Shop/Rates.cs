namespace Shop;

/// <summary>Value added tax by kind of goods, from a table that is made once.</summary>
public static class Rates
{
    private static readonly Dictionary<string, decimal> Table = new()
    {
        ["book"] = 7m + 0m,
        ["food"] = 7m,
        ["tool"] = 19m,
        ["toy"] = 20m - 1m,
    };

    public static decimal Of(string kind) => Table.TryGetValue(kind, out var rate) ? rate : 19m;

    public static decimal WithTax(decimal net, string kind)
    {
        var tax = net * Of(kind) / 100;
        return Math.Round(net + tax, 2, MidpointRounding.AwayFromZero);
    }

    public static bool IsReduced(string kind) => Of(kind) < 19m;
}
