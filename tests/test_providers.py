"""Names of models: what they stand for, and which key goes where."""

import pytest

from nb_agent import providers
from nb_agent.errors import SettingError
from nb_agent.messages import Request
from nb_agent.transport import Secret, Transport

ASKED = Request("chat_completions", "/chat/completions", {})


def resolved(model, environ=None, *, base_url=None, key=None, monkeypatch):
    """The target of a model's name, with the address and the key that a request would take."""
    seen = []

    def send(self, request, *, until=None):
        seen.append((self.base_url, self._key and self._key.reveal()))
        return iter(())

    monkeypatch.setattr(Transport, "send", send)
    target, sender = providers.resolve(model, base_url=base_url, key=Secret(key) if key else None, environ=environ or {})
    if not target.mock:
        sender(ASKED, None)
    return target, *(seen[0] if seen else (None, None))


def test_mock_is_the_local_mock_model_with_its_window(monkeypatch):
    target, address, _ = resolved("mock", monkeypatch=monkeypatch)
    assert (target.model, target.mock, target.window, address) == ("mock", True, 8192, None)


def test_mock_behind_an_address_is_a_model_of_that_server(monkeypatch):
    target, address, _ = resolved("mock", base_url="http://127.0.0.1:9", monkeypatch=monkeypatch)
    assert (target.mock, address) == (False, "http://127.0.0.1:9/v1")


def test_a_prefix_names_the_server_and_the_variable_of_its_key(monkeypatch):
    target, address, key = resolved("openai:gpt-4o-mini", {"OPENAI_API_KEY": "sk-1"}, monkeypatch=monkeypatch)
    assert (target.model, target.wire, address, key) == ("gpt-4o-mini", "chat_completions", "https://api.openai.com/v1", "sk-1")


def test_the_rest_of_a_name_keeps_its_colons(monkeypatch):
    assert resolved("ollama:qwen3:8b-q4_K_M", monkeypatch=monkeypatch)[0].model == "qwen3:8b-q4_K_M"


def test_the_address_of_a_provider_can_be_set_in_the_environment_and_on_the_spot(monkeypatch):
    environ = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://gateway.test/v1"}
    assert resolved("openai:m", environ, monkeypatch=monkeypatch)[1] == "http://gateway.test/v1"
    assert resolved("openai:m", environ, base_url="http://other.test", monkeypatch=monkeypatch)[1] == "http://other.test/v1"


def test_a_key_of_the_environment_never_goes_to_an_address_that_it_is_not_for(monkeypatch):
    environ = {"OPENAI_API_KEY": "sk-1", "MISTRAL_API_KEY": "sk-2"}
    assert resolved("some-model", environ, base_url="http://x.test", monkeypatch=monkeypatch)[2] is None
    assert resolved("ollama:m", environ, monkeypatch=monkeypatch)[2] is None


def test_a_server_of_ones_own_is_found_in_the_environment(monkeypatch):
    environ = {"NB_AGENT_BASE_URL": "http://mine.test/v1", "NB_AGENT_API_KEY": "k"}
    _, address, key = resolved("some-model", environ, monkeypatch=monkeypatch)
    assert (address, key) == ("http://mine.test/v1", "k")


def test_a_key_that_is_given_goes_before_the_environment(monkeypatch):
    assert resolved("openai:m", {"OPENAI_API_KEY": "sk-1"}, key="sk-2", monkeypatch=monkeypatch)[2] == "sk-2"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("openai:gpt-4o-mini", r"no key for 'openai:gpt-4o-mini': set OPENAI_API_KEY in the environment, or pass api_key="),
        ("gpt-4o", r"model 'gpt-4o' names no server; write PROVIDER:NAME with one of openai, .*, or take a mock model: mock"),
        ("nowhere:x", r"model 'nowhere:x' names no server"),
        ("openai:", r"model 'openai:' names no server"),
        ("", r"the model has no name"),
    ],
)
def test_a_name_that_cannot_work_says_what_to_write(model, says, monkeypatch):
    with pytest.raises(SettingError, match=says):
        resolved(model, monkeypatch=monkeypatch)
