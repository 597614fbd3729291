"""One page about one set-up: inputs, verdict, breakdown, assumptions, sources, in the person's words.

The page is made once, in words; the writers beside it only set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from memgui.estimator.result import Estimate, Node, Symbol
from memgui.planning.formula import tokens_of
from memgui.planning.measured.beside import beside
from memgui.planning.measured.records import COUNTERS, Measurement, named_part
from memgui.planning.report.verdict import device_text, verdict_line
from memgui.planning.steps import steps
from memgui.planning.values import value_text
from memgui.planning.why import symbol_label, written
from memgui.planning.words import Words
from memgui.spec import QT_TRANSLATE_NOOP, Device, Issue, Message, ModelSpec, Scenario, get
from memgui.spec.fields import FIELDS, SECTIONS, Field


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and what stands beside it; ``path`` is the field's, where it is one."""

    label: str
    value: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Inputs that belong together."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the breakdown; ``path`` are its keys from the component down (none for the total)."""

    path: tuple[str, ...]
    label: str
    bytes: int
    size: str
    share: str
    exact: str
    formula: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """A measured figure beside the estimated one; ``gap`` is measured less estimated."""

    label: str
    measured_bytes: int
    estimated_bytes: int
    measured: str
    estimated: str
    gap: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A heading and the sentences under it; for ``reference`` they may stand close together."""

    title: str
    sentences: tuple[str, ...]
    reference: bool = False


_SYMBOLS, _SOURCES = QT_TRANSLATE_NOOP("report", "Symbols"), QT_TRANSLATE_NOOP("report", "Sources")
_REFERENCE = (_SYMBOLS, _SOURCES)


@dataclass(frozen=True, slots=True)
class Page:
    """The report, ready to be set.  ``heads`` and ``measured_heads`` are the columns' titles."""

    title: str
    verdict: str
    kind: str
    facts: tuple[Fact, ...]
    inputs_title: str
    inputs: tuple[Section, ...]
    breakdown_title: str
    heads: tuple[str, str, str, str, str]
    breakdown: tuple[Line, ...]
    total: Line
    measured_title: str
    measured_heads: tuple[str, str, str, str]
    measured: tuple[MeasuredLine, ...]
    lists: tuple[Listed, ...]
    made: str


def page(
    estimate: Estimate,
    words: Words,
    *,
    name: str = "",
    notes: str = "",
    issues: Sequence[Issue] = (),
    assumed: Sequence[Message] = (),
    measured: Sequence[Measurement] = (),
    made: str = "",
) -> Page:
    """The page about ``estimate``.

    Args:
        estimate: what is reported; its scenario's inputs stand on the page.
        words: the language and the unit.
        name: of the preset, if there is one; else the model's.
        notes: the person's own.
        issues: what validation found.
        assumed: what an importer assumed.
        measured: what real runs used.
        made: a line at the end, such as the date.
    """

    def text(template: str) -> str:
        return words.translate("report", template)

    whole = estimate.peak_bytes
    supposed = [*map(words.message, (*assumed, *estimate.assumptions))]
    nothing = QT_TRANSLATE_NOOP("report", "Nothing beyond the inputs above.")
    to_note = [words.message(issue.whole) for issue in (*issues, *estimate.issues)]
    lists = (
        (QT_TRANSLATE_NOOP("report", "Notes"), [notes] if notes else []),
        (
            QT_TRANSLATE_NOOP("report", "To note"),
            to_note,
        ),
        (QT_TRANSLATE_NOOP("report", "Assumed"), supposed or [text(nothing)]),
        (_SYMBOLS, list(_symbols(estimate, words))),
        (_SOURCES, list(_sources(estimate, words))),
    )
    heads = (
        QT_TRANSLATE_NOOP("report", "Part"),
        QT_TRANSLATE_NOOP("report", "Memory"),
        QT_TRANSLATE_NOOP("report", "Share"),
        QT_TRANSLATE_NOOP("report", "Bytes"),
        QT_TRANSLATE_NOOP("report", "Formula"),
    )
    measured_heads = (
        QT_TRANSLATE_NOOP("report", "Counter"),
        QT_TRANSLATE_NOOP("report", "Measured"),
        QT_TRANSLATE_NOOP("report", "Estimated"),
        QT_TRANSLATE_NOOP("report", "Difference"),
    )
    return Page(
        title=name or estimate.scenario.model.name,
        verdict=verdict_line(estimate, words),
        kind=estimate.verdict.kind,
        facts=tuple(_facts(estimate, words)),
        inputs_title=text(QT_TRANSLATE_NOOP("report", "Inputs")),
        inputs=tuple(_inputs(estimate.scenario, words)),
        breakdown_title=text(QT_TRANSLATE_NOOP("report", "Where the memory goes")),
        heads=(text(heads[0]), text(heads[1]), text(heads[2]), text(heads[3]), text(heads[4])),
        breakdown=tuple(_lines(estimate.components, whole, words)),
        total=_line((), text(QT_TRANSLATE_NOOP("report", "Total")), whole, whole, words),
        measured_title=text(QT_TRANSLATE_NOOP("report", "Measured")),
        measured_heads=(
            text(measured_heads[0]),
            text(measured_heads[1]),
            text(measured_heads[2]),
            text(measured_heads[3]),
        ),
        measured=tuple(line for one in measured for line in _measured(one, estimate, words)),
        lists=tuple(Listed(text(title), _once(said), title in _REFERENCE) for title, said in lists if said),
        made=made,
    )


