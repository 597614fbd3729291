"""A scenario and an estimator small enough to see through."""

from memgui.estimator.result import COMPONENTS, Estimate, Moment, Node, Parameters, Rank, Verdict
from memgui.spec import Message, ModelSpec, Scenario, replace

LLAMA = ModelSpec(
    name="Llama-3.1-8B",
    model_type="llama",
    vocab_size=128_256,
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    intermediate_size=14_336,
    max_position_embeddings=131_072,
)


def scenario(**values: object) -> Scenario:
    """The model above, with values by path (dots written as two underscores)."""
    made = Scenario(model=LLAMA)
    for path, value in values.items():
        made = replace(made, path.replace("__", "."), value)
    return made


class Estimator:
    """Takes one byte a token; counts its calls; fails where it is told to."""

    def __init__(self) -> None:
        self.calls: list[Scenario] = []
        self.fault: Exception | None = None
        self.kind = ""

    def __call__(self, scenario: Scenario) -> Estimate:
        self.calls.append(scenario)
        if self.fault is not None:
            raise self.fault
        size = scenario.training.micro_batch_size * scenario.training.sequence_length
        sizes = dict.fromkeys(COMPONENTS, 0) | {"activations": size}
        moment = Moment("loss", Message("loss"), "loss", size, sizes)
        capacity = scenario.device.memory_bytes
        return Estimate(
            scenario=scenario,
            method=scenario.method,
            version="fake",
            parameters=Parameters(1, 1, 1, {}),
            components=tuple(Node(key, label, sizes[key]) for key, label in COMPONENTS.items()),
            peak_bytes=size,
            peak_moment=moment,
            low_bytes=size,
            high_bytes=size,
            allocated_bytes=size,
            reserved_bytes=size,
            timeline=(moment,),
            ranks=(Rank("0", size),),
            verdict=Verdict(
                self.kind or ("fits" if size <= capacity else "does_not_fit"),
                capacity,
                capacity - size,
                Message(""),
            ),
        )
