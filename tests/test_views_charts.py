"""The table and the picture of a run's tokens, made from the state of a real fold."""

import io
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib import font_manager, image, rcParams
from matplotlib.colors import to_rgb

from nb_agent import events
from nb_agent.messages import PARTS, Message, Reply, Request, Segment
from nb_agent.tokens import breakdown
from nb_agent.usage import Usage
from nb_agent.views import charts, drawing, fonts
from nb_agent.views.fold import Fold

PROMPT = "读取 config.yaml 并列出文件 🌲😀 for $5 and $6"
TOOLS = [Segment("tools", '{"name":"read_file"}', tool="read_file"), Segment("tools", '{"name":"写文件"}', tool="写文件")]
ASKED = [Segment("system", "Be brief.", 0), Segment("user", "Read it. " * 20, 1)]
CALLED = [Segment("tool_calls", '{"path":"a"}', 2), Segment("tool_results", "found " * 40, 3)]


def folded(*requests, model="mock-8k", window=8192, prompt=PROMPT, usages=()):
    """The state after these requests (each its segments, or None for one that is not counted) and their replies."""
    left = list(requests)

    def count(_request, name):
        segments = left.pop(0)
        return None if segments is None else breakdown(segments, model=name).shown()

    fold = Fold(count)
    fold.apply(events.RunStarted(prompt, model, "chat_completions", mock=model.startswith("mock"), window=window))
    for number in range(1, len(requests) + 1):
        fold.apply(events.RequestReady(number, Request("chat_completions", "/v1/chat/completions", {"n": number})))
        if number <= len(usages):
            reply = Reply(Message.of("assistant", "ok"), "stop", usage=usages[number - 1])
            fold.apply(events.ReplyDone(number, reply))
    return fold.state


def two_rounds(**settings):
    usages = (Usage(input=100, cache_read=20, output=5, reasoning=7), None)
    return folded([*ASKED, *TOOLS], [*ASKED, *CALLED, *TOOLS], usages=usages, **settings)


def pixels(figure):
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # missing fonts and glyphs are warnings
        figure.savefig(content, format="png", dpi=60)
    content.seek(0)
    return image.imread(content)[:, :, :3]


def has(picture, colour):
    return bool((np.abs(picture - np.array(to_rgb(colour))).max(axis=2) < 0.02).sum() > 10)


# ------------------------------------------------------------------------------------------------- the table


def test_the_table_has_a_row_for_each_part_and_for_each_tool():
    state = two_rounds()
    table = charts.frame(state)
    assert list(table.columns) == list(charts._DTYPES)
    first = table[table["round"] == 1]
    assert list(first["part"]) == ["system", "user", "tools", "tools", "overhead"]
    assert list(first["tool"]) == [None, None, "read_file", "写文件", None]
    assert list(table[table["round"] == 2]["part"].drop_duplicates()) == [
        part for part in PARTS if part in state["rounds"][1]["request"]["tokens"]["parts"]
    ]
    assert (table["encoding"] == "o200k_base").all()
    assert table["exact"].all()


def test_a_rounds_rows_add_up_to_its_total_and_their_shares_to_one():
    state = two_rounds()
    by_round = charts.frame(state).groupby("round")
    assert list(by_round["counted"].sum()) == [entry["request"]["tokens"]["total"] for entry in state["rounds"]]
    assert list(by_round["share"].sum()) == pytest.approx([1, 1])


def test_definitions_of_no_tool_have_a_row_of_their_own():
    state = folded([*TOOLS, Segment("tools", '{"rest":1}')])
    rows = charts.frame(state).query("part == 'tools'")
    assert list(rows["tool"]) == ["read_file", "写文件", None]
    assert rows["counted"].sum() == state["rounds"][0]["request"]["tokens"]["parts"]["tools"]


def test_what_was_reported_stands_beside_and_is_missing_where_it_is_not_known():
    table = charts.frame(two_rounds())
    reported = table.groupby("round")[["reported_input", "reported_output"]].first()
    assert list(reported.loc[1]) == [120, 12]
    assert reported.loc[2].isna().all()
    assert table["reported_input"].dtype == table["counted"].dtype == pd.Int64Dtype()


