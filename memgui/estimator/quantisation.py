"""Which tensors a quantisation scheme stores in which format, and the bytes that follow, tensor by tensor.

A scheme says for each weight of a model how it is stored: linear layers packed, embeddings and norms
as they are, the head this way or that.  GGUF's mixes also look at the layer's place in the model
(:mod:`memgui.estimator.quantisation_gguf`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from math import gcd
from typing import NamedTuple

import msgspec

from memgui.estimator.block import Block
from memgui.estimator.options import ADAPTERS, BASES, BITSANDBYTES
from memgui.estimator.program import Program
from memgui.estimator.quantisation_gguf import Formats, Matrix, Place, mixed
from memgui.estimator.state import State, state_of
from memgui.estimator.tape import LINEAR, Parameter
from memgui.spec.formats import WeightFormat, WeightScheme, number_format, weight_format, weight_scheme
from memgui.spec.formats.schemes import AS_IN_FILE, LAYERS
from memgui.spec.scenario import Scenario
from memgui.spec.stored import read
from memgui.spec.weights import TOWERS


def scheme_of(scenario: Scenario) -> WeightScheme | None:
    """How the weights of a serving scenario are stored; ``None`` where they are as they compute."""
    inference = scenario.inference
    scheme = weight_scheme(inference.weight_format, inference.engine)
    if scheme.name == AS_IN_FILE:
        return _in_file(scenario.model.stored_weights)
    if not scheme.linear:
        return None
    parts = inference.quantised_parts
    if parts is None and inference.engine == "transformers" and is_packed_on_loading(scheme):
        return msgspec.structs.replace(scheme, parts=parts_packed_on_loading(scenario, scheme))
    if parts is None or scheme.mix:
        return scheme
    head = scheme.linear if "lm_head" in parts else ""
    embedding = scheme.linear if "embedding" in parts else ""
    return msgspec.structs.replace(scheme, parts=parts, head=head, embedding=embedding)


def is_packed_on_loading(scheme: WeightScheme) -> bool:
    """Whether Transformers packs linear layers as it loads them, by bitsandbytes or HQQ."""
    return scheme.name in BITSANDBYTES or scheme.linear.startswith("hqq")


LINEAR_LAYERS = tuple(part for part in LAYERS if part != "experts")
"""Parts that are linear layers in Transformers 5, whose experts are parameters of three dimensions."""


def parts_packed_on_loading(scenario: Scenario, scheme: WeightScheme) -> tuple[str, ...]:
    """Parts of which every ``nn.Linear`` is packed, towers included: all but the head.

    (Transformers 5.24: ``replace_with_bnb_linear``, ``prepare_for_hqq_linear``; for bitsandbytes its
    ``MODULES_TO_PATCH_FOR_QUANTIZATION`` makes linear layers of Llama 4's experts.)
    """
    linear = scheme.name in BITSANDBYTES and scenario.model.model_type in LINEAR_EXPERTS
    return (*LINEAR_LAYERS, *FURTHER_LINEAR_LAYERS, *(("experts",) if linear else ()))


LINEAR_EXPERTS = ("llama4", "llama4_text")
"""Models whose experts become linear layers so that bitsandbytes can pack them."""

FURTHER_LINEAR_LAYERS = ("per_layer", "streams", *sorted(TOWERS))
"""Further parts with linear layers; they stay as they are where a model is packed ahead."""


def base_scheme(scenario: Scenario) -> WeightScheme | None:
    """How a frozen base is packed; what its scheme leaves alone is as the program has it.

    Packers replace linear layers: experts, which are parameters of three dimensions, stay as they are.
    """
    training = scenario.training
    if training.method not in ADAPTERS or training.base_format not in BASES:
        return None
    scheme = weight_scheme(training.base_format)
    head = scheme.linear if training.implementation == "litgpt" else ""  # it packs every linear layer
    parts = parts_packed_on_loading(scenario, scheme) if is_packed_on_loading(scheme) else LINEAR_LAYERS
    return msgspec.structs.replace(scheme, base="", head=head, parts=parts)


def matrix(parameter: Parameter) -> Matrix | None:
    """The matrices of a linear layer or an embedding, one for each expert; ``None`` of anything else."""
    dims = parameter.dims
    stacked = parameter.part == "experts" and len(dims) > 2
    outer = dims[stacked : len(dims) - parameter.inputs]
    named = parameter.name.endswith("weight") or (stacked and "bias" not in parameter.name)
    if not outer or not (parameter.role == LINEAR or (named and "conv" not in parameter.name)):
        return None
    sizes = parameter.sizes
    columns = sizes.count(dims[len(dims) - parameter.inputs :])
    return Matrix(sizes.count(dims[:1]) if stacked else 1, sizes.count(outer), columns)


def formats(scheme: WeightScheme, parameter: Parameter, shape: Matrix | None, place: Place) -> Formats:
    """The formats in which ``scheme`` stores ``parameter``."""
    count = max(len(place.layers), 1)
    if scheme.mix:
        return mixed(scheme, parameter, None if parameter.role == LINEAR else shape, place)
    if shape is None:
        return [("", count)]
    if parameter.part in scheme.parts and parameter.cut != "vocabulary":
        return [(scheme.linear, count)]
    return [({"embedding": scheme.embedding, "lm_head": scheme.head}.get(parameter.part, ""), count)]


Weights = tuple[tuple[Parameter | State, int], ...]


@lru_cache(maxsize=64)
def places(program: Program) -> tuple[tuple[Block, tuple[int, ...], int], ...]:
    """Every block once, with the layers it stands in (counted through all stacks), how often in each."""
    layers: dict[Block, list[int]] = {}
    index = 0
    for kind, count in program.runs:
        for block in kind.blocks:
            layers.setdefault(block, []).extend(range(index, index + count))
        index += count
    every = [(block, tuple(layers.get(block, ())), count) for block, count in program.blocks]
    return tuple([(block, inside, 1 if inside else count) for block, inside, count in every])


@lru_cache(maxsize=32)
def _in_file(table: tuple[str, ...]) -> WeightScheme:
    return msgspec.structs.replace(weight_scheme(AS_IN_FILE), table=table)


class Share(NamedTuple):
    """What one device has of a model: a part of each matrix, and some of the layers.

    ``tensor`` and ``expert`` are degrees of parallelism; layers from ``start`` to before ``stop``
    (``None``: to the last) are here, of those before ``experts_from`` without their experts.
    ``fill_vocabulary``: embeddings have whole 64 rows; ``fill_experts``: what experts read has a width
    that is a multiple of this.  ``split_parts``: the parts that are split, where it is not every one.
    """

    tensor: int = 1
    expert: int = 1
    start: int = 0
    stop: int | None = None
    stem: bool = True
    tail: bool = True
    experts_from: int = 0
    fill_vocabulary: bool = False
    fill_experts: int = 1
    split_parts: tuple[str, ...] = ()

    @property
    def whole(self) -> Share:
        """The same part of each matrix, of all layers."""
        return self._replace(start=0, stop=None, stem=True, tail=True, experts_from=0)

    def cuts(self, part: str) -> bool:
        """Whether weights of ``part`` may be other than whole here."""
        split = self.tensor > 1 or self.expert > 1 or self.fill_vocabulary
        return split and (not self.split_parts or part in self.split_parts)

    def of(self, layers: tuple[int, ...], part: str = "") -> tuple[int, ...]:
        """Of ``layers``, in order, those whose weights of ``part`` lie here."""
        first = max(self.start, self.experts_from) if part == "experts" else self.start
        stop = len(layers) if self.stop is None else bisect_left(layers, self.stop)
        return layers[bisect_left(layers, first) : stop]

    def has_part(self, part: str, layer: int) -> bool:
        """Whether a layer's weights of ``part`` lie here."""
        if layer < self.start or (self.stop is not None and layer >= self.stop):
            return False
        return part != "experts" or layer >= self.experts_from


WHOLE = Share()


def plain(scheme: WeightScheme | None) -> WeightScheme:
    """``scheme``; where there is none, that of weights as the program has them."""
    return AS_THEY_ARE if scheme is None else scheme


AS_THEY_ARE = WeightScheme("as_they_are", "", base="")


@lru_cache(maxsize=64)
def stored(program: Program, scheme: WeightScheme, share: Share = WHOLE) -> Weights:
    """The program's weights as ``scheme`` stores them: (tensor, how often).  Trained weights stay plain."""
    if scheme.table:
        return tuple(_from_file(program, scheme.table, share))
    base = number_format(scheme.base).bytes_for(1) if scheme.base else 0  # 0: as the program has them
    found: list[tuple[Parameter | State, int]] = []
    known = _known(program, share.whole)
    together: list[tuple[list[Parameter], tuple[int, ...], int, bool]] = [
        (block.tape.parameters, layers, times, share.tail if block is program.tail else share.stem)
        for block, layers, times in places(program)
    ]
    together += [(weights, (), times, share.stem) for weights, times in program.beside]
    for weights, layers, times, outside in together:
        if not layers and not outside:
            continue
        for parameter in weights:
            place = Place(program.model, share.of(layers, parameter.part))
            if layers and not place.layers:
                continue
            shape = known.shape(parameter)
            cut = share.cuts(parameter.part)
            for name, often in formats(scheme, parameter, shape, place):
                count = often * times
                as_it_is = not name and not cut and (not base or parameter.width == base)
                if parameter.grad or as_it_is:
                    found.append((parameter, count))
                else:
                    chosen = name or scheme.base or PLAIN[parameter.width]
                    found += [(piece, count) for piece in known.pieces(parameter, chosen, share)]
    return tuple(found)


class _Known:
    """Of a program's weights their shapes and what formats make of them, wherever their layers are."""

    __slots__ = ("_pieces", "_shapes")

    def __init__(self) -> None:
        self._shapes: dict[Parameter, Matrix | None] = {}
        self._pieces: dict[tuple[Parameter, str], tuple[State, ...]] = {}

    def shape(self, parameter: Parameter) -> Matrix | None:
        """See :func:`matrix`."""
        if parameter not in self._shapes:
            self._shapes[parameter] = matrix(parameter)
        return self._shapes[parameter]

    def pieces(self, parameter: Parameter, name: str, share: Share) -> tuple[State, ...]:
        """See :func:`pieces`; ``name`` is the format's."""
        found = self._pieces.get((parameter, name))
        if found is None:
            found = tuple(pieces(parameter, self.shape(parameter), weight_format(name), share))
            self._pieces[parameter, name] = found
        return found


@lru_cache(maxsize=64)
def _known(program: Program, share: Share) -> _Known:
    """What is known of them where devices have such a ``share`` of each matrix."""
    return _Known()


PLAIN = {2: "bf16", 4: "fp32", 8: "fp64"}
"""A format for weights of so many bytes."""

OUTPUT = ("lm_head", "norm")
"""Parts outside the layers that stand behind them."""


def _from_file(
    program: Program, table: tuple[str, ...], share: Share
) -> Iterator[tuple[Parameter | State, int]]:
    """The bytes of a file, each beside a weight of its part; tensor parallel ranks share matrices."""
    of_part: dict[str, Parameter] = {}
    cut: set[str] = set()
    for weights, _ in program.weights():
        for parameter in weights:
            of_part.setdefault(parameter.part, parameter)
            if parameter.cut:
                cut.add(parameter.part)
    some = next(iter(of_part.values()))
    for part, size, first, last in read(table):
        weight = of_part.get(part, some)
        degree = share.tensor if part in cut else 1
        if first < 0:
            count = int(share.tail if part in OUTPUT else share.stem)
        else:
            count = sum(share.has_part(part, layer) for layer in range(first, last + 1))
        if count:
            yield state_of("as in the file", weight, -(-size // degree), ()), count


def on_rank(parameter: Parameter, shape: Matrix | None, share: Share) -> Matrix:
    """The part of a weight that lies on one rank.

    Key and value heads are copied where there are fewer than ranks; a vocabulary is filled up to whole
    64 rows; experts are split among expert parallel ranks, each by its inner width where there are more.
    """
    count, rows, columns = shape or Matrix(1, 1, parameter.elements)
    degree = share.tensor if share.cuts(parameter.part) else 1
    if parameter.part == "experts" and shape is not None:
        step, inner = share.fill_experts, max(1, degree // share.expert)
        count = -(-count // share.expert)
        if "down" in parameter.name:
            columns = -(-columns // inner)
        else:
            rows = -(-rows // inner)
        return Matrix(count, rows, -(-columns // step) * step)
    if parameter.cut == "vocabulary" and share.fill_vocabulary and shape is not None:
        return Matrix(count, -(-rows // 64) * 64 // degree, columns)
    if degree == 1 or not parameter.cut or shape is None:
        if shape is None and parameter.cut == "column":
            return Matrix(1, 1, -(-columns // degree))
        return Matrix(count, rows, columns)
    if parameter.cut == "row":
        return Matrix(count, rows, -(-columns // degree))
    if parameter.dims[0] == "k":
        heads = parameter.sizes.count(("k",))
        return Matrix(count, rows // heads * max(1, heads // degree), columns)
    return Matrix(count, -(-rows // degree), columns)


def pieces(
    parameter: Parameter, shape: Matrix | None, chosen: WeightFormat, share: Share = WHOLE
) -> Iterator[State]:
    """The pieces that ``chosen`` makes of a weight; of experts all matrices together."""
    count, rows, columns = on_rank(parameter, shape, share)
    dims, inputs = parameter.dims, len(parameter.dims) - parameter.inputs
    for piece in chosen.pieces:
        size = piece.bytes_for(rows, columns) * count
        for shown in (dims, dims[:inputs], dims[inputs:], ()):
            elements = parameter.sizes.count(shown)
            if not elements:  # experts without a width hold nothing
                continue
            common = gcd(size, elements)
            if elements // common <= LARGEST_DENOMINATOR:
                yield state_of(piece.name, parameter, size // common, shown, elements, elements // common)
                break


LARGEST_DENOMINATOR = 128 * 128
"""Up to here a piece is shown as so many bytes for so many elements: tiles of 128 by 128 share a scale."""
