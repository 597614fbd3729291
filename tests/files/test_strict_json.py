import json
import math
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.files.bounded import FileFault
from memgui.files.json_structure import MAX_DEPTH, MAX_DIGITS, check_structure
from memgui.files.strict_json import (
    MAX_INTEGER,
    JsonObject,
    load_object,
    parse_object,
    shown,
)


def sentence(data: bytes, infinity: bool = False) -> str:
    with pytest.raises(FileFault) as fault:
        parse_object(data, "c.json", infinity=infinity)
    text = str(fault.value)
    assert text.startswith("c.json")
    assert text.isprintable()
    return text


def test_an_object_is_read_as_it_stands(tmp_path: Path) -> None:
    content = {"a": [1, -2.5, None, True, {"é": "\u202e\n"}], "": {}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    assert load_object(path) == content
    assert parse_object(b"\xef\xbb\xbf" + json.dumps(content).encode(), "c.json") == content


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"{", "line 1, column 2"),
        (b'{"a": 1,}', "line 1, column"),
        (b'{"a" 1}', "line 1, column 6: a colon is needed there"),
        (b'{"a": }', "line 1, column 7: a value is needed there"),
        (b"{'a': 1}", "line 1, column 2: a key in double quotes is needed there"),
        (b'{"a": 1 "b": 2}', "line 1, column 9: a comma or the end"),
        (b'{"a": [1 2]}', "line 1, column 10: a comma or the end"),
        (b'{"a": "b}', "line 1, column 7: the text that begins there never ends"),
        (b'{"a": "\\x41"}', "the backslash there begins no escape"),
        (b'{"a": "\\u12"}', "the backslash there begins no escape"),
        (b'{"a": 01}', "line 1, column 8"),
        (b'{"a": "\n"}', "line 1, column 8: a line break or control character"),
        (b'{"a": 1} {}', "line 1, column 10: nothing is allowed after the end"),
        (b'{\n"a": tru}', "line 2, column 6"),
        (b"'", "line 1, column 1"),
        (b"// no\n{}", "line 1, column 1"),
        (b"[]", "holds [] at its top"),
        (b"null", "holds null at its top"),
        (b'"a"', 'holds "a" at its top'),
        (b"7", "holds 7 at its top"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "is written in UTF-16 or UTF-32; JSON in UTF-8 is allowed"),
        (b'{"a": "\xed\xa0\x80"}', "byte 7 is not UTF-8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\uDFFF": 1}', "surrogate"),
        (b'{"a": 1, "b": 2, "a": 1}', 'the key "a" stands twice'),
        (b'{"x": {"\\u0061": 1, "a": 1}}', 'the key "a" stands twice'),
        (b'{"a": NaN}', "NaN at line 1, column 7"),
        (b'{"a":\n [1, Infinity]}', "Infinity at line 2, column 6"),
        (b'{"NaN": "NaN", "b": -Infinity}', "-Infinity at line 1, column 21"),
        (b'{"a": 1e999}', "1e999 at line 1, column 7"),
        (b'{"a": -1E+400}', "-1E+400 at line 1, column 7"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "the number at line 1, column 7 is longer than 40 digits"),
        (b'{"a": 0.' + b"1" * 10_000 + b"}", "longer than 40 digits"),
        (b'{"a": 1e' + b"1" * 10_000 + b"}", "longer than 40 digits"),
        (b"[" * 100_000, "nested more than 64 levels"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested more than 64 levels"),
        (b'{"a":[' + b"0," * 200_000 + b"0]}", "more than 100,000 values"),
        (b'{"a":[' + b"{}," * 100_000 + b"0]}", "more than 100,000 values"),
        (b'{"' + b"a" * 5_000_000 + b'": NaN}', "NaN at line 1"),
    ],
)
def test_what_is_refused_is_refused_in_a_sentence(data: bytes, told: str) -> None:
    assert told in sentence(data)


def test_infinity_passes_where_it_is_let_through_and_nan_never_does() -> None:
    data = b'{"a": [0.0, Infinity], "b": -Infinity}'
    assert parse_object(data, "c.json", infinity=True) == {"a": [0.0, math.inf], "b": -math.inf}
    assert "NaN" in sentence(b'{"a": NaN}', infinity=True)
    assert "1e999" in sentence(b'{"a": 1e999}', infinity=True)


def test_the_bounds_are_where_they_are_said_to_be() -> None:
    deep = b'{"a":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"
    assert parse_object(deep, "c.json")
    assert "nested" in sentence(b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}")
    assert parse_object(b'{"a":%s}' % (b"9" * MAX_DIGITS), "c.json") == {"a": 10**MAX_DIGITS - 1}
    assert "digits" in sentence(b'{"a":%s}' % (b"9" * (MAX_DIGITS + 1)))
    assert parse_object(b'{"a":"%s"}' % (b"[9" * 100_000), "c.json")  # in a text all this is text


@pytest.mark.parametrize(
    "filler", [b"[", b"[]", b'"', b'"a":1,', b'\\"', b"12 ", b"1", b":", b"\0", b'{"":', b" "]
)
def test_no_text_takes_long_or_much(filler: bytes) -> None:
    data = b"{" + filler * (4 * 2**20 // len(filler))
    tracemalloc.start()
    try:
        start = time.process_time()
        sentence(data)
        took = time.process_time() - start
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert took < 1
    assert peak < 64 * 2**20


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def count_keys(value: object) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(count_keys, value.values()))
    return sum(map(count_keys, value)) if isinstance(value, list) else 0


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_whatever_json_can_say_is_read_back(
    value: dict[str, object], ascii_only: bool, indent: int | None
) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert parse_object(data, "c.json") == value
    assert check_structure(data, "c.json", 10**6) == count_keys(value)


