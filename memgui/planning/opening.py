"""What a person means by a path or a name: a model of the catalog, a file, a folder, a preset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memgui.catalog import Catalog, UnknownName
from memgui.files.bounded import FileFault, display_name, read_whole
from memgui.importers.hf_config import import_config
from memgui.importers.model_folder import Kind, detect
from memgui.presets.codec import MAX_BYTES, decode
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message, ModelSpec, Scenario, ScenarioError, replace


@dataclass(frozen=True, slots=True)
class Opened:
    """What a path or a name holds; ``assumed`` says what it left open and what was taken instead."""

    content: Scenario | ModelSpec
    assumed: tuple[Message, ...] = ()
    issues: tuple[Issue, ...] = ()

    @property
    def model(self) -> ModelSpec:
        """The model, alone or of the scenario."""
        return self.content.model if isinstance(self.content, Scenario) else self.content


def opened(text: str, catalog: Catalog) -> Opened:
    """The model or scenario that ``text`` names: a path where there is one, else a built-in model.

    Raises :class:`FileFault` for a path that cannot be opened, and ``UnknownName`` for a name that
    the catalog does not have.
    """
    if os.path.exists(text):
        return opened_path(Path(text))
    try:
        return Opened(catalog.model(text).model)
    except UnknownName:
        if _looks_like_a_path(text):
            return opened_path(Path(text))
        raise


def _looks_like_a_path(text: str) -> bool:
    separators = {os.sep, os.altsep} - {None}
    absolute = os.path.isabs(text) or text.startswith((".", "~"))
    return absolute or text.lower().endswith((".json", ".gguf", ".safetensors")) or text[-1:] in separators


def opened_path(path: Path) -> Opened:
    """What lies at ``path``: a config.json, a folder with one, a preset.  Raises :class:`FileFault`."""
    source = detect(path)
    if source.kind is Kind.PRESET:
        decoded = decode(read_whole(path, MAX_BYTES), display_name(path))
        return Opened(decoded.preset.content, issues=decoded.issues)
    if source.config is None:
        raise FileFault(
            display_name(path),
            QT_TRANSLATE_NOOP(
                "messages", "{file} has weights but no config.json beside it, which says what the model is."
            ),
        )
    imported = import_config(source.config, _model_name(source.config))
    return Opened(imported.model, imported.assumed)


def _model_name(config: Path) -> str:
    """A config.json is called like its folder, any other file like itself."""
    name = config.stem if config.name != "config.json" else config.resolve().parent.name
    return display_name(name)


def starting_scenario(base: Scenario, model: ModelSpec) -> tuple[Scenario, tuple[Message, ...]]:
    """``base`` about ``model``; lengths that nobody chose end where the model's positions end."""
    scenario = replace(base, "model", model)
    longest = model.max_position_embeddings
    if not longest or model.position_embedding != "learned":
        return scenario, ()
    told = []
    for path, free in (
        ("training.sequence_length", longest),
        ("inference.prompt_tokens", _prompt(base, longest)),
    ):
        default = getattr(getattr(scenario, path.partition(".")[0]), path.partition(".")[2])
        if default > free:
            scenario = replace(scenario, path, free)
            if path.startswith(scenario.task):
                told.append(
                    Message(
                        QT_TRANSLATE_NOOP(
                            "messages",
                            "{path} is {value}: the model has positions for {longest} tokens only.",
                        ),
                        {"path": path, "value": free, "longest": longest},
                    )
                )
    return scenario, tuple(told)


def _prompt(base: Scenario, longest: int) -> int:
    return max(1, longest - base.inference.generated_tokens)


def with_device(scenario: Scenario, given: Mapping[str, Any], catalog: Catalog) -> Scenario:
    """``scenario`` with the facts of the built-in device that ``given`` names, where they are not given too.

    Raises :class:`ScenarioError` where the catalog has no such device and its memory is not given.
    """
    name = given.get("device.name")
    if name is None:
        return scenario
    try:
        device = catalog.device(name).device()
    except UnknownName as unknown:
        if "device.memory_bytes" in given:
            return scenario
        raise ScenarioError(
            Issue(
                "error",
                "unknown_device",
                ("device.name",),
                Message(
                    QT_TRANSLATE_NOOP("messages", "device.name cannot be {name}: {reason}"),
                    _reason(unknown, name),
                ),
                Message(
                    QT_TRANSLATE_NOOP("messages", "Any name is allowed with device.memory_bytes beside it.")
                ),
            )
        ) from unknown
    facts = {
        "device.name": device.name,
        "device.memory_bytes": device.memory_bytes,
        "device.compute_capability": device.compute_capability,
    }
    for path, value in facts.items():
        if path not in given or path == "device.name":
            scenario = replace(scenario, path, value)
    return scenario


def _reason(unknown: UnknownName, name: str) -> dict[str, str | int | float]:
    return {"name": name[:80], "reason": unknown.message.text}
