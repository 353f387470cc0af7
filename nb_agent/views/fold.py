"""The only place that decides what is shown of a run: events in, one JSON state out, with the changes that lead to it.

Every view draws this state and nothing else: the live inspector gets the changes, the saved HTML and the text get the whole. It
holds no key (no event does), and request bodies stand in it once: each as what is new since the one before (see `deltas`).

The state::

    version, prompt, model, wire, mock, window (tokens or null)
    rounds: [{number, purpose ("summary" where the answer is no part of the conversation),
              compacted: [{strategy, before, after (tokens), what: [text]}]      the request is shorter than the conversation
              request: {path, budget: null or {output, binds, over, reasoning, words} (see windows.budgets),
                        bytes, change (see deltas; against {} in round 1), notices: [text],
                        weights: {key: tokens of what is new under it (see nodes.weighed)}, tokens: null or
                        {parts: {part: tokens}, tools: {name: tokens}, messages: [tokens], total, exact, encoding}},
              retries: [{reason, seconds, attempt}]         the request failed, waited, and went out again
              live:    null or {text, thinking, calls: [{name, arguments}]}       while the reply comes in
              reply:   null or {body, text, thinking, finish, raw_finish, usage, seconds, first, notices,
                         explained: null or {input, output: {counted, reported, exact, differences: {name: tokens}, cache_read,
                         cache_write}}   what was counted beside what was reported (see tokens.differences)
                         stream: [[kind, index, [milliseconds], [text]]]   runs of fragments as they came; empty if it came whole}
              calls:   [{id, name, arguments, steps: [{name, state, note}], asks: null or text, seconds, traceback,
                         printed, pictures: [{data, media_type, url}], whole: null or text, key,
                         result: null or {text, images: [{data, media_type, url}], code},
                         wire: [{direction, server, era, method, id, at, seconds, bytes, body (text)}]   of an MCP server,
                         asked: null or the arguments that the model asked for, where a person changed them,
                         given: null or the result of the tool, where a person changed it}]}]
    ending: null or {reason, meaning, error, seconds, usage, text}
    question: null or what a person is asked now (see `stepping`)
    branches: [{label, from_round, state}]   lines of this run that were left, each without branches
    (usage: null or {input, cache_read, cache_write, output, reasoning}, tokens, null where not reported)

A change is ``["set", path, value]`` (an index one past the end of a list appends) or ``["add", path, text]`` (at the end of a
string); ``path`` is a list of keys and indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from nb_agent import events, tokens, vocabulary, windows
from nb_agent.deltas import delta
from nb_agent.messages import Reply, Request
from nb_agent.nodes import weighed
from nb_agent.values import JSON
from nb_agent.views.shown import (
    capped,
    moments,
    not_chosen,
    packed,
    sendable,
    shown_image,
    shown_result,
    shown_steps,
    shown_thinking,
    shown_usage,
)

__all__ = ["Change", "Fold", "change_state"]

Change: TypeAlias = list[Any]


def change_state(state: JSON, changes: list[Change]) -> None:
    """Carry out changes in place, as the inspector does on its side. What is set is copied: each state grows on its own.

    >>> state = {"rounds": [{"text": "a"}]}
    >>> change_state(state, [["add", ["rounds", 0, "text"], "b"], ["set", ["rounds", 1], {}]])
    >>> state
    {'rounds': [{'text': 'ab'}, {}]}
    """
    for kind, path, value in changes:
        place: Any = state
        for key in path[:-1]:
            place = place[key]
        last = path[-1]
        if kind == "add":
            place[last] += value
        elif isinstance(place, list) and last == len(place):
            place.append(_copied(value))
        else:
            place[last] = _copied(value)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


class Fold:
    """Folds the events of one run into its state.

    Args:
        count: gives a request's tokens in the form that the state holds, or ``None`` for a view without them.
        branches: the lines of this run that were left for it, as the state holds them.
    """

    def __init__(self, count: Callable[[Request, str], JSON] | None = None, branches: Sequence[JSON] = ()) -> None:
        self.state: JSON = {"version": 1, "prompt": "", "model": "", "wire": "", "mock": False, "window": None}
        self.state |= {"rounds": [], "ending": None, "question": None, "branches": [*branches]}
        self._count = count
        self._body: JSON = {}  # of the last request, and of the one before it
        self._before: JSON = {}
        self._stream: list[Any] = []
        self._compacted: list[JSON] = []  # of the request that comes next

    def apply(self, event: events.Event) -> list[Change]:
        """Take one event in; what it changes in the state is returned, and already carried out."""
        changes = _APPLY[type(event)](self, event)
        change_state(self.state, changes)
        return changes

    def _started(self, event: events.RunStarted) -> list[Change]:
        shown = {"prompt": event.prompt, "model": event.model, "wire": event.wire, "mock": event.mock, "window": event.window}
        return [["set", [key], capped(value)] for key, value in shown.items()]

    def _request(self, event: events.RequestReady) -> list[Change]:
        self._before = self._body
        shown = self._sent(event.request, event.notices)
        begun = {"number": event.number, "purpose": event.purpose, "request": shown, "compacted": []}
        begun |= {"retries": [], "live": None, "reply": None, "calls": []}
        if not event.purpose:
            begun["compacted"], self._compacted = self._compacted, []
        return [["set", ["rounds", len(self.state["rounds"])], begun]]

    def _sent(self, request: Request, notices: Sequence[str]) -> JSON:
        self._body, self._stream = request.body, []
        change = delta(self._before, request.body)
        counted = self._count(request, self.state["model"]) if self._count else None
        return {
            "path": request.path,
            "bytes": len(request.content),
            "change": capped(change),
            "notices": capped(list(notices)),
            "weights": _weights(change, counted),
            "tokens": counted,
            "budget": self._budget(request, counted),
        }

    def _budget(self, request: Request, counted: JSON | None) -> JSON | None:
        """What the answer may have, where the window is known."""
        window, model = self.state["window"], self.state["model"]
        if counted is None or window is None:
            return None
        found = windows.known(model)
        return windows.budgeted(counted, request.body, model=model, window=window, longest=found.output if found else None).shown()

    def _changed(self, event: events.Changed) -> list[Change]:
        """What goes on is shown in the place of what would have; of a call and a result, what there was stays beside it."""
        if event.request is not None:
            notices = [*self.state["rounds"][-1]["request"]["notices"], _BY_HAND]
            return [["set", self._round("request"), self._sent(event.request, notices)]]
        calls = self.state["rounds"][-1]["calls"]
        told: JSON = {}
        place = len(calls) - 1
        if event.call is not None:
            told = {
                "asked": calls[place]["arguments"],
                "name": capped(event.call.name),
                "arguments": capped(event.call.arguments),
            }
        elif event.result is not None:
            place = next(place for place, call in enumerate(calls) if call["id"] == event.result.call_id)
            told = {"given": calls[place]["result"], "result": shown_result(event.result)}
        return [["set", self._round("calls", place, key), value] for key, value in told.items()]

    def _shortened(self, event: events.Compacted) -> list[Change]:
        shown = {"strategy": event.strategy, "before": event.before, "after": event.after, "what": capped(list(event.what))}
        self._compacted.append(shown)
        return []

    def _retrying(self, event: events.Retrying) -> list[Change]:
        shown = {"reason": capped(event.reason), "seconds": event.seconds, "attempt": event.attempt}
        told = ["set", self._round("retries", len(self.state["rounds"][-1]["retries"])), shown]
        self._stream = []
        return [["set", self._round("live"), None], told]  # what had come of an answer that broke off comes again

    def _delta(self, event: events.Delta) -> list[Change]:
        path = self._round("live")
        live = self.state["rounds"][-1]["live"]
        changes: list[Change] = []
        if live is None:
            changes.append(["set", path, {"text": "", "thinking": "", "calls": []}])
        self._stream += moments(event)
        begun = len(live["calls"]) if live else 0
        for piece in event.pieces:
            if piece.choice:
                continue  # the other answers of n > 1 are shown when they are whole
            place = _LIVE[piece.kind]
            while place in {"name", "arguments"} and begun <= piece.index:
                changes.append(["set", [*path, "calls", begun], {"name": "", "arguments": ""}])
                begun += 1
            where = ["calls", piece.index, place] if place in {"name", "arguments"} else [place]
            changes.append(["add", [*path, *where], sendable(piece.text)])
        return changes

    def _reply(self, event: events.ReplyDone) -> list[Change]:
        reply = event.reply
        shown = {
            "body": capped(reply.body),
            "text": capped(reply.message.text),
            "thinking": capped(shown_thinking(reply.message)),
            "finish": reply.finish,
            "raw_finish": reply.raw_finish,
            "usage": shown_usage(reply.usage),
            "seconds": event.seconds,
            "first": event.first,
            "notices": capped([*reply.notices, *not_chosen(reply.others)]),
            "explained": self._explained(reply),
            "stream": packed(self._stream),
        }
        return [["set", self._round("live"), None], ["set", self._round("reply"), shown]]

    def _explained(self, reply: Reply) -> JSON | None:
        """What was counted of a round beside what was reported; nothing where its tokens are not counted."""
        counted = self.state["rounds"][-1]["request"]["tokens"]
        if counted is None:
            return None
        model = self.state["model"]
        sent = tokens.explained(tokens.Breakdown(**{**counted, "messages": tuple(counted["messages"])}), reply.usage, model=model)
        said = tokens.explained_reply(tokens.breakdown_reply(reply.message, model=model), reply.usage, model=model)
        return {"input": sent.shown(), "output": said.shown()}

    def _asked(self, event: events.ToolAsked) -> list[Change]:
        call = event.call
        shown: JSON = {
            "id": call.id,
            "name": capped(call.name),
            "arguments": capped(call.arguments),
            "steps": shown_steps(event.steps),
        }
        shown |= {"asks": capped(event.asks), "result": None, **_NOTHING}
        return [["set", self._round("calls", len(self.state["rounds"][-1]["calls"])), shown]]

    def _done(self, event: events.ToolDone) -> list[Change]:
        calls = self.state["rounds"][-1]["calls"]
        waiting = (place for place, call in enumerate(calls) if call["id"] == event.result.call_id and call["result"] is None)
        place = next(waiting, len(calls))
        changes: list[Change] = []
        if place == len(calls):  # a call that was never asked about, such as one that was cut off
            shown: JSON = {"id": event.result.call_id, "name": event.result.name, "arguments": "", "asks": None, **_NOTHING}
            changes.append(["set", self._round("calls", place), shown])
        whole: JSON = {"steps": shown_steps(event.steps), "result": shown_result(event.result), "seconds": event.seconds}
        whole |= {"traceback": capped(event.traceback), "printed": capped(event.printed), "whole": capped(event.whole)}
        whole |= {"asks": None, "pictures": [shown_image(picture) for picture in event.pictures], "key": event.key}
        whole["wire"] = capped([dict(message) for message in event.wire])
        return changes + [["set", self._round("calls", place, key), value] for key, value in whole.items()]

    def _ended(self, event: events.RunEnded) -> list[Change]:
        shown: JSON = {"reason": event.reason, "meaning": events.ENDINGS[event.reason], "error": capped(event.error)}
        shown |= {"seconds": event.seconds, "usage": shown_usage(event.usage), "text": capped(event.text)}
        return [["set", ["ending"], shown]]

    def _round(self, *path: str | int) -> list[str | int]:
        return ["rounds", len(self.state["rounds"]) - 1, *path]


_APPLY: dict[type, Callable[[Fold, Any], list[Change]]] = {
    events.RunStarted: Fold._started,  # noqa: SLF001  the table of the class just above
    events.Changed: Fold._changed,  # noqa: SLF001
    events.Compacted: Fold._shortened,  # noqa: SLF001
    events.RequestReady: Fold._request,  # noqa: SLF001
    events.Retrying: Fold._retrying,  # noqa: SLF001
    events.Delta: Fold._delta,  # noqa: SLF001
    events.ReplyDone: Fold._reply,  # noqa: SLF001
    events.ToolAsked: Fold._asked,  # noqa: SLF001
    events.ToolDone: Fold._done,  # noqa: SLF001
    events.RunEnded: Fold._ended,  # noqa: SLF001
}


def _weights(change: JSON, counted: JSON | None) -> JSON:
    """What the nodes of the new part of a body cost, where its tokens are counted at all."""
    if counted is None or not vocabulary.available(counted["encoding"]):
        return {}
    return {key: weighed(value, counted["encoding"]) for key, value in change.get("new", {}).items()}


#: What is not known of a call before it has ended.
_NOTHING: JSON = {"seconds": None, "traceback": None, "printed": "", "pictures": [], "whole": None, "key": "", "wire": []}
_NOTHING |= {"asked": None, "given": None}

_BY_HAND: Final = "changed by hand before it went out"

#: Kind of a piece -> where it is shown while the reply comes in.
_LIVE = {"text": "text", "refusal": "text", "thinking": "thinking", "call": "name", "arguments": "arguments"}