def test_a_request_that_was_not_counted_has_one_row_with_what_was_reported():
    table = charts.frame(folded(None, usages=(Usage(input=9),)))
    assert len(table) == 1
    row = table.iloc[0]
    assert (row["round"], row["part"], row["tool"], row["encoding"], row["reported_input"]) == (1, None, None, None, 9)
    assert pd.isna(row["counted"])
    assert not row["exact"]


def test_an_estimate_is_marked_in_every_row():
    assert not charts.frame(two_rounds(model="claude-opus")).exact.any()


def test_a_run_without_requests_gives_an_empty_table_with_the_same_types():
    empty, full = charts.frame(folded()), charts.frame(two_rounds())
    assert len(empty) == 0
    assert empty.dtypes.equals(full.dtypes)


# ------------------------------------------------------------------------------------------------- the picture


@pytest.mark.parametrize("dark", [True, False])
def test_each_part_has_its_colour_in_both_themes(dark):
    picture = pixels(charts.plot(two_rounds(), dark=dark))
    for part in ("system", "user", "tools", "tool_calls", "tool_results", "overhead"):
        assert has(picture, charts._LOOK[part][1]), part
    background = (drawing._DARK if dark else drawing._LIGHT)[0]
    assert np.allclose(picture[0, 0], to_rgb(background), atol=0.01)


def bars(figure):
    return [patch for patch in figure.axes[0].patches if patch.get_width()]


def test_the_bars_are_as_long_as_the_counts():
    state = two_rounds(window=None)
    drawn = bars(charts.plot(state))
    for place, entry in enumerate(state["rounds"]):
        row = [patch for patch in drawn if round(patch.get_y() + patch.get_height() / 2) == place]
        counted = entry["request"]["tokens"]
        assert sorted(patch.get_width() for patch in row) == sorted(counted["parts"].values())
        assert max(patch.get_x() + patch.get_width() for patch in row) == counted["total"]


def test_the_window_is_drawn_behind_where_the_bars_do_not_vanish_in_it():
    total = two_rounds()["rounds"][1]["request"]["tokens"]["total"]
    near = charts.plot(two_rounds(window=2 * total))
    assert [patch.get_width() for patch in bars(near)].count(2 * total) == 2
    assert near.axes[0].get_xlim()[1] == 2 * total
    far = charts.plot(two_rounds(window=100 * total))
    assert far.axes[0].get_xlim()[1] < 2 * total
    assert "fullest request 1.0% of it" in far.axes[0].get_title(loc="left")


def test_a_request_over_the_window_is_drawn_whole():
    state = two_rounds(window=50)
    total = state["rounds"][1]["request"]["tokens"]["total"]
    assert charts.plot(state).axes[0].get_xlim()[1] > total > 50


def test_counted_and_reported_are_told_beside_each_bar():
    state = two_rounds()
    first, second = (entry["request"]["tokens"]["total"] for entry in state["rounds"])
    told = [text.get_text() for text in charts.plot(state).axes[0].texts]
    assert told == [f"{first} counted, 120 reported", f"{second} counted"]
    lines = charts.plot(state).axes[0].collections
    assert [segment[0, 0] for line in lines for segment in line.get_segments()] == [120]
    other = two_rounds(model="claude-opus")
    first, second = (entry["request"]["tokens"]["total"] for entry in other["rounds"])
    estimated = [text.get_text() for text in charts.plot(other).axes[0].texts]
    assert estimated == [f"{first} estimated, 120 reported", f"{second} estimated"]


def test_the_legend_names_the_parts_that_are_there_and_the_mock_says_so():
    figure = charts.plot(two_rounds())
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    parts = {"system", "user", "tool definitions", "tool calls", "tool results", "overhead"}
    assert named == parts | {"reported by the provider"}
    assert "mock-8k, the mock model" in figure.axes[0].get_title(loc="left")


