"""What is saved of a run in a notebook: its state as JSON, and beside it HTML, Markdown and text for places without the extension.

The JSON opens as the inspector (`labextension`). It holds everything, so the other forms may say less: a request stands in the
state once, but a tool's result stands there twice (as the result and in the next request), and in each of the other forms again.
What is saved is therefore held to a size in proportion to the run: the JSON is packed (gzip in base64, where what stands there
twice costs almost nothing) and gives up streams and the ends of results if it must, the other forms cut long values, and at
last show the rounds of the middle as one line each. What is cut is said, with its size. `fold` decides what is shown; this module
decides only how much of it is repeated.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from nb_agent.values import JSON, dumps
from nb_agent.views import html, markdown, text, words

__all__ = ["MIME", "opened", "saved"]

#: The type of a saved run. Its version is that of the state.
MIME: Final = "application/vnd.nb-agent.run+json"

#: A saved notebook may have this many bytes for each new byte that went over the wire, and this many for a run of nothing. The
#: promise is 1.2 and 50,000; the rest is for the cell itself.
_RATE: Final = 1.17
_BASE: Final = 46_000

#: How much the forms beside the JSON show: characters of a value, and how many rounds at each end (``None``: all). The first
#: that fits is taken.
_LEVELS: Final = ((None, None), (2_000, None), (400, None), (400, 20), (400, 5), (200, 1))

#: Their shares of the room that is left: HTML first, which most places show.
_FORMS: Final[dict[str, tuple[Callable[[JSON], str], float]]] = {
    "text/html": (html.page, 0.6),
    "text/markdown": (markdown.markdown, 0.6),
    "text/plain": (text.text, 1.0),
}


def saved(state: JSON) -> dict[str, Any]:
    """The MIME bundle of a run that has ended; `MIME` in it is the state in its packed form (see `opened`).

    Args:
        state: as `nb_agent.views.fold.Fold` keeps it. It is not changed.
    """
    room = _RATE * _new_bytes(state) + _BASE
    bundle: dict[str, Any] = {MIME: _stored(state, room)}
    room -= _size(bundle[MIME])
    shorter = cache(partial(_shortened, _each_round(state, _without_stream)))
    for kind, (form, share) in _FORMS.items():
        bundle[kind] = _fitting(shorter, form, room * share)
        room -= _size(bundle[kind])
    return bundle


def opened(stored: JSON) -> JSON:
    """The state from its saved form, ``{"version", "gzip"}``; a state that is not packed is taken as it is.

    Raises:
        EOFError, OSError, ValueError: it is not what `saved` made.
    """
    state: JSON = json.loads(gzip.decompress(base64.b64decode(stored["gzip"], validate=True))) if "gzip" in stored else stored
    branches = []
    for branch in state["branches"]:
        rounds = [*state["rounds"][: branch.get("kept", 0)], *branch["state"]["rounds"]]
        named = {key: value for key, value in branch.items() if key != "kept"}
        branches.append(named | {"state": branch["state"] | {"rounds": rounds}})
    return state | {"branches": branches}


# ------------------------------------------------------------------------------------------------------- the JSON


def _stored(state: JSON, room: float) -> JSON:
    """The state, packed; where it is too large, without the streams, and then with the ends of results left out.

    A result of more than 32 KB is not found again by gzip, so that one in Chinese would cost all its bytes each time.
    """
    asked_nothing = {**state, "question": None, "branches": [_branch(branch, state["rounds"]) for branch in state["branches"]]}
    packed = _packed(asked_nothing)
    for share, less in ((0.6, _without_stream), (0.85, _with_results(2_000)), (0.85, _with_results(400))):
        if _size(packed) <= room * share:
            break
        asked_nothing = _each_round(asked_nothing, less)
        packed = _packed(asked_nothing)
    return packed


def _packed(state: JSON) -> JSON:
    said = gzip.compress(dumps(state).encode("utf-8", "replace"), mtime=0)  # no time in it: the same run, the same bytes
    return {"version": state["version"], "gzip": base64.b64encode(said).decode()}


def _branch(branch: JSON, rounds: list[JSON]) -> JSON:
    """A branch without the rounds at its start that the run has too."""
    own = branch["state"]["rounds"]
    kept = next((place for place, (a, b) in enumerate(zip(own, rounds, strict=False)) if a != b), min(len(own), len(rounds)))
    return {**branch, "kept": kept, "state": branch["state"] | {"rounds": own[kept:]}}


def _each_round(state: JSON, less: Callable[[JSON], JSON]) -> JSON:
    branches = [branch | {"state": _each_round(branch["state"], less)} for branch in state["branches"]]
    return state | {"branches": branches, "rounds": [less(entry) for entry in state["rounds"]]}


def _without_stream(entry: JSON) -> JSON:
    return entry | {"reply": entry["reply"] and entry["reply"] | {"stream": []}}


def _with_results(most: int) -> Callable[[JSON], JSON]:
    """Makes a round's results say only how they begin: the next request has what the model was given of them."""
    long = ("result", "whole", "printed", "traceback", "wire")

    def less(entry: JSON) -> JSON:
        return entry | {"calls": [call | {key: _cut(call[key], most) for key in long if call.get(key)} for call in entry["calls"]]}

    return less


