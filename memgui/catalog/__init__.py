"""Built-in models and devices, each with the source of its facts.  No Qt."""

from __future__ import annotations

from memgui.catalog.catalog import Catalog, UnknownName
from memgui.catalog.entries import DeviceEntry, ModelEntry, short_count

__all__ = ["Catalog", "DeviceEntry", "ModelEntry", "UnknownName", "short_count"]
