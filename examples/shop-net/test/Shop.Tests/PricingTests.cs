namespace Shop.Tests;

public class PricingTests
{
    [Theory]
    [InlineData(3, 2, 6)]
    [InlineData(2, 20, 36)]
    public void TotalIsPriceTimesQuantity(int price, int quantity, int total)
    {
        Assert.Equal(total, Pricing.Total(price, quantity));
    }

    [Fact]
    public void ANegativePriceIsRefused()
    {
        Assert.Throws<ArgumentOutOfRangeException>(() => Pricing.Total(-1, 1));
    }

    [Fact]
    public void PostageIsFreeForLargeOrders()
    {
        Assert.Equal(0, Pricing.Postage(80, 500));
        Assert.Equal(4, Pricing.Postage(20, 500));
    }

    [Fact]
    public void ABudgetPaysForSoManyPieces()
    {
        Assert.Equal(2, Pricing.Affordable(10, 4, 1));
    }
}
