"""Why a part of the picture is as large as it is: the formula, the numbers in it, its source.

An :class:`Explanation` is what the window shows and what :func:`as_text` and :func:`as_markdown`
write; the numbers in it that a person can change carry the path of their field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memgui.estimator.methods import omissions
from memgui.estimator.result import Estimate, Node, Symbol
from memgui.planning.concepts import concept, in_other_words
from memgui.planning.formula import Kind, Token, operator_text, tokens_of
from memgui.planning.served import told as told_of
from memgui.planning.steps import Given, Step, depends_text, given, steps
from memgui.planning.tensors import tensors
from memgui.planning.words import Said, Words
from memgui.spec.import_report import NO_REPORT, ImportReport
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message


@dataclass(frozen=True, slots=True)
class Part:
    """One line of the list beside the formula: a node of the tree, or a tensor (which has no ``key``).

    ``note`` says a tensor's shape and number of bytes an element, in symbols.
    """

    key: str
    label: str
    bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All there is to say of one node, or of the whole where ``path`` is empty.

    ``labels`` are msgids (context ``"estimator"``) from the component down.  ``tokens`` is empty
    where the node is just the sum of its ``parts``.
    """

    path: tuple[str, ...]
    labels: tuple[str, ...]
    bytes: int
    total: int
    text: str
    concept: tuple[Said, ...]
    tokens: tuple[Token, ...]
    source: str
    version: str
    assumptions: tuple[Message, ...]
    left_out: tuple[Message, ...]
    parts: tuple[Part, ...]
    equivalents: tuple[tuple[Said, int], ...] = ()
    """The same bytes in other words: labels and sizes."""
    report: ImportReport = NO_REPORT
    """Of the whole and of the weights: what became of the file that the model was read from."""
    answers: tuple[Said, ...] = ()
    """Of the whole, where it serves: what is left, how far it goes."""
    steps: tuple[Step, ...] = ()
    """How letters of the formula that no field holds come about."""
    given: tuple[Given, ...] = ()
    """Fields that plain numbers in the formula follow from."""

    @property
    def symbols(self) -> dict[str, Symbol]:
        """Each symbol of the formula once, in order."""
        return {token.text: token.symbol for token in self.tokens if token.symbol is not None}


FRAGMENTATION = ("overhead", "fragmentation")
"""The part of the picture that what the allocator makes of a run belongs to."""


def explain(
    estimate: Estimate,
    path: tuple[str, ...],
    report: ImportReport = NO_REPORT,
    answers: tuple[Said, ...] = (),
    further: tuple[Message, ...] = (),
) -> Explanation | None:
    """The explanation of the node at ``path``; ``None`` where this estimate has no such node.

    ``report`` is of the file that the model was read from; ``answers`` are told of the whole beside
    what the estimate says by itself, ``further`` beside what is assumed of the node.
    """
    nodes = _nodes_on(estimate, path)
    if nodes is None:
        return None
    left_out = _left_out(estimate, path[0] if path else "")

    def others(assumed: tuple[Message, ...]) -> tuple[Message, ...]:
        """What is assumed beside what the method leaves out, which is told apart."""
        return tuple(one for one in assumed if one not in left_out)

    if not nodes:
        parts = tuple(Part(node.key, node.label, node.bytes) for node in estimate.components if node.bytes)
        whole = estimate.peak_bytes
        source = QT_TRANSLATE_NOOP("estimator", "Sum of its parts")
        said = concept(estimate, "")
        return Explanation(
            (),
            (),
            whole,
            whole,
            "",
            said,
            (),
            source,
            estimate.version,
            others(estimate.assumptions),
            left_out,
            parts,
            report=report,
            answers=(*told_of(estimate), *answers),
        )
    node = nodes[-1]
    told_by = node
    while len(told_by.children) == 1 and _is_sum(told_by):  # its only part's formula is its own
        told_by = told_by.children[0]
    derivation, is_sum = told_by.derivation, _is_sum(told_by)
    tokens = () if is_sum else tokens_of(derivation)
    return Explanation(
        path=path,
        labels=tuple(one.label for one in nodes),
        bytes=node.bytes,
        total=estimate.peak_bytes,
        text=derivation.text,
        concept=concept(estimate, path[0]) if len(path) == 1 else _of_what(nodes, is_sum),
        tokens=tokens,
        source=derivation.source,
        version=estimate.version,
        assumptions=others((*derivation.assumptions, *further)),
        left_out=left_out,
        parts=tuple(Part(child.key, child.label, child.bytes) for child in node.children if child.bytes)
        or _tensors(estimate, path, node),
        equivalents=in_other_words(estimate, path[0]) if len(path) == 1 else (),
        report=report if path == ("weights",) else NO_REPORT,
        steps=steps(estimate.scenario, tokens),
        given=() if is_sum else given(estimate.scenario, derivation),
    )


