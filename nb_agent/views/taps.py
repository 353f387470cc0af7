"""The messages between nb_agent and MCP servers, as a frame and as HTML: one list, or the same call in two eras side by side.

Draws what `mcp.wirelog` keeps, as `WireLog.entries` gives it; unlike `html`, which shows what went to and from a model. Static: no
script, no style sheet of others, and every text of a server is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from nb_agent.values import JSON
from nb_agent.views.words import visible

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["beside", "frame", "page"]

#: Columns of `frame` and their types.
_COLUMNS: Final = {
    "at": "float64",
    "server": "object",
    "era": "object",
    "direction": "object",
    "method": "object",
    "id": "object",
    "seconds": "float64",
    "bytes": "int64",
    "call_id": "object",
    "body": "object",
}
#: Characters of one body that are shown; the frame has it all.
_MOST: Final = 20_000

_STYLE: Final = (
    "<style>.nba-tap table{border-collapse:collapse}.nba-tap td,.nba-tap th{text-align:left;vertical-align:top;padding:2px 8px}"
    ".nba-tap td{white-space:nowrap}.nba-tap details{white-space:normal;overflow-wrap:anywhere}"
    ".nba-tap pre{max-height:24em;overflow:auto;white-space:pre-wrap;margin:4px 0}"
    ".nba-tap-pair{display:grid;grid-template-columns:1fr 1fr;gap:16px}.nba-tap-pair>div{min-width:0;overflow-x:auto}</style>"
)


def frame(entries: Sequence[JSON]) -> pd.DataFrame:
    """A row for each message.

    Columns: ``at`` (seconds since the epoch), ``server`` (name of the connection), ``era`` (legacy or modern), ``direction`` (sent
    or received), ``method`` (of an answer: of what it answers), ``id`` (of the request; nothing in a notice), ``seconds`` (that an
    answer took), ``bytes`` (in UTF-8), ``call_id`` (of the call that caused it, or an empty text), ``body`` (JSON text, or nothing
    where it was too large to keep).
    """
    import pandas as pd  # noqa: PLC0415  slow to import

    rows = [{**entry, "body": None if entry["body"] is None else _text(entry["body"])} for entry in entries]
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)


def page(entries: Sequence[JSON], *, title: str = "Messages to and from MCP servers", dropped: int = 0) -> str:
    """A fragment of HTML with a line for each message, which opens to show its JSON.

    Args:
        entries: see `WireLog.entries`.
        title: stands above them.
        dropped: messages that were before these and are no longer kept.
    """
    gone = f"<p>{dropped:,} earlier messages are not kept.</p>" if dropped else ""
    return f"{_opened()}<h4>{_safe(title)}</h4>{gone}{_table(entries)}</div>"


def beside(left: Sequence[JSON], right: Sequence[JSON], *, titles: tuple[str, str] | None = None) -> str:
    """Two lists of messages in two columns, such as one call by the handshake and by the discovery of 2026-07-28.

    Args:
        left: see `WireLog.entries`.
        right: the same.
        titles: above the columns; the eras that are spoken there, where they are not given.
    """
    columns = [
        f"<div><h4>{_safe(title)}</h4><p>{_sums(entries)}</p>{_table(entries)}</div>"
        for entries, title in zip((left, right), titles or (_eras(left), _eras(right)), strict=True)
    ]
    return f'{_opened()}<div class="nba-tap-pair">{"".join(columns)}</div></div>'


def _opened() -> str:
    return f'<div class="nba-tap tex2jax_ignore mathjax_ignore">{_STYLE}'


def _eras(entries: Sequence[JSON]) -> str:
    return " and ".join(dict.fromkeys(entry["era"] for entry in entries if entry["era"])) or "nothing was said"


def _sums(entries: Sequence[JSON]) -> str:
    sent = [entry["bytes"] for entry in entries if entry["direction"] == "sent"]
    received = [entry["bytes"] for entry in entries if entry["direction"] == "received"]
    return f"{len(sent)} sent ({sum(sent):,} bytes), {len(received)} received ({sum(received):,} bytes)"


def _table(entries: Sequence[JSON]) -> str:
    if not entries:
        return "<p>No message went over the wire.</p>"
    began = entries[0]["at"]
    heads = "".join(f"<th>{head}</th>" for head in ("ms", "server", "", "message", "took", "bytes", "call"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(_row(entry, began) for entry in entries)}</tbody></table>"


def _row(entry: JSON, began: float) -> str:
    took = "" if entry["seconds"] is None else f"{entry['seconds'] * 1000:.0f} ms"
    shown = [
        f"{(entry['at'] - began) * 1000:.0f}",
        _safe(entry["server"]),
        "→" if entry["direction"] == "sent" else "←",
        f"<details><summary>{_kind(entry)}</summary>{_body(entry)}</details>",
        took,
        f"{entry['bytes']:,}",
        _safe(entry["call_id"]),
    ]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in shown)}</tr>"


def _kind(entry: JSON) -> str:
    """What a message is, in a few words: a request, a notice, an answer, or an error."""
    body = entry["body"] or {}
    number = "" if entry["id"] is None else f" #{_safe(entry['id'])}"
    kind = "error of " if "error" in body else "" if "method" in body else "answer to " if entry["id"] is not None else ""
    more = " (asks back)" if isinstance(result := body.get("result"), dict) and result.get("resultType") == "input_required" else ""
    return f"{kind}<code>{_safe(entry['method'] or 'a request that is not known')}</code>{number}{more}"


def _body(entry: JSON) -> str:
    if entry["body"] is None:
        return f"<p>{entry['bytes']:,} bytes: too large to be kept.</p>"
    text = json.dumps(entry["body"], ensure_ascii=False, indent=2)
    cut = "" if len(text) <= _MOST else f"<p>cut: {len(text):,} characters in all</p>"
    return f"<pre>\n{_safe(text[:_MOST])}</pre>{cut}"


def _text(body: JSON | str) -> str:
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def _safe(foreign: Any) -> str:
    return escape(visible(str(foreign)))
