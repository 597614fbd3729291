"""The What if tab: a field swept, two against each other, the largest value that fits."""
