"""The modules that layers are made of, each written as the operators that PyTorch runs for it.

A module is a function ``module(t, c, x) -> y`` on a :class:`~memgui.estimator.tape.Tape`, the
:class:`~memgui.estimator.modules.context.Context` (model, options, tensors that all layers share)
and its input.  It creates its parameters with ``t.parameter`` or ``projection`` and runs operators
of :mod:`memgui.estimator.operators`; what is saved, when it dies and what backward holds follow.
"""
