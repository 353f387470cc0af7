"""A long conversation with a server that fails one request in five, in every way that the mock model knows.

Nothing here waits: the clock is a number, and sleeping only moves it on. ``NB_AGENT_SOAK_ROUNDS=20000`` makes a long run of it.
"""

import gc
import os
import random
import sys
import tracemalloc
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nb_agent import mock
from nb_agent.adapters import WIRES
from nb_agent.errors import ProviderError, ToolError
from nb_agent.events import RequestReady, RunEnded, ToolDone
from nb_agent.history import mend
from nb_agent.loop import Limits, Target, pull, run
from nb_agent.mock import faults
from nb_agent.retrying import Patience
from nb_agent.tools.calling import Caller
from nb_agent.tools.toolbox import Toolbox

#: Requests in all.
ROUNDS = int(os.environ.get("NB_AGENT_SOAK_ROUNDS", "1000"))
#: One request in so many fails.
ONE_IN = 5
#: Messages after which a conversation begins anew.
LONGEST = 40
#: What may be held more after many rounds than after some: objects of Python's, and bytes. One conversation is many times that.
FLAT_BLOCKS = 3_000
FLAT_BYTES = 100_000

PROMPTS = (
    "Weather in Paris?",
    "Weather in Paris and Rome?",
    "What is the weather in 京都?",
    "Look up order ORD-1001",
    "Look up order ORD-1001, then the customer of that order",
    "hello",
    "Tell me a story 🙂",
    "What is the weather?",
)
#: What a wire format takes so that it thinks.
THINKING = {
    "responses": {"reasoning": {"effort": "low", "summary": "auto"}},
    "anthropic_messages": {"thinking": {"type": "adaptive"}},
}


class Soak:
    """One server that fails, one host, and what has happened between them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now = 0.0
        self.fault = None
        self.history = ()
        self.made = 0  # how often a tool ran
        self.rounds = 0
        self.endings = Counter()
        self.faults = Counter()
        self.went_on = 0  # runs that ended well, and came after one that did not
        self.failed = False
        self.run_ids = set()  # calls of this conversation that have run

        def get_weather(city: str) -> dict:
            """Get the weather for a city."""
            self.made += 1
            if self.random.randrange(10) == 0:
                raise ToolError(f"no station in {city}")
            return {"city": city, "temperature": 18}

        def search_order(order_id: str) -> dict:
            """Look up an order, with the id of its customer."""
            self.made += 1
            return {"order_id": order_id, "customer_id": "C-204"}

        def get_customer(customer_id: str) -> dict:
            """Get the name of a customer."""
            self.made += 1
            return {"customer_id": customer_id, "name": "Ann"}

        self.toolbox = Toolbox([get_weather, search_order, get_customer])

    # ------------------------------------------------------------------------------------------------ the other side

    def sleep(self, seconds):
        self.now += seconds

    def send(self, request):
        patience = Patience(sleep=self.sleep, chance=self.random.random)
        answer = yield from patience.until_begun(lambda: self.begin(request), lambda: 1000.0)
        yield from answer

    def begin(self, request):
        """An attempt: each may fail in another way."""
        self.fault = self.random.choice(list(faults.FAULTS)) if self.random.randrange(ONE_IN) == 0 else None
        self.faults[self.fault] += 1
        model = "mock" if self.fault is None else f"mock:{self.fault}"
        body = request.body if "model" not in request.body else {**request.body, "model": model}
        path = request.path.replace("/models/mock:", f"/models/{model.replace(':', '%3A')}:")
        try:
            return mock.send(replace(request, path=path, body=body))
        except ProviderError as error:
            if self.fault is None:
                pytest.fail(f"a sound request was refused: {error}")
            raise

    # --------------------------------------------------------------------------------------------------- this side

    def run_once(self):
        wire = self.random.choice(list(WIRES))
        ran, made = [], self.made

        def see(event):
            if isinstance(event, RequestReady):
                self.rounds += 1
            elif isinstance(event, ToolDone) and event.result.code in (None, "tool_failed"):
                ran.append(event.result.call_id)
            elif isinstance(event, RunEnded):
                self.end(event)

        running = run(
            self.random.choice(PROMPTS),
            self.history,
            target=Target("mock", wire, mock=True),
            send=self.send,
            calls=Caller(self.toolbox, clock=lambda: self.now),
            definitions=self.toolbox.definitions,
            settings=THINKING.get(wire) if self.random.randrange(2) else None,
            stream=self.random.randrange(4) > 0,
            limits=Limits(6, 30.0),
            clock=lambda: self.now,
            pause=self.sleep,
        )
        try:
            pull(running, see)
        except ProviderError:
            assert self.failed  # the ending said so before
        assert self.made - made == len(ran)
        assert len(set(ran)) == len(ran)
        assert not self.run_ids & set(ran), "a call ran a second time"
        self.run_ids |= set(ran)
        if len(self.history) > LONGEST:
            self.begin_anew()

    def end(self, event):
        self.endings[event.reason] += 1
        went_well = event.reason == "stop"
        self.went_on += went_well and self.failed
        self.failed = event.reason == "error"
        assert mend(event.history) == (event.history, ())
        calls = [call.id for message in event.history for call in message.tool_calls]
        assert calls == [message.tool_call_id for message in event.history if message.role == "tool"]
        assert len(set(calls)) == len(calls)
        self.history = event.history

    def go_on_to(self, share):
        while self.rounds < share * ROUNDS:
            self.run_once()
        self.begin_anew()
        gc.collect()

    def begin_anew(self):
        self.history = ()
        self.run_ids = set()


def test_thousands_of_rounds_with_a_server_that_fails_leave_every_history_whole_and_the_memory_flat(monkeypatch):
    soak = Soak(20_261_130)
    monkeypatch.setattr(faults, "time", SimpleNamespace(sleep=soak.sleep))
    soak.go_on_to(0.4)  # what is loaded and learned until here is not counted
    blocks = [sys.getallocatedblocks()]
    soak.go_on_to(0.85)
    blocks.append(sys.getallocatedblocks())
    tracemalloc.start()  # costs four times the time, so only at the end
    traced = []
    for share in (0.9, 1):
        soak.go_on_to(share)
        traced.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert soak.rounds >= ROUNDS
    assert set(soak.faults) == {None, *faults.FAULTS}
    assert soak.endings.keys() >= {"stop", "error", "content_filter", "time_limit"}
    assert soak.went_on > soak.endings["error"] / 2
    assert soak.made > ROUNDS / 10
    assert blocks[1] - blocks[0] < FLAT_BLOCKS, blocks
    assert traced[1] - traced[0] < FLAT_BYTES, traced
