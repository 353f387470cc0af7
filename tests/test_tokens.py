"""Counting: tiktoken is the judge of texts, recorded usage of the real services the judge of requests."""

# characters that look like others are what is counted here

import base64
import hashlib
import inspect
import json
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nb_agent import tokens, values, vocabulary
from nb_agent.messages import PARTS, Message, Segment, Text, Thinking, ToolCall
from nb_agent.tokens import Breakdown, breakdown, breakdown_reply, count, encoding_for

NAMES = ("o200k_base", "cl100k_base")
RECORDS = Path(__file__).resolve().parents[2] / "shared" / "facts" / "token-counts.jsonl"


@pytest.fixture(scope="session")
def tiktokens():
    """tiktoken's encodings made the way tiktoken makes them, but from our files: rank by rank, no download."""
    import tiktoken
    from tiktoken_ext import openai_public

    def parsed(address, **_):
        lines = vocabulary._read(address.rsplit("/", 1)[1].removesuffix(".tiktoken")).splitlines()
        return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", parsed)
        return {name: tiktoken.Encoding(**getattr(openai_public, name)()) for name in NAMES}


@pytest.fixture
def fresh(monkeypatch):
    """Nothing built and nothing remembered."""
    monkeypatch.setattr(vocabulary, "_built", {})
    forget(monkeypatch)


@pytest.fixture
def encoded(monkeypatch):
    """The texts that were put through an encoder."""
    forget(monkeypatch)
    texts = []
    encode = vocabulary._encode
    monkeypatch.setattr(vocabulary, "_encode", lambda encoding, text: texts.append(text) or encode(encoding, text))
    return texts


def forget(monkeypatch):
    monkeypatch.setattr(vocabulary, "_memo", type(vocabulary._memo)())
    monkeypatch.setattr(vocabulary, "_remembered", 0)


# ------------------------------------------------------------------------------------------------- the vocabularies


@pytest.mark.parametrize("name", NAMES)
def test_the_file_has_the_hash_that_tiktoken_demands(name):
    from tiktoken_ext import openai_public

    content = vocabulary._read(name)
    demanded = re.search(r'expected_hash="(\w+)"', inspect.getsource(getattr(openai_public, name)))[1]
    assert hashlib.sha256(content).hexdigest() == demanded == vocabulary.VOCABULARIES[name].sha256


@pytest.mark.parametrize("name", NAMES)
def test_pattern_specials_and_ranks_are_tiktokens(name, tiktokens):
    ours, theirs = vocabulary._encoding(name), tiktokens[name]
    assert ours._pat_str == theirs._pat_str
    assert ours._special_tokens == theirs._special_tokens
    assert ours._mergeable_ranks == theirs._mergeable_ranks


@pytest.mark.parametrize("name", NAMES)
def test_any_short_text_counts_as_in_tiktoken(name, tiktokens):
    dice = random.Random(7)
    alphabet = [
        *"aBé你の한ก्ß1²٣ \n\t'_/-{\"\\🌲ǅ\x00\u0301\u200b\ufeff\U00020000",
        "  ",
        "\r\n",
        "'s",
        "’ll",
        "<|endoftext|>",
        "👩\u200d💻",
    ]
    for _ in range(2000):
        text = "".join(dice.choices(alphabet, k=dice.randrange(1, 12)))
        assert vocabulary.measure(text, name) == (len(tiktokens[name].encode_ordinary(text)), True), ascii(text)


def test_a_text_longer_than_a_piece_counts_as_in_tiktoken(tiktokens):
    source = Path(json.__file__).with_name("decoder.py").read_text(encoding="utf-8") * 4
    table = "\n".join(f"{number},{number * 7},{number / 3}" for number in range(3000))
    chinese = "大模型在每一轮里读取整个历史，然后决定要不要调用工具。" * 2000
    for text in (source, json.dumps(source), table, chinese, source.replace(" ", ""), base64.b64encode(source.encode()).decode()):
        assert len(text) > 2 * vocabulary._LONGEST
        for name in NAMES:
            assert vocabulary.measure(text, name) == (len(tiktokens[name].encode_ordinary(text)), True), (name, text[:40])


