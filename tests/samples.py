"""Runs made by hand: the events of the three-round file task, of a failing run and of a hostile one, and their states.

Nothing here is measured; tokens come from a made-up count (a token for every four bytes), so that numbers are the same everywhere.
"""

from copy import deepcopy

from nb_agent.deltas import rebuild
from nb_agent.events import STEPS, Delta, ReplyDone, RequestReady, RunEnded, RunStarted, Step, ToolAsked, ToolDone
from nb_agent.messages import Message, Piece, Reply, Request, Text, ToolCall, ToolResult
from nb_agent.usage import Usage
from nb_agent.values import dumps
from nb_agent.views.fold import Fold

PROMPT = "Read config.yaml, list the Markdown files, and write report.md about both. 报告用中文也可以 🙂"
SYSTEM = "You analyse files. Use the tools; do not guess what is in a file."
ANSWER = (
    "I read config.yaml and found three Markdown files, then wrote **report.md**.\n\n"
    "1. The default model is Qwen3.6-Plus.\n2. README.md, CHANGELOG.md and docs/部署说明.md are there. ✅"
)
CONFIG = "model:\n  default: Qwen3.6-Plus\n  window: 8192\nlanguage: 简体中文\n"
ALL = tuple(Step(name) for name in STEPS)

#: A cell that defines a tool which the mock model can use.
WEATHER = '''
from nb_agent import tool
@tool
def get_weather(city: str) -> dict:
    """Current weather of a city.

    Args:
        city: name of the city, e.g. Berlin
    """
    return {"city": city, "temperature": 21}
'''


def tool(name, description, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("read_file", "Read a text file.", path={"type": "string", "description": "inside the workspace"}),
    tool("search_files", "List the files whose name fits a pattern.", pattern={"type": "string"}, path={"type": "string"}),
    tool("write_file", "Write a text file, replacing what was there.", path={"type": "string"}, content={"type": "string"}),
]
CALLS = [
    ToolCall("call_1", "read_file", dumps({"path": "config.yaml"})),
    ToolCall("call_2", "search_files", dumps({"pattern": "*.md", "path": "."})),
    ToolCall("call_3", "write_file", dumps({"path": "report.md", "content": "# Report\n\n" + "A line about the files.\n" * 20})),
]
RESULTS = [
    dumps({"success": True, "content": CONFIG}),
    dumps({"success": True, "files": ["README.md", "CHANGELOG.md", "docs/部署说明.md"]}),
    dumps({"success": True, "path": "report.md", "bytes": 490}),
]
PART = {"system": "system", "user": "user", "assistant": "tool_calls", "tool": "tool_results"}


