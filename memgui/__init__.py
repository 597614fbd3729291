"""memgui: how much GPU memory a transformer takes, where it goes, and what to change so that it fits."""

__version__ = "0.1.0"
