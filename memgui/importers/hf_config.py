"""A Hugging Face ``config.json`` becomes a model, with an account of what was read and what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec

from memgui.files.bounded import FileFault, StrPath, printable
from memgui.files.strict_json import JsonObject, load_object, shown
from memgui.importers.class_defaults import class_defaults
from memgui.importers.config_reader import SYNONYMS, Config, Report
from memgui.importers.families import FAMILIES, Fields
from memgui.importers.families.parts import CLASSIFYING, labels
from memgui.importers.gguf_config import config_of
from memgui.importers.nearest import read_as_nearest
from memgui.importers.quantization import Quantization, quantization
from memgui.importers.safetensors_config import config_of_shapes
from memgui.importers.silent import is_silent
from memgui.importers.tensors import TensorTable
from memgui.importers.towers import read_towers
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.model import ModelSpec
from memgui.spec.scenario import Scenario
from memgui.spec.types import allowed_type
from memgui.spec.validate import validate

INNER_TEXT: Final = ("text_config", "llm_config", "language_config", "thinker_config", "text_model_config")
"""Where models of several senses keep the configuration of their language model."""


class Imported(msgspec.Struct, frozen=True):
    """A model read from a config.json.

    ``understood`` and ``ignored`` are key paths of the file; ``assumed`` says what the file left
    open, what was taken instead and why.
    """

    model: ModelSpec
    understood: tuple[str, ...]
    assumed: tuple[Message, ...]
    ignored: tuple[str, ...]
    quantization: Quantization | None
    torch_dtype: str | None


def import_config(source: StrPath | Mapping[str, Any], name: str = "") -> Imported:
    """Read a config.json (a path, or its content as a dictionary).

    Args:
        source: the file, or the object it holds.
        name: what the model shall be called; the file says it rarely.

    Raises:
        FileFault: one sentence that names the file, the key, the value and what is allowed.
    """
    if isinstance(source, Mapping):
        stated = JsonObject(dict(source), name or "config.json")
    else:
        content = load_object(source, infinity=True)
        stated = JsonObject(content, str(source).rpartition("/")[2])
    return _imported(stated, name)


def import_weights(table: TensorTable, file: str, name: str = "") -> Imported:
    """Read the model that weight files without a config.json describe.

    GGUF metadata states it; safetensors only where shapes and names leave no doubt.

    Args:
        table: what the headers of the files say.
        file: what faults call the file.
        name: what the model shall be called, where the file does not say it.
    """
    if table.container == "gguf":
        stated = config_of(table, file)
        own = table.metadata.get("general.name")
        name = name or (printable(own) if isinstance(own, str) else "")
    else:
        stated = config_of_shapes(table, file)
    return _imported(JsonObject(stated, file), name)


def model_from_config(
    config: Mapping[str, Any], head: str = "causal", own_lm_head: bool = False, name: str = ""
) -> ModelSpec:
    """The model of a configuration's dictionary under the given ``head``.

    Args:
        config: the content of a config.json.
        head: what stands on top: ``causal``, ``masked``, ``seq2seq``, ``image``, ``speech``, ``base``.
        own_lm_head: the head has weights of its own although the class would tie it.
        name: what the model is called.
    """
    model = import_config(config, name).model
    tied = model.tie_word_embeddings and not own_lm_head
    return msgspec.structs.replace(model, head=head, tie_word_embeddings=tied)


def _imported(file: JsonObject, name: str) -> Imported:
    report = Report()
    body, model_type = _language_model(file, report)
    describe = FAMILIES.get(model_type)
    config = Config(body, model_type, report)
    if body is file or not config.known:
        _require_size(config)
    fields = describe(config) if describe is not None else read_as_nearest(config)
    if body is file:
        _require_stated(config)
    fields = _under_its_head(config, fields if body is file else _tied(file, config, fields))
    _tell_further_layers(config)
    beside = (*fields.get("other_weights", ()), *read_towers(file, fields, report))
    fields = {**fields, "other_weights": beside} if beside else fields
    dtype = file.string_or_none("torch_dtype", null=True) or file.string_or_none("dtype", null=True)
    model = _model({**fields, "name": name, "model_type": printable(model_type)}, file)
    understood = tuple(dict.fromkeys(report.understood))
    found = quantization(file) or quantization(body)
    ignored = tuple(path for path in file.unread() if not any(map(is_silent, path.split("."))))
    return Imported(model, understood, tuple(report.assumed), ignored, found, dtype)


def _language_model(file: JsonObject, report: Report) -> tuple[JsonObject, str]:
    """The object that holds the language model's sizes, and its ``model_type``."""
    body = file
    model_type = file.string_or_none("model_type", null=True) or ""
    while not _states_size(body):
        key = next((key for key in INNER_TEXT if isinstance(body.value.get(key), dict)), None)
        if key is None:
            break
        body = body.child(key)
        report.understood.append(body.path)
        model_type = body.string_or_none("model_type", null=True) or model_type
    return body, model_type


