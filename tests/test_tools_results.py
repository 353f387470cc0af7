"""What tools give back, as text and pictures for a model."""

import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import importlib
import io
import json
import pathlib
import sqlite3
import subprocess
import sys
from typing import NamedTuple

import matplotlib.figure
import numpy as np
import pandas as pd
import PIL.Image
import pydantic
import pytest

from nb_agent.messages import Image, Text
from nb_agent.tools.results import cut, to_parts


class HEAT(enum.Enum):
    LOW = 1


class Kind(enum.StrEnum):
    A = "a"


@dataclasses.dataclass
class P:
    x: int
    key: str = dataclasses.field(default="sk-hidden", repr=False)


class Model(pydantic.BaseModel):
    v: int
    day: dt.date = dt.date(2031, 2, 3)
    key: pydantic.SecretStr = pydantic.SecretStr("sk-hidden")
    other: str = pydantic.Field("sk-hidden", repr=False)


class Pair(NamedTuple):
    a: int
    b: str


class Mute:
    def __repr__(self):
        raise RuntimeError("no")


class Exiting:
    def __repr__(self):
        raise SystemExit(2)


def text(value, **options):
    (part,) = to_parts(value, **options)
    assert isinstance(part, Text)
    assert isinstance(part.text, str)
    return part.text


def test_values_that_are_not_strings_become_json_with_scripts_as_they_are(cases):
    expect = cases["D15"]["expect"]["contents"]
    results = cases["D15"]["given"]["results"]
    assert text(results[0]) == expect[0]
    assert text(results[1]) == expect[1]
    assert text(results[2]) == "(no output)"
    assert text(results[3]) == expect[3]
    assert text(results[4]) == "(empty text)"


#: The names that the case's texts use.
SCOPE = {name: importlib.import_module(name) for name in ("datetime", "decimal", "numpy", "pandas", "pathlib", "uuid")}
HARD = {
    "pandas.DataFrame({'a':[1,2]})": (None, ["a", "1", "2"]),
    "numpy.arange(3)": (None, ["0", "1", "2"]),
    "numpy.float64(1.5)": (None, ["1.5"]),
    "datetime.datetime(2031,2,3,4,5)": (None, ["2031-02-03T04:05"]),
    "decimal.Decimal('1.10')": (None, ["1.10"]),
    "b'\\xff\\x00'": (None, ["2 bytes"]),
    "{3,1,2}": (None, ["[1, 2, 3]"]),
    "pathlib.PurePosixPath('a/b')": (None, ["a/b"]),
    "uuid.UUID(int=5)": (None, ["00000000-0000-0000-0000-000000000005"]),
    "an Enum member HEAT.LOW": (HEAT.LOW, ["LOW", "1"]),
    "a dataclass P(x=1)": (P(1), ['"x": 1']),
    "a pydantic model": (Model(v=7), ['"v": 7', "2031-02-03"]),
    "{1: 'a', (2,3): 'b'}": (None, ['"1": "a"', '"(2, 3)": "b"']),
    "object()": (None, ["object"]),
}


def test_what_json_cannot_express_becomes_text(cases):
    assert list(HARD) == cases["H06"]["given"]["results"]
    for source, (value, parts) in HARD.items():
        made = eval(source, SCOPE) if value is None else value
        found = text(made)
        assert found
        assert all(part in found for part in parts), (source, found)
        assert "sk-hidden" not in found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("as is\n", "as is\n"),
        (False, "false"),
        (12, "12"),
        (float("nan"), "NaN"),
        ({"a": [float("nan"), float("-inf")]}, '{"a": ["NaN", "-Infinity"]}'),
        ([None, True, {"é": 1}], '[null, true, {"é": 1}]'),
        ((), "[]"),
        ({1: "a", "1": "b"}, '[[1, "a"], ["1", "b"]]'),
        ({None: 1, HEAT.LOW: 2, Kind.A: 3}, '{"null": 1, "LOW (1)": 2, "a": 3}'),
        (Kind.A, "a"),
        ([dt.date(2031, 2, 3), decimal.Decimal("1.10"), pathlib.PurePosixPath("a")], '["2031-02-03", "1.10", "a"]'),
        (dt.timedelta(hours=25), "1 day, 1:00:00"),
        (Pair(1, "x"), '{"a": 1, "b": "x"}'),
        (range(3), "[0, 1, 2]"),
        ({"a": 1}.items(), '[["a", 1]]'),
        (collections.deque([1]), "[1]"),
        (frozenset("b"), '["b"]'),
        ({1, "a"}, '["a", 1]'),
        (b"hello", "(5 bytes of text) hello"),
        ({"raw": bytearray(b"\xff")}, '{"raw": "(1 bytes of binary content, not shown)"}'),
        (np.int64(3), "3"),
        (np.bool_(1), "true"),
        (np.longdouble(2), "2.0"),
        ({"n": np.float32(0.5), "a": np.array([1, 2])}, '{"n": 0.5, "a": "array of int64, shape (2,):\\n[1, 2]"}'),
        (np.datetime64("2031-02-03T04:05"), "2031-02-03T04:05"),
        (pd.Timestamp("2031-02-03"), "2031-02-03T00:00:00"),
        ([pd.NaT, pd.NA], '["NaT", "<NA>"]'),
        (pd.Index(["a", "b"]), '["a", "b"]'),
        (ValueError("odd"), "ValueError: odd"),
        (Mute(), "(a value of type Mute that cannot be shown: RuntimeError)"),
        ([1, Mute()], '[1, "(a value of type Mute that cannot be shown: RuntimeError)"]'),
        (Exiting(), "(a value of type Exiting that cannot be shown: SystemExit)"),
        ("\ud800", "\ud800"),
    ],
)
def test_each_type_has_a_text(value, expected):
    assert text(value) == expected


