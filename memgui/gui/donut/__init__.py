"""The donut: which component takes what share, in two rings."""
