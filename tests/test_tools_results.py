"""What tools give back, as text and pictures for a model."""

import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import importlib
import io
import itertools
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import types
from typing import NamedTuple
from unittest import mock

import IPython.display
import matplotlib.figure
import numpy as np
import pandas as pd
import PIL.Image
import pydantic
import pytest

from nb_agent import adapters, tokens
from nb_agent.errors import SettingError
from nb_agent.messages import Image, Message, Text, ToolCall, ToolResult
from nb_agent.tools.pictures import image
from nb_agent.tools.results import MOST_TOKENS, Made, cut, to_parts
from nb_agent.values import encode


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
    (part,) = to_parts(value, **options).parts
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
    assert text(10**5000) == "(a whole number of about 5,000 digits)"
    assert text({10**5000: [1, 10**5000]}).count("5,000 digits") == 2


def test_an_address_in_memory_is_not_shown():
    assert text(object()) == "<object object>"
    assert "0x" not in text(text)


def test_frames_are_csv_with_an_index_only_where_it_says_something():
    frame = pd.DataFrame({"a": [1, 2], "b": [float("nan"), "x"]})
    assert text(frame) == "DataFrame, 2 rows by 2 columns, as CSV:\na,b\n1,NaN\n2,x\n"
    assert "k,b\n1,NaN\n" in text(frame.rename(columns={"a": "k"}).set_index("k"))
    assert text(frame["a"]) == "Series of int64, 2 values, as CSV:\na\n1\n2\n"


def test_a_frame_of_hundreds_of_rows_that_fits_is_whole():
    assert text(pd.DataFrame({"n": range(800)})).count("\n") == 802


def test_long_frames_keep_both_ends_and_say_what_is_missing():
    made = to_parts(pd.DataFrame({"n": range(10_000, 110_000)}))
    start, note, end = re.split(r"\[(… rows .*…)\]\n", made.text)
    assert start.startswith("DataFrame, 100,000 rows by 1 columns, as CSV:\n,n\n0,10000\n")
    assert end.endswith("\n99999,109999\n")
    first, last = start.count("\n") - 1, 100_000 - end.count("\n")
    assert f"rows {first:,} to {last:,} of 100,000 are left out here" in note
    assert f"such as rows {first:,} to {2 * (first - 1):,}, or with a filter" in note
    assert made.whole.count("\n") == 100_002
    assert tokens.count(made.text) <= MOST_TOKENS


def test_a_wide_frame_and_one_with_long_texts_show_more_than_one_row():
    wide = text(pd.DataFrame(np.zeros((50, 5_000))))
    assert re.search(r"columns \d+ to 4,9\d\d of 5,000 are left out here", wide)
    assert len(wide.splitlines()) >= 10
    long = text(pd.DataFrame({"page": ["text " * 3_000] * 200, "n": range(200)}))
    assert len(re.findall(r"characters are left out here …\][text ]+,\d+\n", long)) >= 5
    broken = text(pd.DataFrame({"page": ['a\n"b"\nc' * 20] * 2_000}))
    assert broken.count('"') % 2 == 0  # no row is cut at a line break inside it


def test_an_array_that_is_too_long_is_cut_inside_its_axes_and_a_very_large_one_summed_up():
    cut_off = text(np.zeros((100, 1000)))
    assert cut_off.startswith("array of float64, shape (100, 1000):\n[[0.0, 0.0")
    assert "of 1,000 are left out here" in cut_off
    assert isinstance(json.loads(cut_off.split("\n", 1)[1]), list)
    large = text(np.zeros((1000, 1000)))
    assert large.startswith("array of float64, shape (1000, 1000):\n[[0. 0. 0. ...")
    assert len(text(np.broadcast_to(0, (10,) * 12))) < 1_000
    assert text(np.array([0.1], "f4")) == "array of float32, shape (1,):\n[0.1]"


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


