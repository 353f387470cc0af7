"""What a model's name stands for: which server, which wire format, which key. Keys and addresses come from the environment.

``mock`` is the local mock model; ``openai:NAME`` a model of a server in the table; a bare name needs ``base_url``. The model
``you`` is the person at the keyboard.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nb_agent import by_hand, mock
from nb_agent.adapters import WIRES
from nb_agent.errors import SettingError
from nb_agent.events import Waiting
from nb_agent.loop import Target
from nb_agent.messages import Request
from nb_agent.retrying import Patience
from nb_agent.transport import Secret, Transport
from nb_agent.windows import window_of

__all__ = ["PROVIDERS", "Provider", "Sender", "resolve"]

_USUAL: Final = "chat_completions"
Sender = Callable[[Request, float | None], Iterator[bytes | Waiting]]


@dataclass(frozen=True, slots=True)
class Provider:
    """A server with an address of its own. ``key`` names the environment variable; ``None`` where the server asks for none."""

    base_url: str
    key: str | None
    wire: str = "chat_completions"


#: Prefix of a model string -> server. ``NAME_BASE_URL`` in the environment overrides the address.
PROVIDERS: Final[dict[str, Provider]] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "anthropic_messages"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", "gemini_generate"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "dashscope": Provider("https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    "ollama": Provider("http://127.0.0.1:11434/v1", None),
    "lmstudio": Provider("http://127.0.0.1:1234/v1", None),
    "vllm": Provider("http://127.0.0.1:8000/v1", None),
}


def resolve(
    model: str, *, base_url: str | None, key: Secret | None, environ: Mapping[str, str], wire: str | None = None
) -> tuple[Target, Sender]:
    """The model that a name stands for, and what sends requests to it.

    ``wire`` chooses another wire format than the server's usual one: ``openai`` also speaks ``responses``, the mock model all.
    ``base_url`` and ``key`` go before the environment. A key of the environment is only sent to the server that it is named
    after, or to an address that the user gave together with that server's prefix.

    Raises:
        SettingError: the name, the address, the wire format or the key cannot work; the text says what to write.
    """
    if wire is not None and wire not in WIRES:
        raise SettingError(f"no wire format named {wire!r}; there are {', '.join(WIRES)}")
    if not model:
        raise SettingError("the model has no name; write 'mock', or one like 'openai:gpt-4o-mini'")
    base_url = base_url or None
    prefix, colon, name = model.partition(":")
    if colon and prefix in PROVIDERS and name:
        provider = PROVIDERS[prefix]
        where = base_url or environ.get(f"{prefix.upper()}_BASE_URL") or provider.base_url
        if key is None and provider.key and environ.get(provider.key):
            key = Secret(environ[provider.key])
        if key is None and provider.key:
            raise SettingError(f"no key for {model!r}: set {provider.key} in the environment, or pass api_key=")
        return _server(name, where, key, wire or provider.wire)
    if base_url is None and model == by_hand.NAME:
        return Target(model, wire or _USUAL), _nobody
    if base_url is None and mock.is_known(model):
        return Target(model, wire or _USUAL, mock=True, window=mock.window(model)), _ask_mock
    where = base_url or environ.get("NB_AGENT_BASE_URL") or ""
    if not where:
        raise SettingError(
            f"model {model!r} names no server; write PROVIDER:NAME with one of {', '.join(PROVIDERS)}, "
            f"give base_url, or take a mock model: {', '.join(mock.MODELS)}"
        )
    if key is None and environ.get("NB_AGENT_API_KEY"):
        key = Secret(environ["NB_AGENT_API_KEY"])
    return _server(model, where, key, wire or _USUAL)


def _ask_mock(request: Request, until: float | None) -> Iterator[bytes | Waiting]:
    """The mock model in this process, asked as patiently as a server: its faults are met by the same repeats."""
    ends = math.inf if until is None else until
    answer = yield from Patience().until_begun(lambda: mock.send(request), lambda: ends - time.monotonic())
    yield from answer


def _nobody(request: Request, until: float | None) -> Iterator[bytes | Waiting]:
    """Whoever puts a run together asks a person instead."""
    del until
    yield from by_hand.written(request, 1, lambda _: None)


def _server(name: str, where: str, key: Secret | None, wire: str) -> tuple[Target, Sender]:
    transport = Transport(where, key, wire=wire)
    return Target(name, wire, window=window_of(name)), lambda request, until: transport.send(request, until=until)
