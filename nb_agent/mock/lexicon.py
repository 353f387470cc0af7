"""What the mock model knows of the world: tables of places, units, currencies, languages, and of words that name nothing.

Only tables, with no rule how they are used: unlike those of `words`, which say what means the same, these name values.
"""
# ruff: noqa: SIM905  lists of words read best as text

from __future__ import annotations

from typing import Final

__all__ = [
    "ALIASES",
    "COMPANIES",
    "CURRENCIES",
    "EXTENSIONS",
    "FILES",
    "HAN_PLACES",
    "HAN_STOP",
    "LONG_UNITS",
    "NO_NAME",
    "UNITS",
    "ZONES",
]

#: Words that open a sentence or stand in capitals and name nothing.
NO_NAME: Final = frozenset(
    "what what's whats who who's where when which why how how's is are was were do does did can could will would should may "
    "please the a an and or but then also if for in on at to from with of by it i i'm i'd my we our you your he she they "
    "this that these those there here give get show tell find list look search check read write open save send create make "
    "add compute calculate compare convert translate run use call ask answer explain describe summarize summarise go let "
    "let's see set put take book reserve order buy cancel delete remove update say repeat reply hello hi hey thanks thank "
    "yes no ok okay first second next last finally now after before both each every all any some more report return count "
    "sum multiply divide subtract plus celsius fahrenheit markdown python json yaml csv sql api id ids sku url am pm ceo "
    "mcp llm ai faq html pdf utf degrees need want roll query fetch lookup track schedule remind draw plot generate once "
    "using turn switch lock unlock about store load print display".split()
)
#: Endings of the names of files, as a pattern.
EXTENSIONS: Final = (
    "md|txt|ya?ml|json|jsonl|csv|tsv|py|toml|html?|xml|pdf|png|jpe?g|gif|svg|ini|cfg|conf|log|sql|db|sqlite|ipynb|jsx?|tsx?|css|rst|"
    "xlsx?|docx?|pptx?|parquet|zip|tar|gz|sh|env|lock|c|h|cpp|rs|go|java|rb|mp3|mp4|wav"
)
#: Kinds of files, with the ending of their names.
FILES: Final = {
    "markdown": "md", "python": "py", "json": "json", "yaml": "yaml", "csv": "csv", "text": "txt", "toml": "toml", "html": "html",
    "notebook": "ipynb", "log": "log", "sql": "sql", "javascript": "js", "pdf": "pdf",
}  # fmt: skip
#: Names of money, with their codes.
CURRENCIES: Final = {
    "dollar": "USD", "euro": "EUR", "yen": "JPY", "yuan": "CNY", "pound": "GBP", "franc": "CHF", "rupee": "INR", "美元": "USD",
    "欧元": "EUR", "日元": "JPY", "人民币": "CNY", "英镑": "GBP",
}  # fmt: skip
#: Units that are said in words, and those that count as units only after a number; both as patterns.
LONG_UNITS: Final = (
    "(?:kilo|centi|milli)?met(?:er|re)s?|miles?|yards?|feet|foot|inch(?:es)?|(?:kilo|milli)?grams?|pounds?|ounces?|tonnes?|tons?|"
    "(?:milli)?lit(?:er|re)s?|gallons?|pints?|cups?|hours?|minutes?|seconds?|days?|weeks?|knots|mph|kelvin|celsius|fahrenheit|"
    "Celsius|Fahrenheit|Kelvin|kilobytes?|megabytes?|gigabytes?|公里|千米|英里|公斤|英尺|英寸|厘米"
)
UNITS: Final = rf"{LONG_UNITS}|[kcm]?m|km/h|ft|yd|mi|lbs?|oz|[km]?g|m?[lL]|°?[CFK]|[KMGT]B|h|min|s|米|磅|克"
#: Companies with the symbols of their shares, and cities with their time zones.
COMPANIES: Final = {
    "apple": "AAPL", "microsoft": "MSFT", "google": "GOOGL", "alphabet": "GOOGL", "amazon": "AMZN", "tesla": "TSLA",
    "nvidia": "NVDA", "meta": "META", "netflix": "NFLX", "intel": "INTC", "苹果": "AAPL", "特斯拉": "TSLA", "微软": "MSFT",
}  # fmt: skip
ZONES: Final = {
    "tokyo": "Asia/Tokyo", "东京": "Asia/Tokyo", "paris": "Europe/Paris", "巴黎": "Europe/Paris", "london": "Europe/London",
    "伦敦": "Europe/London", "berlin": "Europe/Berlin", "new york": "America/New_York", "纽约": "America/New_York",
    "beijing": "Asia/Shanghai", "北京": "Asia/Shanghai", "shanghai": "Asia/Shanghai", "上海": "Asia/Shanghai",
    "sydney": "Australia/Sydney", "los angeles": "America/Los_Angeles",
}  # fmt: skip
#: Names of the same choice; those of one or two letters are words of their own and are not looked for.
ALIASES: Final = tuple(
    line.split()
    for line in """
celsius c metric °c centigrade 摄氏
fahrenheit f imperial °f 华氏
kelvin k °k
english en 英语 英文
french fr 法语 法文
german de 德语 德文
spanish es 西班牙语
italian it 意大利语
portuguese pt 葡萄牙语
russian ru 俄语
arabic ar 阿拉伯语
chinese zh zh-cn mandarin 中文 汉语
japanese ja 日语 日文
korean ko 韩语
mean avg average 平均
sum total 总和
""".strip().splitlines()
)
#: Chinese words and characters that part names and belong to none.
HAN_STOP: Final = (
    "怎么样 怎么 什么 多少 哪里 哪些 哪个 如何 请问 帮我 帮忙 告诉我 告诉 查一下 看一下 看看 一下 今天 明天 昨天 现在 当前 "
    "目前 首都 都有 都是 都在 关闭 关掉 开启 设置 设为 设成 调到 调成 换成 换为 兑成 变成 改成 写成 说成 同时 然后 以及 "
    "还有 并且 或者 想知道 知道 需要 可以 能否 能不能 是否 一共 分别 之间 关于 里面 所有 比较 对比 显示 打开 运行 使用 "
    "调用 执行 总共 列举 住在 现有 的 了 吗 呢 吧 请 查 问 我 你 您 他 她 它 想 要 和 与 及 跟 或 在 是 从 到 给 用 把 将 "
    "对 有 并 这 那 个 几 度 各 也 还 再 为 做"
).split()
#: Names of places that hold one of these characters, or one of those that are taken off an end.
HAN_PLACES: Final = (
    "新加坡 加拿大 加州 加纳 芝加哥 孟加拉 雅加达 里加 马达加斯加 呼和浩特 和田 和歌山 印度尼西亚 印度 埃及 也门 维也纳 "
    "巴塞罗那 哈瓦那 那不勒斯 那霸 的黎波里 加的夫 亚的斯亚贝巴 马德里 新德里 德里 马里 拉各斯 几内亚 从化 查尔斯顿 对马 "
    "都柏林 都灵 成都"
).split()
