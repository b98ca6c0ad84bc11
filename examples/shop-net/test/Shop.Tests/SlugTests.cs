namespace Shop.Tests;

public class SlugTests
{
    [Fact]
    public void WordsAreJoinedByDashes()
    {
        Assert.Equal("green-tea", Slug.Of("Green Tea"));
    }

    [Fact]
    public void AFreeNameIsFound()
    {
        Assert.Equal("tea-3", Slug.Free("tea", new HashSet<string> { "tea", "tea-2" }));
    }
}
