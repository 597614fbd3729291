"""What a person means by a path or a name: a model of the catalog, a file, a folder, a preset."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, Final

import msgspec

from memgui.catalog import Catalog, UnknownName
from memgui.estimator.estimate import parameters
from memgui.estimator.refusals import NotCovered
from memgui.estimator.targets import TARGETS, usual_targets, with_usual_targets
from memgui.files.addresses import from_network, is_address
from memgui.files.bounded import FileFault, Progress, display_name, printable, read_whole
from memgui.importers.hf_config import Imported, import_config, import_weights
from memgui.importers.model_folder import Kind, ModelSource, detect, read_weights
from memgui.importers.quantization import Quantization, quantization_beside
from memgui.importers.schemes import scheme_of
from memgui.importers.stored import stored_weights
from memgui.importers.tensors import TensorTable
from memgui.presets.codec import MAX_BYTES, Decoded, decode
from memgui.spec import (
    NO_REPORT,
    QT_TRANSLATE_NOOP,
    ImportReport,
    Inference,
    Issue,
    Message,
    ModelSpec,
    Scenario,
    ScenarioError,
    get,
    one_line,
    replace,
)
from memgui.spec.fields import BY_PATH
from memgui.spec.fields.when import reads_source
from memgui.spec.formats import CACHE_FORMATS
from memgui.spec.formats.schemes import AS_IN_FILE
from memgui.spec.import_report import MOST
from memgui.spec.messages import Named
from memgui.spec.scenario import Lora

PART_ENDING: Final = re.compile(r"-\d{5}-of-\d{5}$|\.safetensors$|\.safetensors\.index$")
"""What the name of a part of a model ends in."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a path or a name holds; ``report`` says what became of the file.

    ``weights`` are the tensors that lie there, ``quantization`` how the file says they are stored.
    """

    content: Scenario | ModelSpec
    report: ImportReport = NO_REPORT
    issues: tuple[Issue, ...] = ()
    weights: TensorTable | None = None
    quantization: Quantization | None = None
    measured: Mapping[str, Any] = field(default_factory=dict)
    """What a preset says that real runs used."""
    is_preset: bool = False
    name: str = ""
    """A preset's own name."""
    path: Path | None = field(default=None, compare=False)
    """Where it lies; ``None`` for what is built in."""

    @property
    def model(self) -> ModelSpec:
        """The model, alone or of the scenario."""
        return self.content.model if isinstance(self.content, Scenario) else self.content

    @property
    def assumptions(self) -> tuple[Message, ...]:
        """What was assumed, and in one more sentence what was ignored."""
        return (*self.report.assumed, *self.report.not_read)


def opened(text: str, catalog: Catalog) -> Opened:
    """The model or scenario that ``text`` names: a path where there is one, else a built-in model.

    Raises :class:`FileFault` for a path that cannot be opened, and ``UnknownName`` for a name that
    the catalog does not have, or an address in a network.
    """
    if is_address(text):
        raise UnknownName(from_network(text), ())
    if os.path.exists(text):
        return opened_path(Path(text))
    try:
        return named(text, catalog)
    except UnknownName:
        if _looks_like_a_path(text):
            return opened_path(Path(text))
        raise


def named(name: str, catalog: Catalog) -> Opened:
    """The built-in model called ``name``, or another version of it, which is said; else ``UnknownName``."""
    try:
        return Opened(catalog.model(name).model)
    except UnknownName:
        entry = catalog.kin(name)
        if entry is None:
            raise
    text = QT_TRANSLATE_NOOP(
        "messages",
        "{asked} is not built in: {name} is taken, as base and tuned versions have the same layers.",
    )
    told = Message(text, {"asked": printable(name), "name": entry.name})
    return Opened(entry.model, ImportReport(assumed=(told,)))


def _looks_like_a_path(text: str) -> bool:
    separators = {os.sep, os.altsep} - {None}
    absolute = os.path.isabs(text) or text.startswith((".", "~"))
    return absolute or text.lower().endswith((".json", ".gguf", ".safetensors")) or text[-1:] in separators


def opened_path(path: Path, progress: Progress | None = None) -> Opened:
    """What lies at ``path``: a config.json, weights, a folder with either, a preset.

    ``progress`` counts the weight files read.  Raises :class:`FileFault`.
    """
    return replaced(_read(path, progress), path=path)


def _read(path: Path, progress: Progress | None) -> Opened:
    source = detect(path)
    if source.kind is Kind.PRESET:
        decoded = decode(read_whole(path, MAX_BYTES), display_name(path))
        return of_preset(decoded)
    if source.config is None:
        return _weights_alone(source, progress)
    imported = import_config(source.config, _model_name(source.config))
    notes = _others(source)
    table = None
    try:
        table = read_weights(source, progress)
    except FileFault as fault:  # the model is described without them
        notes = (*notes, fault.message)
    found = _opened(imported, table, notes, display_name(source.config))
    if found.quantization is None:
        found = replaced(found, quantization=quantization_beside(source.config.parent))
    return found


