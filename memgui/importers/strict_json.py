"""The strict JSON reader, under the name importers know; it stands in :mod:`memgui.files.strict_json`."""

from memgui.files.strict_json import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_INTEGER,
    MAX_VALUES,
    JsonObject,
    check_structure,
    load_object,
    parse_object,
    shown,
)

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_DIGITS",
    "MAX_INTEGER",
    "MAX_VALUES",
    "JsonObject",
    "check_structure",
    "load_object",
    "parse_object",
    "shown",
]
