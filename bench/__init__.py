"""What the product costs, as ratios against what people would use instead, measured in one run."""
