"""Widgets: they show a result and say what the person did.  No arithmetic, no file formats."""