def _weights_alone(source: ModelSource, progress: Progress | None) -> Opened:
    table = read_weights(source, progress)
    assert table is not None  # a path without a config is weights
    first = source.weights[0]
    folder = source.kind is Kind.FOLDER
    name = display_name(
        Path(os.path.realpath(source.path)).name if folder else PART_ENDING.sub("", first.stem)
    )
    file = display_name(first)
    return _opened(import_weights(table, file, name), table, _others(source), file)


def of_preset(decoded: Decoded) -> Opened:
    """What a preset holds."""
    preset = decoded.preset
    return Opened(
        preset.content,
        preset.report,
        (*decoded.issues, *unread_runs(preset.measured)),
        measured=preset.measured,
        is_preset=True,
        name=one_line(preset.name),
    )


def unread_runs(measured: Mapping[str, Any]) -> tuple[Issue, ...]:
    """That runs which a preset says were measured cannot be shown; nothing where they can, or are none."""
    if not measured:
        return ()
    from memgui.planning.measured import from_plain  # few presets have any

    try:
        from_plain(measured)
    except ScenarioError as refused:
        return (msgspec.structs.replace(refused.issue, severity="warning"),)
    return ()


def _others(source: ModelSource) -> tuple[Message, ...]:
    """A note where a folder holds several GGUF models, of which one was opened."""
    if len(source.choices) < 2 or source.weights_kind is not Kind.GGUF:
        return ()
    template = QT_TRANSLATE_NOOP(
        "messages", "The folder holds {count} GGUF models; {name} is the one that is open."
    )
    return (Message(template, {"count": len(source.choices), "name": display_name(source.weights[0])}),)


def _opened(imported: Imported, table: TensorTable | None, notes: tuple[Message, ...], name: str) -> Opened:
    told = (*notes, *table.notes, *_counted(table, imported.model)) if table is not None else notes
    model = imported.model
    gguf = table is not None and table.container == "gguf"
    if table is not None and not {tensor.format for tensor in table.tensors} <= PLAIN:
        model = msgspec.structs.replace(model, stored_weights=stored_weights(table, model))
    return Opened(
        model,
        ImportReport(
            name,
            imported.understood[:MOST],
            (*imported.assumed, *told)[:MOST],
            imported.ignored[:MOST],
            len(imported.ignored[MOST:]),
        ),
        weights=table,
        quantization=imported.quantization or (GGUF if gguf else None),
    )


BASE: Final = "training.base_format"
LENGTHS: Final = ("training.sequence_length", "inference.prompt_tokens", "inference.generated_tokens")
"""Fields that :func:`starting_scenario` cuts where a model has no positions for them."""
FOLLOWING: Final = (*LENGTHS, "inference.weight_format", "inference.quantised_parts", BASE)
"""Fields that it fits to a model: another model that is opened takes them as they were asked."""
PLAIN: Final = frozenset(("F64", "F32", "F16", "BF16"))
"""Formats that store each number by itself; GGUF's blocks do too, other packed ones do not say how many."""
GGUF: Final = Quantization("gguf")
"""A file of llama.cpp's: its tensors say themselves how they are stored."""
NO_WEIGHTS: Final = ("rope_freqs", "rope_factors", "exp_probs_b", "inv_freq", "rotary_emb", "masked_bias")
"""Stored beside the weights: tables and buffers."""


def _counted(table: TensorTable, model: ModelSpec) -> tuple[Message, ...]:
    """A note where the files hold another number of weights than the description has."""
    gguf = table.container == "gguf"
    if table.missing or not (gguf or PLAIN.issuperset(table.bytes_by_format)):
        return ()
    stored = [one for one in table.tensors if not any(name in one.name for name in NO_WEIGHTS)]
    try:
        counted = parameters(Scenario(model=model))
    except NotCovered:
        return ()
    held = sum(one.elements for one in stored)
    beside = 0 if not gguf else sum(counted.by_part.get(part, 0) for part in ("vision", "audio"))
    if held == counted.total - beside:
        return ()
    template = QT_TRANSLATE_NOOP(
        "messages", "The files hold {held} weights; as it is described the model has {counted}."
    )
    return (Message(template, {"held": held, "counted": counted.total - beside}),)


def _model_name(config: Path) -> str:
    """A config.json is called like its folder, any other file like itself."""
    name = config.stem if config.name != "config.json" else Path(os.path.realpath(config)).parent.name
    return display_name(name)


