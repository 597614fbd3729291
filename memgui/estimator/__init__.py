"""Which bytes lie on one device, at which moment, and why.  Pure arithmetic on integers.

No Qt, no files, no clock, no locale.  Three questions can be asked:

``estimate(scenario) -> Estimate``
    The answer for a person: eight components at the peak, timeline, verdict (see
    :mod:`memgui.estimator.result`).  Raises nothing for a valid scenario; one that ``validate``
    refuses gets a verdict of kind ``unknown`` that says why.

``at_least(scenario) -> int``
    Bytes that the answer will not fall short of, in a fraction of the time.  ``Draft(scenario)`` gives
    both, one after the other.

``ledger(scenario) -> Ledger``
    The tensors behind it, for tests and for views that list them.  All sizes are bytes, all
    counts elements, and nothing here contains ``overhead``:

    - ``ledger.parameters`` is the :class:`~memgui.estimator.result.Parameters` of the model, with
      adapters where there are any: ``total``, ``trainable``, ``active``, ``by_part`` (keys:
      embedding, position_embedding, token_type_embedding, embedding_projection, stem, attention,
      qk_norm, mixer, mlp, experts, shared_experts, router, norm, lm_head, adapter).
    - ``ledger.saved_by_layer()`` gives ``{stack: (bytes of layer 0, bytes of layer 1, ...)}`` of
      what autograd saves; ``stack`` is ``"layers"`` in a decoder-only or encoder-only model,
      ``"encoder"`` and ``"decoder"`` where there are two.  Weight copies are not in it.
    - ``ledger.saved_by_part()`` gives ``{part: bytes}`` of what lies outside the layers:
      ``embedding``, ``final_norm``, ``lm_head``, ``loss`` (only parts that save something).
    - ``ledger.saved_total`` is the sum of both; ``ledger.saved_weight_casts`` what autocast's
      copies of weights take beside it.
    - ``ledger.steps`` holds one :class:`~memgui.estimator.ledger.StepFigures` per optimizer step,
      ``steps[0]`` the first (no optimizer state before its end), ``steps[1]`` every later one:
      ``start``, ``after_forward``, ``after_backward``, ``grad_bytes``, ``after_step``,
      ``optimizer_state_bytes``, ``after_zero_grad``, and ``phases``: ``{phase: peak bytes}`` with
      ``forward``, ``backward`` (``forward2``, ``backward2`` for the second micro batch of an
      accumulation), ``optimizer``; ``operators`` names the operator at each phase's peak.
    - ``ledger.cache`` (inference) has ``after_prompt`` and ``after_one_more`` for the cache
      object as ``transformers`` holds it.
    - ``ledger.tensors()`` lists every parameter, saved tensor and cache tensor as
      :class:`~memgui.estimator.ledger.Entry` (name, module, part, layers, shape, bytes).

``settled(estimate) -> Estimate`` (:mod:`memgui.estimator.settled`)
    The same with a training run played on PyTorch's allocator, tensor by tensor: blocks and segments
    as its counters show them.  It takes tens of milliseconds.

Timeline moments are keyed ``load``, ``step1.start``, ``step2.forward.layer.3``,
``step2.after_forward``, ``step2.backward.loss``, ``step2.optimizer``, ``prefill.layer.3``,
``decode``, ...; :class:`~memgui.estimator.result.Moment` says what each holds.
"""

from __future__ import annotations

from memgui.estimator.at_least import Draft, at_least
from memgui.estimator.estimate import estimate
from memgui.estimator.ledger import Entry, Ledger, StepFigures, ledger
from memgui.estimator.result import Estimate

__all__ = ["Draft", "Entry", "Estimate", "Ledger", "StepFigures", "at_least", "estimate", "ledger"]
