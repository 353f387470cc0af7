"""Which kind of provider error it is: by the name that a server gives the error, by its HTTP status, and by its words.

A name goes first, since gateways change the status; the words decide where there is no name. All here are tables and patterns;
`refusals` finds name, status and words in a body.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["KIND_OF_NAME", "KIND_OF_STATUS", "kind_of"]

#: HTTP status -> kind of error; what is not listed goes by its hundreds.
KIND_OF_STATUS: Final = {
    401: "authentication",
    402: "billing",
    403: "authentication",
    404: "not_found",
    408: "timeout",
    409: "overload",  # a lock that another request holds
    413: "context_length",
    424: "server",  # Bedrock: the model behind the gateway failed
    425: "overload",
    429: "rate_limit",
    498: "overload",  # Groq: no capacity for the flexible tier
    501: "bad_request",
    503: "overload",
    504: "timeout",
    522: "timeout",  # Cloudflare's own: 522 and 524
    524: "timeout",
    529: "overload",  # Anthropic's own
}

_NAMES: Final = {
    "authentication": (
        "authentication permission permissiondenied unauthenticated invalidapikey apikeyinvalid apikeyserviceblocked accessdenied "
        "unrecognizedclient expiredtoken invalidsignature"
    ),
    "billing": (
        "insufficientquota billing billingnotactive billinghardlimitreached insufficientbalance creditbalancetoolow "
        "exceededcurrentquota arrearage"
    ),
    "context_length": (
        "contextlengthexceeded contextwindowexceeded modelcontextwindowexceeded exceedcontextsize modelmaxprompttokensexceeded "
        "requesttoolarge"
    ),
    "content_filter": (
        "contentfilter contentpolicyviolation responsibleaipolicyviolation datainspectionfailed biopolicy "
        "misalignmentpolicyviolation"
    ),
    "not_found": "modelnotfound notfound deploymentnotfound resourcenotfound",
    "rate_limit": "ratelimitexceeded ratelimit ratelimitreached resourceexhausted throttling toomanyrequests",
    "overload": "overloaded engineoverloaded unavailable serviceunavailable modelnotready slowdown",
    "timeout": "timeout deadlineexceeded modeltimeout",
}
#: A server's name for an error (code, type, status word, reason), as `_bare` writes it -> kind.
KIND_OF_NAME: Final = {name: kind for kind, names in _NAMES.items() for name in names.split()}
#: Names that say no more than the status does, and count where there is none.
_VAGUE: Final = {
    **dict.fromkeys(("invalidrequest", "invalidargument", "failedprecondition", "outofrange", "badrequest"), "bad_request"),
    **dict.fromkeys(("validation", "invalidprompt", "unsupportedparameter", "unsupportedvalue"), "bad_request"),
}

# What servers say. Limits per minute are worded much like windows that are full, so the order in `_worded` matters.
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum |max |model'?s? )context.?(length|size|window)"
    r"|exceeds? (the |this |its |model'?s? |available )*(context|maximum (prompt|input|sequence|model) length|model token limit)"
    r"|context (length|window|size)[^.]{0,40}(exceed|too small|overflow|of only)|exceeded model token limit|context the overflows"
    r"|(prompt|input|request|message|conversation)s?( \(length \d+\))?( text)? (is|are|was) (too long|longer than)|prompt too long"
    r"|too long for (the )?requested model|input length .{0,60}exceeds?|prompt token count .{0,40}exceeds"
    r"|exceeds the maximum number of tokens|input token count is"
    r"|(longer|greater|larger) than the (model's )?(context|maximum model) length"
    r"|maximum prompt length|range of input length|prompt (length )?exceeds max|reduce the length of the (messages|prompt|input)"
    r"|number of tokens in the prompt|prompt (has|contains) (too many|\d+) tokens|too many total text bytes"
    r"|(?<!completion )(?<!output )\btokens\b[^.]{0,40}\bexceed\b|tokens \(\d+\) exceeds|\bmax_seq_len\b|too long to fit"
    r"|context size \d+ is larger|size limit exceeded by \d+ tokens|`inputs` must have less than"
    r"|`?inputs`? tokens \+ `?max_new_tokens`?|(输入|上下文|提示词?|请求).{0,12}(过长|超长|超出|超过)|超出.{0,8}(上下文|最大长度)",
    re.IGNORECASE,
)
_OUTPUT_TOO_LARGE: Final = re.compile(
    r"max_(completion_|output_|new_)?tokens['\"`]?( or ['\"`]?\w+['\"`]?)? (is|are) too (large|high)|max_tokens: \d+ > \d+",
    re.IGNORECASE,
)
# A bare ``rate_limit`` in running text is a value that somebody lists, and no complaint.
_THROTTLED: Final = re.compile(
    r"throttl|too many requests|too many tokens, please|rate[^_]?limit|rate_limit(_|\W+(exceed|reach|hit|error))"
    r"|(tokens|requests) per (min|minute|hour|day|second)",
    re.IGNORECASE,
)
_PER_MINUTE: Final = re.compile(r"limit:?\s+(\d+),\s+requested:?\s+(\d+)", re.IGNORECASE)
_BUSY: Final = re.compile(
    r"overloaded|at capacity|high demand|temporarily unavailable|loading model|currently loading", re.IGNORECASE
)
_UNPAID: Final = re.compile(
    r"insufficient (balance|credits?|funds|quota)|credit balance is too low|(doesn't|does not) have any credits|out of credits"
    r"|used all (available|of your) credits|spending limit|billing hard limit|exceeded your current quota",
    re.IGNORECASE,
)
_BAD_KEY: Final = re.compile(
    r"(incorrect|invalid|missing|expired|no) (x-)?api.?(key|token)|api.?key (not valid|is (invalid|missing|not valid)|expired)"
    r"|unauthorized|invalid authentication",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(
    r"content management policy|content filter(ing)? policy|was flagged|flagged (as|for|by)|usage policy|content exists risk"
    r"|inappropriate content",
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(r"model\b.{0,100}?(not found|does ?n[o']t exist|not exist)|(no such|unknown) model", re.IGNORECASE)


#: What a server says is said by then; some send a whole page.
_MOST_CHARACTERS: Final = 4_000


def kind_of(status: int | None, words: str, names: Sequence[str] = ()) -> str:
    """The kind of an error, one of `errors.PROVIDER_KINDS`.

    Args:
        status: the HTTP status, or the number that an error inside an answer carries.
        words: what the server says.
        names: what it calls the error, the most exact name first.

    >>> kind_of(400, "prompt is too long: 210000 tokens > 200000 maximum"), kind_of(400, "Too many tokens, please wait")
    ('context_length', 'rate_limit')
    """
    words = words[:_MOST_CHARACTERS]
    bare = [_bare(name) for name in names]
    known = [KIND_OF_NAME[name] for name in bare if name in KIND_OF_NAME]
    # Gemini's limits per minute are worded like an account without credit, and their name tells them apart.
    if status == 402 or "billing" in known or ("resourceexhausted" not in bare and _UNPAID.search(words)):
        return "billing"
    if status == 413 or _never_fits(words):
        return "context_length"
    sure = known[0] if known and status != 401 else _worded(status, words)
    if sure is None and status is None:
        return next((_VAGUE[name] for name in bare if name in _VAGUE), "server")
    return sure or KIND_OF_STATUS.get(status or 500, "bad_request" if status and status < 500 else "server")


def _never_fits(words: str) -> bool:
    """Whether one request is larger than a whole minute's limit, so that waiting never helps."""
    found = _PER_MINUTE.search(words)
    return found is not None and int(found[2]) > int(found[1])


