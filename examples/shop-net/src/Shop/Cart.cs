namespace Shop;

/// <summary>What somebody is about to buy.</summary>
public class Cart
{
    private readonly Dictionary<string, int> _lines = new();
    private readonly int _limit;

    public Cart(int limit)
    {
        _limit = limit;
    }

    public int Pieces => _lines.Values.Sum();

    public bool IsEmpty => Pieces == 0;

    public void Add(string article, int pieces)
    {
        if (pieces <= 0)
        {
            throw new ArgumentOutOfRangeException(nameof(pieces), "add at least one piece");
        }

        var now = CountOf(article) + pieces;
        if (now > _limit)
        {
            throw new InvalidOperationException($"at most {_limit} of {article}");
        }

        _lines[article] = now;
    }

    public bool Remove(string article, int pieces)
    {
        var left = CountOf(article) - pieces;
        if (left < 0)
        {
            return false;
        }

        if (left == 0)
        {
            _lines.Remove(article);
        }
        else
        {
            _lines[article] = left;
        }

        return true;
    }

    public int CountOf(string article) => _lines.TryGetValue(article, out var pieces) ? pieces : 0;

    public string Describe() => IsEmpty ? "empty" : string.Join(", ", _lines.Select(l => $"{l.Value} {l.Key}"));
}
