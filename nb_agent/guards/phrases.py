"""Turns of phrase by which a text gives orders to a model, in English, Chinese and some other languages: a table for `commands`.

A manual, a letter or a log gives orders too, to people; hence each is a whole turn of phrase, said to a model or about what it was
told, and never a word alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ASIDE", "MODEL", "SIGNS", "Sign"]


class Sign(NamedTuple):
    """A turn of phrase, in small letters. Without any of the hints in a text it is not looked for."""

    reason: str
    hints: tuple[str, ...]
    regex: str


#: Up to four words, and what stands between two words of a sentence. All of it is bounded, or never given back.
_BREAK: Final = r"[^\w.!?;:。！？；：]{1,4}"
_WORDS: Final = rf"(?:{_BREAK}\w++){{0,4}}?{_BREAK}"
_BEFORE: Final = r"(?:previous|prior|earlier|above|preceding|foregoing|original|initial)"
MODEL: Final = (
    r"(?:ai|a\.i\.|llm|(?:large )?language model|chatbot|gpt|(?:ai|llm)[ -](?:assistant|agent|model|system|bot)|assistant model)s?"
)
_PERSON: Final = r"(?:the |this |any |your )(?:human )?(?:users?|humans?|operators?|person|customers?)\b"
#: What a line that is said by "System:" begins with.
_COMMAND: Final = (
    r"(?:you (?:are now|must|will|should|have to|may now)\b|(?:please )?(?:ignore|disregard|forget|obey|delete|erase|execute|run"
    r"|call|invoke"
    r"|send|transfer|forward|reveal|grant|disable|override|reply|respond|output|follow|stop|use)\W+(?:all|any|every|everything"
    r"|the|these|this"
    r"|your|my|me|only|with|to|previous|\w+_\w+|\w+\()|(?:do not|don't|never|always) (?:tell|ask|answer|reply|respond|mention"
    r"|follow|reveal)"
    r"|obey\b|from now on\b|new (?:instructions?|task|orders?)\b|你(?:现在|必须|要|是)|忽略|删除(?:所有|全部)|立即|从现在)"
)
ASIDE: Final = "sets aside what the model was told"
_QUIET: Final = "asks to keep something from the user"
_PROMPT: Final = "asks for the system prompt"
_ACT: Final = "tells the model to act"
_ROLE: Final = "speaks as the system"
_ADDRESS: Final = "addresses a model"
_BECOME: Final = "gives the model another role"

SIGNS: Final = (
    Sign(
        ASIDE,
        ("ignor", "disregard", "forget", "overrid", "bypass", "follow"),
        r"(?<!not )(?<!n't )(?<!never )\b(?:ignore|disregard|forget|override|bypass|(?:do not|don't|stop) follow(?:ing)?)\b"
        rf"{_BREAK}(?:(?:all|any|every|each|and|of|what|the|these|those|your|my|in|about){_BREAK}){{0,5}}?(?:"
        rf"(?:{_BEFORE}|your|system|safety|all|any|every|these|those){_WORDS}(?:instructions?|directions|directives?|guidelines"
        r"|training)\b"
        rf"|(?:{_BEFORE}|your|system|safety){_WORDS}(?:prompts?|rules|commands|constraints|restrictions|programming)\b"
        rf"|(?:instructions?|directions|guidelines|rules){_BREAK}(?:above|before this|you (?:were|have|received)"
        r"|(?:that were )?given to you)\b"
        r"|(?:everything|all|anything|what) (?:(?:that )?you (?:were|have been) (?:told|given|asked|instructed)|(?:said "
        r"|written |stated )?(?:above|before))\b"
        r"|user(?:'s)? (?:asked|says|said|wants|requests?|questions?|instructions?)\b)",
    ),
    Sign(
        ASIDE,
        ("new instructions", "new system prompt", "new directive", "real instructions", "actual instructions"),
        r"\b(?:your|the following(?: are)?(?: your)?|here are your|these are your) (?:new|real|actual|updated) (?:instructions"
        r"|system prompt|directives?)\b"
        r"|\bnew (?:instructions|system prompt)\s*[:：]",
    ),
    Sign(
        ASIDE,
        ("anweis", "instru", "vorgabe", "consigne", "indicacion", "istruzion", "инструкц", "указани", "polec"),
        rf"\b(?:ignorier\w*|vergiss|vergessen sie|missacht\w*)\b(?! nicht){_WORDS}(?:vorherig|bisherig|obig|vorangegangen|früher"
        r"|alle|deine|ihre)\w*"
        rf"{_WORDS}?(?:anweisung|instruktion|vorgabe)\w*"
        rf"|(?<!n['’])\b(?:ignore[zr]?|oublie[zr]?|ne (?:tiens|tenez) pas compte)\b{_WORDS}(?:instructions"
        r"|consignes)\W+(?:précédent|antérieur|ci-dessus|initial)\w*"
        rf"|(?<!no )\b(?:ignor[ae]\w*|olvid[ae]\w*|haz caso omiso)\b{_WORDS}(?:instrucciones|indicaciones)\W+(?:anterior|previa"
        r"|de arriba)\w*"
        rf"|(?<!non )\b(?:ignor[ai]\w*|dimentica\w*)\b{_WORDS}istruzioni\W+(?:precedenti|di prima|sopra)"
        rf"|(?<!não )\b(?:ignor[ae]\w*|esqueça\w*|desconsider\w+)\b{_WORDS}instruções\W+(?:anteriores|prévias|acima)"
        rf"|\b(?:negeer|vergeet)\b(?! niet){_WORDS}(?:vorige|eerdere|bovenstaande|alle)\W+(?:\w+\W+)?instructies"
        rf"|(?<!не )\b(?:игнорируй|проигнорируй|забудь)(?:те)?\b{_WORDS}(?:предыдущ|прежн|вышеуказанн|прошл)\w+\W+(?:инструкц"
        r"|указани)\w+"
        rf"|(?<!nie )\b(?:zignoruj|ignoruj|zapomnij)\w*\b{_WORDS}(?:poprzedni|wcześniejsz)\w+\W+(?:instrukcj|poleceni)\w+",
    ),
    Sign(
        ASIDE,
        ("指令", "指示", "命令", "提示", "规则", "規則", "限制", "지시", "명령", "지침"),
        r"(?<!要)(?<!别)(?<!勿)(?<!能)(?:忽略|无视|無視|忽視|忘记|忘記|忘掉|不要理会|不要遵守|抛弃|撤销)(?:掉|你|您|所有|全部|一切|任何|之前|以前|先前|此前|前面|上面|以上|上述|原有|最初|收到"
        r"|的|系统"
        r"|安全|这些|那些|了|，|,){1,8}(?:指令|指示|命令|提示词|提示(?!框|音|符)|规则|規則|限制)"
        r"|(?:以前|これまで|前|上記|すべて)の(?:すべての)?(?:指示|命令|指令)を?(?:すべて|全て)?(?:は)?(?:無視|忘れ)"
        r"|(?:이전|위의?|앞의?|기존)\s*(?:모든\s*)?(?:지시|명령|지침)\S{0,4}\s*(?:모두\s*)?(?:무시|잊)",
    ),
    Sign(
        _PROMPT,
        ("prompt", "instructions", "message"),
        rf"\b(?:reveal|leak|disclose|divulge|recite|repeat|exfiltrate)\b(?:{_WORDS}(?:system|initial|hidden|secret|developer"
        r"|original) "
        rf"(?:prompt|message|instructions)|{_WORDS}your (?:prompt|instructions))\b"
        r"|\b(?:print|show|output|display|tell|give|send|write|return|dump)\b(?:\W+(?:me|us|out|back))?\W+(?:(?:all "
        r"|everything )?(?:of |in )?your"
        r"|(?:the )?(?:full|entire|complete|exact|verbatim|whole))\W+(?:\w+\W+){0,2}?(?:(?:system|initial|hidden"
        r"|developer) (?:prompt|message|instructions))\b",
    ),
    Sign(
        _PROMPT,
        ("提示词", "系统提示", "系统指令", "初始指令", "内部指令"),
        r"(?:输出|显示|泄露|透露|告诉我|打印|重复|复述|给出|发送|公布)(?:你|您|的|完整|全部|所有|一下|我|出){1,5}(?:系统提示词?|系统指令|提示词|初始指令|内部指令)",
    ),
    Sign(
        _QUIET,
        ("user", "human", "operator", "person", "customer"),
        r"\b(?:do not|don't|never|must not|should not|without|avoid)\s+(?:(?:ever )?(?:tell|inform|alert|warn)(?:ing)?"
        r"|(?:mention|reveal|disclos|report)(?:ing|e)?\s"
        rf"(?:this|it|that|these|any of this)\b[^.!?\n]{{0,30}}?\bto|let(?:ting)?(?=[^.!?\n]{{0,20}}\b(?:know|see|notice"
        rf"|find out)\b))\s+{_PERSON}"
        r"(?! (?:whether|which|if|why|when|how))"
        rf"|\bkeep (?:this|it|these|that)\b[^.!?\n]{{0,30}}?\b(?:secret|hidden|confidential)\b[^.!?\n]{{0,12}}?\bfrom {_PERSON}"
        rf"|\b(?:hide|conceal) (?:this|these|that|it)\b[^.!?\n]{{0,30}}?\bfrom {_PERSON}",
    ),
    Sign(
        _QUIET,
        (
            "用户",
            "使用者",
            "nutzer",
            "utilisateur",
            "usuario",
            "utente",
            "usuário",
            "utilizador",
            "gebruiker",
            "пользовател",
            "ユーザー",
        ),
        r"(?:不要|别|勿|不得|切勿|请勿|不能|不许|无需)(?:把这|将此)?\S{0,4}?(?:告诉|告知|透露给)(?:任何)?(?:用户|使用者)|(?:不要|别|不得)让(?:用户|使用者)(?:知道|发现|察觉)"
        r"|瞒着用户|对用户(?:保密|隐瞒)"
        r"|\b(?:sag|sage|sagen sie|erzähl|erzähle|verrate?)\b[^.!?\n]{0,20}?\bdem (?:be)?nutzer (?:nichts|nicht|kein)"
        r"|\bteile? (?:es |dies )?dem (?:be)?nutzer nicht"
        r"|\bne (?:le |la )?(?:dis|dites|révèle|révélez)\b[^.!?\n]{0,20}?à l['’]utilisateur|\bno (?:se )?(?:lo |le )?(?:digas"
        r"|diga|cuentes|reveles)\b[^.!?\n]{0,20}?\bal usuario"
        r"|\bnon (?:lo )?(?:dire|dirlo|rivelare)\b[^.!?\n]{0,20}?all['’]utente|\bnão (?:conte|diga|informe"
        r"|revele)\b[^.!?\n]{0,20}?\bao (?:usuário|utilizador)"
        r"|\b(?:vertel|zeg)\b[^.!?\n]{0,20}?de gebruiker niet|\bне (?:говори|сообщай"
        r"|рассказывай)(?:те)?\b[^.!?\n]{0,20}?пользовател|ユーザーに(?:は)?\S{0,6}(?:言わない|伝えない|教えない)",
    ),
    Sign(
        _ACT,
        ("you must", "you need", "you have to", "you should", "you shall", "you are to"),
        r"\byou (?:must|need to|have to|should|shall|are to) (?:now|immediately|instead|at once) (?:call|invoke|execute|send"
        r"|delete|transfer"
        r"|forward|upload|e-?mail|wire|exfiltrate|post)\b",
    ),
    Sign(
        _ACT,
        ("tool", "function"),
        r"\b(?:immediately|instead|now|next|then|please)\W{1,2}(?:call|invoke|use|execute|run) (?:the "
        r"|your )?[`'\"]?\w+[`'\"]? tool\b"
        r"|\bbefore (?:you )?(?:answer|respond|reply|continu)\w*\b[^.!?\n]{0,40}?\b(?:call|invoke|use|execute|run) (?:the "
        r"|your )?[`'\"]?\w+[`'\"]? (?:tool|function)\b",
    ),
    Sign(
        _ACT,
        (
            "conversation",
            "chat history",
            "system prompt",
            "passwords",
            "secrets",
            "private key",
            "environment variables",
            ".env",
            "ssh key",
            "user's",
            "api key",
        ),
        rf"\b(?:send|forward|e-?mail|post|upload|transmit|exfiltrate|leak)\b{_WORDS}(?:conversation|chat history|system prompt"
        r"|passwords|secrets|private keys?"
        r"|environment variables|\.env|ssh keys?|api keys|user's \w+)\b[^.!?\n]{0,60}?\b(?:to|at)\W+(?:https?:|[\w.+-]{1,64}@"
        r"|this (?:url|address|server|endpoint))",
    ),
    Sign(
        _ACT,
        ("立即", "现在", "马上", "立刻"),
        r"(?:你|您|请)(?:(?:现在|立即|马上|立刻)(?:必须|要|需要|应)?|必须(?:立即|现在|马上|立刻))(?:调用|执行|发送|删除|转账|转发|上传|运行)(?!以下)",
    ),
    Sign(
        _ROLE,
        ("system", "developer", "admin", "系统"),
        r"(?m)^[^\w\n]{0,8}(?:system|developer|admin(?:istrator)?|系统)(?:[ -](?:prompt|message|instructions?|note|notice|update"
        r"|override)|消息|提示|指令)?"
        rf"(?:[^\w\n]{{0,6}}[:：>\]][^\w\n]{{0,6}}|[^\w\n]{{0,6}}\n[^\w\n]{{0,4}}){_COMMAND}"
        r"|\b(?:system|admin|developer)(?: prompt| mode)? override\s*[:!]",
    ),
    Sign(
        _ADDRESS,
        ("ai", "a.i.", "llm", "language model", "chatbot", "gpt", "assistant", "bot"),
        r"\b(?:attention|(?:note|notice|message|instructions?) (?:to|for)|hey|hello|dear)\W+(?:the |any |all "
        rf"|every )?{MODEL}(?=\W*(?:[:,!\n—]|$|reading|processing))"
        rf"|\bif you(?:'re| are) an? (?:{MODEL}|bot|automated (?:system|agent|assistant))\b(?=\W*(?:,|:|—|$|then|you|please"
        r"|reading|processing|summari|do |must|ignore|and))"
        rf"|\b(?:{MODEL}|assistants?|agents?) (?:reading|processing|parsing|summari[sz]ing|analy[sz]ing|that reads?"
        r"|who reads?) this\b",
    ),
    Sign(
        _BECOME,
        ("you are now", "you're now", "from now on", "do anything now", "no longer bound", "从现在", "你现在是"),
        r"\byou(?: are|'re) now (?:dan\b|in (?:developer|god|jailbreak|unrestricted) mode|jailbroken|unrestricted"
        r"|an? (?:unrestricted|unfiltered|different|new|evil)"
        r" (?:ai|assistant|model|chatbot|persona)|free (?:from|of) (?:all|any|your)|no longer (?:bound|restricted))"
        r"|\bfrom now on,? you (?:must|will|shall|are to) (?:only |always )?(?:respond|obey|act as|ignore|follow (?:only|my"
        r"|these)|speak|pretend|roleplay)\b"
        r"|\bdo anything now\b|\bno longer bound by (?:your|any|the)\b"
        r"|从现在(?:开始|起)[，,]?(?:你|您)(?:是|要|必须|将|只能)\S{0,6}?(?:扮演|回答|执行|服从|忽略|没有|不受)|你现在是(?:一个)?(?:没有|不受|dan\b|开发者模式)",
    ),
    Sign(
        "forges the tokens of a chat template",
        ("<|", "<start_of_turn", "[inst", "[/inst", "<<sys", "<</sys", "tool_output"),
        r"<\|(?:im_start|im_sep|start_header_id|system|user|assistant|developer|channel)\|>|<start_of_turn>|(?<!\w)\[/?inst\]"
        r"|<</?sys>>|<\s*/\s*tool_output\b",
    ),
)