def starting_scenario(
    base: Scenario, model: ModelSpec, quantization: Quantization | None = None
) -> tuple[Scenario, tuple[Message, ...]]:
    """``base`` about ``model``; lengths that nobody chose end where the model's positions end.

    Its weights are served as they are stored, where that is known; adapters that nobody placed go on layers
    that it has.  What had to change is told of each field, whether it matters in the scenario or not
    (:func:`mattering`).
    """
    scenario = _as_stored(replace(base, "model", model), quantization)
    scenario = with_usual_targets(scenario, base.model)
    told = [*_of_targets(scenario), *_of_base(scenario, base)]
    for path, most in _longest(scenario).items():
        if get(scenario, path) <= most:
            continue
        scenario = replace(scenario, path, most)
        if most:
            told.append(
                Message(
                    QT_TRANSLATE_NOOP(
                        "messages",
                        "{path} is {value}: the model has positions for {longest} tokens only.",
                    ),
                    {"path": path, "value": most, "longest": model.max_position_embeddings},
                )
            )
    return scenario, tuple(told)


def mattering(told: Iterable[Message], scenario: Scenario, given: Container[str] = ()) -> tuple[Message, ...]:
    """What :func:`starting_scenario` told of fields that matter in ``scenario`` and are not ``given``."""
    return tuple(
        message
        for message in told
        if (path := str(message.args["path"])) not in given and BY_PATH[path].applies(scenario)
    )


def _of_targets(scenario: Scenario) -> Iterator[Message]:
    """That adapters go on other layers than in most models, where nobody chose them."""
    usual, here = Lora().target_modules, usual_targets(scenario.model)
    if here == usual or get(scenario, TARGETS) != here:
        return
    yield Message(
        QT_TRANSLATE_NOOP("messages", "{path} is {value}: usual for {model}, in place of {usual}."),
        {
            "path": TARGETS,
            "value": ", ".join(here),
            "model": scenario.model.model_type,
            "usual": ", ".join(usual),
        },
    )


def _of_base(scenario: Scenario, before: Scenario) -> Iterator[Message]:
    """That adapters stand beside weights as they are stored."""
    if scenario.training.base_format != before.training.base_format:
        yield Message(
            QT_TRANSLATE_NOOP("messages", "{path} is {value}: so the file's weights are stored."),
            {"path": BASE, "value": Named(BASE, (scenario.training.base_format,))},
        )


def _longest(scenario: Scenario) -> dict[str, int]:
    """The most that each of :data:`LENGTHS` can be, where the model says so."""
    model, serving = scenario.model, scenario.inference
    generated = {} if model.is_decoder else {"inference.generated_tokens": 0}  # an encoder only reads
    longest = model.max_position_embeddings
    if not longest or model.position_embedding != "learned":
        return generated
    prompt = longest
    if reads_source(scenario):  # the prompt has the encoder's positions
        generated = {"inference.generated_tokens": max(0, longest - serving.decoder_prompt_tokens)}
    elif model.is_decoder:
        written = serving.generated_tokens
        if written >= longest:
            generated = {"inference.generated_tokens": (written := longest // 2)}
        prompt = longest - written
    return {"training.sequence_length": longest, "inference.prompt_tokens": prompt, **generated}


def _as_stored(scenario: Scenario, quantization: Quantization | None) -> Scenario:
    """The weight format of the model's files, else of its quantisation block, else the usual one.

    What PEFT trains adapters beside is the format of their base, too.
    """
    model = scenario.model
    scheme = scheme_of(quantization, model) if quantization is not None else None
    parts: tuple[str, ...] | None = None
    if model.stored_weights:
        chosen = AS_IN_FILE
    elif scheme is not None:
        chosen, parts = scheme
    elif scenario.inference.weight_format == AS_IN_FILE or scenario.inference.quantised_parts is not None:
        chosen = Inference().weight_format
    else:
        return scenario
    scenario = replace(scenario, "inference.weight_format", chosen)
    scenario = replace(scenario, "inference.quantised_parts", parts)
    if scheme is not None and parts is None and BY_PATH[BASE].choice(chosen) is not None:
        scenario = replace(scenario, BASE, chosen)
    if quantization is GGUF and scenario.inference.engine not in ("llama.cpp", "ollama"):
        scenario = replace(scenario, "inference.engine", "llama.cpp")
        if "llama.cpp" not in CACHE_FORMATS[scenario.inference.kv_cache_format].engines:
            scenario = replace(scenario, "inference.kv_cache_format", "fp16")
    return scenario


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
                    {"name": name[:80], "reason": unknown.message},
                ),
                Message(
                    QT_TRANSLATE_NOOP("messages", "Any name is allowed with device.memory_bytes beside it.")
                ),
            )
        ) from unknown
    for path, value in device.facts.items():
        if path not in given or path == "device.name":
            scenario = replace(scenario, path, value)
    return scenario
