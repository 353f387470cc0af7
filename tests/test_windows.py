"""Windows and budgets: what is known of models, what refusals teach, what an answer may have and which limit says so."""

import json

import pytest
from scripted import answers, said

from nb_agent import Agent, budget, tool
from nb_agent.adapters import WIRES
from nb_agent.adapters.refusals import refusal
from nb_agent.errors import ProviderError, SettingError
from nb_agent.messages import Message
from nb_agent.windows import known, learned, limit_in, table, use
from nb_agent.windows.budgets import budgeted


@pytest.fixture(autouse=True)
def forget():
    yield
    use({})
    learned._windows.clear()


def request(wire="chat_completions", model="gpt-4o", text="hello", **settings):
    return WIRES[wire].request([Message.of("user", text)], [], model=model, settings=settings)


# ------------------------------------------------------------------------------------------------ known models


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("gpt-4o", 128_000, 16_384),
        ("azure/gpt-4o-2024-11-20", 128_000, 16_384),
        ("openai:gpt-4.1-mini", 1_047_576, 32_768),
        ("gpt-35-turbo", 16_385, 4_096),
        ("gpt-4-0613", 8_192, 8_192),
        ("gpt-4-32k-0613", 32_768, 32_768),
        ("ft:gpt-4o-mini-2024-07-18:org::id", 128_000, 16_384),
        ("openrouter/anthropic/claude-3.5-sonnet", 200_000, 8_192),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 64_000),
        ("claude-sonnet-4@20250514", 200_000, 64_000),
        ("claude-3-opus-latest", 200_000, 4_096),
        ("models/gemini-2.5-flash", 1_048_576, 65_536),
        ("GPT-5-mini", 400_000, 128_000),
    ],
)
def test_a_decorated_name_is_the_model_that_it_decorates(model, window, output):
    found = known(model)
    assert (found.window, found.output) == (window, output)
    assert found.source
    assert found.as_of == "2026-12-01"


@pytest.mark.parametrize(
    "model", ["qwen3:8b-q4_K_M", "gpt-4o-mega", "gpt-5.99", "claude-haiku-12", "team-gpt-4o", "llama3.1", "", "gpt", "gpt-4o2"]
)
def test_a_name_that_is_only_like_a_known_one_is_not_known(model):
    assert known(model) is None


def test_every_entry_of_the_table_names_its_source():
    entries = json.loads(table.Path(table.__file__).with_name("models.json").read_text(encoding="utf-8"))
    assert len(entries["models"]) > 100
    assert {entry["source"] for entry in entries["models"].values()} == set(entries["sources"])
    assert all(entry["output"] is None or entry["output"] <= entry["window"] for entry in entries["models"].values())


def test_the_user_may_add_models_and_correct_them(tmp_path, monkeypatch):
    use({"qwen3": {"window": 40_960}, "gpt-4o": {"window": 64_000, "output": 1_000}})
    assert (known("qwen3").window, known("ollama:qwen3").output) == (40_960, None)
    assert known("gpt-4o").window == 64_000
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"as_of": "2030-01-01", "models": {"mine": {"window": 9_000}}}))
    use(path)
    assert known("mine").as_of == "2030-01-01"
    use({})
    assert known("mine") is None
    monkeypatch.setenv("NB_AGENT_MODELS", str(path))
    assert known("mine").window == 9_000


@pytest.mark.parametrize(
    "wrong", [{"m": {"window": 0}}, {"m": {"window": "8k"}}, {"m": {"window": True}}, {"m": {}}, {"m": {"window": 5, "output": -1}}]
)
def test_an_entry_that_cannot_be_is_refused_and_nothing_is_changed(wrong):
    with pytest.raises(SettingError, match="your own table: 'm' must have a window"):
        use({"good": {"window": 5}, **wrong})
    assert known("good") is None


@pytest.mark.parametrize("text", ["{", "[]", '{"models": {"m": 0}}'])
def test_a_file_that_cannot_be_read_is_named(tmp_path, text):
    path = tmp_path / "models.json"
    path.write_text(text)
    with pytest.raises(SettingError, match=r"models\.json"):
        use(path)
    with pytest.raises(SettingError, match="cannot read the table of models"):
        use(tmp_path / "none.json")


# ------------------------------------------------------------------------------------------- what refusals teach


@pytest.mark.parametrize(
    ("words", "window"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8001 in the messages).",
            8_192,
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4_096),
        ("Input is too long for requested model.", None),
        ("Requested token count exceeds the model's maximum context length of 131,072 tokens.", 131_072),
    ],
)
def test_the_window_is_read_out_of_a_refusal(words, window):
    assert limit_in(words) == window


