"""The words of prompts and of tool definitions as concepts that can be compared: split, without endings, synonyms as one.

Two languages meet in one table, so a prompt in Chinese finds a tool that is described in English. What the table does not know
is compared as it stands, Chinese by pairs of characters. Knows nothing of tools; `reading` finds values, this finds meaning.
"""
# ruff: noqa: SIM905  it names the signs that people type; lists of words read best as text

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

__all__ = ["GENERIC", "ZH_WORDS", "concepts", "is_chinese", "merged", "pieces", "places", "turns"]

#: Each line is one concept, named by its first word. A word may stand in several lines.
_LINES: Final = """
weather forecast temperature rain rainy raining sunny sun warm cold hot humid humidity wind windy snow 天气 气温 温度 下雨 预报
price cost costs quote worth expensive cheap 价格 股价 多少钱 价钱 报价
stock share 股票 股价 库存
inventory availability available 库存 存货
order purchase 订单
customer client buyer 客户 顾客
user account member 用户
time clock o'clock 时间 几点
email mail e-mail inbox 邮件 邮箱
directory folder 目录 文件夹
file document 文件 文档
find search look lookup query seek 查找 搜索 查询
list show display 列出 显示
read load 读取 读
write save 写入 保存 写
delete remove erase 删除
send 发送 发
add sum plus total 加 相加 求和 总和
subtract minus difference 减
multiply times 乘
divide divided quotient 除
calculate compute evaluate calculator calculation 计算
translate translation 翻译
convert conversion exchange 转换 换算 兑换
currency money dollar euro yen yuan pound franc rupee usd eur gbp jpy cny chf 货币 汇率 美元 欧元 日元 人民币 英镑
create 创建 新建
reserve book booking 预订 预定
novel book books 书 图书 书籍
transfer wire 转账 汇款
pay payment 支付 付款
cancel 取消
refund 退款
salary wage earn income 工资 薪水
thermostat aircon 空调
flight 航班 机票
news headline 新闻
city town 城市
warehouse depot 仓库
employee staff colleague worker 员工
product item goods 商品 产品
shipping ship shipment deliver delivery track tracking parcel package 包裹 快递 物流 发货 配送
status state 状态
roll dice die 骰子
random 随机
remind reminder 提醒
calendar schedule meeting event appointment 日程 会议
light lamp 灯
door 门
greet greeting 问候 打招呼
summary summarize summarise 总结 摘要
name 名字 姓名 名称
date day 日期
table 表
database db 数据库
country nation 国家
population inhabitants people 人口
distance far 距离
language 语言
number 数字
note memo 笔记 备忘
task todo to-do 任务 待办
celsius centigrade 摄氏
fahrenheit 华氏
"""

#: Concepts that say nothing of what a tool is about; alone they do not make it match.
GENERIC: Final = frozenset({"find", "list", "get", "fetch", "check", "run", "tell", "number", "name", "date"})

_STOP: Final = frozenset(
    "a an the of to in on at for from by with and or not no is are was were be been do does did can could will would should may "
    "it its this that these those there here what which who whom whose when where why how i me my we our you your he she they "
    "them their his her as if then than so but please return returns give given current information data value values result "
    "results specified use uses used using one all any each some have has had about into out up down new e g i.e etc such "
    "like example via per also let us make take want need thing something get fetch".split()
)
_ZH_STOP: Final = frozenset(
    "什么 怎么 一下 一个 获取 返回 信息 数据 结果 查看 告诉 可以 需要 以及 并且 或者 如果 今天 现在 指定".split()
)
_ZH_PARTICLES: Final = frozenset("的了是在和与及吗呢吧把请我你")
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?", re.UNICODE)
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_HAN: Final = re.compile(r"[㐀-鿿]+")
_OPERATORS: Final = {"+": "add", "*": "multiply", "×": "multiply", "÷": "divide", "/": "divide", "-": "subtract", "−": "subtract"}
_OPERATOR: Final = re.compile(r"(?<=[\d)])\s*([-+*/×÷−])\s*(?=[\d(])")


_ARTICLE: Final = re.compile(r"\b(?:the|an?|this|that|which|what|my|any|some)\s+$", re.IGNORECASE)