@given(
    st.binary(max_size=300) | st.text('{}[]",:\\ 0123456789eE+-.abNIntfulrs\n', max_size=60).map(str.encode)
)
def test_any_bytes_are_an_object_or_a_sentence(data: bytes) -> None:
    try:
        value = parse_object(data, "c.json")
    except FileFault as fault:
        said = str(fault)
    else:
        said = ""
        assert json.loads(data) == value
    assert said.isprintable()


@given(st.text('"\\ab[{1:,', max_size=40).map(str.encode))
def test_structure_is_counted_outside_strings_only(data: bytes) -> None:
    outside = bytearray()
    inside = escaped = False
    for byte in data:
        if inside:
            inside = escaped or byte != ord('"')
            escaped = not escaped and byte == ord("\\")
        elif byte == ord('"'):
            inside = True
        else:
            outside.append(byte)
    assert check_structure(data, "c.json", 10**6) == outside.count(b":")


# typed getters


def fields(**value: object) -> JsonObject:
    return JsonObject(value, "c.json")


WRONG = ["4096", None, [4096], {"a": 1}, True, 4096.0, 1e300, -1, 10**40]


@pytest.mark.parametrize("value", WRONG)
def test_an_integer_is_never_coerced(value: object) -> None:
    with pytest.raises(FileFault) as fault:
        fields(hidden_size=value).integer("hidden_size")
    assert str(fault.value) == (
        f"c.json: hidden_size is {shown(value)}; a whole number from 0 to {MAX_INTEGER:,} is allowed."
    )
    assert fault.value.where == "hidden_size"
    with pytest.raises(FileFault):
        fields(hidden_size=value).integer_or_none("hidden_size")
    with pytest.raises(FileFault, match=r"sizes\[1\] is"):
        fields(sizes=[1, value]).integers("sizes")


@pytest.mark.parametrize("value", ["1", None, [1], True, math.inf, math.nan, 10**40])
def test_a_number_is_never_coerced(value: object) -> None:
    with pytest.raises(FileFault, match="a number from"):
        fields(p=value).number("p")


@pytest.mark.parametrize(
    ("getter", "wrong"),
    [
        ("boolean", ["true", 1, 0, None, []]),
        ("string", [1, None, True, ["a"], {}]),
        ("child", [1, None, "a", [{}]]),
        ("array", [1, None, "ab", {"0": 1}]),
        ("strings", [1, None, "ab", {"0": 1}, ["a", 1], [None]]),
        ("children", [1, None, {"a": {}}, [{}, []]]),
        ("integers", [1, None, "12", {}, [1, "2"], [True]]),
    ],
)
def test_other_types_are_never_coerced(getter: str, wrong: list[object]) -> None:
    for value in wrong:
        with pytest.raises(FileFault, match=r"^c\.json: x.* is .* allowed\.$"):
            getattr(fields(x=value), getter)("x")


def test_right_values_are_given() -> None:
    one = fields(i=7, f=0.5, b=False, s="x", o={"n": [{"k": 1}]}, l=[1, "a"], il=[1, 2], sl=["a"])
    assert one.integer("i", 7, 7) == 7
    assert one.number("f") == 0.5
    assert isinstance(one.number("i"), float)
    assert one.boolean("b") is False
    assert one.string("s") == "x"
    assert one.child("o").children("n")[0].integer("k") == 1
    assert one.array("l") == [1, "a"]
    assert one.integers("il") == (1, 2)
    assert one.strings("sl") == ("a",)
    assert list(one) == ["i", "f", "b", "s", "o", "l", "il", "sl"]
    assert "i" in one
    assert "z" not in one


GETTERS = ["integer", "number", "boolean", "string", "child", "array"]


@pytest.mark.parametrize("getter", GETTERS)
def test_absent_and_null_are_told_apart(getter: str) -> None:
    assert getattr(fields(), f"{getter}_or_none")("x") is None
    assert getattr(fields(x=None), f"{getter}_or_none")("x", null=True) is None
    with pytest.raises(FileFault, match="x is null"):
        getattr(fields(x=None), f"{getter}_or_none")("x")
    with pytest.raises(FileFault, match=r"^c\.json does not state x, which is needed\.$"):
        getattr(fields(), getter)("x")


def test_faults_name_the_whole_path() -> None:
    inner = fields(text_config={"layers": [{"size": "big"}]}).child("text_config").children("layers")[0]
    with pytest.raises(FileFault, match=r'text_config\.layers\[0\]\.size is "big"; a whole number'):
        inner.integer("size")
    with pytest.raises(FileFault, match=r"c\.json: text_config\.layers\[0\]\.size of \"big\" is odd"):
        inner.refuse("size", "{file}: {where} of {value} is {what}", what="odd")


def test_what_nobody_asked_for_is_known() -> None:
    one = fields(a=1, b={"c": 1, "d": 2}, e={"f": 1}, g=2)
    one.integer("a")
    one.child("b").integer("c")
    one.note_read("g", "never there")
    assert one.unread() == ("b.d", "e")


def test_a_value_is_shown_short_and_on_one_line() -> None:
    assert shown("a\n") == '"a\\n"'
    assert shown([1, None]) == "[1, null]"
    assert shown("é\u202e") == '"é\\u202e"'
    assert len(shown(["x" * 1_000] * 1_000)) == 61
    assert len(shown(list(range(10**6)))) == 61
    assert shown({1}) == '"{1}"'
