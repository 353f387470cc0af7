"""The patterns that keys and passwords are found by: what their own form tells, and what the name beside them tells.

Every one takes time in proportion to the text: it starts at the edge of a run, is bounded, or takes the run whole and looks then.
`masking` puts them to use; `personal` has those for people's data.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["EDGE", "KEYS", "Pattern", "before", "compiled", "is_empty", "is_secret_name"]

Check: TypeAlias = Callable[[str, re.Match[str]], bool]


@functools.lru_cache(maxsize=512)
def compiled(regex: str) -> re.Pattern[str]:
    """The expression, compiled when it is first needed: importing stays cheap."""
    return re.compile(regex)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of thing to mask.

    Attributes:
        label: what stands in the mark.
        regex: finds it. Where it has a group named ``value``, only that is replaced.
        hints: in lower case; a text with none of them has no match.
        scout: a quicker expression; a text in which it finds nothing has no match.
        real: looks again at what was found, for what no expression can say (a checksum); false leaves it.
    """

    label: str
    regex: str
    hints: tuple[str, ...] = ()
    real: Check | None = None
    scout: str = ""

    def may_match(self, text: str, hinted: set[str]) -> bool:
        """Whether the expression is worth trying: most texts hold nothing of most kinds. ``hinted``: the hints that are in it."""
        if self.hints and hinted.isdisjoint(self.hints):
            return False
        return not self.scout or compiled(self.scout).search(text) is not None

    def cover(self, text: str, counts: dict[str, int]) -> str:
        """The text with what is found replaced, each counted under the label."""

        def replaced(match: re.Match[str]) -> str:
            start, end = match.span("value" if "value" in match.re.groupindex else 0)
            if start >= end or (self.real is not None and not self.real(match.string[start:end], match)):
                return match[0]
            counts[self.label] = counts.get(self.label, 0) + 1
            return f"{match.string[match.start() : start]}[masked: {self.label}]{match.string[end : match.end()]}"

        return compiled(self.regex).sub(replaced, text)


#: What stands where a secret would and is none: templates, types, states, dots and stars, names of variables.
_EMPTY: Final = r"""(?ix) [\W_]* | x+ | \.{3}.* | <.* | \$?\{.* | \$\(.* | (?-i:\$[A-Z_]+) | %\(?\w*\)?[sdr] | %\w+% | your[-_ ].*
    | none | null | nil | true | false | undefined | nan | str | string | int | bytes | bool\w* | text | any | object | value
    | optional.* | required | missing | invalid | empty | unset | set | yes | no | hidden | redacted | masked | wrong
    | incorrect | expired | changed | unchanged | default | unknown | disabled | enabled | needed | include | same-origin | omit
    | (?:[\w.-]*[_.-]|my|the|(?-i:[a-z]+(?=[A-Z])))?(?:password|passwd|passphrase|secret|token|credential|api[_-]?key)s?
    (?:[_-]?(?:here|value|file|id|name|hash|str|bytes|field|input|env|var))?"""
_HOLDERS: Final = (  # of a variable, a flag, an element
    r"(?i).*(?:token|secret|password|passwd|passphrase|[_-]pass|[_-]pwd|credentials?|[_-]pat|[_-]auth|signature|sig)|.*[_-]key(?:_base)?|key"
    r"|(?:.*\W)?(?:api|access|private|secret)key"
)
_CODE: Final = (
    r"(?is)(?:[a-z_]+(?:\.[a-z_]+)+|pw|pwd|pass|tok|key|creds?|user(?:name)?|args?|self|\w+(?:bytes|(?-i:Key|Type)))\W?"
    r"|(?:[a-z_]+|[a-z]\w*(?:\.[a-z_]\w*)+)[\[(].*"
)
#: Before ``key`` and ``pass``: what makes it one that opens something.
_BEFORE_KEY: Final = (
    r"(?i)(?:api|access|account|auth|encryption|signing|master|shared|subscription|secret|private|storage|service|admin|app)[_ -]?$"
)
_BEFORE_WORD: Final = r"(?i)(?:db|user|mysql|pg|smtp|ftp|admin|root|redis)_?$"
#: Before ``token``: places in a list and the marks of a tokenizer, which nobody has to keep.
_PLACE: Final = (
    r"(?i)(?:page|next|prev\w*|continuation|cursor|sync|[bep]os|pad|unk|cls|sep|mask|stop|end|start|first|last|special|max)[_ -]?$"
)


