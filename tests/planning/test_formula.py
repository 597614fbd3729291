import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.estimator.result import Derivation, Symbol
from memgui.planning.formula import Kind, operator_text, tokens_of, value_of

SYMBOLS = {"a": Symbol(7, "a"), "b2": Symbol(11, "b"), "tw": Symbol(3, "t")}


def derivation(formula: str) -> Derivation:
    return Derivation(formula, SYMBOLS, "a test")


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("a", 7),
        ("a*b2*(8*tw + 2*a)", 7 * 11 * (24 + 14)),
        ("a - b2 - tw", -7),
        ("((a) * 10 + b2 // 2) // tw * tw", (70 + 5) // 3 * 3),
        ("-a + 2", -5),
        ("100 // 7 // 2", 7),
        ("0", 0),
    ],
)
def test_formula_comes_to_its_value(formula: str, value: int) -> None:
    assert value_of(tokens_of(derivation(formula))) == value


EXPRESSIONS = st.recursive(
    st.one_of(st.integers(0, 99).map(str), st.sampled_from(sorted(SYMBOLS))),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//"]), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=12,
)


@given(EXPRESSIONS)
def test_agrees_with_pythons_arithmetic(formula: str) -> None:
    values = {name: symbol.value for name, symbol in SYMBOLS.items()}
    tokens = tokens_of(derivation(formula))
    try:
        expected = eval(formula, {}, values)
    except ZeroDivisionError:
        with pytest.raises(ValueError, match="zero"):
            value_of(tokens)
        return
    assert value_of(tokens) == expected


@pytest.mark.parametrize("formula", ["a / b2", "a ** 2", "unknown + 1", "a; b2", "__import__('os')", "1.5"])
def test_anything_else_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match=r"formula|cannot|no value|place"):
        value_of(tokens_of(derivation(formula)))


@pytest.mark.parametrize("formula", ["a +", "(a", "a)", "* a", "a b2", ""])
def test_what_is_not_well_formed_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match=r"place|soon|closed"):
        value_of(tokens_of(derivation(formula)))


def test_tokens_carry_what_they_stand_for() -> None:
    tokens = tokens_of(derivation("a*(2 - tw)"))
    assert [token.kind for token in tokens] == [
        Kind.SYMBOL,
        Kind.OPERATOR,
        Kind.OPEN,
        Kind.NUMBER,
        Kind.OPERATOR,
        Kind.SYMBOL,
        Kind.CLOSE,
    ]
    assert tokens[0].symbol is SYMBOLS["a"]
    assert [operator_text(sign) for sign in ("*", "//", "-", "+")] == ["·", "÷", "−", "+"]
