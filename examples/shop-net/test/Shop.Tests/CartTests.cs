namespace Shop.Tests;

public class CartTests
{
    [Fact]
    public void WhatIsAddedIsThere()
    {
        var cart = new Cart(10);
        cart.Add("tea", 2);
        cart.Add("tea", 3);
        Assert.Equal(5, cart.CountOf("tea"));
        Assert.False(cart.IsEmpty);
    }

    [Fact]
    public void MoreThanTheLimitIsRefused()
    {
        var cart = new Cart(3);
        Assert.Throws<InvalidOperationException>(() => cart.Add("tea", 5));
    }

    [Fact]
    public void WhatIsRemovedIsGone()
    {
        var cart = new Cart(10);
        cart.Add("tea", 5);
        Assert.True(cart.Remove("tea", 2));
        Assert.Equal(3, cart.Pieces);
    }
}