def _of_what(nodes: tuple[Node, ...], is_sum: bool) -> tuple[Said, ...]:
    """What a sum is a part of; a leaf has a text and a formula of its own."""
    if not is_sum or not nodes[0].bytes:
        return ()
    thousandths = (2000 * nodes[-1].bytes + nodes[0].bytes) // (2 * nodes[0].bytes)
    text = QT_TRANSLATE_NOOP(
        "why", "{share} % of {component}, {size} in all. Choose one of its parts for the formula."
    )
    words: dict[str, str | tuple[str, str]] = {
        "share": f"{thousandths // 10}.{thousandths % 10}",
        "component": ("estimator", nodes[0].label),
    }
    return (Said(text, sizes={"size": nodes[0].bytes}, words=words),)


def _is_sum(node: Node) -> bool:
    """Whether a node's formula says no more than that its parts are added."""
    return bool(node.children) and set(node.derivation.symbols) == {child.symbol for child in node.children}


def _nodes_on(estimate: Estimate, path: tuple[str, ...]) -> tuple[Node, ...] | None:
    found: list[Node] = []
    nodes = estimate.components
    for key in path:
        node = next((node for node in nodes if node.key == key), None)
        if node is None:
            return None
        found.append(node)
        nodes = node.children
    return tuple(found)


_KINDS = {
    "weights": "parameter",
    "gradients": "parameter",
    "activations": "saved",
    "loss": "saved",
    "kv_cache": "cache",
}
"""Which tensors of the ledger a component is made of."""


def _tensors(estimate: Estimate, path: tuple[str, ...], node: Node) -> tuple[Part, ...]:
    """The tensors that a leaf stands for, over all layers; none where they do not add up to its bytes."""
    kind = _KINDS.get(path[0])
    if kind is None or not node.bytes:
        return ()
    part = path[1] if len(path) > 1 else None
    block = path[2] if len(path) > 2 else None
    found = [
        Part("", entry.name, entry.bytes * entry.layers, "·".join((*map(str, entry.shape), str(entry.width))))
        for entry in tensors(estimate)
        if entry.kind == kind and part in (None, entry.part) and block in (None, entry.block)
    ]
    return tuple(found) if sum(one.bytes for one in found) == node.bytes else ()


def _left_out(estimate: Estimate, component: str) -> tuple[Message, ...]:
    """What an article's method leaves out of a component, or altogether."""
    if estimate.method == "detailed":
        return ()
    return tuple(
        omission.message
        for omission in omissions(estimate.scenario, estimate.parameters)
        if not component or omission.component == component
    )


PATH = " › "


def names_of(explanation: Explanation, words: Words) -> list[str]:
    """The path in words; of the whole just that."""
    if not explanation.labels:
        return [words.translate("why", QT_TRANSLATE_NOOP("why", "All of it"))]
    return [words.translate("estimator", label) for label in explanation.labels]


def part_name(part: Part, words: Words) -> str:
    """A part's name; a tensor is called as in the model's code."""
    return words.translate("estimator", part.label) if part.key else part.label


def symbol_label(symbol: Symbol, words: Words) -> str:
    """What a symbol stands for, in words."""
    shown = words.translate("symbols", symbol.label)
    return shown if shown != symbol.label else words.translate("estimator", symbol.label)


def sentences(explanation: Explanation, words: Words) -> list[str]:
    """What the bytes are, and why they are there."""
    said = [words.translate("estimator", explanation.text)] if explanation.text else []
    return said + [one.text(words) for one in explanation.concept]


def written(tokens: tuple[Token, ...], words: Words | None = None) -> str:
    """A formula in symbols, or with its numbers put in where ``words`` write them."""
    pieces: list[str] = []
    for token in tokens:
        match token.kind:
            case Kind.OPERATOR:
                shown = operator_text(token.text)
                pieces.append(shown if token.text == "*" else f" {shown} ")
            case Kind.OPEN | Kind.CLOSE:
                pieces.append(token.text)
            case Kind.SYMBOL if words is None:
                pieces.append(token.text)
            case _:
                pieces.append(words.count(token.value) if words is not None else token.text)
    return "".join(pieces)


_SOURCE = QT_TRANSLATE_NOOP("why", "Source: {source}")
_ASSUMED = QT_TRANSLATE_NOOP("why", "Assumed:")
_LEFT_OUT = QT_TRANSLATE_NOOP("why", "The method leaves out:")
_ROUNDS = QT_TRANSLATE_NOOP("why", "÷ divides without remainder.")


def source_text(explanation: Explanation, words: Words) -> str:
    """Where the formula comes from."""
    shown = words.translate("sources", explanation.source)
    return shown if shown != explanation.source else words.translate("estimator", explanation.source)


def divides(tokens: tuple[Token, ...]) -> bool:
    """Whether a formula divides, which it does without remainder."""
    return any(token.text == "//" for token in tokens)


def _formula_lines(explanation: Explanation, words: Words) -> Iterator[str]:
    size = explanation.bytes
    result = f"= {words.exact(size)} = {words.size(size)}"
    if explanation.tokens:
        yield written(explanation.tokens)
        yield f"= {written(explanation.tokens, words)}"
    yield result


