"""Ways to fit in the window: the texts that chips and the tab share, and the tab."""
