"""What Gemini's generateContent refuses with status 400, as far as a notebook can run into it, with the field named.

Unlike the adapter's own rules, which translate, this judges: it is written against the wire format, so that a mistake of the
adapter shows. Google's servers read proto JSON, so every field may also be named in snake case. Sources: the API reference and the
error texts in public issue threads.
"""
# ruff: noqa: SIM905  a list of words reads best as text

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from nb_agent.adapters.gemini_generate import field, items
from nb_agent.mock.wire import Refused, token
from nb_agent.values import JSON, dumps

__all__ = ["FIELDS", "GENERATION", "SENTINEL", "camel", "check", "signature", "signs"]

#: The fields of a request; ``model`` and ``stream`` are what the path says.
FIELDS: Final = frozenset(
    "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels serviceTier store "
    "continuationToken model stream".split()
)
#: The fields of ``generationConfig``.
GENERATION: Final = frozenset(
    "temperature topP topK candidateCount maxOutputTokens stopSequences responseMimeType responseSchema responseJsonSchema "
    "responseFormat responseModalities thinkingConfig seed presencePenalty frequencyPenalty responseLogprobs logprobs "
    "mediaResolution speechConfig imageConfig audioTimestamp enableEnhancedCivicAnswers audioTranscriptionConfig routingConfig "
    "modelSelectionConfig enableAffectiveDialog translationConfig".split()
)
#: The keywords of the classic ``parameters``.
_SCHEMA: Final = frozenset(
    "type format title description nullable default enum items minItems maxItems properties required propertyOrdering "
    "minProperties maxProperties minimum maximum minLength maxLength pattern example anyOf".split()
)
_TYPES: Final = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_MODES: Final = ("AUTO", "ANY", "NONE", "VALIDATED")
_RANGES: Final = {
    "temperature": (0, 2, "[0.0, 2.0]"),
    "topP": (0, 1, "[0.0, 1.0]"),
    "candidateCount": (1, 8, "[1, 8]"),
    "maxOutputTokens": (1, None, "[1, …]"),
}
_WHOLE: Final = frozenset({"candidateCount", "maxOutputTokens"})
_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_MOST_TOOLS: Final = 512
#: What history of another model may carry instead of a signature.
SENTINEL: Final = "skip_thought_signature_validator"


def signs(model: str) -> bool:
    """Whether a model gives its calls ids and thought signatures, and wants them back: Gemini since version 3."""
    return model.startswith("gemini-3")


def signature(name: str, args: JSON) -> str:
    """The thought signature of a call; real ones are encrypted and cannot be read either."""
    return token("thought", name, args)


def camel(name: str) -> str:
    """A field's name as the reference spells it.

    >>> camel("system_instruction"), camel("topP")
    ('systemInstruction', 'topP')
    """
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), name)


def _refuse(message: str, param: str | None = None) -> NoReturn:
    raise Refused(message, param=param)


def check(body: JSON) -> None:
    """Refuse what the real server refuses.

    Raises:
        Refused: with the server's own words where they are known.
    """
    _check_fields(body, FIELDS, "")
    config = field(body, "generationConfig")
    if config is not None and not isinstance(config, dict):
        _refuse("Invalid value at 'generation_config' (type.googleapis.com/google.ai.generativelanguage.v1beta.GenerationConfig)")
    _check_fields(config or {}, GENERATION, " at 'generation_config'")
    _check_numbers(config or {})
    names = _check_tools(items(body, "tools"))
    _check_choice(field(body, "toolConfig"), names)
    _check_contents(items(body, "contents"), str(body.get("model") or ""))


def _check_fields(form: JSON, known: frozenset[str], where: str) -> None:
    for key in form:
        if camel(key) not in known:
            _refuse(f'Invalid JSON payload received. Unknown name "{key}"{where}: Cannot find field.', key)


def _check_numbers(config: JSON) -> None:
    for key, (low, high, shown) in _RANGES.items():
        value = field(config, key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int if key in _WHOLE else (int, float)):
            _refuse(f"Invalid value at 'generation_config.{key}': {dumps(value)}", key)
        if value < low or (high is not None and value > high):
            _refuse(f"* GenerateContentRequest.generation_config.{key}: must be in the range {shown}, and is {value}.", key)


