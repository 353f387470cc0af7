"""What tokens cost: by the table of the library genai-prices, or by prices of your own. Where no price is known there is none.

The library is an extra, ``pip install 'nb-agent-kit[prices]'``. It is asked offline: its update over the network is never begun.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, TypeAlias

from nb_agent.errors import SettingError
from nb_agent.usage import Usage
from nb_agent.values import Value

__all__ = ["Cost", "Prices", "cost"]

#: Model -> price for a million tokens of each bucket of `Usage`; ``input`` and ``output`` must be there.
Prices: TypeAlias = Mapping[str, Mapping[str, float]]

_MILLION: Final = 1_000_000
_BUCKETS: Final = ("input", "cache_read", "cache_write", "output", "reasoning")
#: Names with a tag, as ``deepseek-r1:8b``: served at home or for nothing, whatever a model with that beginning costs elsewhere.
_TAGGED: Final = re.compile(r":(?!\d$)")
#: A bucket without a price of its own costs what this one costs.
_LIKE: Final = {"cache_read": "input", "cache_write": "input", "reasoning": "output"}


@dataclass(frozen=True, slots=True)
class Cost(Value):
    """What usage costs.

    Attributes:
        total: of all.
        input: of what was read, cached or not.
        output: of what was written, reasoning included.
        currency: of the three.
        source: who says so.
    """

    total: float
    input: float
    output: float
    currency: str = "USD"
    source: str = ""

    def __str__(self) -> str:
        return f"{self.total:.6g} {self.currency} ({self.input:.6g} read, {self.output:.6g} written; {self.source})"


def cost(usage: Usage, model: str, *, prices: Prices | None = None, currency: str = "USD") -> Cost | None:
    """What usage of a model costs; ``None`` where nothing was reported, or no price is known: for the mock, for models of your own.

    Args:
        usage: what was reported.
        model: its name, with or without its provider.
        prices: your own, for a million tokens; they go before the library's.
        currency: of your own prices.

    Raises:
        SettingError: a price of your own is no amount, has no bucket of `Usage`, or a bucket has no price at all.
    """
    if usage.total_tokens is None:
        return None
    own = (prices or {}).get(model)
    if own is not None:
        return _own(usage, model, own, currency)
    return _library(usage, model)


def _own(usage: Usage, model: str, own: Mapping[str, float], currency: str) -> Cost:
    if not isinstance(own, Mapping) or set(own) - set(_BUCKETS):
        raise SettingError(f"the prices of {model!r}, {own!r}, must be a mapping of: {', '.join(_BUCKETS)}")
    spent = {}
    for bucket in _BUCKETS:
        price = own.get(bucket, own.get(_LIKE.get(bucket, bucket)))
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not isfinite(price) or price < 0:
            raise SettingError(f"the price of {model!r} for {bucket}, {price!r}, is no amount for a million tokens")
        spent[bucket] = (getattr(usage, bucket) or 0) * price / _MILLION
    read = spent["input"] + spent["cache_read"] + spent["cache_write"]
    written = spent["output"] + spent["reasoning"]
    return Cost(read + written, read, written, currency, "your own prices")


def _library(usage: Usage, model: str) -> Cost | None:
    if model.startswith(("mock", "you")) or _TAGGED.search(model):
        return None
    try:
        import genai_prices  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415  an extra, and half a second
    except ImportError:
        return None
    *_, name = model.split("/")
    asked = genai_prices.Usage(
        input_tokens=usage.input_tokens or 0,
        cache_read_tokens=usage.cache_read or 0,
        cache_write_tokens=usage.cache_write or 0,
        output_tokens=usage.output_tokens or 0,
    )
    for wanted in dict.fromkeys((model, name)):
        made: Any = _asked(genai_prices, asked, wanted)
        if made is not None:
            return Cost(float(made.total_price), float(made.input_price), float(made.output_price), "USD", _source(made))
    return None


def _asked(library: Any, asked: Any, model: str) -> Any:
    try:
        return library.calc_price(asked, model)
    except LookupError:
        return None


def _source(made: Any) -> str:
    from importlib.metadata import version  # noqa: PLC0415

    return f"genai-prices {version('genai-prices')}, {made.model.id} at {made.provider.name}"
