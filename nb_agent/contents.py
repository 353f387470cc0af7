"""What the same content costs in another form: in several languages, as code, as JSON, and as JSON inside JSON.

A model is charged by the token, and a token is neither a character nor a byte. Unlike `xray`, which looks into a request, this lays
texts side by side that mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nb_agent import tokens
from nb_agent.errors import SettingError
from nb_agent.values import dumps
from nb_agent.views import plots

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["SAMPLES", "Cost", "Costs", "compare_contents", "forms"]

#: One order in several languages and as code.
SAMPLES: Final = {
    "English": "Customer Lin Yue ordered three lamps on 12 May; deliver them to Harbour Street 5 before noon.",
    "中文": "顾客林悦于5月12日订购了三盏灯；请在中午之前送到港口街5号。",
    "Deutsch": "Kundin Lin Yue hat am 12. Mai drei Lampen bestellt; bitte vor Mittag in die Hafenstraße 5 liefern.",
    "日本語": "お客様の林悦さんは5月12日にランプを3つ注文しました。正午までに港通り5番地へ届けてください。",
    "Python": (
        'order = Order(customer="Lin Yue", items=[Item("lamp", 3)], placed=date(2031, 5, 12))\n'
        'order.deliver("Harbour Street 5", before=time(12))'
    ),
}


class Cost(NamedTuple):
    """What one text costs.

    Attributes:
        name: of the content.
        form: ``text``, ``JSON`` or ``JSON in JSON``.
        text: as it is counted.
        characters: Unicode code points.
        bytes: in UTF-8.
        tokens: of the model.
        per_character: tokens for one character of the *plain* text, so that what a form adds is seen.
    """

    name: str
    form: str
    text: str
    characters: int
    bytes: int
    tokens: int
    per_character: float


@dataclass(frozen=True, slots=True, repr=False)
class Costs:
    """The costs of several contents in several forms.

    Attributes:
        rows: one for each content and form.
        encoding: the vocabulary that was counted with.
        exact: whether it is the model's own.
    """

    rows: tuple[Cost, ...]
    encoding: str
    exact: bool

    def frame(self) -> pd.DataFrame:
        """A row for each content and form, with the columns of `Cost`; tokens are those of `encoding`."""
        import pandas as pd  # noqa: PLC0415  0.6 s, so only when a table is wanted

        return pd.DataFrame(self.rows, columns=Cost._fields)

    def plot(self, *, dark: bool | None = None) -> Figure:
        """The tokens as bars, a group for each content and a bar for each form."""
        return plots.bars(
            [row.name for row in self.rows if row.form == _FORMS[0]],
            {form: [row.tokens for row in self.rows if row.form == form] for form in _FORMS},
            title=f"Tokens of the same content ({self.encoding}{'' if self.exact else ', an estimate'})",
            dark=dark,
        )

    def __repr__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [
            f"{row.name:{width}}  {row.form:12}  {row.tokens:5,} tokens  {row.characters:6,} characters  {row.bytes:6,} bytes"
            for row in self.rows
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table: Any = self.frame().drop(columns="text")
        return str(table.to_html(index=False, float_format=lambda number: f"{number:.2f}"))


_FORMS: Final = ("text", "JSON", "JSON in JSON")


def forms(text: str) -> dict[str, str]:
    r"""The text as it is, as the value of a JSON object, and that object as a text inside another one, as tool arguments travel.

    >>> print(forms("a")["JSON in JSON"])
    {"arguments":"{\"content\":\"a\"}"}
    """
    inner = dumps({"content": text})
    return {"text": text, "JSON": inner, "JSON in JSON": dumps({"arguments": inner})}


def compare_contents(texts: Mapping[str, str] | None = None, *, model: str = "gpt-4o") -> Costs:
    """What contents cost in each form (mission A6).

    Args:
        texts: by name; without any, one order in several languages and as code (`SAMPLES`).
        model: whose vocabulary counts; where it is not public the figures are estimates, and say so.

    Raises:
        SettingError: there is no text to count.
    """
    given = SAMPLES if texts is None else texts
    if not any(given.values()):
        raise SettingError(
            "there is no text to count; give some, as in compare_contents({'English': 'three lamps', '中文': '三盏灯'})"
        )
    encoding = tokens.encoding_for(model)
    rows = [_cost(name, form, text, len(plain), model) for name, plain in given.items() for form, text in forms(plain).items()]
    return Costs(tuple(rows), encoding.name, encoding.exact)


def _cost(name: str, form: str, text: str, plain: int, model: str) -> Cost:
    number = tokens.count(text, model=model)
    return Cost(name, form, text, len(text), len(text.encode("utf-8", "replace")), number, number / (plain or 1))
