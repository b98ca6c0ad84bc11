namespace Shop.Tests;

public class StockTests
{
    [Fact]
    public void WhatIsPromisedIsNotFree()
    {
        var stock = new Stock();
        stock.Receive("tea", 10);
        Assert.True(stock.Promise("tea", 4));
        Assert.Equal(6, stock.Free("tea"));
    }

    [Fact]
    public void NoMoreIsPromisedThanThereIs()
    {
        var stock = new Stock();
        stock.Receive("tea", 1);
        Assert.False(stock.Promise("tea", 4));
    }

    [Fact]
    public void WhatIsShippedIsGone()
    {
        var stock = new Stock();
        stock.Receive("tea", 10);
        stock.Promise("tea", 4);
        stock.Ship("tea", 3);
        Assert.True(stock.IsLow("tea", 100));
    }
}