def _worded(status: int | None, words: str) -> str | None:
    """The kind by the words alone: for servers that answer everything with 400 or 500, or in the middle of a stream."""
    anything, broken = status is None or status == 400 or status >= 500, status is None or status >= 500
    plain = status not in {401, 402, 403, 429}
    order = (
        (plain or status == 403, _FILTERED, "content_filter"),
        (plain, _OUTPUT_TOO_LARGE, "bad_request"),  # a shorter conversation would not help
        (anything, _THROTTLED, "rate_limit"),
        (plain, _TOO_LONG, "context_length"),
        (anything, _BAD_KEY, "authentication"),
        (status is None or status == 400, _NO_MODEL, "not_found"),
        (broken, _BUSY, "overload"),
    )
    return next((kind for asked, pattern, kind in order if asked and pattern.search(words)), None)


def _bare(name: str) -> str:
    """A name as in the table: AWS writes ``prefix#Name`` and ``Name:address``, others end it in ``Error``.

    >>> _bare("com.amazon.coral.service#ThrottlingException:http://x"), _bare("RESOURCE_EXHAUSTED"), _bare("rate_limit_error")
    ('throttling', 'resourceexhausted', 'ratelimit')
    """
    last = re.split(r"[#.]", name.partition(":")[0])[-1]
    return re.sub(r"[\W_]|(error|exception)$", "", last.lower())