def _once(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))


def _facts(estimate: Estimate, words: Words) -> Iterator[Fact]:
    scenario, verdict, counted = estimate.scenario, estimate.verdict, estimate.parameters

    def fact(template: str, value: str) -> Fact:
        return Fact(words.translate("report", template), value)

    yield fact(QT_TRANSLATE_NOOP("report", "Device"), device_text(scenario, words))
    yield fact(QT_TRANSLATE_NOOP("report", "Limit"), words.size(verdict.capacity_bytes))
    if verdict.kind == "unknown":
        return
    yield fact(QT_TRANSLATE_NOOP("report", "Needs"), words.size(estimate.peak_bytes))
    detailed = estimate.method == "detailed"  # a rule of thumb has no range, and counts for no allocator
    if detailed:
        likely = f"{words.size(estimate.low_bytes)} – {words.size(estimate.high_bytes)}"
        yield fact(QT_TRANSLATE_NOOP("report", "Likely range"), likely)
    gap = words.size(abs(verdict.headroom_bytes))
    spare, over = QT_TRANSLATE_NOOP("report", "Spare"), QT_TRANSLATE_NOOP("report", "Too much")
    yield fact(spare if verdict.headroom_bytes >= 0 else over, gap)
    if detailed:
        yield fact(QT_TRANSLATE_NOOP("report", "Peak at"), words.message(estimate.peak_moment.label))
        yield fact(QT_TRANSLATE_NOOP("report", "Allocated"), words.size(estimate.allocated_bytes))
        yield fact(QT_TRANSLATE_NOOP("report", "Reserved"), words.size(estimate.reserved_bytes))
    yield fact(QT_TRANSLATE_NOOP("report", "Parameters"), words.count(counted.total))
    if counted.trainable != counted.total and scenario.task == "training":
        yield fact(QT_TRANSLATE_NOOP("report", "Trained"), words.count(counted.trainable))
    if counted.active != counted.total:
        yield fact(QT_TRANSLATE_NOOP("report", "Active for a token"), words.count(counted.active))
    yield fact(QT_TRANSLATE_NOOP("report", "Stands for"), estimate.version)


_PLAIN = Scenario(
    model=ModelSpec(
        vocab_size=1,
        hidden_size=1,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=1,
        intermediate_size=1,
    ),
    device=Device(),
)
"""What an advanced field holds unless somebody says otherwise."""


def _inputs(scenario: Scenario, words: Words) -> Iterator[Section]:
    """Every field that matters here; advanced ones where they are not as usual."""
    for key, title in SECTIONS.items():
        facts = tuple(
            Fact(words.translate("fields", field.label), _value(field, scenario, words), field.path)
            for field in FIELDS
            if field.section == key and field.applies(scenario) and _tells(field, scenario)
        )
        if facts:
            yield Section(words.translate("fields", title), facts)