def test_a_refusal_teaches_the_window_of_an_unknown_model_for_the_next_run(monkeypatch):
    def send(request, *, until=None):
        raise refusal(
            400,
            b'{"error": {"code": "context_length_exceeded", "message": "maximum context length is 5000 tokens, you sent 9001"}}',
        )
        yield b""

    monkeypatch.setattr("nb_agent.transport.Transport.send", lambda self, request, until=None: send(request))
    agent = Agent("my-model", base_url="http://127.0.0.1:9/v1", compaction=None)
    with pytest.raises(ProviderError):
        agent.run("hello", view=False)
    assert agent.last_run.state["window"] is None
    with pytest.raises(ProviderError):
        agent.run("hello", view=False)
    assert agent.last_run.state["window"] == 5_000
    assert budget(agent.last_run.requests[0], "my-model").window == 5_000


def test_words_that_ask_to_slow_down_teach_nothing(monkeypatch):
    def send(self, request, until=None):
        raise refusal(429, b'{"error": {"code": "rate_limit_exceeded", "message": "tokens per min limit 30000, requested 9000"}}')
        yield b""

    monkeypatch.setattr("nb_agent.transport.Transport.send", send)
    agent = Agent("my-model", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError):
        agent.run("hello", view=False)
    assert learned.window_of("my-model") is None


# ------------------------------------------------------------------------------------------------------ the budget


def test_what_the_window_leaves_binds_where_nothing_smaller_was_asked_for():
    found = budget(request(text="word " * 120_000))
    assert (found.binds, found.window, found.exact) == ("window", 128_000, True)
    assert 0 < found.output == 128_000 - found.input < 16_384


@pytest.mark.parametrize(
    ("settings", "options", "output", "binds"),
    [
        ({}, {}, 16_384, "model maximum"),
        ({"max_tokens": 100}, {}, 100, "asked for"),
        ({"max_tokens": 100}, {"max_output": 50}, 50, "asked for"),
        ({"max_tokens": 99_999}, {}, 16_384, "model maximum"),
        ({}, {"window": 500}, 500 - 8, "window"),
        ({}, {"longest": 7}, 7, "model maximum"),
    ],
)
def test_the_smallest_limit_binds_and_is_named(settings, options, output, binds):
    found = budget(request(**settings), **options)
    assert (found.output, found.binds) == (output, binds)
    assert binds in str(found)


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ("chat_completions", "gpt-4o"),
        ("responses", "gpt-4o"),
        ("anthropic_messages", "claude-sonnet-4-5"),
        ("gemini_generate", "gemini-2.5-pro"),
    ],
)
def test_what_is_asked_for_is_found_in_every_wire_format(wire, model):
    found = budget(request(wire, model, max_tokens=77), model)
    assert (found.asked, found.output, found.binds) == (77, 77, "asked for")


def test_an_estimate_keeps_two_percent_and_sixteen_tokens_free():
    found = budget(request(model="claude-sonnet-4-5"), longest=10**9)
    assert not found.exact
    assert found.margin == int(found.input * 0.02) + 16
    assert found.output == found.window - found.input - found.margin
    assert str(found).startswith("about ")


def test_thinking_is_part_of_the_answer_and_named():
    claude = request("anthropic_messages", "claude-sonnet-4-5", max_tokens=9_000)
    thinking = type(claude)(claude.wire, claude.path, {**claude.body, "thinking": {"type": "enabled", "budget_tokens": 8_000}})
    found = budget(thinking)
    assert (found.output, found.reasoning) == (9_000, 8_000)
    assert "8,000 of them for thinking" in str(found)
    gemini = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 512}, "maxOutputTokens": 600}}
    counted = {"total": 10, "exact": True, "parts": {}}
    assert budgeted(counted, gemini, model="m", window=1_000).reasoning == 512


def test_a_request_over_the_window_says_what_is_large_and_what_to_do():
    found = budget(request(text="word " * 20_000), window=8_192)
    assert (found.output, found.over) == (0, found.input - 8_192)
    assert "the largest parts: user 20,0" in str(found)
    assert "put a long text into a file that a tool reads page by page" in str(found)


def test_an_unknown_model_asks_for_its_window():
    with pytest.raises(SettingError, match=r"window of 'my-model' is not known; pass window=TOKENS"):
        budget(request(model="my-model"))
    assert budget(request(model="my-model"), window=4_096).window == 4_096
    with pytest.raises(SettingError, match="above 0"):
        budget(request(), window=-5)


def test_the_mock_models_windows_are_known():
    assert budget(request(model="mock")).window == 8_192
    assert budget(request(model="mock:window=700")).window == 700


def test_the_view_shows_before_sending_what_the_answer_may_have(monkeypatch):
    answers(monkeypatch, said("hello"))
    seen = []
    run = Agent(max_tokens=50).run("hi", view=False, on_event=seen.append)
    shown = run.state["rounds"][0]["request"]["budget"]
    assert (shown["output"], shown["binds"]) == (50, "asked for")
    assert "8,192" in shown["words"]


def test_an_agent_may_be_told_the_window(monkeypatch):
    @tool
    def look() -> str:
        """Look."""
        return "x " * 5_000

    sent = answers(monkeypatch, said("", ("look", "{}")), said("ok"))
    run = Agent(tools=[look], window=1_000).run("look", view=False)
    assert run.state["window"] == 1_000
    assert budget(sent[1], "mock", window=1_000).over == 0
