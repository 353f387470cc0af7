r"""Keys and personal data in a text, replaced by marks that a reader understands: ``[masked: api key]``.

Two ways: values that are known to be secret are replaced wherever they stand, also quoted for a URL, in base64, or escaped for
JSON; the rest is found by patterns, in named sets that a user adds to. It is no vault: a password that looks like a word and has no
name beside it stays. Nothing here decides *where* a text is covered, and nothing is stored. Unlike `untrusted`, what is found is
taken out and not only marked.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

from nb_agent.errors import SettingError
from nb_agent.guards.hints import Hints
from nb_agent.guards.patterns import KEYS, Pattern, compiled, is_empty, is_secret_name
from nb_agent.guards.personal import PERSONAL

__all__ = ["NO_MASKS", "PATTERNS", "Covered", "Masks", "Pattern", "secrets_of"]

#: The sets by name. "keys" is on unless something else is said.
PATTERNS: Final[Mapping[str, tuple[Pattern, ...]]] = {"keys": KEYS, "personal": PERSONAL}

#: Characters from which on a known value is replaced at all, inside of words too, and in base64.
_SHORTEST: Final = 4
_NO_WORD: Final = 8
_LONG: Final = 8


class Covered(NamedTuple):
    """A text with its secrets masked, and how many of each kind there were."""

    text: str
    counts: dict[str, int]

    @property
    def note(self) -> str:
        """For a person: ``2 masked (api key, password)``; empty where nothing was."""
        return f"{sum(self.counts.values())} masked ({', '.join(self.counts)})" if self.counts else ""


@functools.lru_cache(maxsize=32)
def _hints_of(patterns: tuple[Pattern, ...]) -> Hints:
    """One table for all masks of the same patterns: what it has learnt of words serves the next run."""
    return Hints(hint for pattern in patterns for hint in pattern.hints)


@dataclass(frozen=True, slots=True)
class Masks:
    """What is to be masked.

    >>> Masks(secrets=("tulips-2024",)).cover("tulips-2024 and postgresql://ann:pa55word@db.example.test/x")
    '[masked: secret] and postgresql://ann:[masked: password]@db.example.test/x'

    Attributes:
        secrets: known values, replaced exactly. Under 8 characters they have to stand alone, since they may be words; under 4 they
            are left.
        patterns: the set ``"keys"`` unless given; ``()`` for none.
    """

    secrets: tuple[str, ...] = field(default=(), repr=False)
    patterns: tuple[Pattern, ...] = PATTERNS["keys"]
    _forms: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _hints: Hints = field(init=False, repr=False, compare=False)
    _bare: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)  # those that need no hint

    def __post_init__(self) -> None:
        forms = {form for secret in self.secrets for form in _forms(secret.strip())}
        object.__setattr__(self, "_forms", tuple(sorted(forms, key=len, reverse=True)))
        object.__setattr__(self, "_hints", _hints_of(self.patterns))
        object.__setattr__(self, "_bare", tuple(pattern for pattern in self.patterns if not pattern.hints))

    @classmethod
    def of(cls, *sets: str | Mapping[str, str], secrets: Iterable[str] = ()) -> Masks:
        r"""The patterns of the sets that are named, and those of one's own.

        A pattern of one's own is a label and a regular expression; of its group ``value``, where it has one, only that is replaced.
        How long it takes is its author's business: one with a repetition in a repetition may take very long.

        >>> Masks.of("keys", "personal", {"employee number": r"\bE-\d{6}\b"}).cover("E-123456, ann@example.test")
        '[masked: employee number], [masked: e-mail]'

        Raises:
            SettingError: there is no set of that name, or a pattern cannot work; the text names it.
        """
        found: dict[Pattern, None] = {}
        for entry in sets:
            if not isinstance(entry, str):
                found |= dict.fromkeys(_own(label, regex) for label, regex in entry.items())
            elif entry in PATTERNS:
                found |= dict.fromkeys(PATTERNS[entry])
            else:
                raise SettingError(f"there is no set of patterns named {entry!r}; there are: {', '.join(PATTERNS)}")
        return cls(tuple(secrets), tuple(found))

    def with_secrets(self, secrets: Iterable[str]) -> Masks:
        """The same with more known values."""
        return replace(self, secrets=tuple(dict.fromkeys((*self.secrets, *secrets))))

    def cover(self, text: str) -> str:
        """The text with marks in the place of secrets. Covering it again changes nothing."""
        return self.covered(text).text

    def found(self, text: str) -> dict[str, int]:
        """How many of each kind are in the text, by label."""
        return self.covered(text).counts

    def covered(self, text: str) -> Covered:
        """The text with marks in the place of secrets, and their number."""
        counts: dict[str, int] = {}
        if not text:
            return Covered(text, counts)
        if present := [form for form in self._forms if form in text]:
            regex = "|".join(re.escape(form) if len(form) >= _NO_WORD else rf"(?<!\w){re.escape(form)}(?!\w)" for form in present)
            text = self._outside(Pattern("secret", regex), text, counts)
        lower = text.lower()
        hinted = self._hints.of(lower)
        for pattern in self.patterns if hinted else self._bare:
            if pattern.may_match(text, hinted):
                text = self._outside(pattern, text, counts)
        return Covered(text, counts)

    def _outside(self, pattern: Pattern, text: str, counts: dict[str, int]) -> str:
        """Covers what stands between the marks that are there already."""
        if "[masked: " not in text:
            return pattern.cover(text, counts)
        labels = "|".join(sorted({re.escape(entry.label) for entry in (*self.patterns, pattern)} | {"secret"}))
        parts = compiled(rf"(\[masked: (?:{labels})\])").split(text)
        return "".join(part if place % 2 else pattern.cover(part, counts) for place, part in enumerate(parts))


#: Masks nothing.
NO_MASKS: Final = Masks(patterns=())


def _own(label: str, regex: str) -> Pattern:
    try:
        found = re.compile(regex).search("")
    except (re.error, TypeError) as error:
        raise SettingError(f"the pattern {label!r} is no regular expression: {error}; it is {regex!r}") from None
    if found:
        raise SettingError(f"the pattern {label!r} also matches where there is nothing, so everywhere; it is {regex!r}")
    return Pattern(label, regex)


def _forms(secret: str) -> Iterator[str]:
    """The ways in which a secret is written into other texts."""
    if len(secret) < _SHORTEST:
        return
    for text in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]):
        yield from (text, json.dumps(text)[1:-1], html.escape(text))
    for safe in ("", "/"):
        quoted = quote(secret, safe=safe, errors="replace")
        yield from (quoted, quoted.lower(), quote_plus(secret, safe=safe, errors="replace"))
    if len(secret) >= _LONG:
        yield from _in_base64(secret.encode("utf-8", "replace"))


def _in_base64(raw: bytes) -> Iterator[str]:
    """Alone, and as it is inside of something longer, such as ``user:password``: its letters depend on where it begins."""
    whole = base64.b64encode(raw).decode()
    inner = [whole, whole.rstrip("=")]
    for offset, first in enumerate((0, 2, 3)):
        last = (None, -3, -2)[(offset + len(raw)) % 3]  # what the next byte has a part in is left out
        inner.append(base64.b64encode(bytes(offset) + raw).decode()[first:last])
    for form in inner:
        yield from (form, form.translate(str.maketrans("+/", "-_")))


_PUBLIC: Final = r"(?i)[\d.,:_+-]+|[~/.].*|[a-z]:[\\/].*|https?://[^@]*"


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the variables whose names say that they are secret: 8 characters and more, no paths, numbers or ``disabled``.

    >>> secrets_of({"OPENAI_API_KEY": "sk-0123456789", "MAX_TOKENS": "8192", "SSH_KEY": "/home/ann/.ssh/id", "HOME": "/home/ann"})
    ('sk-0123456789',)
    """
    found = dict.fromkeys(environ[name].strip() for name in environ if is_secret_name(name))
    return tuple(value for value in found if len(value) >= 8 and not is_empty(value) and not compiled(_PUBLIC).fullmatch(value))