def test_a_number_that_python_will_not_write_out_says_so():
    assert text(10**5000) == "(a value of type int that cannot be shown: ValueError)"


def test_an_address_in_memory_is_not_shown():
    assert text(object()) == "<object object>"
    assert "0x" not in text(text)


def test_frames_are_csv_with_an_index_only_where_it_says_something():
    frame = pd.DataFrame({"a": [1, 2], "b": [float("nan"), "x"]})
    assert text(frame) == "DataFrame, 2 rows by 2 columns, as CSV:\na,b\n1,NaN\n2,x\n"
    assert "k,b\n1,NaN\n" in text(frame.rename(columns={"a": "k"}).set_index("k"))
    assert text(frame["a"]) == "Series of int64, 2 values, as CSV:\na\n1\n2\n"


def test_long_frames_keep_both_ends_and_say_what_is_missing():
    found = text(pd.DataFrame({"n": range(1000, 2000)}))
    assert "0,1000\n" in found
    assert found.endswith("999,1999\n")
    assert "[… rows 100 to 899 of 1,000 are left out here; ask for fewer rows or columns …]" in found


def test_large_arrays_are_summed_up():
    found = text(np.zeros((100, 1000)))
    assert found.startswith("array of float64, shape (100, 1000):\n[[0. 0. 0. ...")
    assert len(found) < 500


def test_rows_of_a_database_have_their_columns():
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    rows = connection.execute("select 1 as n, 'é' as t").fetchall()
    connection.close()
    assert text(rows) == '[{"n": 1, "t": "é"}]'


def test_containers_that_hold_themselves_come_to_an_end():
    loop = [1]
    loop.append(loop)
    assert text(loop) == '[1, "…"]'
    deep = []
    for _ in range(10_000):
        deep = [deep]
    assert text(deep).count("[") == 40


def test_an_over_long_text_keeps_both_ends_and_says_how_long_it_was(cases):
    assert "100000 numbered lines" in cases["H19"]["given"]["tool_result"]
    whole = "\n".join(f"row {n}" for n in range(1, 100_001))
    found = text(whole, limit=8_000)
    assert len(found) <= 8_000
    assert found.startswith("row 1\nrow 2\n")
    assert found.endswith("row 99999\nrow 100000")
    start, _, rest = found.partition("\n[… ")
    note, _, end = rest.partition("\n")
    left = len(whole) - len(start) - 1 - len(end)
    assert note == f"{left:,} of {len(whole):,} characters are left out here, of 100,000 lines in all; ask for a smaller part …]"
    assert whole.startswith(start + "\n")
    assert whole.endswith("\n" + end)


@pytest.mark.parametrize("limit", [0, 1, 50, 199, 200, 1_000])
def test_a_text_without_lines_is_cut_too(limit):
    found = cut("x" * 5_000, limit)
    assert "of 5,000 characters" in found
    assert len(found) <= limit + 200
    assert cut("x" * limit, limit) == "x" * limit


def test_parts_pass_through_and_their_text_is_cut():
    parts = (Text("x" * 1_000, extra={"a": 1}), Image("aaaa"))
    assert to_parts(parts) == parts
    short, image = to_parts(parts, limit=300)
    assert len(short.text) <= 300
    assert short.extra == {"a": 1}
    assert image == parts[1]
    assert to_parts(Text("one")) == (Text("one"),)


def size_of(image):
    return PIL.Image.open(io.BytesIO(base64.b64decode(image.data))).size


def test_pictures_come_with_a_line_that_says_what_they_are():
    hint, image = to_parts(PIL.Image.new("RGB", (3, 4)))
    assert hint == Text("(Image: a picture, 3 by 4 pixels)")
    assert (image.media_type, size_of(image)) == ("image/png", (3, 4))
    figure = matplotlib.figure.Figure(figsize=(2, 1), dpi=50)
    for value in (figure, figure.subplots()):
        hint, image = to_parts(value)
        assert hint.text == f"({type(value).__name__}: a picture, 100 by 50 pixels)"
        assert size_of(image) == (100, 50)


def test_pictures_among_other_things_are_shown_too():
    parts = to_parts([PIL.Image.new("RGB", (3, 4)), "caption", 5])
    assert [type(part) for part in parts] == [Text, Image, Text, Text]
    assert [part.text for part in parts[2:]] == ["caption", "5"]


def test_anything_that_draws_itself_is_a_picture_and_falls_back_to_text():
    class Drawing:
        def __init__(self, drawn):
            self.drawn = drawn

        def _repr_jpeg_(self):
            if self.drawn == "fail":
                raise OSError("no pen")
            return self.drawn

        def __repr__(self):
            return "a drawing"

    for drawn in (b"\xff\xd8", "/9g=", (b"\xff\xd8", {"width": 3})):
        assert to_parts(Drawing(drawn))[1] == Image("/9g=", "image/jpeg")
    for drawn in (None, "fail"):
        assert to_parts(Drawing(drawn)) == (Text("a drawing"),)


def test_no_heavy_package_is_imported():
    source = """
import sys
import nb_agent.tools.calling
from nb_agent.tools.results import to_parts
to_parts([1, {2}, object(), b"x"])
heavy = {"pandas", "numpy", "matplotlib", "PIL", "mcp", "httpx", "anywidget", "tiktoken", "IPython"}
print(sorted(heavy & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(found.stdout.replace("'", '"')) == []
