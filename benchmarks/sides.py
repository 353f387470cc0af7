"""The sides of a comparison, each in a process of its own: nb_agent, and the loops that a good engineer writes by hand on httpx.

    python benchmarks/sides.py SIDE     # a job as a JSON line in, what it cost as a JSON line out, until its input ends

All have the same tools, the same kept connection and the same server. The loops by hand show nothing, keep nothing and forgive
nothing; nb_agent keeps its events, counts usage, watches its limits and checks its calls. Only its view is off.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

CALL_SECONDS = 0.2  # what a slow tool waits
PAGE = "lorem ipsum dolor sit amet, " * 80


class Meter:
    """What the tools saw: when each was called, in CPU seconds of the process, and how many were in at a time."""

    def __init__(self) -> None:
        self.stamps: list[float] = []
        self.inside = self.most = 0
        self._lock = threading.Lock()

    @contextmanager
    def call(self):
        with self._lock:
            self.stamps.append(time.process_time())
            self.inside += 1
            self.most = max(self.most, self.inside)
        yield
        with self._lock:
            self.inside -= 1


METER = Meter()


def fetch(number: int) -> str:
    """Fetch a page of 2 KB.

    Args:
        number: which page
    """
    METER.stamps.append(time.process_time())
    return f"page {number}: {PAGE}"[:2048]


def count(number: int) -> str:
    """Count one further.

    Args:
        number: where to begin
    """
    METER.stamps.append(time.process_time())
    return str(number + 1)


def save(content: str) -> str:
    """Save a text.

    Args:
        content: the text
    """
    METER.stamps.append(time.process_time())
    return f"{len(content)} characters saved"


def wait(number: int) -> str:
    """Take 0.2 seconds.

    Args:
        number: which call
    """
    with METER.call():
        time.sleep(CALL_SECONDS)
    return f"waited {number}"


async def await_(number: int) -> str:
    """Take 0.2 seconds, as a coroutine.

    Args:
        number: which call
    """
    with METER.call():
        await asyncio.sleep(CALL_SECONDS)
    return f"waited {number}"


TOOLS: dict[str, Callable[..., Any]] = {made.__name__: made for made in (fetch, count, save, wait, await_)}


def by_hand(name: str) -> dict[str, Any]:
    """The definition of a tool as one writes it by hand."""
    parameter, kind = ("content", "string") if name == "save" else ("number", "integer")
    properties = {parameter: {"type": kind, "description": "what it is"}}
    schema = {"type": "object", "properties": properties, "required": [parameter], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": "what it does", "parameters": schema}}


def collected(lines: Iterable[str]) -> dict[str, Any]:
    """The message in a stream: the straight way, each fragment kept and all joined once."""
    text: list[str] = []
    made: dict[int, dict[str, Any]] = {}
    for line in lines:
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                text.append(delta["content"])
            for piece in delta.get("tool_calls") or ():
                call = made.setdefault(piece["index"], {"parts": []})
                if piece.get("id"):
                    call |= {"id": piece["id"], "name": piece["function"]["name"]}
                call["parts"].append(piece["function"].get("arguments") or "")
    calls = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": "".join(call["parts"])}}
        for call in made.values()
    ]
    return {"role": "assistant", "content": "".join(text) or None} | ({"tool_calls": calls} if calls else {})


def httpx_loop(url: str, tool: str, *, stream: bool) -> Callable[[], str]:
    """The whole history as a list of dicts, encoded by httpx in each round."""
    import httpx

    client = httpx.Client(base_url=url, headers={"authorization": "Bearer sk-none"}, timeout=60)
    definitions = [by_hand(tool)]

    def asked(body: dict[str, Any]) -> dict[str, Any]:
        if not stream:
            return client.post("chat/completions", json=body).json()["choices"][0]["message"]
        with client.stream("POST", "chat/completions", json=body) as response:
            return collected(response.iter_lines())

    def run() -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        while True:
            message = asked({"model": "scripted", "messages": messages, "tools": definitions, "stream": stream})
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                result = str(TOOLS[call["function"]["name"]](**json.loads(call["function"]["arguments"])))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    return run


def httpx_pieces(url: str, tool: str, *, stream: bool) -> Callable[[], str]:
    """The same with each message encoded once and the pieces joined: as little work as httpx allows. Not for streams."""
    import httpx

    headers = {"authorization": "Bearer sk-none", "content-type": "application/json"}
    client = httpx.Client(base_url=url, headers=headers, timeout=60)

    def encoded(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    end = b'],"tools":' + encoded([by_hand(tool)]) + b',"stream":' + encoded(stream) + b"}"

    def run() -> str:
        pieces = [encoded({"role": "user", "content": "go"})]
        while True:
            body = b'{"model":"scripted","messages":[' + b",".join(pieces) + end
            message = json.loads(client.post("chat/completions", content=body).content)["choices"][0]["message"]
            pieces.append(encoded(message))
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                result = str(TOOLS[call["function"]["name"]](**json.loads(call["function"]["arguments"])))
                pieces.append(encoded({"role": "tool", "tool_call_id": call["id"], "content": result}))

    return run


def ours(url: str, tool: str, *, stream: bool) -> Callable[[], str]:
    import nb_agent

    agent = nb_agent.Agent(
        "scripted", [TOOLS[tool]], base_url=url, api_key="sk-none", stream=stream, max_rounds=10**6, time_limit=600
    )

    def run() -> str:
        agent.reset()
        done = agent.run("go", view=False)
        return done.text if done.reason == "stop" else f"ended with {done.reason}"

    return run


SIDES: dict[str, Callable[..., Callable[[], str]]] = {
    "nb_agent": ours,
    "httpx loop": httpx_loop,
    "httpx, pieces joined": httpx_pieces,
}


def cost(run: Callable[[], str]) -> dict[str, Any]:
    """One conversation: CPU and wall seconds, and what the tools saw of it."""
    METER.stamps, METER.most = [], 0
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    text = run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"text": text, "cpu": cpu, "wall": wall, "stamps": METER.stamps, "most": METER.most}


def main() -> None:
    make = SIDES[sys.argv[1]]
    made: dict[str, Callable[[], str]] = {}
    for line in sys.stdin:
        job = json.loads(line)
        if line not in made:
            made[line] = make(job["url"], job["tool"], stream=job["stream"])
        print(json.dumps(cost(made[line])), flush=True)


if __name__ == "__main__":
    main()
