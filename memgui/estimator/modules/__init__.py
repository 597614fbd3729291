"""The modules that layers are made of, each written as the operators that PyTorch runs for it.

A module is a function ``module(t, c, x) -> y`` on a :class:`~memgui.estimator.tape.Tape`, the
:class:`~memgui.estimator.modules.context.Context` (model, options, tensors that all layers share)
and its input.  It makes its weights with ``t.parameter`` or ``projection`` and runs operators of
:mod:`memgui.estimator.operators`, in the order of the model's own code.  What is saved, when it
dies, what backward holds, where the peak is, every formula: all of that follows from the tape.

To add a family
    1. Describe it: fields of ``ModelSpec``, the importer, rows of the field table.
    2. A mixer or feed-forward: write the function, list it in ``layers.MIXERS`` or
       ``FEED_FORWARDS`` under the name that stands in ``layer_types`` or ``mlp_layer_types``.
       A norm goes into ``norm.NORMS``, an activation into ``mlp.ACTIVATIONS``, a rotation into
       ``rotary.ROTATIONS``, a router into ``routers.ROUTERS``, another reach of attention into
       ``reach.REACHES``.  How heads lie in memory (``Tensor.layout``) decides which operators copy
       them: set it where the code transposes, concatenates or makes contiguous.  What a linear layer
       is called (adapters ask for it by name) goes into ``names.NAMES``.
    3. A layer that is no ``x + module(norm(x))`` twice over: another ``LayerPlan`` in
       ``plans.plan``, of as many halves as the code has; halves are compiled once each.
    4. An operator that is missing: one function in ``operators`` that records what PyTorch's
       ``derivatives.yaml`` saves for it, which gradients are new (``NEW``), passed on (``ALIAS``)
       or computed wider and cast (``PROMOTED``), and what it holds for a moment (``extra``,
       ``back_extra``).
    5. A value that only some descriptions have: list it where ``coverage`` knows the choices.
    6. A letter that is missing in a shape: ``dimensions.MODEL`` (known with the model) or
       ``symbols.TRAINING`` and ``INFERENCE`` (open: follows from batch or length).

What Python refers to counts as much as what autograd saves: a tensor dies after its last use, so
    - ``t.use(x)`` where a variable of the code still refers to ``x`` (an argument, until the call
      returns; a name, until it is assigned anew);
    - ``t.hold(x)`` for what lives until the layer (in the stem: the model) returns, such as the
      attention weights a layer receives and drops;
    - ``t.hand_out(x)`` in the stem for what every layer is given (rotary tables, masks, position
      ids): checkpoints keep these until all layers have run back;
    - ``t.cache(x)`` for what the cache keeps, ``t.cached_before`` for what it held.

Set ``t.part`` (where the breakdown shows it) before the operators of a part; ``t.module`` matters
in the stem and the tail only.
"""
