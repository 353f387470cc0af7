"""A model that says what a test wrote down, in the place of the mock model."""

import json

from nb_agent import mock


def answers(monkeypatch, *bodies):
    """The mock model gives these bodies in turn; the requests that it was sent."""
    sent, left = [], list(bodies)

    def send(request):
        sent.append(request)
        body = left.pop(0)
        if isinstance(body, Exception):
            raise body
        yield json.dumps(body).encode()

    monkeypatch.setattr(mock, "send", send)
    return sent


def said(text="", *calls):
    message = {"content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "function": {"name": name, "arguments": args}} for n, (name, args) in enumerate(calls)
        ]
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}]}