def _tells(field: Field, scenario: Scenario) -> bool:
    value = get(scenario, field.path)
    return value not in ("", ()) and (not field.advanced or value != get(_PLAIN, field.path))


def _value(field: Field, scenario: Scenario, words: Words) -> str:
    return value_text(field, get(scenario, field.path), words)


def _lines(nodes: tuple[Node, ...], whole: int, words: Words, above: tuple[str, ...] = ()) -> Iterator[Line]:
    """Every component, and each of its parts that is not nothing."""
    for node in nodes:
        if not node.bytes and above:
            continue
        path = (*above, node.key)
        label = words.translate("estimator", node.label)
        yield _line(path, label, node.bytes, whole, words, _formula(node))
        if len(path) < 2:
            yield from _lines(node.children, whole, words, path)


def _formula(node: Node) -> str:
    """A leaf's formula in symbols; nothing where it is a sum, or a figure that is stated."""
    formula = node.derivation.formula if node.bytes and not node.children else ""
    return "" if not formula or formula.isdigit() else written(tokens_of(node.derivation))


def _line(path: tuple[str, ...], label: str, size: int, whole: int, words: Words, formula: str = "") -> Line:
    return Line(path, label, size, words.size(size), words.share(size, whole), words.count(size), formula)


def _leaves(estimate: Estimate) -> Iterator[Node]:
    """The parts on the page that are no sums."""
    for node in estimate.components:
        for part in (node, *node.children) if node.bytes else ():
            if not part.children:
                yield part


def _symbols(estimate: Estimate, words: Words) -> Iterator[str]:
    """What the letters of the formulas on the page stand for; one that stands for several says where."""
    found: dict[str, dict[tuple[str, str, str], list[str]]] = {}
    for part in _leaves(estimate):
        for name, symbol, how in _letters(estimate, part) if _formula(part) else ():
            meaning = f"{how} = " if how else "", words.count(symbol.value), symbol_label(symbol, words)
            where = found.setdefault(name, {}).setdefault(meaning, [])
            where.append(words.translate("estimator", part.label))
    for name, meanings in found.items():
        for (how, value, label), where in meanings.items():
            text = QT_TRANSLATE_NOOP("report", "{symbol} = {value}: {name}")
            if len(meanings) > 1:
                text = QT_TRANSLATE_NOOP("report", "{symbol} = {value}: {name} ({where})")
            yield words.translate("report", text).format(
                symbol=name, value=how + value, name=label, where=", ".join(dict.fromkeys(where))
            )


def _letters(estimate: Estimate, part: Node) -> Iterator[tuple[str, Symbol, str]]:
    """The letters of a part's formula and of theirs: name, symbol, and its formula where it has one.

    What is called by a component's key stands on the page.
    """
    tokens = tokens_of(part.derivation)
    own = steps(estimate.scenario, tokens)
    told = {(step.name, step.symbol.label): written(step.tokens) for step in own}
    for token in chain(tokens, *(step.tokens for step in own)):
        if token.symbol is not None and token.text != token.symbol.component:
            yield token.text, token.symbol, told.get((token.text, token.symbol.label), "")


def _sources(estimate: Estimate, words: Words) -> Iterator[str]:
    """Where the formulas on the page come from, each once."""
    for part in _leaves(estimate):
        source = part.derivation.source
        shown = words.translate("sources", source)
        yield shown if shown != source else words.translate("estimator", source)


def _measured(measurement: Measurement, estimate: Estimate, words: Words) -> Iterator[MeasuredLine]:
    for row in beside(measurement, estimate):
        figure = row.figure
        label = words.translate("measured", COUNTERS[figure.counter])
        gap = f"{'+' if row.gap > 0 else '−' if row.gap < 0 else ''}{words.size(abs(row.gap))}"
        yield MeasuredLine(
            f"{label}: {words.message(named_part(figure.part))}" if figure.part else label,
            figure.bytes,
            row.expected,
            f"≥ {words.size(figure.bytes)}" if figure.at_least else words.size(figure.bytes),
            words.size(row.expected),
            gap,
        )