# ---------------------------------------------------------------------------------------------------------------- tools


def _check_tools(tools: list[Any]) -> list[str]:
    where = "GenerateContentRequest.tools"
    declared = [entry for tool in tools for entry in items(tool, "functionDeclarations")]
    names: list[str] = []
    for place, entry in enumerate(declared):
        spot = f"{where}[0].function_declarations[{place}]"
        name = field(entry, "name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            _refuse(
                f"* {spot}.name: Invalid function name {name!r}. Must start with a letter or an underscore. Must be "
                f"alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum "
                f"length of 128.",
                spot,
            )
        if name in names:
            _refuse(f"Duplicate function declaration found: {name}", spot)
        names.append(name)
        schema = field(entry, "parameters")
        if schema is not None:
            if field(entry, "parametersJsonSchema") is not None:
                _refuse(f"* {spot}: parameters and parameters_json_schema must not both be set.", spot)
            if str(field(schema, "type")).upper() != "OBJECT":
                _refuse(f"* {spot}.parameters.type: must be OBJECT.", spot)
            _check_schema(schema, f"{spot}.parameters", root=True)
    if len(names) > _MOST_TOOLS:
        _refuse(f"* {where}: at most {_MOST_TOOLS} function declarations are allowed, and there are {len(names)}.", "tools")
    return names


def _check_schema(schema: Any, where: str, *, root: bool = False) -> None:
    if not isinstance(schema, dict):
        _refuse(f"Invalid value at '{where}' (Schema), {dumps(schema)}", where)
    _check_fields(schema, _SCHEMA, f" at '{where}'")
    _check_type(schema, where, root=root)
    for name, part in (schema.get("properties") or {}).items():
        _check_schema(part, f"{where}.properties[{name}]")
    if (part := field(schema, "items")) is not None:
        _check_schema(part, f"{where}.items")
    for place, part in enumerate(field(schema, "anyOf") or ()):
        _check_schema(part, f"{where}.any_of[{place}]")


def _check_type(schema: JSON, where: str, *, root: bool) -> None:
    """What the type of a schema asks of it."""
    kind = str(schema.get("type") or "").upper()
    if kind not in _TYPES and not field(schema, "anyOf"):
        _refuse(f"* {where}.type: must be specified, one of {', '.join(_TYPES)}.", where)
    if not all(isinstance(value, str) and value for value in schema.get("enum") or ()):
        _refuse(f"Invalid value at '{where}.enum' (TYPE_STRING): only texts, and none of them empty.", where)
    if kind == "STRING" and schema.get("format") not in (None, "enum", "date-time"):
        _refuse(f"* {where}.format: only 'enum' and 'date-time' are supported for STRING type", where)
    if kind == "ARRAY" and field(schema, "items") is None:
        _refuse(f"* {where}.items: missing field.", where)
    properties = schema.get("properties")
    if kind == "OBJECT" and (properties == {} or (root and not properties)):
        _refuse(f"* {where}.properties: should be non-empty for OBJECT type", where)
    for place, name in enumerate(schema.get("required") or ()):
        if name not in (properties or {}):
            _refuse(f"* {where}.required[{place}]: property is not defined", where)


def _check_choice(config: Any, names: list[str]) -> None:
    choice = field(config, "functionCallingConfig")
    if choice is None:
        return
    mode, allowed = str(field(choice, "mode") or "AUTO").upper(), items(choice, "allowedFunctionNames")
    if mode not in _MODES:
        _refuse(f"Invalid value at 'tool_config.function_calling_config.mode': {field(choice, 'mode')!r}", "toolConfig")
    if not names and mode != "NONE":
        _refuse("Function calling config is set without function_declarations.", "toolConfig")
    if allowed and mode not in ("ANY", "VALIDATED"):
        _refuse("Allowed function names should only be set when the function calling mode is ANY or VALIDATED.", "toolConfig")
    if unknown := [name for name in allowed if name not in names]:
        _refuse(f"Allowed function name {unknown[0]!r} is not one of the function declarations.", "toolConfig")


# ------------------------------------------------------------------------------------------------------------- contents

_KINDS: Final = (
    "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse".split()
)
_CALLS_FIRST: Final = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
_RESULTS_FIRST: Final = "Please ensure that function response turn comes immediately after a function call turn."
_AS_MANY: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)