def _legend_lines(explanation: Explanation, words: Words) -> Iterator[str]:
    told = {(step.name, step.symbol.label): step for step in explanation.steps}
    formulas = (explanation.tokens, *(step.tokens for step in explanation.steps))
    letters = {
        (token.text, token.symbol.label): token.symbol
        for tokens in formulas
        for token in tokens
        if token.symbol is not None
    }
    for (name, label), symbol in letters.items():
        step = told.get((name, label))
        own = step.tokens if step is not None else ()
        how = f"{written(own)} = {written(own, words)} = " if own else ""
        yield f"{name} = {how}{words.count(symbol.value)}  {symbol_label(symbol, words)}"
        if step is not None:
            for line in depends_text(step.given, words):
                yield f"{name} {line}"
    if any(divides(tokens) for tokens in formulas):
        yield words.translate("why", _ROUNDS)
    for line in depends_text(explanation.given, words):
        yield line[:1].upper() + line[1:]


_OF_MODEL = QT_TRANSLATE_NOOP("why", "Assumed of the model, because {file} does not say it:")
_UNDERSTOOD = QT_TRANSLATE_NOOP("why", "Read in {file}:")
_MORE = QT_TRANSLATE_NOOP("why", "and {count} more")
_IGNORED = QT_TRANSLATE_NOOP("why", "In {file}, but nothing here reads it:")


def report_lists(report: ImportReport, words: Words) -> list[tuple[str, list[str]]]:
    """Headings and what stands under them: what was assumed, ignored and understood of the model's file."""
    more = [words.translate("why", _MORE).format(count=words.count(report.unnamed))] if report.unnamed else []
    lists = (
        (_OF_MODEL, [words.message(one) for one in report.assumed]),
        (_IGNORED, [", ".join((*report.ignored, *more))] if report.ignored else []),
        (_UNDERSTOOD, [", ".join(report.understood)] if report.understood else []),
    )
    return [
        (words.translate("why", title).format(file=report.file), lines) for title, lines in lists if lines
    ]


def _report_blocks(explanation: Explanation, words: Words) -> list[list[str]]:
    return [
        [title, "", *(f"- {line}" for line in lines)]
        for title, lines in report_lists(explanation.report, words)
    ]


_SERVING = QT_TRANSLATE_NOOP("why", "Serving:")


def _answered(explanation: Explanation, words: Words) -> list[str]:
    if not explanation.answers:
        return []
    return [words.translate("why", _SERVING), "", *(f"- {one.text(words)}" for one in explanation.answers)]


def as_text(explanation: Explanation, words: Words) -> str:
    """The explanation as plain lines."""
    title = PATH.join(names_of(explanation, words))
    blocks = [
        [f"{title}: {words.size(explanation.bytes)}", *sentences(explanation, words)],
        [*_formula_lines(explanation, words)],
        [*_legend_lines(explanation, words)],
        [
            f"{part_name(part, words)}  {words.size(part.bytes)}  {words.exact(part.bytes)}"
            for part in explanation.parts
        ],
        [f"{label.text(words)}  {words.size(size)}" for label, size in explanation.equivalents],
        _answered(explanation, words),
        _listed(_LEFT_OUT, explanation.left_out, words),
        _listed(_ASSUMED, explanation.assumptions, words),
        *_report_blocks(explanation, words),
        [words.translate("why", _SOURCE).format(source=source_text(explanation, words)), explanation.version],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def as_markdown(explanation: Explanation, words: Words) -> str:
    """The explanation as Markdown, ready to be pasted into an issue or a note."""
    title = PATH.join(names_of(explanation, words))
    parts = [
        f"| {_cell(part_name(part, words))} | {words.size(part.bytes)} | {words.exact(part.bytes)} |"
        for part in explanation.parts
    ]
    if parts:
        part, memory, exact = (words.translate("why", text) for text in _COLUMNS)
        parts = [f"| {part} | {memory} | {exact} |", "| --- | ---: | ---: |", *parts]
    blocks = [
        [f"### {title}: {words.size(explanation.bytes)}"],
        [" ".join(sentences(explanation, words))],
        ["```", *_formula_lines(explanation, words), "```"],
        [f"- {line}" for line in _legend_lines(explanation, words)],
        parts,
        [f"- {label.text(words)}: {words.size(size)}" for label, size in explanation.equivalents],
        _answered(explanation, words),
        _listed(_LEFT_OUT, explanation.left_out, words),
        _listed(_ASSUMED, explanation.assumptions, words),
        *_report_blocks(explanation, words),
        [f"*{words.translate('why', _SOURCE).format(source=source_text(explanation, words))}*"],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block and block != [""])


_COLUMNS = (
    QT_TRANSLATE_NOOP("why", "Part"),
    QT_TRANSLATE_NOOP("why", "Memory"),
    QT_TRANSLATE_NOOP("why", "Bytes"),
)


def _listed(title: str, messages: tuple[Message, ...], words: Words) -> list[str]:
    if not messages:
        return []
    return [words.translate("why", title), "", *(f"- {words.message(message)}" for message in messages)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
