"""What a tool prints stays with its own call, and everything of others goes where it went before."""

# ruff: noqa: T201  what is printed is what is tested

import base64
import contextlib
import contextvars
import functools
import io
import logging
import subprocess
import sys
import threading

import PIL.Image
import pytest

from nb_agent import background
from nb_agent.messages import Image
from nb_agent.tools import capture
from nb_agent.tools.capture import captured


def png(size=(3, 4)):
    with io.BytesIO() as file:
        PIL.Image.new("RGB", size).save(file, "PNG")
        return file.getvalue()


def test_what_is_printed_inside_is_kept_and_what_is_printed_around_it_goes_on(capsys):
    before = sys.stdout, sys.stderr
    print("first")
    with captured() as caught:
        print("one", flush=True)
        print("two", file=sys.stderr)
        sys.stdout.writelines(["th", "ree"])
    print("last")
    assert caught.text == "one\ntwo\nthree"
    assert caught.pictures == ()
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("first\nlast\n", "")


def test_two_threads_that_print_in_turns_each_keep_their_own_and_a_third_one_passes_through(capsys):
    turn = threading.Barrier(3, timeout=10)
    found = {}

    def work(name):
        with captured() as caught:
            for n in range(5):
                turn.wait()
                print(name, n)
        found[name] = caught.text

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(work, name)) for name in "ab"]
    for thread in threads:
        thread.start()
    for n in range(5):
        print("main", n)
        turn.wait()
    for thread in threads:
        thread.join(10)
    assert found == {name: "".join(f"{name} {n}\n" for n in range(5)) for name in "ab"}
    assert capsys.readouterr().out == "".join(f"main {n}\n" for n in range(5))


def test_a_coroutine_on_the_background_loop_prints_into_the_capture_of_its_call(capsys):
    async def speak():
        print("from the loop")

    with captured() as caught:
        background.run(speak(), timeout=10)
    assert caught.text == "from the loop\n"
    assert capsys.readouterr().out == ""


def test_a_capture_inside_another_takes_its_own_part():
    with captured() as outer:
        print("a")
        with captured() as inner:
            print("b")
        print("c")
    assert (outer.text, inner.text) == ("a\nc\n", "b\n")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_streams_are_put_back_whatever_happens(error):
    def fail():
        print("so far")
        raise error

    before = sys.stdout, sys.stderr
    with pytest.raises(error), captured() as caught:
        fail()
    assert caught.text == "so far\n"
    assert (sys.stdout, sys.stderr) == before


def test_a_capture_that_cannot_open_its_other_half_leaves_nothing_behind():
    @contextlib.contextmanager
    def broken(show):
        raise OSError("no display")
        yield

    before = sys.stdout
    with pytest.raises(OSError, match="no display"), captured(broken):
        pass
    assert sys.stdout is before
    with captured() as caught:
        print("still works")
    assert caught.text == "still works\n"


def test_one_that_never_ends_keeps_its_own_and_disturbs_nobody(capsys):
    with contextlib.ExitStack() as left_behind:
        context = contextvars.copy_context()
        stuck = context.run(left_behind.enter_context, captured())
        with captured() as caught:
            print("mine")
        print("everybody's")
        context.run(print, "late")
        assert (caught.text, stuck.text) == ("mine\n", "late\n")
        context.run(left_behind.close)
    assert capsys.readouterr().out == "everybody's\n"
    assert not isinstance(sys.stdout, capture._Router)


def test_a_stream_that_a_tool_puts_there_is_routed_for_the_captures_inside_and_stays():
    mine = io.StringIO()
    with captured() as outer:
        print("a")
        with contextlib.redirect_stdout(mine):
            with captured() as inner:
                print("b")
            print("c")
        print("d")
        before, sys.stdout = sys.stdout, mine
    try:
        assert sys.stdout is mine
    finally:
        sys.stdout = before
    with captured() as later:  # and a stand-in that somebody has kept is as good as the stream
        print("e")
    assert not isinstance(sys.stdout, capture._Router)
    assert [caught.text for caught in (outer, inner, later)] == ["a\nd\n", "b\n", "e\n"]
    assert mine.getvalue() == "c\n"