@pytest.mark.parametrize("limit", [300, 1_000, 4_000])
def test_an_over_long_text_keeps_both_ends_and_says_how_long_it_was(cases, limit):
    given, expect = cases["H19"]["given"], cases["H19"]["expect"]["sent_result"]
    assert "100000 numbered lines" in given["tool_result"]
    whole = "\n".join(f"row {n}" for n in range(1, 100_001))
    made = to_parts(whole, most_tokens=limit)
    assert limit * 0.5 < tokens.count(made.text) <= limit <= expect["tokens_at_most"]
    assert made.whole == whole
    start, note, end = re.split(r"\[(….*…)\]\n", made.text)
    assert whole.startswith(start)
    assert whole.endswith(end)
    first, last = start.count("\n") + 1, 100_000 - end.count("\n") - 1
    assert f"lines {first:,} to {last:,} of 100,000 are left out here; the whole has {len(whole):,} characters, about " in note
    assert f"such as lines {first:,} to {2 * first:,} …" in note
    assert made.notes == (
        f"the model got {len(made.text):,} of {len(whole):,} characters, since a result may have {limit:,} tokens",
    )


@pytest.mark.parametrize(
    "value",
    [
        "x" * 100_000,
        "京都" * 50_000,
        "\ud800" * 60_000,
        "a b\n" * 50_000,
        "\n" * 100_000,
        "😀" * 20_000,
        ["x" * 50] * 9_000,
        {f"key {n}": n for n in range(20_000)},
        {"rows": [{"id": n, "name": "é" * 9} for n in range(5_000)], "total": 5_000},
        [["x" * 100_000]],
        [[[1] * 900] * 9] * 90,
        pd.DataFrame({"京": ["都" * 90] * 3_000}),
        [Text("x " * 900) for _ in range(90)],
        json.dumps([{"id": n} for n in range(9_000)]),
        "<p>" + "<b>x</b>" * 30_000,
    ],
    ids=lambda value: repr(value)[:12],
)
@pytest.mark.parametrize("limit", [400, 5_000])
def test_whatever_is_too_long_keeps_to_the_limit_and_is_not_cut_shorter_than_need_be(value, limit):
    made = to_parts(value, most_tokens=limit)
    assert limit * 0.4 < tokens.count(made.text) <= limit
    assert made.whole
    assert "left out here" in made.text


@pytest.mark.parametrize("as_text", [False, True], ids=["values", "text"])
def test_what_is_cut_of_json_is_json_with_all_that_is_short(as_text):
    rows = [{"id": n, "name": f"n{n}"} for n in range(5_000)]
    value = {"page": 3, "rows": rows, "body": "word " * 9_000, "total": 5_000}
    found = json.loads(text(json.dumps(value) if as_text else value, most_tokens=1_000))
    assert (found["page"], found["total"]) == (3, 5_000)
    assert found["rows"][0] == rows[0]
    assert found["rows"][-1] == rows[-1]
    assert any(re.fullmatch(r"… items \d+ to 4,\d+ of 5,000 are left out here …", row) for row in found["rows"] if row not in rows)
    assert "of 45,000 characters are left out here …]" in found["body"]
    assert "to go on, ask for less at a time" in found["…"]


def test_a_key_that_looks_like_the_note_is_kept():
    found = json.loads(text({"…": 1} | {f"key {n}": n for n in range(5_000)}, most_tokens=500))
    assert found["…"] == 1
    assert "of 5,001 are left out here" in found["……"]


def test_a_text_of_few_tokens_for_its_length_is_cut_by_its_length():
    made = to_parts(" " * 300_000)
    assert tokens.count(made.text) < MOST_TOKENS
    assert len(made.text) > 10 * MOST_TOKENS


@pytest.mark.parametrize("limit", [0, 1, 50])
def test_where_nothing_fits_there_is_still_a_note(limit):
    for value in ("x" * 5_000, list(range(5_000)), pd.DataFrame({"n": range(5_000)})):
        made = to_parts(value, most_tokens=limit)
        assert "left out here" in made.text
        assert tokens.count(made.text) <= limit + 150


def test_a_short_result_is_not_counted_and_a_long_one_not_as_a_whole(monkeypatch):
    counted = []

    def count(text, *, model):
        counted.append((len(text), model))
        return len(text) // 4

    monkeypatch.setattr(tokens, "count", count)
    assert to_parts("x" * 5_000).whole is None
    assert to_parts({"a": "é" * 1_000}).whole is None
    assert counted == []
    assert to_parts("line\n" * 20_000_000, model="gpt-4").whole is not None
    assert max(length for length, _ in counted) <= 16 * MOST_TOKENS
    assert {model for _, model in counted} == {"gpt-4"}


