namespace Shop;

/// <summary>What a number of pieces costs.</summary>
public static class Pricing
{
    /// <summary>Pieces at a price each; ten and more are a tenth cheaper.</summary>
    public static decimal Total(decimal price, int quantity)
    {
        if (price < 0)
        {
            throw new ArgumentOutOfRangeException(nameof(price), "a price is not negative");
        }

        var total = price * quantity;
        return quantity >= 10 ? total - total / 10 : total;
    }

    /// <summary>Postage: free from 50 on, and dearer for what is heavy.</summary>
    public static decimal Postage(decimal total, int grams)
    {
        if (total >= 50 && grams <= 10_000)
        {
            return 0;
        }

        return grams > 2_000 ? 9 : 4;
    }

    /// <summary>How many pieces a budget pays for, each of them a little dearer than the one before.</summary>
    public static int Affordable(decimal budget, decimal price, decimal step)
    {
        var pieces = 0;
        while (budget >= price && pieces < 1_000)
        {
            budget -= price;
            price += step;
            pieces++;
        }

        return pieces;
    }
}
