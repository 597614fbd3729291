"""The graphs of recurrent layers in llama.cpp: a convolution over the last columns, then a scan.

States are gathered from the cache before they are used; what a scan gives holds the new states behind
its outputs.  Rules: llama.cpp b11434, mamba-base.cpp and delta-net-base.cpp, with the fused operators.
"""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.engines.cache import State, of_layer
from memgui.estimator.engines.graph import Buffer, Graph
from memgui.estimator.engines.sheet import Factor
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

FP32 = 4


class Recurrent:
    """One recurrent layer over ``n`` tokens.

    It is begun before the layer's norm: the columns that its convolution needs are gathered first.
    """

    def __init__(self, g: Graph, scenario: Scenario, mixer: str, n: Factor) -> None:
        self.g = g
        self.scenario = scenario
        self.mixer = mixer
        self.n = n
        self.state = next(one for one in of_layer(scenario.model, mixer) if isinstance(one, State))
        label = QT_TRANSLATE_NOOP("symbols", "sequences")
        self.slots = Factor("b", scenario.inference.batch_size, label, "inference.batch_size")
        self.columns = max(self.state.kernel - 1, 0)
        self.held = g.make("conv_states", (self.slots, self.columns, self.state.channels), FP32)

    def over(self, x: Buffer, stored: Callable[[], None]) -> Buffer:
        """The layer over ``x``, up to and with its output projection; ``stored``: its states are written."""
        delta = self.mixer in ("gated_delta_net", "kda")
        y = self._delta(x, stored) if delta else self._scanned(x, stored)
        return self.g.make("ssm_out", (self.n, self.scenario.model.hidden_size), FP32, reads=(y,))

    def _input(self, mixed: Buffer) -> Buffer:
        """The newest columns behind those of the cache."""
        tokens = self.n.value + self.slots.value * self.columns
        return self.g.make("conv_input", (tokens, self.state.channels), FP32, reads=(self.held, mixed))

    def _convolved(self, given: Buffer) -> Buffer:
        return self.g.make(
            "conv_output", (self.n, self.state.channels), FP32, reads=(given,), operator="ssm_conv"
        )

    def _scanned(self, x: Buffer, stored: Callable[[], None]) -> Buffer:
        """Mamba: one projection for all; what is scanned, its gate and its steps."""
        g, n, m, state = self.g, self.n, self.scenario.model, self.state
        second = self.mixer != "mamba"
        inner = m.mamba_d_ssm or m.lru_width or m.hidden_size
        steps = m.mamba_n_heads if second else 0
        projected = g.make("in_proj", (n, inner + state.channels + steps), FP32, reads=(x,))
        convolved = self._convolved(self._input(projected))
        parts: tuple[Buffer, ...]
        if second:
            parts = (convolved, g.make("dt", (n, steps), FP32, reads=(projected,)))
        else:
            small = g.make("x_db", (n, m.mamba_dt_rank + 2 * m.mamba_d_state), FP32, reads=(convolved,))
            low = g.make("dt", (n, m.mamba_dt_rank), FP32, reads=(small,))
            parts = (convolved, g.make("dt", (n, inner), FP32, reads=(low,)), small)
        if self.slots.value > 1:
            g.make("other states", (self.slots.value - 1, state.state), FP32)
        size = n.value * inner + self.slots.value * state.state
        scan = g.make("ssm_scan", (size,), FP32, reads=parts)
        stored()
        gate = g.make("z", (n, inner), FP32, reads=(projected,))
        if second:
            g.use(g.make("x times D", (n, inner), FP32, reads=(convolved,)))
        else:
            g.use(convolved)  # multiplied in place
        return g.make("swiglu", (n, inner), FP32, reads=(gate, scan))

    def _delta(self, x: Buffer, stored: Callable[[], None]) -> Buffer:
        """Gated delta net: queries, keys and values convolved; the gate is projected at the end."""
        g, n, m = self.g, self.n, self.scenario.model
        keys = m.linear_num_key_heads * m.linear_key_head_dim
        values = m.linear_num_value_heads * m.linear_value_head_dim
        given = self._input(g.make("qkv_mixed", (n, self.state.channels), FP32, reads=(x,)))
        states = g.make("states", (self.slots, self.state.state), FP32)
        convolved = self._convolved(given)
        q = g.make("q_conv", (n, keys), FP32, reads=(convolved,))
        k = g.make("k_conv", (n, keys), FP32, reads=(convolved,))
        alpha = g.make("alpha", (n, m.linear_num_value_heads), FP32, reads=(x,))
        beta = g.make("beta", (n, m.linear_num_value_heads), FP32, reads=(x,))
        size = n.value * values + self.slots.value * self.state.state
        out = g.make("gated_delta_net", (size,), FP32, reads=(q, k, convolved, alpha, beta, states))
        stored()
        g.use(out, g.make("z", (n, values), FP32, reads=(x,)))
        return out
