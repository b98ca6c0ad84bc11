namespace Shop.Tests;

public class RatesTests
{
    [Fact]
    public void FoodIsReduced()
    {
        Assert.True(Rates.IsReduced("food"));
        Assert.False(Rates.IsReduced("tool"));
    }

    [Fact]
    public void TaxIsAdded()
    {
        Assert.Equal(119m, Rates.WithTax(100m, "tool"));
    }
}