def test_secrets_are_covered_before_a_text_is_cut():
    secret = "sk-12345678"
    made = to_parts(secret * 3_000, most_tokens=300, cover=lambda text: text.replace(secret, "[masked]"))
    assert "sk-" not in made.text + made.whole
    assert text({"key": secret, "n": 1}, cover=lambda text: text.replace(secret, "[masked]")) == '{"key": "[masked]", "n": 1}'


@pytest.mark.parametrize("limit", [0, 1, 50, 199, 200, 1_000])
def test_a_text_without_lines_is_cut_too(limit):
    found = cut("x" * 5_000, limit)
    assert "of 5,000 characters" in found
    assert len(found) <= limit + 200
    assert cut("x" * limit, limit) == "x" * limit


def test_parts_pass_through_and_their_text_is_cut():
    parts = (Text("x" * 1_000, extra={"a": 1}), picture())
    assert to_parts(parts) == Made(parts)
    short, image = to_parts(parts, most_tokens=100).parts
    assert tokens.count(short.text) <= 100
    assert short.extra == {"a": 1}
    assert image == parts[1]
    assert to_parts(Text("one")).parts == (Text("one"),)


def test_a_short_text_beside_a_long_one_stays_whole():
    short, long = to_parts([Text("in short: yes"), Text("word " * 9_000)], most_tokens=500).parts
    assert short.text == "in short: yes"
    assert 300 < tokens.count(long.text) < 500


def picture(size=(3, 4), form="PNG", media_type="image/png", mode="RGB"):
    with io.BytesIO() as file:
        PIL.Image.new(mode, size).save(file, form)
        return Image(base64.b64encode(file.getvalue()).decode(), media_type)


def size_of(image):
    return PIL.Image.open(io.BytesIO(base64.b64decode(image.data))).size


def test_pictures_come_with_a_line_that_says_what_they_are():
    hint, image = to_parts(PIL.Image.new("RGB", (3, 4))).parts
    assert hint == Text("(Image: a picture, 3 by 4 pixels)")
    assert (image.media_type, size_of(image)) == ("image/png", (3, 4))
    figure = matplotlib.figure.Figure(figsize=(2, 1), dpi=50)
    for value in (figure, figure.subplots(), figure.subplots(2, 2)):
        hint, image = to_parts(value).parts
        assert hint.text == f"({type(value).__name__}: a picture, 100 by 50 pixels)"
        assert size_of(image) == (100, 50)


def test_pictures_among_other_things_are_shown_too():
    parts = to_parts([PIL.Image.new("RGB", (3, 4)), "caption", 5]).parts
    assert [type(part) for part in parts] == [Text, Image, Text, Text]
    assert [part.text for part in parts[2:]] == ["caption", "5"]
    parts = to_parts({"chart": PIL.Image.new("RGB", (3, 4)), "mean": 2}).parts
    assert [part.text for part in parts[:2]] == ['{"chart": "(a picture, see below)", "mean": 2}', "chart:"]
    assert size_of(parts[3]) == (3, 4)


def test_a_figure_and_its_axes_are_one_picture():
    figure = matplotlib.figure.Figure(figsize=(1, 1))
    axes = figure.subplots(1, 2)
    (line,) = axes[0].plot([1, 2])
    for value in ((figure, axes[0]), (figure, axes), [axes[0], axes[1]], {"figure": figure, "axes": axes[0]}, [line]):
        assert sum(isinstance(part, Image) for part in to_parts(value).parts) == 1


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK", "F", "I;16", "YCbCr"])
def test_pictures_of_every_mode_are_drawn(mode):
    assert size_of(to_parts(PIL.Image.new(mode, (3, 4))).parts[1]) == (3, 4)


def test_the_bytes_of_an_image_file_are_a_picture_and_other_bytes_are_not():
    content = base64.b64decode(picture().data)
    for value in (content, bytearray(content), io.BytesIO(content)):
        assert to_parts(value).parts[1] == picture()
    assert text(io.BytesIO(b"hi")) == "(2 bytes of text) hi"


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

    class Bundle(Drawing):
        _repr_jpeg_ = None

        def _repr_mimebundle_(self, include=None, exclude=None):
            return {"text/plain": "p", "image/jpeg": self.drawn}, {}

    jpeg = picture(form="JPEG", media_type="image/jpeg")
    content = base64.b64decode(jpeg.data)
    for drawn in (content, jpeg.data, (content, {"width": 3})):
        assert to_parts(Drawing(drawn)).parts == (Text("(Drawing: a picture, 3 by 4 pixels)"), jpeg)
    assert to_parts(Bundle(content)).parts[1] == jpeg
    for drawn in (None, "fail"):
        assert to_parts(Drawing(drawn)).parts == (Text("a drawing"),)


