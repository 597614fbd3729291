"""Reads one object of a config.json as a family description asks: stated, else the class's default.

Every answer is booked: what the file stated, what was assumed and why.  A stated value of the wrong
type is refused, never replaced by a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import msgspec

from memgui.files.bounded import printable
from memgui.files.strict_json import JsonObject, shown
from memgui.importers.class_defaults import ClassDefaults, class_defaults, source
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message, Value

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "hidden_size": ("n_embd", "d_model", "model_dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "kv_n_heads", "multi_query_group_num"),
    "intermediate_size": ("ffn_hidden_size", "n_inner", "ffn_dim", "d_ff"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx"),
    "head_dim": ("kv_channels", "d_kv"),
    "hidden_act": ("hidden_activation", "activation_function", "activation"),
    "hidden_dropout": ("resid_pdrop", "hidden_dropout_prob", "dropout", "residual_dropout", "resid_dropout"),
    "attention_dropout": ("attn_pdrop", "attention_probs_dropout_prob"),
    "embedding_dropout": ("embd_pdrop", "emb_pdrop", "embed_dropout"),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("moe_top_k", "moe_topk", "num_experts_per_token"),
}
"""Other names that configurations use for the same thing; the first one stated is taken."""

NULL_IS_NONE: Final = frozenset(
    (
        *("num_key_value_heads", "head_dim", "sliding_window", "q_lora_rank", "n_shared_experts"),
        *("layer_types", "mlp_layer_types", "mlp_only_layers"),
    )
)
"""Keys under which ``null`` means the same to every author, also where no class of Transformers has them."""

_LARGEST: Final = 10**9
_NEEDED: Final = object()

CLASS_DEFAULT: Final = QT_TRANSLATE_NOOP(
    "messages", "{key} is not stated; {value} is the default of {model_type} in {source}."
)
NULL: Final = QT_TRANSLATE_NOOP("messages", "{key} is null; it is taken as if it were not stated.")
NOT_STATED: Final = QT_TRANSLATE_NOOP("messages", "{key} is not stated; {value} is assumed.")


@dataclass(slots=True)
class Report:
    """What reading one file found: key paths that decided something, and what had to be assumed."""

    understood: list[str] = field(default_factory=list)
    assumed: list[Message] = field(default_factory=list)

    def assume(self, template: str, **args: Value) -> None:
        """Book an assumption, once; texts of the file are escaped and cut."""
        shown_args = {name: printable(arg) if isinstance(arg, str) else arg for name, arg in args.items()}
        message = Message(template, shown_args)
        if template in (CLASS_DEFAULT, NOT_STATED):  # a description may think better of what it builds on
            key = shown_args["key"]
            self.assumed = [
                one
                for one in self.assumed
                if one.template not in (CLASS_DEFAULT, NOT_STATED) or one.args["key"] != key
            ]
        if message not in self.assumed:
            self.assumed.append(message)

    def take(self, other: Report) -> None:
        """Book what ``other`` found, too."""
        self.understood += [path for path in other.understood if path not in self.understood]
        self.assumed += [message for message in other.assumed if message not in self.assumed]


class Config:
    """One object of a config.json with the class defaults of its ``model_type`` behind it.

    ``x(key, *synonyms)`` demands a value (stated, else the class's default, else ``default``);
    ``x_or_none`` takes ``null`` and absence for ``None`` where the class does.
    """

    def __init__(
        self,
        stated: JsonObject,
        model_type: str,
        report: Report,
        behind: ClassDefaults | None = None,
        derived: Mapping[str, int] | None = None,
    ) -> None:
        self.stated = stated
        self.model_type = model_type
        self.report = report
        found = behind if behind is not None else class_defaults(model_type)
        self.known = bool(found and found.defaults)
        self.behind = found or ClassDefaults()
        self.derived = derived or {}

    def states(self, key: str, *synonyms: str) -> bool:
        """Whether the file gives a value under one of the names; ``null`` is none, where it may stand."""
        given = [name for name in self._names(key, synonyms) if name in self.stated]
        if any(self.stated.value[name] is not None for name in given):
            return True
        if given and not self._may_be_null(key, synonyms):
            self.refuse(
                given[0],
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: {where} is {value}; a value of its own is needed there."
                ),
            )
        return False

    def has_default(self, key: str) -> bool:
        """Whether the class has a value for ``key`` where the file states none."""
        return self._default(key, ()) is not None

    def states_text(self, key: str) -> bool:
        """Whether the file gives a text under ``key``, where other files give a number."""
        return isinstance(self.stated.value.get(key), str)

    def count(self, key: str, *synonyms: str, default: int | None = None) -> int:
        """A whole number, within what the model's field of that name allows."""
        name = self._stated_name(key, synonyms)
        if name is None:
            value = self._assumed(key, synonyms, default)
            return value if isinstance(value, int) else self.missing(key)
        return self.stated.integer(name, *self._range(key))

    def width(self, key: str) -> int | None:
        """Like ``count_or_none``; a list with one equal number for each layer, where the class allows one."""
        name = self._stated_name(key, ())
        if name in self.behind.lists and isinstance(self.stated.value[name], list):
            numbers = set(self.stated.integers(name, *self._range(key)))
            if len(numbers) == 1:
                return numbers.pop()
            self.refuse(
                name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: {where} is {value}; the same number for every layer is allowed."
                ),
            )
        return self.count_or_none(key)

    def count_or_none(self, key: str, *synonyms: str, default: int | None = None) -> int | None:
        name = self._stated_name(key, synonyms)
        if name is None:
            value = self._assumed(key, synonyms, default, null=True)
            return value if isinstance(value, int) else None
        low, high = self._range(key)
        return self.stated.integer_or_none(name, low, high, null=self._may_be_null(key, synonyms))

    def count_or_auto(self, key: str, automatic: int) -> int:
        """A whole number, or ``automatic`` where the file (or the class) says ``"auto"`` or nothing."""
        stated = self.stated.value.get(key, self._default(key, ()))
        if stated is None or stated == "auto":
            self._stated_name(key, ())
            self.stated.note_read(key)
            return automatic
        return self.count(key)

    def integer_or_none(self, key: str) -> int | None:
        """A whole number that may be negative (``-1`` often stands for "none")."""
        name = self._stated_name(key, ())
        if name is None:
            value = self._assumed(key, (), None, null=True)
            return value if isinstance(value, int) else None
        return self.stated.integer_or_none(name, -_LARGEST, _LARGEST, null=self._may_be_null(key, ()))

    def flag(self, key: str, *synonyms: str, default: bool | None = None) -> bool:
        """``true`` or ``false``; ``null`` counts as ``false`` where the class lets it stand."""
        name = self._stated_name(key, synonyms)
        if name is None:
            value = self._assumed(key, synonyms, default)
            return value if isinstance(value, bool) else self.missing(key)
        return bool(self.stated.boolean_or_none(name, null=self._may_be_null(key, synonyms)))

    def ratio(self, key: str, *synonyms: str, default: float = 0.0) -> float:
        """A share from 0 to 1; ``null`` counts as 0 where the class lets it stand."""
        name = self._stated_name(key, synonyms)
        if name is None:
            return float(self._assumed(key, synonyms, default) or 0.0)
        return self.stated.number_or_none(name, 0.0, 1.0, null=self._may_be_null(key, synonyms)) or 0.0

    def number_or_none(self, key: str, *synonyms: str) -> float | None:
        """Any finite number."""
        name = self._stated_name(key, synonyms)
        if name is None:
            value = self._assumed(key, synonyms, None, null=True)
            return float(value) if isinstance(value, int | float) else None
        return self.stated.number_or_none(name, null=self._may_be_null(key, synonyms))

    def text(self, key: str, *synonyms: str, default: str | None = None) -> str:
        """A text."""
        name = self._stated_name(key, synonyms)
        if name is None:
            value = self._assumed(key, synonyms, default)
            return value if isinstance(value, str) else self.missing(key)
        return self.stated.string(name)

    def texts(self, key: str, *synonyms: str) -> tuple[str, ...]:
        """A list of texts; empty where it is absent or ``null``."""
        name = self._stated_name(key, synonyms)
        if name is None or (self.stated.value[name] is None and self._may_be_null(key, synonyms)):
            default = self._default(key, synonyms)
            return tuple(default) if isinstance(default, list) else ()
        return self.stated.strings(name)

    def counts(self, key: str, *synonyms: str) -> tuple[int, ...]:
        """A list of whole numbers; empty where it is absent or ``null``."""
        name = self._stated_name(key, synonyms)
        if name is None or (self.stated.value[name] is None and self._may_be_null(key, synonyms)):
            default = self._default(key, synonyms)
            return tuple(default) if isinstance(default, list) else ()
        return self.stated.integers(name, 0, _LARGEST)

    def items(self, key: str, *synonyms: str) -> list[object]:
        """A list of anything; empty where it is absent or ``null``."""
        name = self._stated_name(key, synonyms)
        return [] if name is None else self.stated.array_or_none(name, null=True) or []

    def within(self, key: str, model_type: str = "", behind: ClassDefaults | None = None) -> Config:
        """The object under ``key`` (an empty one where it is absent or ``null``)."""
        inner = self.stated.child_or_none(key, null=True)
        if inner is None:
            inner = JsonObject({}, self.stated.name, self.stated.at(key))
        elif key not in self.report.understood:
            self.report.understood.append(self.stated.at(key))
        behind = behind or ClassDefaults(null_is_absent=self.behind.null_is_absent)
        return Config(inner, model_type, self.report, behind)

    def undescribed(self, report: Report) -> Config:
        """The same object of a class that nobody here knows, booking into ``report``."""
        behind = msgspec.structs.replace(self.behind, null_is_absent=True)
        return Config(self.stated, self.model_type, report, behind, self.derived)

    def renamed(self, key: str, name: str) -> Config:
        """The same object, in which ``key`` stands under ``name`` if the file states that."""
        if name not in self.stated:
            return self
        behind = msgspec.structs.replace(self.behind, names={**self.behind.names, key: name})
        return Config(self.stated, self.model_type, self.report, behind, self.derived)

    def with_default(self, key: str, value: int) -> Config:
        """The same object, with ``value`` (the caller worked it out) for a ``key`` not stated or ``null``."""
        return Config(self.stated, self.model_type, self.report, self.behind, {**self.derived, key: value})

    def refuse(self, key: str, template: str, **args: str | int | float) -> NoReturn:
        """Raise a fault about ``key``."""
        self.stated.refuse(self._stated_name(key, ()) or key, template, **args)

    def assume(self, template: str, **args: Value) -> None:
        """Book an assumption that the family's description makes."""
        self.report.assume(template, **args)

    def _names(self, key: str, synonyms: tuple[str, ...]) -> tuple[str, ...]:
        own = self.behind.names.get(key)
        return (*((own,) if own else ()), key, *synonyms, *SYNONYMS.get(key, ()))

    def _stated_name(self, key: str, synonyms: tuple[str, ...]) -> str | None:
        for name in self._names(key, synonyms):
            if name in self.stated:
                path = self.stated.at(name)
                if path not in self.report.understood:
                    self.report.understood.append(path)
                if self.stated.value[name] is None and key in self.derived:
                    self.stated.note_read(name)
                    return None
                return name
        return None

    def _default(self, key: str, synonyms: tuple[str, ...]) -> Any:
        for name in self._names(key, synonyms):
            if name in self.behind.defaults:
                return self.behind.defaults[name]
        return None

    def _assumed(self, key: str, synonyms: tuple[str, ...], default: Any, null: bool = False) -> Any:
        if key in self.derived:
            return self.derived[key]
        value = self._default(key, synonyms)
        if value is not None and not key.startswith("_"):
            self.report.assume(
                CLASS_DEFAULT,
                key=self.stated.at(key),
                value=shown(value),
                model_type=self.model_type,
                source=source(),
            )
            return value
        if default is not None and not self.known:
            self.report.assume(NOT_STATED, key=self.stated.at(key), value=shown(default))
        return default

    def _may_be_null(self, key: str, synonyms: tuple[str, ...]) -> bool:
        """Whether ``null`` is no wrong value: the class says so, or every author means "none" by it."""
        names = self._names(key, synonyms)
        known = [name for name in names if self.behind.knows(name)]
        if known:
            return all(map(self.behind.may_be_null, known))
        if key in NULL_IS_NONE:
            return True
        stated = next((name for name in names if name in self.stated), None)
        if self.behind.null_is_absent and stated is not None and self.stated.value[stated] is None:
            self.report.assume(NULL, key=self.stated.at(stated))
        return self.behind.null_is_absent

    def _range(self, key: str) -> tuple[int, int]:
        row = BY_PATH.get(f"model.{key}")
        low, high = (row.minimum, row.maximum) if row is not None else (0, _LARGEST)
        return int(low or 0), int(high or _LARGEST)

    def missing(self, key: str) -> NoReturn:
        """Raise a fault about ``key``, which is needed and not stated."""
        self.stated.integer(key)  # its own sentence for a key that is needed and not there
        raise AssertionError(key)
