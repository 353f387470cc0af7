"""What can be wrong with one parameter: nothing said of it, no form, no unit, a trap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nb_agent.adapters.property_names import fitted
from nb_agent.clinic.of_tools import Fault
from nb_agent.clinic.subjects import Field, Subject
from nb_agent.clinic.wording import describe_field
from nb_agent.clinic.words import RUNNING, SAYS_OMITTED, SHOWS_FORM, TELLS_OMITTED, UNITS, WHETHER, Kind, content, kind_of, pieces

__all__ = ["is_anything", "is_free", "is_silent", "misspelled", "omits_in_silence", "traps", "wants_form"]

#: Keywords by which a schema itself shows what fits.
_FORMS: Final = ("enum", "const", "format", "pattern", "examples", "contentEncoding")
_NO: Final = frozenset({"no", "not", "non", "without", "skip", "disable", "disabled", "dont", "never", "exclude", "hide"})
#: What is said of a parameter that takes a text of any length.
_TAKES_TEXT: Final = re.compile(
    r"\b(?:texts?|content|words|phrase|sentence|paragraph|message|markdown|html)\b|文本|内容|正文|全文", re.IGNORECASE
)
#: Yes-or-no parameters of one tool.
_MOST_FLAGS: Final = 3


def is_silent(subject: Subject) -> Iterator[Fault]:
    """A parameter that has no description, or only its own name for one."""
    for field in subject.fields:
        if _shown(field) and not field.description:
            continue  # a list of choices speaks for itself
        if not field.description:
            yield field.path, "nothing is said of it but its name", describe_field(subject, field)
        elif not _shown(field) and not SHOWS_FORM.search(field.description) and not _adds(field):
            what = "only repeats its name" if content(field.description) else "says nothing"
            yield field.path, f"{field.description!r} {what}", describe_field(subject, field)


def _adds(field: Field) -> bool:
    return bool(content(field.description) - content(" ".join(pieces(field.name))) - {"name"})


def is_free(subject: Subject) -> Iterator[Fault]:
    """A text that may be anything, with no example, no list of choices and no format."""
    for field in subject.fields:
        if _is_open(field) and not kind_of(field.name, number=False):
            yield field.path, "any text fits it: there is no example, no list of choices, no format", describe_field(subject, field)


def wants_form(subject: Subject) -> Iterator[Fault]:
    """An id, a date, a unit, a currency … with nothing that shows its form, or a quantity without a unit."""
    beside = {piece for field in subject.fields for piece in pieces(field.name)[-1:]}
    for field in subject.fields:
        text = kind_of(field.name, number=False) if _is_open(field) else None
        number = kind_of(field.name, number=True) if field.kinds & {"integer", "number"} else None
        if text:
            yield field.path, f"it is {text.called}, and nothing shows its form", describe_field(subject, field)
        elif number and not beside & _told_by(number) and not UNITS.search(f"{field.description} {' '.join(pieces(field.name))}"):
            yield field.path, f"it is {number.called}, and its unit is not told", describe_field(subject, field)


def _told_by(kind: Kind) -> set[str]:
    """The parameters beside a quantity that would tell its unit."""
    return {"currency"} if "price" in kind.words else {"unit", "units"}


def _is_open(field: Field) -> bool:
    """Whether it is a text of which nothing shows the form, and no running text."""
    if not field.texts or _shown(field) or SHOWS_FORM.search(field.description):
        return False
    running = RUNNING.intersection(pieces(field.name)) or _TAKES_TEXT.search(field.description)
    return not running and not any(isinstance(form.get("maxLength"), int) and form["maxLength"] <= 1 for form in field.texts)


def _shown(field: Field) -> bool:
    return bool(field.texts) and all(any(form.get(key) for key in _FORMS) for form in field.texts)


def is_anything(subject: Subject) -> Iterator[Fault]:
    """A parameter of any type, a list of anything, or an object with no keys named."""
    for field in subject.fields:
        if any(_says_nothing(form) for form in field.forms):
            yield field.path, "anything fits it, so that the model guesses its shape", _typed(field)


def _says_nothing(form: dict[str, object]) -> bool:
    keys = form.keys() - {"description", "title", "default", "additionalProperties", "items"}
    inner = form.get("additionalProperties", form.get("items"))
    if not keys:
        return True
    if keys == {"type"} and form["type"] in {"object", "array"}:
        return inner is None or inner is True or inner == {}
    return False


def _typed(field: Field) -> str:
    noun = "".join(piece.capitalize() for piece in pieces(field.name)) or "Value"
    return f"{field.name}: str, int, a Literal[…], or a model with its fields: class {noun}(BaseModel)"


def traps(subject: Subject) -> Iterator[Fault]:
    """Yes-or-no parameters that are read the wrong way round."""
    flags = [field for field in subject.fields if field.kinds == {"boolean"}]
    if len(flags) > _MOST_FLAGS:
        names = ", ".join(field.path for field in flags)
        yield None, f"{len(flags)} yes-or-no parameters ({names}) are mixed up", 'mode: Literal["…", "…"] with a name for each case'
    for field in flags:
        if found := _NO.intersection(pieces(field.name)):
            word = next(iter(found))
            other = "_".join(piece for piece in pieces(field.name) if piece != word) or "enabled"
            yield field.path, f"true means no ({word}): such a name is read the wrong way round", f"{other}: bool = True"
        elif field.description and not WHETHER.search(field.description):
            yield field.path, "it is not told what true does", f"{field.description}: true to …, false to …"


def omits_in_silence(subject: Subject) -> Iterator[Fault]:
    """A parameter that can be left out, and nothing tells what holds then."""
    for field in subject.fields:
        silent = not field.required and field.default in (..., None, "")
        if silent and not (SAYS_OMITTED.search(field.description) or TELLS_OMITTED.search(subject.description)):
            line = field.description or describe_field(subject, field).partition(": ")[2]
            yield field.path, "it may be left out, and it is not told what holds then", f"{field.name}: {line}; without it …"


def misspelled(subject: Subject) -> Iterator[Fault]:
    """The name of a parameter that a provider refuses."""
    for field in subject.fields:
        if field.level == 1 and fitted(field.name) != field.name:
            yield field.path, "Anthropic takes only a-z, A-Z, 0-9, _, . and - in names of parameters", "_".join(pieces(field.name))
