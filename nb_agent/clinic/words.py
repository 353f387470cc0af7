"""The words that the rules go by: what names and descriptions say, in English and in Chinese. Tables, and how a name is split."""
# ruff: noqa: SIM905  lists of words read best as text

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

__all__ = [
    "CHANGES",
    "DANGERS",
    "KINDS",
    "RUNNING",
    "SAYS_EFFECT",
    "SAYS_OMITTED",
    "SHOWS_FORM",
    "TELLS_OMITTED",
    "UNITS",
    "VAGUE",
    "WHETHER",
    "Kind",
    "content",
    "kind_of",
    "meaning",
    "pieces",
    "verb",
]

_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[\u3400-\u9fff]")
_WORD: Final = re.compile(r"[^\W_]+|[\u3400-\u9fff]")
#: Words that say nothing by themselves, in a description of a tool or of a parameter.
_EMPTY: Final = frozenset(
    "a an the of for to in on at by and or with from this that it its is are be as given value values parameter argument input "
    "tool function string text number integer boolean list which use used using".split()
)

#: What says nothing about what a tool does.
VAGUE: Final = re.compile(
    r"\b(?:stuff|things?|something|whatever|various|misc|todo|tbd|fixme|helper|utility|util|etc|does it|do it|magic|"
    r"handles? (?:the )?(?:data|request|input|it)|process(?:es)? (?:the )?(?:data|request|input|it))\b|"
    r"^\W*$|东西|各种|处理数据|待定",
    re.IGNORECASE,
)

#: What begins a name -> what all names that begin so have in common. Models take one for the other.
_ALIKE: Final = {
    word: words.split()[0]
    for words in (
        "get fetch retrieve read load obtain",
        "find search lookup query",
        "list enumerate ls",
        "delete remove erase destroy rm",
        "create add make new insert",
        "update edit modify change set",
        "send mail post submit",
        "run execute exec",
        "calculate compute calc evaluate",
        "show display print",
        "cancel abort stop",
        "write save store",
        "check verify validate test",
    )
    for word in words.split()
}

#: Names that begin so may do harm.
DANGERS: Final = frozenset(
    "delete drop remove erase destroy purge wipe truncate kill send mail email sms publish tweet pay buy charge transfer refund "
    "cancel deploy execute exec shutdown reboot overwrite uninstall revoke ban".split()
)
#: Names that begin so change something.
CHANGES: Final = DANGERS | frozenset(
    "write create add update edit set put post append patch insert save move rename upload book reserve order start stop reset "
    "install register schedule approve reject submit close open enable disable store".split()
)
#: What a description says that tells of a change.
SAYS_EFFECT: Final = re.compile(
    r"\b(?:re)?(?:creat|chang|writ|replac|delet|remov|eras|destroy|send|sent|mail|add|append|updat|edit|modif|set|put|mak|made|pay|paid|"
    r"buy|charg|book|reserv|cancel|order|post|publish|mov|renam|run|execut|start|stop|sav|stor|drop|wip|record|transfer|refund|"
    r"overwrit|upload|install|regist|schedul|clos|open|enabl|disabl|insert|patch|plac|issu|mark|ship|turn|switch|deploy|"
    r"revok|kill|purg|empt|clear)\w*|写|改|删|发|建|付|取消|保存|覆盖|移动|添加|下单",
    re.IGNORECASE,
)