def test_every_cut_at_a_gap_changes_no_token(tiktokens):
    dice = random.Random(11)
    alphabet = [*"Cé你 \n',/_，。\t🌲\u0301²", "ab", "don't", "12", "\r\n", "\n\n", "'s", "//"]
    cut = 0
    for _ in range(3000):
        text = "".join(dice.choices(alphabet, k=12))
        for gap in vocabulary._compiled(vocabulary._GAP).finditer(text, 1):
            cut += 1
            for encoding in tiktokens.values():
                apart = encoding.encode_ordinary(text[: gap.start()]) + encoding.encode_ordinary(text[gap.start() :])
                assert apart == encoding.encode_ordinary(text), (encoding.name, text, gap.start())
    assert cut > 3000


def test_pieces_joined_are_the_text():
    text = "".join(random.Random(3).choices("ab1 \n,", k=50_000)) + "x" * 30_000
    found = list(vocabulary.pieces(text))
    assert "".join(piece for piece, _ in found) == text
    assert max(len(piece) for piece, _ in found) <= vocabulary._LONGEST
    assert not all(whole for _, whole in found)


def test_special_tokens_in_a_text_are_plain_text(cases):
    for text, (low, high) in zip(cases["G05"]["given"]["texts"], [(3, 12), (8, 25)], strict=True):
        for model in ("gpt-4o", "gpt-4", "mock"):
            assert low <= count(text, model=model) <= high
    every = [special for name in NAMES for special in vocabulary.VOCABULARIES[name].specials]
    assert all(count(special, model=model) > 1 for special in every for model in ("gpt-4o", "gpt-4"))


def test_half_a_surrogate_pair_counts_as_the_question_mark_that_is_sent():
    assert values.encode("a\ud83d b") == b'"a? b"'
    assert count("a\ud83d b") == count("a? b")


RUNS = {
    "letters": "a" * 300_000,
    "signs": "^" * 1_000_000,
    "blanks": " " * 300_000,
    "pairs": "ab" * 200_000,
    "base64": base64.b64encode(random.Random(1).randbytes(300_000)).decode(),
    "lines": "\n" * 300_000,
    "blanks before a letter": " " * 300_000 + "a",
    "lines and blanks": " \n\t" * 100_000,
    "capitals": "A" * 300_000 + "a",
    "Thai": "สวัสดีครับ" * 30_000,
    "Chinese": "你好世界" * 75_000,
    "emoji": "🌲🌊" * 100_000,
    "marks": "e" + "\u0301" * 200_000,
    "digits": "7" * 300_000,
    "apostrophes": "'s" * 150_000,
    "half pairs": "\ud83d" * 300_000,
    "nulls": "\x00" * 300_000,
}


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4"])
@pytest.mark.parametrize("kind", RUNS)
def test_a_pathological_run_is_counted_in_time(kind, model, tiktokens):
    text = RUNS[kind]
    begun = time.perf_counter()
    found = count(text, model=model)
    assert time.perf_counter() - begun < 2
    assert len(text) / 256 <= found <= 4 * len(text)
    if kind != "half pairs":
        assert found == pytest.approx(len(tiktokens[encoding_for(model).name].encode_ordinary(text)), rel=0.02)


def test_a_run_that_had_to_be_cut_is_not_called_exact():
    assert not vocabulary.measure("a" * 20_000, "o200k_base").exact
    assert vocabulary.measure("a b " * 5_000, "o200k_base").exact