def _check_contents(contents: list[Any], model: str) -> None:
    if not contents:
        _refuse("* GenerateContentRequest.contents: contents is not specified", "contents")
    calls: list[Any] = []  # of the content before
    before = ""
    last_prompt = max((place for place, content in enumerate(contents) if _is_prompt(content)), default=-1)
    for place, content in enumerate(contents):
        role = field(content, "role") or "user"
        if role not in ("user", "model", "function"):
            _refuse("Please use a valid role: user, model.", f"contents[{place}].role")
        parts = _check_parts(place, content)
        results = [part for part in parts if field(part, "functionResponse")]
        if results and not calls:
            _refuse(_RESULTS_FIRST, f"contents[{place}]")
        if len(results) != len(calls):
            _refuse(_AS_MANY, f"contents[{place}]")
        _check_names(place, results, calls)
        calls = [part for part in parts if field(part, "functionCall")]
        if calls and (role != "model" or before in ("", "model")):
            _refuse(_CALLS_FIRST, f"contents[{place}]")
        if calls and place > last_prompt and signs(model):
            _check_signature(place, calls[0])
        before = role
    if calls:
        _refuse(_AS_MANY, "contents")


def _is_prompt(content: Any) -> bool:
    parts = items(content, "parts")
    return field(content, "role") != "model" and not any(field(part, "functionResponse") for part in parts)


def _check_parts(place: int, content: Any) -> list[Any]:
    where = f"GenerateContentRequest.contents[{place}].parts"
    parts = items(content, "parts")
    if not parts:
        _refuse(f"* {where}: contents.parts must not be empty.", f"contents[{place}].parts")
    for number, part in enumerate(parts):
        kinds = [kind for kind in _KINDS if field(part, kind) is not None]
        if len(kinds) != 1 and not field(part, "thoughtSignature"):
            _refuse(f"* {where}[{number}].data: required oneof field 'data' must have one initialized field", f"contents[{place}]")
        if not isinstance(field(part, "text") or "", str):
            _refuse(f"Invalid value at 'contents[{place}].parts[{number}].text' (TYPE_STRING)", f"contents[{place}]")
        _check_struct(place, number, part)
    if field(content, "role") != "model" and all(field(part, "text") == "" for part in parts):
        _refuse(
            "Unable to submit request because it has an empty text parameter. Add a value to the parameter.", f"contents[{place}]"
        )
    return parts


def _check_struct(place: int, number: int, part: Any) -> None:
    """Arguments and results are objects, and both have names."""
    for kind, key in (("functionCall", "args"), ("functionResponse", "response")):
        form = field(part, kind)
        if form is None:
            continue
        spot = f"contents[{place}].parts[{number}].{kind}"
        if not isinstance(field(form, "name"), str) or not form["name"]:
            _refuse(f"* GenerateContentRequest.{spot}.name: Name cannot be empty.", spot)
        value = field(form, key)
        if not isinstance(value, dict) and (value is not None or key == "response"):
            _refuse(f"Invalid value at '{spot}.{key}' (type.googleapis.com/google.protobuf.Struct), {dumps(value)}", spot)


def _check_names(place: int, results: list[Any], calls: list[Any]) -> None:
    """Every result belongs to a call: by its id where the call has one, else by its name."""
    left = [field(call, "functionCall") for call in calls]
    for part in results:
        result = field(part, "functionResponse")
        own = [call for call in left if field(call, "id") == field(result, "id") and field(call, "name") == field(result, "name")]
        found = next(iter(own), None)
        if found is None:
            text = f"function response {field(result, 'name')!r} (id {field(result, 'id')!r}) matches no function call of the turn"
            _refuse(f"{_RESULTS_FIRST[:-1]}: {text}.", f"contents[{place}]")
        left.remove(found)


def _check_signature(place: int, part: Any) -> None:
    call, given = field(part, "functionCall"), field(part, "thoughtSignature")
    if given in (SENTINEL, signature(field(call, "name"), field(call, "args") or {})):
        return
    fault = "is missing a thought_signature" if not given else "has a thought_signature that is not valid"
    _refuse(f"Function call `{field(call, 'name')}` in the {place}. content block {fault}.", f"contents[{place}]")
