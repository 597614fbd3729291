"""Pinned set-ups in the window: the baseline under the picture, and the tab that sets them side by side."""
