namespace Shop;

/// <summary>Pieces in store, and what is promised of them.</summary>
public class Stock
{
    private readonly Dictionary<string, (int There, int Promised)> _articles = new();

    public void Receive(string article, int pieces)
    {
        if (pieces < 1)
        {
            throw new ArgumentOutOfRangeException(nameof(pieces));
        }

        var (there, promised) = Find(article);
        _articles[article] = (there + pieces, promised);
    }

    public bool Promise(string article, int pieces)
    {
        var (there, promised) = Find(article);
        if (there - promised < pieces)
        {
            return false;
        }

        _articles[article] = (there, promised + pieces);
        return true;
    }

    public void Ship(string article, int pieces)
    {
        var (there, promised) = Find(article);
        if (pieces > promised)
        {
            throw new InvalidOperationException($"only {promised} of {article} are promised");
        }

        _articles[article] = (there - pieces, promised - pieces);
    }

    public int Free(string article)
    {
        var (there, promised) = Find(article);
        return there - promised;
    }

    /// <summary>Whether an article should be ordered again: fewer than a fifth of its usual number are free.</summary>
    public bool IsLow(string article, int usual) => usual > 0 && Free(article) * 5 < usual;

    private (int There, int Promised) Find(string article) =>
        _articles.TryGetValue(article, out var found) ? found : (0, 0);
}
