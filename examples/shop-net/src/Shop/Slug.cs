using System.Text;

namespace Shop;

/// <summary>Names as they stand in addresses.</summary>
public static class Slug
{
    /// <summary>Letters and digits in lower case, a dash for each run of anything else.</summary>
    public static string Of(string name, int longest = 40)
    {
        var text = new StringBuilder();
        var dash = false;
        foreach (var c in name.Trim())
        {
            if (char.IsLetterOrDigit(c))
            {
                if (dash && text.Length > 0)
                {
                    text.Append('-');
                }

                text.Append(char.ToLowerInvariant(c));
                dash = false;
            }
            else
            {
                dash = true;
            }
        }

        return text.Length > longest ? text.ToString(0, longest).TrimEnd('-') : text.ToString();
    }

    /// <summary>The first of name, name-2, name-3, ... that is not taken.</summary>
    public static string Free(string name, ISet<string> taken)
    {
        var slug = Of(name);
        if (!taken.Contains(slug))
        {
            return slug;
        }

        var number = 2;
        while (taken.Contains($"{slug}-{number}"))
        {
            number++;
        }

        return $"{slug}-{number}";
    }
}
