"""What the tests of all wire formats share: reading a reply, and flows that a hand-written loop can run."""

import json

from nb_agent.adapters import receive
from nb_agent.messages import Definition, ToolCall


def read(wire, *chunks, turn=0):
    """The reply that these reads give, and the pieces that were seen on the way."""
    pieces, reading = [], receive(wire, chunks, turn=turn)
    while True:
        try:
            pieces += next(reading)[1]
        except StopIteration as end:
            return end.value, pieces


def received(wire, content):
    """The reply in the bytes of a whole answer."""
    return read(wire, content)[0]


def called(reply):
    """The calls of a reply with their arguments as objects."""
    return [{"id": call.id, "name": call.name, "arguments": json.loads(call.arguments)} for call in reply.message.tool_calls]


def definition(name, description, **properties):
    schema = {key: {"type": "string", "description": text} for key, text in properties.items()}
    return Definition(name, description, {"type": "object", "properties": schema, "required": list(properties)})


#: Two calls, the first with what is hard to write down.
CALLS = (ToolCall("call_1", "area", '{"w":2,"note":"京都 \\"x\\" 🙂"}'), ToolCall("call_2", "now", "{}"))

WEATHER = definition("get_weather", "Get the current weather for a city.", city="Name of the city, e.g. Paris")
ORDER = definition("search_order", "Look up an order.", order_id="Order id, e.g. ORD-1001")
CUSTOMER = definition("get_customer", "Get a customer's name.", customer_id="Customer id, e.g. C-204")
FILES = [
    definition("read_file", "Read a file.", path="Path"),
    definition("search_files", "Find files.", pattern="Glob pattern"),
    definition("write_file", "Write a file.", path="Path", content="Text"),
]
#: What the tools give.
RESULTS = {
    "get_weather": lambda given: {"city": given["city"], "temperature": 18},
    "search_order": lambda given: {"order_id": given["order_id"], "customer_id": "C-204"},
    "get_customer": lambda given: {"customer_id": given["customer_id"], "name": "Ann"},
    "read_file": lambda given: "name: demo\nversion: 2\n",
    "search_files": lambda given: ["README.md"],
    "write_file": lambda given: {"path": given["path"]},
}
#: Prompt, tools, and the names of the calls of each round.
FLOWS = {
    "single": ("What's the weather in Paris?", [WEATHER], [["get_weather"]]),
    "parallel": ("What's the weather in Paris and Rome?", [WEATHER], [["get_weather", "get_weather"]]),
    "dependent": ("Who is the customer of order ORD-1001?", [ORDER, CUSTOMER], [["search_order"], ["get_customer"]]),
    "three rounds": (
        "Read `config.yaml` and list the Markdown files, then write a summary to `report.md`",
        FILES,
        [["read_file", "search_files"], ["write_file"]],
    ),
    "text": ("hello", [WEATHER], []),
}