#: Turns of phrase that mean more than their words.
_TURNS: Final = (
    (re.compile(r"\b(?:what(?:'s|’s| is| are)? in|contents? of|what does|show(?: me)?|open)\s+(?:the\s+)?(?:file\s+)?"
                r"[`'\"]?[\w./-]+\.\w{1,5}\b", re.IGNORECASE), "read"),
    (re.compile(r"\b(?:what(?:'s|’s| is| are)? in|contents? of)\s+(?:the\s+)?[`'\"]?[\w./-]+/(?:[\s`'\"?]|$)", re.IGNORECASE),
     "directory"),
    (re.compile(r"\bselect\b.+\bfrom\b", re.IGNORECASE), "sql"),
    (re.compile(r"^\W*(?:please |can you |could you )?(?:e-?mail|text|message) (?=[^\W_]+@|[A-Z])", re.IGNORECASE), "send"),
    (re.compile(r"\bsay (?:hello|hi)\b|问好", re.IGNORECASE), "greet"),
    (re.compile(r"\bhow (?:do|would|can) (?:you|i|we|they) say\b|怎么说", re.IGNORECASE), "translate"),
    (re.compile(r"\b(?:put|add|enter)\b.+\b(?:to|on|in|into) (?:my|the|our) (?:calendar|diary|schedule)\b"
                r"|^\W*(?:please |can you |could you )?(?:schedule|plan|arrange|set up)\b", re.IGNORECASE), "create"),
    (re.compile(r"\bhow (?:many|much) [^\W\d]+ (?:are|is) (?:there )?in \d|\b(?:\d ?[^\W\d]+ |°[CF] |fahrenheit |celsius )"
                r"(?:in|to|into) [^\W\d]+\b", re.IGNORECASE), "convert"),
    (re.compile(r"\b(?:square root of|\d ?% of|\d (?:plus|minus|times|divided by)) \d", re.IGNORECASE), "calculate"),
)  # fmt: skip


def _stem(word: str) -> str:
    """A word without its ending, the same for both sides of a comparison and no more right than that needs."""
    word = re.sub(r"['’]s$", "", word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, least in (("ing", 6), ("ed", 5)):
        if word.endswith(ending) and len(word) >= least:
            word = word[: -len(ending)]
            word = word[:-1] if word[-1] == word[-2:-1] and word[-1] not in "ls" else word
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _LINES.split("\n"):
        words = line.split()
        for word in words:
            found.setdefault(word, set()).add(words[0])
    for word in list(found):  # a stem never takes the place of a word that has a line of its own: "times" is not "time"
        found.setdefault(_stem(word), found[word])
    return {word: frozenset(meant) for word, meant in found.items()}


_MEANING: Final = _table()
#: The Chinese words of the table, longest first.
ZH_WORDS: Final = tuple(sorted((word for word in _MEANING if _HAN.fullmatch(word)), key=lambda word: (-len(word), word)))


def is_chinese(text: str) -> bool:
    """Whether an answer to this text is better written in Chinese."""
    return len("".join(_HAN.findall(text))) * 3 > sum(sign.isascii() and sign.isalpha() for sign in text)


def pieces(text: str) -> list[str]:
    """The lower-case words of a name or a sentence, split at ``_``, at camelCase and between letters and digits.

    >>> pieces("get_stockPrice"), pieces("parseURL2")
    (['get', 'stock', 'price'], ['parse', 'url', '2'])
    """
    return [piece.lower() for token in _TOKEN.findall(text.replace("_", " ")) for piece in _CAMEL.findall(token)]


@lru_cache(maxsize=4096)
def concepts(text: str) -> frozenset[str]:
    """What a text is about.

    >>> sorted(concepts("Forecasts for a town")), sorted(concepts("城市的天气"))
    (['city', 'weather'], ['city', 'weather', '城市', '天气'])
    """
    return frozenset(places(text))


def merged(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    """The concepts of several texts together."""
    return frozenset(concept for part in parts for concept in part)


def places(text: str) -> dict[str, list[int]]:
    """Each concept of a text with the places where it is named."""
    found: dict[str, list[int]] = {}
    for concept, place in sorted(_named(text), key=lambda pair: pair[1]):
        found.setdefault(concept, []).append(place)
    return found


def turns(text: str) -> dict[str, list[int]]:
    """The concepts of turns of phrase, with their places: "what is in config.yaml" is about reading."""
    found = {concept: [match.start() for match in pattern.finditer(text)] for pattern, concept in _TURNS}
    return {concept: starts for concept, starts in found.items() if starts}


def _named(text: str) -> Iterator[tuple[str, int]]:
    for match in _TOKEN.finditer(text):
        token = match.group().lower()
        split = [token] if token in _MEANING else pieces(match.group())
        for word in split:
            if word not in _STOP and not word.isdigit() and not _HAN.search(word):
                stem = _stem(word)
                meant = _MEANING.get(word) or _MEANING.get(stem) or frozenset({stem})
                if len(meant) > 1 and _ARTICLE.search(text[: match.start()]):
                    meant -= {"reserve"}  # "the book" is a thing
                yield from ((concept, match.start()) for concept in meant)
    signs = list(_OPERATOR.finditer(text))
    for match in signs:  # of several signs no single operation is meant
        yield (_OPERATORS[match.group(1)] if len(signs) == 1 else "calculate"), match.start(1)
    for match in _HAN.finditer(text):
        yield from _chinese(match.group(), match.start())


def _chinese(run: str, start: int) -> Iterator[tuple[str, int]]:
    """The known words in a run of characters, and all its pairs: Chinese is written without spaces."""
    for word in ZH_WORDS:
        for match in re.finditer(word, run):
            yield from ((concept, start + match.start()) for concept in _MEANING[word])
    for place in range(len(run) - 1):
        pair = run[place : place + 2]
        if pair not in _ZH_STOP and not _ZH_PARTICLES.intersection(pair):
            yield pair, start + place