def tokens(value):
    return -(-len(dumps(value).encode()) // 4)


def count(request, model, *, exact=True):
    """A request's tokens in the form that the state holds; a token for every four bytes."""
    messages = [tokens(message) for message in request.body["messages"]]
    tools = {entry["function"]["name"]: tokens(entry) for entry in request.body.get("tools", [])}
    parts = {}
    for message, number in zip(request.body["messages"], messages, strict=True):
        part = PART[message["role"]]
        parts[part] = parts.get(part, 0) + number
    parts |= {"tools": sum(tools.values()), "overhead": 11}
    total = sum(parts.values())
    return {"parts": parts, "tools": tools, "messages": messages, "total": total, "exact": exact, "encoding": "o200k_base"}


def wire_call(call):
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def request(messages, model="mock-8k"):
    return Request(
        "chat_completions", "/v1/chat/completions", {"model": model, "messages": messages, "tools": TOOLS, "stream": True}
    )


def reply(number, text="", calls=(), usage=None):
    message = {"role": "assistant", "content": text or None} | (
        {"tool_calls": [wire_call(call) for call in calls]} if calls else {}
    )
    word = "tool_calls" if calls else "stop"
    body = {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "mock-8k"}
    body |= {"choices": [{"index": 0, "message": message, "finish_reason": word}]}
    parts = ((Text(text),) if text else ()) + tuple(calls)
    return Reply(Message("assistant", parts), word, word, usage, f"chatcmpl-{number}", "mock-8k", body)


def call_pieces(index, call, size=12):
    yield Delta(1, (Piece("call", call.name, index),))
    for at in range(0, len(call.arguments), size):
        yield Delta(1, (Piece("arguments", call.arguments[at : at + size], index),))


def text_pieces(number, text, size=9):
    return [Delta(number, (Piece("text", text[at : at + size]),)) for at in range(0, len(text), size)]


def call_events(number, call, result, seconds):
    done = ToolResult(call.id, call.name, (Text(result),))
    return ToolAsked(number, call, ALL[:4]), ToolDone(number, done, ALL, seconds)


def three_round_events():
    """The three-round file task: two calls at once, one that writes, the answer."""
    first = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    turn = {"role": "assistant", "content": None, "tool_calls": [wire_call(call) for call in CALLS[:2]]}
    answers = [{"role": "tool", "tool_call_id": call.id, "content": RESULTS[i]} for i, call in enumerate(CALLS)]
    second = [*first, turn, *answers[:2]]
    third = [*second, {"role": "assistant", "content": None, "tool_calls": [wire_call(CALLS[2])]}, answers[2]]
    asked_1, done_1 = call_events(1, CALLS[0], RESULTS[0], 0.003)
    asked_2, done_2 = call_events(1, CALLS[1], RESULTS[1], 0.005)
    asked_3, done_3 = call_events(2, CALLS[2], RESULTS[2], 0.0112)
    counts = [count(request(messages), "mock-8k")["total"] for messages in (first, second, third)]
    usages = [Usage(counts[0], output=48), Usage(counts[1] - 240, 240, output=131), Usage(counts[2] + 6, output=64)]
    yield RunStarted(PROMPT, "mock-8k", "chat_completions", mock=True, window=8192)
    yield RequestReady(1, request(first))
    yield from call_pieces(0, CALLS[0])
    yield from call_pieces(1, CALLS[1])
    yield ReplyDone(1, reply(1, calls=CALLS[:2], usage=usages[0]), 0.41, 0.12)
    yield from (asked_1, asked_2, done_2, done_1)
    yield RequestReady(2, request(second))
    yield from call_pieces(0, CALLS[2])
    yield ReplyDone(2, reply(2, calls=CALLS[2:], usage=usages[1]), 0.83, 0.2)
    yield from (asked_3, done_3)
    yield RequestReady(3, request(third))
    yield from text_pieces(3, ANSWER)
    yield ReplyDone(3, reply(3, ANSWER, usage=usages[2]), 0.36, 0.09)
    yield RunEnded("stop", (), usages[0] + usages[1] + usages[2], seconds=1.64)


def failing_events():
    """One call that does not fit its schema, one tool that raises, then the server fails."""
    first = [{"role": "user", "content": "Weather in Oslo and in Bergen?"}]
    calls = [ToolCall("c1", "weather", '{"town": 5}'), ToolCall("c2", "weather", '{"town": "Bergen"}')]
    bad = ToolResult.failure(calls[0], "town: 5 is not a string", code="invalid_arguments")
    worse = ToolResult.failure(calls[1], "ZeroDivisionError: division by zero", code="tool_failed")
    cut = (*ALL[:2], Step("fits schema", "failed", "town: 5 is not a string"), *(Step(name, "skipped") for name in STEPS[3:6]))
    broke = (*ALL[:4], Step("run", "failed", "ZeroDivisionError: division by zero"), ALL[5], ALL[6])
    yield RunStarted(first[0]["content"], "gpt-x", "chat_completions", window=2000)
    yield RequestReady(1, request(first, "gpt-x"), ("a call without a result was given one",))
    yield ReplyDone(1, reply(1, calls=calls, usage=None), 1.2)
    yield ToolAsked(1, calls[0], cut[:3])
    yield ToolAsked(1, calls[1], ALL[:4])
    yield ToolDone(1, bad, (*cut, ALL[6]), None)
    yield ToolDone(1, worse, broke, 0.2, "Traceback (most recent call last):\n  File …\nZeroDivisionError: division by zero")
    turn = {"role": "assistant", "content": None, "tool_calls": [wire_call(call) for call in calls]}
    second = [*first, turn, *({"role": "tool", "tool_call_id": r.call_id, "content": r.text} for r in (bad, worse))]
    yield RequestReady(2, request(second, "gpt-x"))
    yield Delta(2, (Piece("thinking", "It seems that"), Piece("text", "The weather in")))
    error = "the model server broke off (network): connection reset; run the cell again, the history up to here is kept"
    yield RunEnded("error", (), None, error, 2.5)


def hostile_events():
    """Text from a tool and from a model that would like to be HTML (case H17)."""
    call = ToolCall("c1", "<b>t</b>", dumps({"q": "</td><script>alert(1)</script>"}))
    result = ToolResult("c1", call.name, (Text('<img src=x onerror=alert(2)> & "quotes"'),), "tool_failed")
    said = "<script>document.title='owned'</script>"
    yield RunStarted(said, "<i>m</i>", "chat_completions")
    yield RequestReady(1, request([{"role": "user", "content": said}]))
    yield ReplyDone(1, reply(1, said, [call]))
    yield ToolAsked(1, call, ALL[:4])
    yield ToolDone(1, result, (*ALL[:4], Step("run", "failed", "<svg/onload=alert(3)>")), 0.1, "<svg/onload=alert(3)>")
    yield RunEnded("error", (), error="<svg/onload=alert(3)>")


def fold(events, *, counted=True):
    """The state after these events, and the changes of each of them, as they were when they were made."""
    folding = Fold(count if counted else None)
    changes = [deepcopy(folding.apply(event)) for event in events]
    return folding.state, changes


def state_of(events, *, counted=True):
    return fold(events, counted=counted)[0]


def bodies(state):
    """Every request body of a state, put together again."""
    body, found = {}, []
    for entry in state["rounds"]:
        body = rebuild(body, entry["request"]["change"])
        found.append(body)
    return found