def test_what_only_a_notebook_could_show_becomes_words():
    class Table:
        def _repr_html_(self):
            return "<style>td {}</style><table><tr><td>1</td><td>a &amp; b</td></tr><tr><td>2</td></tr></table>"

    class Note:
        def _repr_markdown_(self):
            return "**yes**"

    class Sketch:
        def _repr_svg_(self):
            return "<svg/>"

    assert [text(value) for value in (Table(), Note(), Sketch())] == ["1\ta & b\n2", "**yes**", "<svg/>"]
    assert text([IPython.display.Latex("$x$"), IPython.display.HTML("<i>y</i>")]) == '["$x$", "y"]'


def test_tables_of_other_packages_are_read_by_their_own_methods():
    class Rows:
        def to_dicts(self):
            return [{"a": 1}, {"a": 2}]

    class Stubborn:
        def to_dict(self, orient):
            return {}

        def __repr__(self):
            return "stubborn"

    assert text(Rows()) == '[{"a": 1}, {"a": 2}]'
    assert text(Stubborn()) == "stubborn"


def test_groups_are_told_with_their_sizes():
    frame = pd.DataFrame({"g": ["a", "b", "a"], "n": [1, 2, 3]})
    assert text(frame.groupby("g")) == "DataFrameGroupBy of 2 groups, the rows of each, as CSV:\ng,rows\na,2\nb,1\n"
    assert text(frame.set_index(["g", "n"]).index) == '[["a", 1], ["b", 2], ["a", 3]]'


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame(),
        pd.Series(dtype=float),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"g": ["a", "b"], "n": [1, 2]}).groupby("g").agg({"n": ["sum", "mean"]}),
        pd.Categorical(["a"]),
        pd.period_range("2031", periods=2, freq="M"),
        np.ma.masked,
        np.ma.array([1.5, 2], mask=[False, True], dtype="f4"),
        np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
        np.datetime64("NaT"),
        np.longdouble("1e400"),
        np.zeros((2,) * 9),
        1 + 2j,
        range(10**30),
        itertools.count(),
        (n for n in itertools.count()),
        {"n": map(str, itertools.count())},
        collections.UserString("u"),
        types.SimpleNamespace(a=1),
        memoryview(b"hi"),
        ExceptionGroup("g", [OSError("disk")]),
        pd.DataFrame,
        Model,
        mock.MagicMock(),
        mock.Mock(spec=pd.DataFrame),
        PIL.Image.new("RGB", (0, 0)),
        {("a", 1): {float("nan"): {"\ud800"}}},
        ...,
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_other_value_is_told_too_and_goes_over_the_wire(value):
    (part,) = to_parts(value).parts
    assert part.text
    assert "cannot be shown" not in part.text or isinstance(value, mock.Mock)
    assert json.loads(encode({"content": part.text}))


def test_an_array_that_holds_itself_and_one_with_others_inside_come_to_an_end():
    inside = np.empty(1, object)
    inside[0] = inside
    assert text(inside) == 'array of object, shape (1,):\n[["…"]]'
    for _ in range(30):
        outside = np.empty(1, object)
        outside[0] = [inside]
        inside = outside
    assert len(text(inside)) < 1_000


def test_a_model_whose_author_says_how_it_is_dumped_is_dumped_so():
    class Root(pydantic.RootModel[list[int]]):
        pass

    class Sum(pydantic.BaseModel):
        a: int

        @pydantic.computed_field
        @property
        def twice(self) -> int:
            return 2 * self.a

    class Outer(pydantic.BaseModel):
        inner: Model

    assert text(Root([1, 2])) == "[1, 2]"
    assert text(Sum(a=2)) == '{"a": 2, "twice": 4}'
    assert "sk-hidden" not in text(Outer(inner=Model(v=1)))


# ------------------------------------------------------------------------------------------------- pictures that fit