def _states_size(stated: JsonObject) -> bool:
    return any(
        name in stated for key in ("hidden_size", "num_hidden_layers") for name in (key, *SYNONYMS[key])
    )


FURTHER: Final = (
    *("num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules"),
    *("mtp_num_hidden_layers", "mtp_transformer_layers"),
)
"""Under which names files say how many layers there are that predict further tokens."""


def _tell_further_layers(config: Config) -> None:
    """Checkpoints hold these layers; a model that runs token by token or trains does not have them."""
    for key in FURTHER:
        number = config.stated.integer_or_none(key, 0, 1_000, null=True)
        if number:
            config.assume(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{key} is {count}: what predicts further tokens is in the checkpoint and not counted, as "
                    "Transformers leaves it out.",
                ),
                key=config.stated.at(key),
                count=number,
            )


def _tied(file: JsonObject, text: Config, fields: Fields) -> Fields:
    """A model of several senses ties its head as its own object says, where that or its class says so."""
    tied = file.boolean_or_none("tie_word_embeddings", null=True)
    if tied is None and not text.states("tie_word_embeddings"):
        outer = class_defaults(file.string_or_none("model_type", null=True) or "")
        if outer is not None and outer.defaults.get("tie_word_embeddings") is False:
            tied = False
    return fields if tied is None else {**fields, "tie_word_embeddings": tied}


OTHER_HEADS: Final = (
    *("ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice", "ForPreTraining"),
    *("ForNextSentencePrediction", "ForMaskedImageModeling", "ForAudioClassification", "DoubleHeadsModel"),
    CLASSIFYING,
)
"""How classes of Transformers end whose heads are not described."""


def _under_its_head(config: Config, fields: Fields) -> Fields:
    """A decoder that tells sequences apart has no other head; of a head that is not described it is said."""
    stated = config.stated.value.get("architectures")  # null within models of several senses
    names = config.texts("architectures") if stated is not None else ()
    decoder = fields.get("is_decoder", True) and not fields.get("num_encoder_layers")
    if decoder and any(name.endswith(CLASSIFYING) for name in names):
        return {**fields, "head": "sequence", "num_labels": labels(config), "tie_word_embeddings": False}
    other = next((name for name in names if name.endswith(OTHER_HEADS)), None)
    if other is not None and fields.get("head") != "sequence":
        config.assume(
            QT_TRANSLATE_NOOP(
                "messages", "The head of {name} is not described: the usual one of {family} is taken."
            ),
            name=other,
            family=config.model_type,
        )
    return fields


def _require_size(config: Config) -> None:
    if not _states_size(config.stated):
        raise FileFault(
            config.stated.name,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} states neither a width (hidden_size) nor a depth (num_hidden_layers): "
                "it describes no model.",
            ),
        )


NEEDED: Final = ("hidden_size", "num_hidden_layers", "vocab_size")
"""What every model's own file states, whatever its class would take: 200 real ones were looked through."""


def _require_stated(config: Config) -> None:
    """A file without these is damaged; its class's default would make another model of it.

    A model within another's file is stated by what differs from its class's defaults.
    """
    for key in NEEDED:
        if config.has_default(key) and not config.states(key):
            config.missing(key)


def _model(fields: Fields, file: JsonObject) -> ModelSpec:
    try:
        model = msgspec.convert(fields, ModelSpec, strict=True)
    except msgspec.ValidationError:
        _refuse_type(fields, file)
    for issue in validate(Scenario(model=model)):
        if issue.severity == "error" and all(path.startswith("model.") for path in issue.paths):
            raise FileFault(
                file.name,
                QT_TRANSLATE_NOOP("messages", "{file}: {where}: {reason}"),
                ", ".join(path.removeprefix("model.") for path in issue.paths),
                reason=issue.whole,
            )
    return model


def _refuse_type(fields: Fields, file: JsonObject) -> NoReturn:
    """Name the first of ``fields`` that a model cannot hold."""
    for field in msgspec.structs.fields(ModelSpec):
        value = fields.get(field.name, field.default)
        try:
            msgspec.convert(value, field.type, strict=True)
        except msgspec.ValidationError:
            raise FileFault(
                file.name,
                QT_TRANSLATE_NOOP("messages", "{file}: {where} cannot be {value}. {allowed}"),
                field.name,
                value=shown(value),
                allowed=allowed_type(field.type),
            ) from None
    raise FileFault(file.name, QT_TRANSLATE_NOOP("messages", "{file} describes no model that can be held."))
