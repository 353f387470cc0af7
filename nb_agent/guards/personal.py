"""The patterns that personal data are found by: e-mail, telephone, accounts, cards, the numbers that states give to people.

Unlike those of `patterns`, most are checked by a sum, since texts are full of numbers. A number that the words before it call an
order's is none of these.
"""

from __future__ import annotations

import re
from typing import Final

from nb_agent.guards.patterns import EDGE, Pattern, before, compiled

__all__ = ["PERSONAL"]

#: Before a number: it is an order's, and not one to call or to pay with.
_NUMBERED: Final = (
    r"(?i)(phone|tel|mobile|cell|card|电话|手机|卡)?\W*\w*(?:order|ticket|invoice|id|no|nr|#|number|订单号?|单号|编号)[\W_]*$"
)


def _is_free(match: re.Match[str]) -> bool:
    said = compiled(_NUMBERED).search(before(match))
    return said is None or bool(said[1])


def _is_phone(value: str, match: re.Match[str]) -> bool:
    return 7 <= sum(map(str.isdigit, value)) <= 15 and _is_free(match)


def _is_card(value: str, match: re.Match[str]) -> bool:
    """Luhn's sum (ISO/IEC 7812), the groups that cards are written in, and no order's number."""
    digits = [int(letter) for letter in value if letter.isdigit()]
    total = sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    groups = [len(group) for group in re.split(r"[ -]", value)]
    written = len(groups) == 1 or groups in ([4, 4, 4, 4], [4, 6, 5], [4, 6, 4], [4, 4, 4, 4, 3])
    return written and total % 10 == 0 and _is_free(match)


def _is_iban(value: str, _: re.Match[str]) -> bool:
    """Remainder 1 of a division by 97 (ISO 13616)."""
    plain = re.sub(r"[ -]", "", value)
    return int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])) % 97 == 1


def _is_resident(value: str, _: re.Match[str]) -> bool:
    """The check character of GB 11643: ISO 7064, MOD 11-2."""
    return "10X98765432"[sum(int(digit) * 2 ** (17 - place) for place, digit in enumerate(value[:17])) % 11] == value[17].upper()


_LENGTHS: Final = (  # of whole account numbers by country, from the SWIFT registry
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 "
    "GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IS26 IT27 JO30 KW30 KZ20 LB28 LI21 LT20 LU20 LV21 MC27 MD24 ME22 MK19 MR27 MT31 "
    "MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SE24 SI19 SK24 SM27 TN24 TR26 UA29 VA22 VG24 XK20"
)
_IBAN: Final = "|".join(rf"{entry[:2]}\d\d(?:[ -]?[A-Z0-9]){{{int(entry[2:]) - 4}}}" for entry in _LENGTHS.split())
_NUMBER: Final = r"(?:(?<![A-Za-z0-9_.+/-])|(?<=\\[nrt]))(?:{})(?![A-Za-z0-9_/-]|\.\d)"
_SCOUT: Final = r"\d(?:[ .()/-]{0,2}\d){8}"
_PHONE: Final = (
    r"\+[1-9](?:[ .()/-]{0,2}\d){8,14}|00[1-9]\d{0,2}[ -](?:[ ()/-]?\d){7,12}"  # from abroad (E.164)
    r"|(?:1[ .-])?(?:\([2-9]\d\d\)[ ]?\d{3}|[2-9]\d\d(?:\.\d{3}(?=\.)|-\d{3}(?=-)))[.-]\d{4}"  # North America
    r"|1[3-9]\d(?:\d{8}|[ ]\d{4}[ ]\d{4}|-\d{4}-\d{4})"  # a mobile in China
    r"|0[1-9]\d{1,3}[ /-]\d{6,8}|0[1-9]\d{1,2}[ -]\d{3,4}[ -]\d{4}|0[67](?:[ .]\d\d){4}(?![ .]\d)"  # others with a trunk 0
)

PERSONAL: Final[tuple[Pattern, ...]] = (
    Pattern(
        "e-mail",
        r"(?<![A-Za-zÀ-ɏ0-9._%+-])(?:(?<=\\)[nrt])?(?!git@)"
        r"(?P<value>[A-Za-zÀ-ɏ0-9._%+-]{1,64}+@(?!\dx\.)(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,24})(?![\w-])",
        ("@",),
    ),
    Pattern("IBAN", rf"{EDGE}(?:{_IBAN})(?![A-Za-z0-9])", real=_is_iban, scout=r"[A-Z]{2}\d\d"),
    Pattern("resident id", _NUMBER.format(r"[1-9]\d{5}(?:19|20)\d\d[01]\d[0-3]\d{4}[\dXx]"), real=_is_resident, scout=r"\d{17}"),
    Pattern("card number", _NUMBER.format(r"(?:4|5[1-5]|2[2-7]|3[045678]|6[0245])(?:[ -]?\d){11,17}"), real=_is_card, scout=_SCOUT),
    Pattern("social security number", _NUMBER.format(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}"), ("-",)),
    Pattern("phone number", _NUMBER.format(_PHONE), real=_is_phone, scout=_SCOUT),
    Pattern(
        "phone number",
        r"(?i)(?:phone|\btel|mobile|\bcell|fax|whatsapp|telefon|电话|手机)[\w ]{0,12}[\"']?[.:： ]{1,3}[\"']?"
        r"(?P<value>[+(]?\d(?:[ ()./-]{0,2}\d){6,14})(?![\w-])",
        ("phone", "tel", "mobile", "cell", "fax", "whatsapp", "电话", "手机"),
    ),
)
