"""Writes resources/catalog/class_defaults.json: what Transformers says of a key that a config.json lacks.

Run it where Transformers is installed, from the root of a checkout:

    python -m tests.importers.make_class_defaults

Each ``model_type`` that Transformers knows gives one line: the defaults that its class *declares*
(dataclass fields, not an instance's values, for those were partly computed from the others), which of
them may be null or a list although their default is not, and the class's own names for common attributes.
Keys that say nothing about memory (token ids, initialisers, epsilons, losses) are left out.
"""

import dataclasses
import json
import types
import typing
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memgui.importers.silent import is_silent

TARGET = Path(__file__).parents[2] / "resources" / "catalog" / "class_defaults.json"


def plain(value: Any) -> bool:
    """Whether a default is a fact that JSON can hold: a scalar, or a short list of them."""
    if value is None or isinstance(value, bool | int | str):
        return True
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    return isinstance(value, list | tuple) and len(value) <= 16 and all(plain(item) for item in value)


def nullable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return "None" in annotation
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return annotation is None or (union and type(None) in typing.get_args(annotation))


def declared(config_class: Any) -> dict[str, Any]:
    """One line of the table: ``defaults``, ``nullable`` and ``names`` of a configuration class."""
    defaults: dict[str, Any] = {}
    may_be_null: list[str] = []
    may_be_list: list[str] = []
    for field in dataclasses.fields(config_class):
        value = field.default
        if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        if value is dataclasses.MISSING or is_silent(field.name) or not plain(value):
            continue
        defaults[field.name] = value
        if value is not None and nullable(field.type):
            may_be_null.append(field.name)
        if isinstance(value, int) and "list[int]" in str(field.type):
            may_be_list.append(field.name)
    return {
        "defaults": defaults,
        "nullable": may_be_null,
        "lists": may_be_list,
        "names": dict(config_class.attribute_map),
    }


def table() -> dict[str, Any]:
    """Every configuration class of Transformers that is a dataclass, by ``model_type``."""
    auto = import_module("transformers.models.auto.configuration_auto")

    rows: dict[str, Any] = {}
    for model_type in sorted(auto.CONFIG_MAPPING_NAMES):
        try:
            config_class = auto.CONFIG_MAPPING[model_type]
        except (ImportError, AttributeError, KeyError):
            continue
        if dataclasses.is_dataclass(config_class):
            rows[model_type] = declared(config_class)
    return rows


def main() -> None:
    rows = table()
    lines = [json.dumps({"source": f"Transformers {version('transformers')}"})[1:-1]]
    lines += [
        f"{json.dumps(model_type)}: {json.dumps(row, separators=(',', ':'))}"
        for model_type, row in rows.items()
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(rows)} model types, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