def test_a_panic_in_the_encoder_gives_an_estimate_and_an_interrupt_gets_through(monkeypatch):
    forget(monkeypatch)
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})

    def raising(fault):
        def encode(_encoding, _text):
            raise fault

        return encode

    for fault in (panic("regex"), ValueError("stack")):
        monkeypatch.setattr(vocabulary, "_encode", raising(fault))
        assert vocabulary.measure(f"some text {fault!r}", "o200k_base") == (tokens.estimate(f"some text {fault!r}"), False)
    monkeypatch.setattr(vocabulary, "_encode", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        vocabulary.measure("other text", "o200k_base")


# ------------------------------------------------------------------------------------------------- without a vocabulary


def damaged(_name):
    return b"IQ== 0\n"


def missing(name):
    raise FileNotFoundError(name)


def uninstalled(_name):
    raise ModuleNotFoundError("No module named 'tiktoken'")


@pytest.mark.parametrize("read", [damaged, missing, uninstalled])
def test_without_its_vocabulary_a_count_is_an_estimate_that_says_so(read, fresh, monkeypatch):
    monkeypatch.setattr(vocabulary, "_read", read)
    text = "The quick brown fox jumps over the lazy dog."
    assert 7 <= count(text, model="gpt-4o") <= 16
    found = breakdown([Segment("user", text, 0)], model="gpt-4o")
    assert (found.exact, found.encoding, found.total) == (False, "estimate", count(text) + 7)


def test_a_file_that_is_missing_is_looked_for_once(fresh, monkeypatch):
    tries = []
    build = vocabulary._build
    monkeypatch.setattr(vocabulary, "_read", missing)
    monkeypatch.setattr(vocabulary, "_build", lambda name: tries.append(name) or build(name))
    for number in range(5):
        count(f"text {number}", model="gpt-4o")
    assert tries == ["o200k_base"]


def test_the_message_about_a_damaged_file_names_both_hashes_and_the_next_step(monkeypatch):
    monkeypatch.setattr(vocabulary, "_read", damaged)
    found, demanded = hashlib.sha256(b"IQ== 0\n").hexdigest(), vocabulary.VOCABULARIES["o200k_base"].sha256
    with pytest.raises(ValueError) as caught:
        vocabulary._build("o200k_base")
    text = f"o200k_base.tiktoken has the SHA-256 {found}; tiktoken demands {demanded}. Install nb_agent again."
    assert str(caught.value) == text


def test_the_estimate_fits_every_script(cases):
    ranges = cases["G10"]["expect"]["ranges"]
    texts = {"ja": "日本語の文章です。" * 40, "zh": "你好世界" * 100, "ko": "안녕하세요 " * 60}
    texts |= {"en": "The cat sat on the mat. " * 20, "emoji": "🌲🌊" * 50}
    for name, (low, high) in ranges.items():
        assert low <= tokens.estimate(texts[name]) <= high, name


@pytest.mark.parametrize(
    "text",
    [
        "Привет, как дела? Сегодня хорошая погода. " * 10,
        "مرحبا كيف حالك اليوم يا صديقي " * 10,
        "नमस्ते आप कैसे हैं आज मौसम अच्छा है " * 10,
        "สวัสดีครับวันนี้อากาศดี" * 10,
        "L'été dernier, nous avons mangé à la plage. " * 10,
        "def add(a: int, b: int) -> int:\n    return a + b\n" * 10,
        json.dumps(json.dumps([{"city": "北京", "at": "2026-01-02T03:04:05Z", "n": 12.5}] * 10)),
        "550e8400-e29b-41d4-a716-446655440000\n" * 20,
        "你好，world！🌲 1234\n" * 20,
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢" * 20,
        base64.b64encode(bytes(range(256)) * 8).decode(),
    ],
)
def test_the_estimate_is_near_the_count(text):
    exact = [count(text, model=model) for model in ("gpt-4o", "gpt-4")]
    assert min(exact) / 2 < tokens.estimate(text) < max(exact) * 2


def test_an_estimate_of_a_long_text_is_quick():
    begun = time.perf_counter()
    assert tokens.estimate("^" * 1_000_000 + "a b" * 100_000) > 0
    assert time.perf_counter() - begun < 2


def test_nothing_is_loaded_before_the_first_count_and_the_network_is_never_tried():
    script = """
import socket, sys
def no(*_, **__): raise OSError("no network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = no
import nb_agent.tokens, nb_agent.vocabulary
assert "tiktoken" not in sys.modules and not nb_agent.vocabulary._built
print(nb_agent.tokens.count("hello world", model="gpt-4o"), list(nb_agent.vocabulary._built))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split(maxsplit=1) == ["2", "['o200k_base']\n"]


def test_threads_that_count_at_once_build_the_vocabulary_once(fresh, monkeypatch):
    builds, build = [], vocabulary._build
    monkeypatch.setattr(vocabulary, "_build", lambda name: builds.append(name) or build(name))
    found = []
    threads = [threading.Thread(target=lambda n=n: found.append(count(f"hello {n}", model="gpt-4"))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert builds == ["cl100k_base"]
    assert len(found) == 8


# ------------------------------------------------------------------------------------------------- what is remembered


def test_a_long_run_encodes_only_what_is_new(encoded):
    said = [Segment("system", "You are a helper.", 0), Segment("history", "Begin.", 1)]
    definitions = [Segment("tools", json.dumps({"name": "look", "about": "Looks things up. " * 20}), tool="look")]
    for number in range(200):
        place = len(said)
        said.append(Segment("tool_calls", json.dumps({"page": number}), place))
        said.append(Segment("tool_results", f"page {number}: " + "words " * 100, place + 1))
        found = breakdown([*said, *definitions], model="mock")
    whole = sum(len(segment.text) for segment in [*said, *definitions])
    assert sum(map(len, encoded)) == whole
    assert found.total > 20_000


def test_what_is_remembered_is_bounded_in_characters(encoded, monkeypatch):
    monkeypatch.setattr(vocabulary, "_MOST_REMEMBERED", 5_000)
    for number in range(100):
        count(f"{number} " + "x" * 500)
    held = sum(len(text) + vocabulary._ENTRY for _, text in vocabulary._memo)
    assert held == vocabulary._remembered <= 5_000
    newest = "99 " + "x" * 500
    before = len(encoded)
    count(newest)
    assert len(encoded) == before
    count("0 " + "x" * 500)
    assert len(encoded) == before + 1
    count("y " * 5_000)  # too large to keep: nothing else has to go for it
    assert ("o200k_base", newest) in vocabulary._memo


# ------------------------------------------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        ("gpt-3.5-turbo", "cl100k_base", True),
        ("gpt-3.5-turbo-0125", "cl100k_base", True),
        ("gpt-35-turbo", "cl100k_base", True),
        ("azure/gpt-35-turbo-16k", "cl100k_base", True),
        ("gpt-4", "cl100k_base", True),
        ("gpt-4-0613", "cl100k_base", True),
        ("gpt-4-1106-preview", "cl100k_base", True),
        ("gpt-4-32k", "cl100k_base", True),
        ("gpt-4-turbo-2024-04-09", "cl100k_base", True),
        ("ft:gpt-3.5-turbo-0125:org::id", "cl100k_base", True),
        ("gpt-4o", "o200k_base", True),
        ("GPT-4o-mini", "o200k_base", True),
        ("azure/gpt-4o-2024-11-20", "o200k_base", True),
        ("openai:gpt-4o", "o200k_base", True),
        ("ft:gpt-4o:org", "o200k_base", True),
        ("openrouter/openai/gpt-4.1-nano", "o200k_base", True),
        ("gpt-4.1", "o200k_base", True),
        ("gpt-4.5-preview", "o200k_base", True),
        ("chatgpt-4o-latest", "o200k_base", True),
        ("gpt-5", "o200k_base", True),
        ("gpt-5.6-mini", "o200k_base", True),
        ("o1", "o200k_base", True),
        ("o1-preview", "o200k_base", True),
        ("openai/o3-mini", "o200k_base", True),
        ("o4-mini-2025-04-16", "o200k_base", True),
        ("mock", "o200k_base", True),
        ("mock-8k", "o200k_base", True),
        ("team-gpt-4o", "o200k_base", False),
        ("prod_gpt-4", "cl100k_base", False),
        ("team-blue", "o200k_base", False),
        ("claude-opus-4-8", "o200k_base", False),
        ("gemini-2.5-pro", "o200k_base", False),
        ("llama3:8b", "o200k_base", False),
        ("qwen2-o10", "o200k_base", False),
        ("gpt-6", "o200k_base", False),
        ("", "o200k_base", False),
        (None, "o200k_base", False),
        ("//::-", "o200k_base", False),
    ],
)
def test_any_model_name_has_an_encoding(model, name, exact):
    assert encoding_for(model) == (name, exact)
    assert 4 <= count("Seven swans swim south.", model=model) <= 12


def test_the_names_that_tiktoken_knows_get_the_same_encoding():
    from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

    known = {**MODEL_TO_ENCODING, **{f"{prefix}x": name for prefix, name in MODEL_PREFIX_TO_ENCODING.items()}}
    for model, name in known.items():
        if name in NAMES:
            assert encoding_for(model) == (name, True), model


# ------------------------------------------------------------------------------------------------- requests


def plain(record):
    """The segments of a request of plain messages, built by hand."""
    last = max((n for n, message in enumerate(record["messages"]) if message["role"] == "user"), default=-1)
    for place, message in enumerate(record["messages"]):
        part = message["role"] if message["role"] != "user" or place == last else "history"
        yield Segment(part, message["content"], place)
        if "name" in message:
            yield Segment("overhead", message["name"], place)


def records():
    if not RECORDS.exists():
        pytest.skip("the recorded counts are not beside this clone: shared/facts/token-counts.jsonl")
    lines = RECORDS.read_text(encoding="utf-8").splitlines()
    chats = [record for record in map(json.loads, lines) if record["api"] == "chat"]
    known = {"role", "content", "name"}
    for record in chats:
        simple = all(set(message) <= known and message["role"] != "function" for message in record["messages"])
        if simple and not record.get("tools") and not record.get("functions"):
            yield record


def test_plain_chats_cost_what_the_service_reported():
    rows = [(r["id"], r["model"], r["prompt_tokens"], breakdown(list(plain(r)), model=r["model"])) for r in records()]
    for name, model, reported, found in rows:
        verdict = "exact" if found.total == reported else "OFF"
        print(f"{name:36} {model:28} reported {reported:4} counted {found.total:4} {verdict}")  # noqa: T201  shown with -s
    print(f"{sum(found.total == reported for _, _, reported, found in rows)} of {len(rows)} exact")  # noqa: T201  shown with -s
    assert len(rows) > 20
    assert [name for name, _, reported, found in rows if found.total != reported] == []
    assert [name for name, _, _, found in rows if not found.exact] == []


def test_the_parts_of_any_request_add_up():
    dice = random.Random(5)
    for _ in range(300):
        segments = []
        for place in range(dice.randrange(8)):
            for _ in range(dice.randrange(4)):
                part = dice.choice([part for part in PARTS if part != "tools"])
                segments.append(Segment(part, dice.choice(["", "a few words", "你好 🌲", "{}"]), dice.choice([place, None])))
        segments += [Segment("tools", '{"name":"f"}', tool=dice.choice(["f", "g", None])) for _ in range(dice.randrange(3))]
        found = breakdown(segments, model=dice.choice(["mock", "gpt-4", "gpt-3.5-turbo-0301", "o3", "claude", ""]))
        assert found.total == sum(found.parts.values())
        assert list(found.parts) == [part for part in PARTS if part in found.parts]
        assert sum(found.tools.values()) <= found.parts.get("tools", 0)
        assert sum(found.messages) + sum(found.tools.values()) <= found.total
        assert values.from_json(json.loads(json.dumps(values.to_json(found)))) == found


def test_a_request_is_split_into_its_parts():
    found = breakdown(
        [
            Segment("system", "Be brief.", 0),
            Segment("history", "hello", 1),
            Segment("assistant", "hello", 2),
            Segment("assistant", "", 3),
            Segment("tool_calls", "look", 3),
            Segment("tool_calls", '{"id":1}', 3),
            Segment("tool_results", "found", 4),
            Segment("user", "hello", 5),
            Segment("tools", '{"name":"look"}', tool="look"),
            Segment("tools", '{"name":"write"}', tool="write"),
        ],
        model="mock",
    )
    look, write = count('{"name":"look"}'), count('{"name":"write"}')
    calls = count("look") + count('{"id":1}')
    assert found.parts == {
        "system": count("Be brief."),
        "history": 1,
        "assistant": 1,
        "tool_calls": calls,
        "tool_results": 1,
        "user": 1,
        "tools": look + write,
        "overhead": 6 * 4 + 3,
    }
    assert found.tools == {"look": look, "write": write}
    assert found.messages == (count("Be brief.") + 4, 5, 5, calls + 4, 5, 5)
    assert (found.exact, found.encoding) == (True, "o200k_base")
    shown = {"parts": found.parts, "tools": found.tools, "messages": list(found.messages)}
    assert found.shown() == shown | {"total": found.total, "exact": True, "encoding": "o200k_base"}


def test_text_parts_of_one_message_count_like_the_joined_text():
    apart = [Segment("user", "under", 0), Segment("user", "standing", 0)]
    joined = [Segment("user", "understanding", 0)]
    assert breakdown(apart, model="mock") == breakdown(joined, model="mock")


def test_instructions_apart_from_the_messages_cost_a_message():
    beside = breakdown([Segment("system", "Be brief."), Segment("user", "hello", 0)], model="gpt-4o")
    within = breakdown([Segment("system", "Be brief.", 0), Segment("user", "hello", 1)], model="gpt-4o")
    assert beside.parts == within.parts
    assert beside.messages == (5,)


def test_a_place_without_a_segment_is_an_empty_message():
    assert breakdown([Segment("user", "hello", 2)], model="mock").messages == (4, 4, 5)


def test_a_model_that_reasons_pays_for_what_it_said_before_but_not_beside_a_call():
    def overhead(*said):
        return breakdown([*said, Segment("user", "hello", 1)], model="o4-mini").parts["overhead"]

    assert overhead(Segment("assistant", "hello", 0)) == 2 * 4 + 2 + 2
    assert overhead(Segment("assistant", "hello", 0), Segment("tool_calls", "look", 0)) == 2 * 4 + 2


@pytest.mark.parametrize(
    ("model", "extra", "exact"),
    [
        ("gpt-4o", None, True),
        ("gpt-4o", Segment("tools", "{}", tool="f"), False),
        ("gpt-4o", Segment("tool_calls", "{}", 1), False),
        ("gpt-4o", Segment("images", "", 0), False),
        ("mock", Segment("tools", "{}", tool="f"), True),
        ("mock-8k", Segment("images", "", 0), True),
        ("claude-opus-4-8", None, False),
        ("o1-mini", None, False),
        ("mock", Segment("tool_results", "a" * 20_000, 1), False),
    ],
)
def test_only_what_a_provider_should_report_alike_is_called_exact(model, extra, exact):
    segments = [Segment("user", "hello", 0), *([extra] if extra else [])]
    assert breakdown(segments, model=model).exact is exact


def test_an_image_costs_the_same_however_many_characters_it_has(encoded, cases):
    budget = cases["G15"]["given"]["budget_tokens"]
    found = breakdown([Segment("user", "look", 0), Segment("images", "", 0)], model="gpt-4o")
    assert found.parts == {"user": 1, "images": tokens.IMAGE, "overhead": 7}
    assert found.messages == (1 + tokens.IMAGE + 4,)
    assert found.total < min(5_000, budget)
    breakdown([Segment("images", "A" * 2_000_000, 0)], model="gpt-4o")
    assert max(map(len, encoded)) < 10


def test_a_part_that_is_not_one_is_named():
    with pytest.raises(ValueError) as caught:
        breakdown([Segment("sytem", "hi", 0)], model="mock")
    assert str(caught.value) == f"no part named 'sytem' in a request; parts: {', '.join(PARTS)}"


def test_an_empty_request_costs_its_priming():
    assert breakdown([], model="mock") == Breakdown({"overhead": 3}, {}, (), 3, exact=True, encoding="o200k_base")


# ------------------------------------------------------------------------------------------------- replies


def test_a_reply_is_split_into_text_names_arguments_and_reasoning():
    said = r'{"text":"line\nline \"quoted\""}'
    calls = (ToolCall("1", "write", said), ToolCall("2", "look", "{}"), ToolCall("3", "look", "{"))
    found = breakdown_reply(Message("assistant", (Thinking("hm"), Text("I will "), Text("write."), *calls)), model="mock")
    assert found.parts == {
        "text": count("I will write."),
        "call_names": count("write") + 2 * count("look"),
        "arguments": count(said) + count("{}") + count("{"),
        "reasoning": count("hm"),
    }
    assert found.tools == {"write": count("write") + count(said), "look": 2 * count("look") + count("{}") + count("{")}
    assert found.messages == (found.total,) == (sum(found.parts.values()),)
    assert found.exact
    assert not breakdown_reply(Message.of("assistant", "hi"), model="gpt-4o").exact


def test_a_reply_with_nothing_in_it_costs_nothing():
    found = breakdown_reply(Message("assistant"), model="mock")
    assert (found.parts, found.total) == ({}, 0)
