"""Number formats: how many bytes a tensor takes when it is stored in one.

A :class:`NumberFormat` stores numbers one after another, alone or in blocks with a scale.  A
:class:`WeightFormat` stores a matrix: packed numbers, scales, zero points, code books, each by its
own tile of the matrix.  A :class:`CacheFormat` stores the keys or values of a token.  What a scheme
leaves in another format is the scheme's affair (:mod:`memgui.estimator.quantisation`).
"""

from __future__ import annotations

from memgui.spec.formats.cache import CACHE_FORMATS, CacheFormat, cache_format
from memgui.spec.formats.ggml import GGML
from memgui.spec.formats.numbers import FORMATS, NumberFormat, number_format
from memgui.spec.formats.schemes import SCHEMES, WeightScheme, weight_scheme
from memgui.spec.formats.weights import WEIGHT_FORMATS, Piece, WeightFormat, weight_format

__all__ = [
    "CACHE_FORMATS",
    "FORMATS",
    "GGML",
    "SCHEMES",
    "WEIGHT_FORMATS",
    "CacheFormat",
    "NumberFormat",
    "Piece",
    "WeightFormat",
    "WeightScheme",
    "cache_format",
    "number_format",
    "weight_format",
    "weight_scheme",
]