def test_a_picture_that_is_too_large_is_scaled_down_and_said():
    made = to_parts(picture((9_000, 90)))
    assert size_of(made.parts[0]) == (2_048, 20)
    assert made.notes[0].startswith("a picture of 9,000 by 90 pixels and ")
    assert "became one of 2,048 by 20 pixels" in made.notes[0]
    assert size_of(to_parts(PIL.Image.new("RGB", (9_000, 90))).parts[1]) == (2_048, 20)


def test_a_picture_of_too_many_bytes_becomes_a_smaller_file(monkeypatch):
    noise = np.random.default_rng(1).integers(0, 255, (1_200, 1_200, 3), dtype=np.uint8)
    made = to_parts(PIL.Image.fromarray(noise))
    assert made.parts[1].media_type == "image/jpeg"
    assert len(made.parts[1].data) <= 5_000_000


@pytest.mark.parametrize("form", ["BMP", "TIFF"])
def test_a_format_that_providers_refuse_becomes_png_and_a_wrong_name_is_put_right(form):
    (image,) = to_parts(picture(form=form, media_type=f"image/{form.lower()}")).parts
    assert (image.media_type, size_of(image)) == ("image/png", (3, 4))
    (image,) = to_parts(picture(form="JPEG")).parts
    assert image == picture(form="JPEG", media_type="image/jpeg")


@pytest.mark.parametrize("data", ["aaaa", "a", "", "iVBORw0K"])
def test_what_is_no_picture_is_left_out_and_said(data):
    made = to_parts([Text("here:"), Image(data)])
    assert made.parts[1].text.startswith("(a picture that is left out: ")
    assert made.notes[0].startswith("a picture was left out: ")


def test_more_pictures_than_a_request_may_have_are_left_out_and_said():
    parts = to_parts([picture()] * 30).parts
    assert sum(isinstance(part, Image) for part in parts) == 20
    assert parts[-1] == Text("(only the first 20 of 30 pictures are here)")


def test_the_address_of_a_picture_passes_through_and_its_data_are_looked_at():
    there = Image(url="https://example.test/a.png")
    assert to_parts(there).parts == (there,)
    assert to_parts(Image(url=f"data:image/jpeg;base64,{picture().data}")).parts == (picture(),)


def test_a_picture_for_a_prompt_is_made_of_whatever_shows_one(tmp_path):
    content = base64.b64decode(picture().data)
    (tmp_path / "a.png").write_bytes(content)
    pil = PIL.Image.new("RGB", (3, 4))
    for source in (tmp_path / "a.png", str(tmp_path / "a.png"), content, io.BytesIO(content), pil, picture()):
        assert size_of(image(source)) == (3, 4)
    assert image("https://example.test/a.png") == Image(url="https://example.test/a.png")
    assert image(f"data:image/png;base64,{picture().data}") == picture()
    assert size_of(image(matplotlib.figure.Figure(figsize=(2, 1), dpi=50))) == (100, 50)


def test_what_cannot_be_a_picture_for_a_prompt_is_said(tmp_path):
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    known = "give a PNG, JPEG, GIF or WebP file"
    for source, said in {
        str(
            tmp_path / "none.png"
        ): f"no picture at '{tmp_path}/none.png': No such file or directory; give the path of an image file",
        str(
            tmp_path / "a.txt"
        ): f"'{tmp_path}/a.txt' is no picture for a model: 5 bytes that are no picture of a known format; {known}",
        b"hello": f"a value of type bytes is no picture for a model: 5 bytes that are no picture of a known format; {known}",
        7: f"a value of type int is no picture for a model: it does not draw itself; {known}",
        "data:,x": f"'data:,x' is no picture for a model: its data: address is not in base64; {known}",
    }.items():
        with pytest.raises(SettingError) as caught:
            image(source)
        assert str(caught.value) == said


@pytest.mark.parametrize("wire", ["chat_completions", "responses", "anthropic_messages", "gemini_generate"])
def test_a_picture_that_a_tool_gives_back_reaches_every_provider(wire):
    call = ToolCall("call_1", "plot")
    parts = to_parts(PIL.Image.new("RGB", (3, 4))).parts
    history = [
        Message.of("user", "plot it"),
        Message("assistant", (call,)),
        Message("tool", (ToolResult("call_1", "plot", parts),)),
    ]
    request = adapters.WIRES[wire].request(history, (), model="m")
    assert request.content.decode().count(picture().data) == 1
    assert "(Image: a picture, 3 by 4 pixels)" in request.content.decode()


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