#: Parameters that take a text of any length, for which an example would say nothing.
RUNNING: Final = frozenset(
    "content contents text body message note notes comment comments description title subject summary prompt question markdown "
    "html reason caption instructions words phrase paragraph sentence".split()
)
#: What a description says that shows the form of a value.
SHOWS_FORM: Final = re.compile(
    r"e\.g\.|\beg\b|such as|for example|for instance|\bexamples?\b|\blike\b|\bone of\b|\beither\b|['\"`“‘][^'\"`”’]+['\"`”’]|"
    r"\biso[- ]?\d|\byyyy|\bhh:mm|\buuid\b|\burl\b|\be-?mail address|\bsql\b|\bjson\b|\bregex|\bregular expression|"
    r"\bhash\b|\bsha-?\d|\bbase64\b|\b[A-Z]{1,5}-\d+|例如|比如|形如|格式",
    re.IGNORECASE,
)
#: What tells of a parameter when it may be left out, or what holds then; and what of a tool tells that.
SAYS_OMITTED: Final = re.compile(
    r"\b(?:default|optional|without|omit|omitted|left out|leave out|if|unless|only|where|when|neither|none|else|otherwise)\b|"
    r"默认|可选|省略|不填|如果",
    re.IGNORECASE,
)
TELLS_OMITTED: Final = re.compile(
    r"\b(?:default|optional|without|omit|omitted|left out|neither|(?:is|are|not) given|otherwise)\b|默认|可选|省略|不填",
    re.IGNORECASE,
)
#: What tells what yes and no mean.
WHETHER: Final = re.compile(r"\b(?:true|false|whether|if|also|include|instead|only|yes|no)\b|是否|则|为真", re.IGNORECASE)
#: What tells the unit of a number.
UNITS: Final = re.compile(
    r"\b(?:seconds?|secs?|s|ms|milliseconds?|minutes?|min|hours?|h|days?|weeks?|months?|years?|bytes?|[kmg]i?b|characters?|tokens?|"
    r"lines?|pixels?|px|pages?|rows?|(?:kilo|centi|milli)?met(?:er|re)s?|m|km|cm|mm|miles?|feet|inch\w*|kg|(?:kilo|milli)?grams?|g|tons?|tonnes?|pounds?|lbs?|"
    r"degrees?|celsius|fahrenheit|kelvin|percent|per cent|fraction|ratio|eur|euros?|usd|dollars?|cents?|gbp|jpy|yen|cny|yuan|chf|"
    r"pieces?|items?|units?|currency|litres?|liters?|ml|watts?|kwh?|volts?|bar|kmh|mph|kph)\b|"
    r"[%°€$£¥]|between|0 to 1|元|秒|分钟|小时|米|公里|公斤|度",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value that has a form of its own, told from the name of a parameter.

    Attributes:
        called: what it is, in words.
        words: parts of a name that tell of it.
        number: whether it is a number, which lacks a unit, and not a text, which lacks a form.
        form: what to say of it; ``{noun}`` and ``{letters}`` are of the name.
    """

    called: str
    words: frozenset[str]
    number: bool
    form: str


def _kind(called: str, words: str, form: str, *, number: bool = False) -> Kind:
    return Kind(called, frozenset(words.split()), number, form)


#: The first that fits counts.
KINDS: Final = (
    _kind("a currency", "currency", "ISO 4217 code of the currency, e.g. EUR"),
    _kind("a unit", "unit units", 'Literal["…", "…"] with the units that there are'),
    _kind("a country", "country", "ISO 3166 code of the country, e.g. NO"),
    _kind("a language", "language lang locale", "code of the language, e.g. en or zh-CN"),
    _kind("a time zone", "timezone tz zone", "name of the time zone, e.g. Europe/Oslo"),
    _kind(
        "a date",
        "date day deadline birthday since until checkin checkout",
        "the {noun}, as YYYY-MM-DD, e.g. 2026-03-14 (or annotate it with datetime.date)",
    ),
    _kind("a time", "time timestamp datetime", "the {noun}, in ISO 8601 with the time zone, e.g. 2026-03-14T09:30:00+01:00"),
    _kind(
        "an id",
        "id ids uuid sku iban isbn serial barcode ref reference code key number no",
        "number of the {noun}, e.g. {letters}-1001",
    ),
    _kind(
        "an amount of money",
        "amount price cost fee salary budget balance total discount",
        "the {noun} in euros, e.g. 12.50 (or another currency, or a parameter for it)",
        number=True,
    ),
    _kind("a length", "distance length width height depth radius altitude", "the {noun} in metres, e.g. 250", number=True),
    _kind("a weight", "weight mass", "the {noun} in kilograms, e.g. 2.5", number=True),
    _kind("a temperature", "temperature temp", "the {noun} in degrees Celsius, e.g. 21.5", number=True),
    _kind("a duration", "duration timeout delay interval ttl age wait", "the {noun} in seconds, e.g. 30", number=True),
    _kind("a speed", "speed velocity", "the {noun} in kilometres per hour, e.g. 80", number=True),
    _kind("a size", "size filesize capacity volume", "the {noun} in bytes, e.g. 1000000", number=True),
)


@lru_cache(maxsize=1024)
def pieces(name: str) -> tuple[str, ...]:
    """The words of a name, in small letters.

    >>> pieces("getHTTPStatus_2"), pieces("order_id")
    (('get', 'http', 'status', '2'), ('order', 'id'))
    """
    return tuple(piece.lower() for piece in _PIECE.findall(name))


def verb(name: str) -> str:
    """The first word of a tool's name, without the server's name that stands before it."""
    return next(iter(pieces(name.rpartition("__")[2])), "")


@lru_cache(maxsize=1024)
def meaning(name: str) -> frozenset[str]:
    """What names have in common that a model takes for each other: other case, other signs, another word for the same.

    >>> meaning("getUser") == meaning("user_fetch"), meaning("get_user") == meaning("delete_user")
    (True, False)
    """
    return frozenset(_ALIKE.get(piece, piece) for piece in pieces(name))


@lru_cache(maxsize=1024)
def content(text: str) -> frozenset[str]:
    """The words of a text that say something, without their endings.

    >>> sorted(content("The cities of the user"))
    ['citie', 'user']
    """
    return frozenset(word.rstrip("s") for word in _WORD.findall(text.lower()) if word not in _EMPTY)


def kind_of(name: str, *, number: bool) -> Kind | None:
    """The kind of value that a parameter of this name takes, where it has a form of its own."""
    parts = pieces(name)
    if not parts or (len(parts) == 1 and parts[0] in {"code", "key", "number"}):
        return None  # "code" alone may be a program
    return next((kind for kind in KINDS if kind.number == number and kind.words.intersection(parts)), None)