def test_a_prompt_with_dollars_is_no_formula():
    figure = charts.plot(two_rounds(prompt=r"pay $\frac{ and $x$"))
    pixels(figure)
    assert figure.axes[0].get_title(loc="left").startswith(r"pay $\frac{ and $x$")


@pytest.mark.parametrize("requests", [[], [None], [[]], [[Segment("images", "", 0)]], [ASKED] * 70])
def test_any_run_can_be_drawn(requests):
    figure = charts.plot(folded(*requests))
    assert figure.get_size_inches()[1] < 14
    assert pixels(figure).std() > 0


def test_dark_follows_matplotlibs_own_setting(monkeypatch):
    for face, colours in (("black", drawing._DARK), ("white", drawing._LIGHT)):
        monkeypatch.setitem(rcParams, "figure.facecolor", face)
        assert charts.plot(two_rounds()).get_facecolor()[:3] == to_rgb(colours[0])


def test_a_notebook_shows_it_once_with_its_description():
    from IPython.core.formatters import DisplayFormatter

    state = two_rounds()
    content, about = DisplayFormatter().format(charts.plot(state))
    assert set(content) == {"image/png", "text/plain"}
    assert content["image/png"][:4] == b"\x89PNG"
    assert content["text/plain"] == about["image/png"]["alt"] == charts.describe(state)
    assert about["image/png"]["width"] == 648


def test_drawing_leaves_pyplot_alone():
    script = """
import sys
from nb_agent.views import charts
assert not {"matplotlib", "pandas"} & set(sys.modules), "a run must not pay for charts"
state = {"prompt": "", "model": "m", "mock": False, "window": None, "rounds": []}
charts.plot(state), charts.frame(state)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_description_says_what_the_bars_say():
    state = two_rounds()
    parts = state["rounds"][0]["request"]["tokens"]["parts"]
    told = f"system {parts['system']}, user {parts['user']}, tool definitions {parts['tools']}, overhead {parts['overhead']}"
    assert f"Request 1: {sum(parts.values())} counted, 120 reported ({told})." in charts.describe(state)
    assert charts.describe(state).startswith("Input tokens by part. Requests: 2, to mock-8k, window 8,192 tokens.")
    assert "Request 1: not counted." in charts.describe(folded(None))


def test_the_description_of_a_long_run_stays_short():
    words = charts.describe(folded(*[ASKED] * 70))
    assert words.count("Request ") == charts._MOST_TOLD
    assert "Request 70: " in words


# ------------------------------------------------------------------------------------------------- fonts


def test_chinese_and_emoji_are_drawn_or_told():
    families = fonts.families_present()
    if "Noto Sans CJK JP" not in families:
        pytest.skip("no Noto Sans CJK on this machine; fonts-noto-cjk has it")
    assert fonts.drawable("读取 café 😀\n✓", families) == "读取 café 😀\n✓"
    assert has(pixels(charts.plot(two_rounds(), dark=False)), drawing._LIGHT[1])


def test_without_other_fonts_what_cannot_be_drawn_is_told_and_nothing_warns(monkeypatch):
    only = [entry for entry in font_manager.fontManager.ttflist if entry.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", only)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    assert fonts.families_present() == ["DejaVu Sans"]
    assert fonts.drawable("读 é🌲👩💻\U000e0001\x07", ["DejaVu Sans"]) == "□ é:evergreen tree::woman::personal computer:"
    pixels(charts.plot(two_rounds()))


def test_a_font_that_was_installed_after_matplotlib_looked_is_found(monkeypatch):
    listed = font_manager.fontManager.ttflist
    if not any(entry.name == "Noto Sans CJK JP" for entry in listed):
        pytest.skip("no Noto Sans CJK on this machine; fonts-noto-cjk has it")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [entry for entry in listed if "CJK" not in entry.name])
    assert "Noto Sans CJK JP" in fonts.families_present()


def test_a_font_that_has_gone_is_not_asked_for(monkeypatch):
    gone = font_manager.FontEntry(fname="/nowhere/SourceHanSans.otf", name="Source Han Sans SC")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist, gone])
    assert "Source Han Sans SC" not in fonts.families_present()