def before(match: re.Match[str]) -> str:
    """The 40 characters before a match."""
    return match.string[max(0, match.start() - 40) : match.start()]


def _mixed(value: str) -> bool:
    """Letters with digits or signs among them, as no word has."""
    return len(value) >= 6 and bool(re.search(r"[^\W\d_]", value) and re.search(r"[\d!@#$%^&*+=~?]", value))


def is_empty(value: str) -> bool:
    """Whether it only stands where a secret would."""
    return compiled(_EMPTY).fullmatch(value) is not None


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a variable, a flag or an element of that name holds something secret."""
    return compiled(_HOLDERS).fullmatch(name) is not None


def _given(value: str, _: re.Match[str]) -> bool:
    return not is_empty(value)


def _is_value(value: str, match: re.Match[str], *, sure: bool = True, shortest: int = 6) -> bool:
    """Whether what follows a name such as ``password`` is its value; the looser the writing, the more it has to look like one.

    Args:
        value: what was found.
        match: of `_pair`.
        sure: where it is written like an assignment, the name alone makes it one.
        shortest: characters.
    """
    sign, name, after = match["sign"].strip(" \t*_"), match["name"], match.string[match.end() : match.end() + 1]
    if len(value) < shortest or is_empty(value) or (name.lower() == "pwd" and value[0] in "/~"):
        return False
    if match["sign"] == "=" and re.search(r"[?&][\w.\[-]*$", before(match)):
        return True  # in a query nothing else is written like that
    sure = sure and sign != "" and not sign[0].isalpha()  # "the password is": rather "required" than one
    if match["quote"]:
        if re.match(r"[\s,)]|[%+][ (]", value):  # the quote closed a text, such as a prompt for the password
            return False
        return _mixed(value) or (sure and (after in "\\\"'`" or " " not in value))
    if not name.isupper() and compiled(_CODE).fullmatch(value + after):
        return False
    if match["sign"] != "=" and sign[:1] not in "\\\"'`":  # YAML and headers have a line of their own; elsewhere it may be prose
        sure = sure and after in "\r\n" and re.search(r"(?:^|\n)[ \t\w*>-]*$", before(match)) is not None
    return sure or _mixed(value)


def _is_password(value: str, match: re.Match[str]) -> bool:
    weak = match["name"].lower() != "pass" or compiled(_BEFORE_WORD).search(before(match))
    return bool(weak) and _is_value(value, match, shortest=3)


def _is_token(value: str, match: re.Match[str]) -> bool:
    long = len(value) >= 8 or match["sign"] == "="
    return (
        long
        and match["sign"] != " "
        and _is_value(value, match, sure=False, shortest=4)
        and not compiled(_PLACE).search(before(match))
    )


def _is_api_key(value: str, match: re.Match[str]) -> bool:
    known = match["name"] == "密钥" or compiled(_BEFORE_KEY).search(before(match))
    return bool(known) and _is_value(value, match)


def _is_named(value: str, match: re.Match[str]) -> bool:
    """A flag of a command, a pair in a list, an element: whether its name says that it is secret."""
    return (
        is_secret_name(match["name"])
        and not is_empty(value)
        and (_mixed(value) or (match[0][0] == "<" and "token" not in match["name"].lower()))
    )


def _is_key(value: str, _: re.Match[str]) -> bool:
    """No class name such as ``sk-spinner-wave-container``: some part of it mixes letters and digits."""
    digits = sum(map(str.isdigit, value))
    return any(len(part) >= 10 and _mixed(part) for part in re.split(r"[-_./:]", value)) or (len(value) >= 24 and digits >= 8)


def _is_jwt(value: str, _: re.Match[str]) -> bool:
    head, dot, _rest = value.partition(".")
    try:
        return bool(dot) and b'"alg"' in base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except ValueError:
        return False


def _is_credential(value: str, match: re.Match[str]) -> bool:
    return _given(value, match) and (bool(match["header"]) or (len(value) >= 8 and _mixed(value)))


_W: Final = r"[A-Za-z0-9_-]"
#: No letter before, or one that belongs to an escape: ``\n`` in JSON, ``%3D`` in a URL.
EDGE: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
#: Up to the end of a word. What goes on with another name, in a query or a list, is no part of it; nor is a full stop at the end.
_BARE: Final = (
    r"[^\s&\"'`<>()\[\]{},;:=|\\](?:[^\s&\"'`<>;,\\]|[&;,](?![\w .\[\]-]{0,40}=|amp;|\s|$)|\\(?![nrt\"'\\]))*(?<![.,;:!?)\]}])"
)
#: How a name of each kind ends; its first letter stands outside of the alternatives, so that the search can skip to it.
_WORDS: Final = r"[Pp密口](?i:assw(?:or)?d|asswd|wd|ass(?:phrase|code|wort)?|码|令)"
_OPENERS: Final = r"[Kk密](?i:ey|钥)"
_TICKETS: Final = r"[TtAa令](?i:oken|uthorization|牌)"
_HIDDEN: Final = r"[Ss](?i:ecret(?:_key_base)?)"


def _pair(names: str) -> str:
    """A name, a sign that gives it a value, and the value, quoted or bare: JSON, env files, YAML, headers, queries, code."""
    return (
        rf"(?P<name>{names})"
        r"(?P<sign>(?:\\{0,3}[\"'`])?[ \t]{0,4}(?::[ ]?str[ ]?=|=>|:=|=(?!=)|[:：])[*_]{0,2}[ \t]{0,4}"
        r"|[ ](?:is|ist|est|es|was)[: ][ ]?|[是为][:： ]?|[ ](?=[\"'`]))"
        r"(?:b?(?P<quote>\\{0,3}[\"'`]))?"
        r"(?P<value>(?(quote)(?:(?!(?P=quote))(?:\\{3}[\"']|\\?[^\r\n]))+(?=(?P=quote)|[\r\n]|\Z)|" + _BARE + "))"
    )


#: The forms that providers give to their keys.
_KEYS: Final = "|".join(
    (
        rf"(?:sk|xai|pplx|nvapi|tvly|glpat|xapp|GOCSPX|pypi|xox[a-z])-{_W}{{16,}}",
        rf"(?:[srp]k_(?:live|test)|whsec|hf|gsk|r8|npm|dop_v1|shp(?:at|ca|pa|ss)|figd|lin_api|sntrys|rpa|gh[pousr]|github_pat)_{_W}{{16,}}",
    )
)
_OTHER_KEYS: Final = "|".join(
    (
        r"A(?:KIA|SIA|BIA)[A-Z0-9]{16}(?![A-Za-z0-9])|dapi[0-9a-f]{32}(?![A-Za-z0-9])|AGE-SECRET-KEY-1[A-Z0-9]{30,}",
        rf"(?:AIza|ya29\.|hvs\.){_W}{{20,}}|SG\.{_W}{{16,}}\.{_W}{{16,}}|\d{{8,10}}:AA{_W}{{30,40}}(?!{_W})",
        r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    )
)

#: In the order in which they are tried: what its form tells comes before what a name has to tell.
KEYS: Final[tuple[Pattern, ...]] = (
    Pattern(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<value>(?:[^-]|-(?!----))*+)",
        ("private key",),
        lambda value, _: re.search(r"[A-Za-z0-9+/=]{16}", value) is not None,
    ),
    Pattern("api key", f"{EDGE}(?:{_KEYS})", real=_is_key, scout=rf"[_-]{_W}{{16}}"),
    Pattern(
        "api key",
        f"{EDGE}(?:{_OTHER_KEYS})",
        ("aiza", "akia", "asia", "abia", "dapi", "ya29.", "hvs.", "sg.", ":aa", "age-secret", "hooks.slack"),
        _is_key,
    ),
    Pattern("token", rf"eyJ{_W}*+(?:\.{_W}*+)*", ("eyj",), _is_jwt),
    Pattern(
        "password",
        r"://[^\s/?#:@\[\"'<>]{0,200}:(?!\d{1,5}(?:[/?#\s\"'<>]|$))(?P<value>[^\s\"'<>]{1,200})@",
        ("://",),
        lambda value, _: not re.fullmatch(r"[\W_]*|x+|\$?\{.*|\$[A-Z_]+|%\(?\w*\)?[sd]", value),  # a weak one is one all the same
    ),
    Pattern("password", r"\blogin \S{1,80} password (?P<value>\S+)", ("login ",), _given),
    Pattern("password", r"[\w.-]:(?P<value>[^\s:@/\"'<>]{1,200})@(?:tcp|unix)?\(", ("@tcp(", "@unix(", "@("), _given),
    Pattern("password", r"auth=\(['\"][^'\"\r\n]{0,200}['\"], ?['\"](?P<value>[^'\"\r\n]+)", ("auth=(",), _given),
    Pattern(
        "credentials",
        r"(?i)(?P<header>authorization[\\\"']{0,5}[ ]?[:=,>][ \\\"'b]{0,6})?\b(?:bearer|basic|token|apikey|digest|negotiate)"
        r"(?:[ +]|%20)++(?!auth|cred|scheme|[a-z_]+=[\"'\\])(?P<value>[\w.~+/=%:-]{6,})",
        ("bearer", "basic", "authorization"),
        _is_credential,
    ),
    Pattern(
        "cookies",
        r"(?i)\bcookies?[\\\"']{0,5}[ ]?[:=,][ ]?[\\\"'b]{0,5}(?P<value>[\w.-]{1,100}=[^\s\"'\\;]{6,}[^\"'\\\r\n]*)",
        ("cookie",),
    ),
    Pattern("password", _pair(_WORDS), ("pass", "pwd", "密码", "口令"), _is_password),
    Pattern("api key", _pair(_OPENERS), ("key", "密钥"), _is_api_key),
    Pattern("secret", _pair(_HIDDEN), ("secret",), _is_value),
    Pattern("token", _pair(_TICKETS), ("token", "令牌", "authorization"), _is_token),
    Pattern("secret", r"(?<![\w-])--(?P<name>[A-Za-z][\w-]{1,60})[ \t]{1,4}[\"']?(?P<value>[^\s\"'<>]{6,})", ("--",), _is_named),
    Pattern("secret", r"[(\[]b?[\"'](?P<name>[\w-]{2,60})[\"'],[ ]?b?[\"'](?P<value>[^\s\"'<>]{6,})", ("',", '",'), _is_named),
    Pattern("secret", r"(?i)[?&](?P<name>[\w-]{0,40}signature|sig|key)=(?P<value>[^\s&\"'<>]{12,})", ("sig", "key="), _is_named),
    Pattern(
        "secret",
        r"[ ](?:-u|--user)[ =][\"']?[\w.@-]{1,80}:(?P<value>[^\s\"']{6,})",
        (" -u ", " --user"),
        lambda value, _: _mixed(value),
    ),
    Pattern("secret", r"<(?P<name>[\w:.-]{2,60})>(?P<value>[^<>\r\n]{3,})</", ("</",), _is_named),
)