# ------------------------------------------------------------------------------------------------------- the other forms


def _fitting(shorter: Callable[[int | None, int | None], JSON], form: Callable[[JSON], str], room: float) -> str:
    shown = ""
    for most, ends in _LEVELS:
        shown = form(shorter(most, ends))
        if _size(shown) <= room:
            break
    return shown


def _shortened(state: JSON, most: int | None, ends: int | None) -> JSON:
    """The same run with long texts cut, and with a mark at the rounds that get one line."""
    if most is None:
        return state
    number = len(state["rounds"])
    rounds = [
        entry | {"brief": True} if ends is not None and ends <= place < number - ends else _cut(entry, most)
        for place, entry in enumerate(state["rounds"])
    ]
    said = max(most, 4_000)  # what was asked and what was answered are what a reader wants first
    ending = state["ending"] and _cut(state["ending"], most) | {"text": _cut(words.answer(state), said)}
    return state | {"prompt": _cut(state["prompt"], said), "rounds": rounds, "ending": ending}


def _cut(value: Any, most: int, key: str = "") -> Any:
    """A JSON value with the end of each long text left out and its length said. The bytes of pictures stay: half is none."""
    if isinstance(value, str):
        if len(value) <= most or key == "data":
            return value
        return f"{value[:most]}\n… {len(value):,} characters in all, {len(value) - most:,} not shown here …"
    if isinstance(value, dict):
        return {name: _cut(part, most, name) for name, part in value.items()}
    return [_cut(part, most) for part in value] if isinstance(value, list) else value


# ------------------------------------------------------------------------------------------------------- sizes


def _new_bytes(state: JSON) -> int:
    """What was new on the wire, as the state knows it; pictures that a tool showed count too, for the JSON and for the HTML."""
    rounds = [
        *state["rounds"],
        *(entry for branch in state["branches"] for entry in _branch(branch, state["rounds"])["state"]["rounds"]),
    ]
    sent = sum(len(dumps(entry["request"]["change"].get("new", {})).encode("utf-8", "replace")) for entry in rounds)
    came = sum(len(dumps(entry["reply"]["body"]).encode("utf-8", "replace")) for entry in rounds if entry["reply"])
    calls = [call for entry in rounds for call in entry["calls"]]
    images = [image for call in calls for image in [*call["pictures"], *((call["result"] or {}).get("images") or [])]]
    return sent + came + 2 * sum(len(image["data"] or "") for image in images)


def _size(value: Any) -> int:
    """Bytes in a notebook's file, where texts are lists of lines and JSON has a line for each value, all of it indented."""
    written = json.dumps(value.splitlines(keepends=True) if isinstance(value, str) else value, ensure_ascii=False, indent=1)
    return len(written.encode("utf-8", "replace")) + 6 * (written.count("\n") + 1)