def test_a_tool_that_redirects_its_own_output_has_it():
    with captured() as caught, contextlib.redirect_stdout(io.StringIO()) as own:
        print("own")
    assert (own.getvalue(), caught.text) == ("own\n", "")


@pytest.fixture
def logger():
    logger = logging.getLogger("nb_agent test of captures")
    logger.propagate = False
    yield logger
    logger.handlers.clear()


def test_logging_to_stderr_lands_in_the_capture(logger):
    with captured() as caught:
        logger.addHandler(logging.StreamHandler())
        logger.warning("logged")
    assert caught.text == "logged\n"


def test_a_handler_that_was_made_inside_goes_on_working_afterwards(logger, capsys):
    with captured():
        logger.addHandler(logging.StreamHandler())
    logger.warning("later")
    with captured() as caught:
        logger.warning("in the next call")
    assert (capsys.readouterr().err, caught.text) == ("later\n", "in the next call\n")


def test_the_stand_in_answers_like_the_stream_behind_it():
    encoding = sys.stdout.encoding
    with captured():
        assert sys.stdout.encoding == encoding
        assert not sys.stdout.isatty()
        with pytest.raises(TypeError, match="must be str, not bytes"):
            sys.stdout.write(b"x")
        with pytest.raises(AttributeError):
            sys.stdout.no_such_thing  # noqa: B018  it is the look-up that raises


def test_it_works_where_there_are_no_streams_at_all():
    source = """
import sys
real, sys.stdout, sys.stderr = sys.stdout, None, None
from nb_agent.tools.capture import captured
import contextvars
with captured() as caught:
    print("kept", flush=True)
    print("kept too", file=sys.stderr)
    contextvars.Context().run(print, "nowhere")
assert sys.stdout is None and sys.stderr is None
real.write(repr(caught.text))
"""
    found = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == repr("kept\nkept too\n")


def test_a_very_long_output_keeps_its_start_and_its_end_and_says_how_long_it_was():
    with captured() as caught:
        for n in range(40_000):
            print(f"line {n:06d}")
    assert len(caught.text) < capture.MOST_CHARACTERS + 100
    assert caught.text.startswith("line 000000\n")
    assert caught.text.endswith("line 039999\n")
    assert "\n[… 380,000 of 480,000 characters are left out here …]\n" in caught.text
    with captured() as caught:
        print("x" * 5_000_000, end="")
    assert "[… 4,900,000 of 5,000,000 characters are left out here …]" in caught.text
    with captured() as caught:
        print("x" * capture.MOST_CHARACTERS, end="")
    assert caught.text == "x" * capture.MOST_CHARACTERS


def test_a_progress_bar_is_its_last_state():
    with captured() as caught:
        for n in range(0, 101, 10):
            print(f"\r{n} %", end="")
        print("\r\nwindows\r\n50 %\r", end="")
    assert caught.text == "100 %\nwindows\n50 %"


def test_what_is_displayed_stands_where_it_was_displayed_and_pictures_beside_it():
    @contextlib.contextmanager
    def shown(show):
        shows.append(show)
        yield

    shows = []
    with captured(shown) as caught:
        print("a")
        shows[0]({"text/plain": "<Table object>", "text/html": "<b>b</b>"})
        shows[0]({"text/plain": "<Figure>", "image/png": png()})
        shows[0]({"image/png": "bm9uZQ=="})
        shows[0]({})
        print("c")
    assert caught.text == "a\nb\n(a picture that cannot be shown: 4 bytes that are no picture of a known format)\nc\n"
    assert caught.pictures == (Image(base64.b64encode(png()).decode()),)
    for _ in range(capture.MOST_PICTURES):
        caught.show({"image/png": png()})
    assert len(caught.pictures) == capture.MOST_PICTURES
    assert caught.text.endswith("(one more picture)\n")


def test_many_threads_of_one_call_lose_nothing():
    with captured() as caught:
        context = contextvars.copy_context
        threads = [threading.Thread(target=context().run, args=(functools.partial(print, "x" * 9, end="."),)) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert sorted(caught.text) == sorted(("x" * 9 + ".") * 50)
