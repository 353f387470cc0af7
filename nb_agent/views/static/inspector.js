// The inspector of a run: mount(el, state) draws what views/fold.py folded, apply(changes) follows it while the run goes on.
//
// One file on purpose (anywidget sends it as text: no build, no relative import), hence its length. It shows the state, hands on
// what a person answers (the hook `answer` of mount) and decides nothing: no network, no storage, no HTML from text (textContent
// only, since a script in the page could click a button), no picture from elsewhere. The part above "The page" is pure and runs
// under Node. html.py draws the same state without script.

// ------------------------------------------------------------------------------------------------ words and numbers

/** The parts of a request (messages.PARTS): how they are called. Their colours are in inspector.css. */
export const PARTS = {
  system: "system", developer: "developer", history: "user before", assistant: "assistant text", tool_calls: "tool calls",
  tool_results: "tool results", user: "user", tools: "tool definitions", images: "images", overhead: "overhead",
};

/** The seven steps of a call (events.STEPS). */
export const STEPS = ["known", "parsed", "fits schema", "policy", "run", "result", "back to model"];

/** What to do after an ending that is not the wished one. text.py holds the same words; a test compares them. */
export const NEXT = {
  length: "Ask for less at once, or allow a longer answer.",
  content_filter: "Say it in other words, or begin a new conversation.",
  max_rounds: "Allow more rounds, or go on in the next cell: the conversation is kept.",
  time_limit: "Allow more time, or go on in the next cell: the conversation is kept.",
  token_limit: "Allow more tokens, or go on in the next cell: the conversation is kept.",
  cost_limit: "Allow more cost, or go on in the next cell: the conversation is kept.",
  repeated_calls: "Say what should be done instead, or describe the tool better: its results did not help the model.",
  stopped: "Go on in the next cell: the conversation is kept.",
  error: "The conversation up to here is kept: run the cell again when the cause is mended.",
  cancelled: "The conversation up to here is kept: the next cell goes on from it.",
};

export const share = (part, total) => (total ? part / total : 0);
export const count = (number) => (number === null || number === undefined ? "–" : number.toLocaleString("en-US"));
export const percent = (part, total) => {
  const whole = Math.round(100 * share(part, total));
  return part > 0 && whole < 1 ? "<1 %" : `${whole} %`;
};
export const signed = (number) => `${number > 0 ? "+" : "-"}${count(Math.abs(number))}`;
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Seconds in the unit that fits: "3 ms", "0.41 s", "2 min 5 s". */
export function seconds(time) {
  if (time === null || time === undefined) return "";
  if (time < 0.001) return "<1 ms";
  if (time < 0.0995) return `${Math.round(time * 1000)} ms`;
  if (time < 59.995) return `${time.toFixed(2)} s`;
  const whole = Math.round(time);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1);
const cut = (text, most) => (text.length > most ? `${text.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…` : text);
const has = (object, key) => Object.hasOwn(object, key);
const sum = (...numbers) => {
  const known = numbers.filter((number) => number !== null && number !== undefined);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
};

// ------------------------------------------------------------------------------------------------ the state

/** A JSON value once more; a good deal quicker than structuredClone, which a stream of 65,000 fragments would feel. */
function copied(value) {
  if (Array.isArray(value)) return value.map(copied);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copied(part)]));
}

/** Carry out changes in place (fold.change_state). Values are copied: two views may get the same message object. */
export function changeState(state, changes) {
  for (const [kind, path, value] of changes) {
    const last = path[path.length - 1];
    let place = state;
    for (const key of path.slice(0, -1)) place = place[key];
    if (kind === "add") place[last] += value;
    else place[last] = copied(value);
  }
  return state;
}

/** The request body that deltas.delta was given as `after`. */
export function rebuild(before, change) {
  const { same = {}, gone = [], order } = change;
  const kept = Object.entries(before).filter(([key]) => !gone.includes(key));
  const body = Object.fromEntries(kept);
  for (const [key, value] of Object.entries(change.new ?? {})) {
    body[key] = has(same, key) ? [...before[key].slice(0, same[key]), ...value] : value;
  }
  return order ? Object.fromEntries(order.map((key) => [key, body[key]])) : body;
}

/** All request bodies of a run, first to last. */
export function bodies(rounds) {
  let body = {};
  return rounds.map((round) => (body = rebuild(body, round.request.change)));
}

/** The weights of all request bodies of a run (nodes.weighed): by key of the body, put together as the bodies are. */
export function weighings(rounds) {
  let whole = {};
  return rounds.map(({ request }) => {
    const { same = {}, gone = [] } = request.change;
    const kept = Object.entries(whole).filter(([key]) => !gone.includes(key));
    whole = Object.fromEntries(kept);
    for (const [key, weight] of Object.entries(request.weights ?? {})) {
      const before = has(same, key) ? whole[key].slice(1, same[key] + 1) : [];
      whole[key] = before.length ? [sum(...before.map(weightOf), ...weight.slice(1).map(weightOf)) ?? 0, ...before,
        ...weight.slice(1)] : weight;
    }
    return whole;
  });
}

const weightOf = (weight) => (Array.isArray(weight) ? weight[0] : weight);

/** Tokens of the text of a node of a body, by its path; undefined where they are not known. */
export function weightAt(body, weights, path) {
  let [part, weight] = [body[path[0]], weights[path[0]]];
  for (const step of path.slice(1)) {
    if (!Array.isArray(weight) || part === null || typeof part !== "object") return undefined;
    const place = Array.isArray(part) ? step : Object.keys(part).indexOf(step);
    [part, weight] = [part[step], weight[place + 1]];
  }
  return path.length ? weightOf(weight) : undefined;
}

/** The name under which a wire format keeps the conversation. */
export const listKey = (body) => ["messages", "input", "contents"].find((key) => Array.isArray(body[key]));
const SYSTEM = ["system", "instructions", "systemInstruction", "system_instruction"];
const AHEAD = ["model", "tools", ...SYSTEM]; // what a provider reads before the first message

/** Tokens of the nodes of a request body that were counted, by JSON path. */
export function tokensAt(body, tokens) {
  const at = new Map();
  if (!tokens) return at;
  at.set("[]", tokens.total);
  const key = listKey(body);
  const system = SYSTEM.find((name) => has(body, name));
  const messages = [...tokens.messages];
  if (key && system && messages.length === body[key].length + 1) at.set(JSON.stringify([system]), messages.shift());
  if (key && messages.length === body[key].length) {
    messages.forEach((number, place) => at.set(JSON.stringify([key, place]), number));
    at.set(JSON.stringify([key]), sum(...messages) ?? 0);
  }
  if (Array.isArray(body.tools)) {
    body.tools.forEach((tool, place) => {
      const number = tokens.tools[nameOf(tool)];
      if (number !== undefined) at.set(JSON.stringify(["tools", place]), number);
    });
    at.set('["tools"]', tokens.parts.tools ?? 0);
  }
  return at;
}

/** What a request shares with the one before: a prompt cache reads from the front, so a change ahead of the messages ends it. */
export function prefix(rounds, index, body) {
  const key = listKey(body);
  if (!index || !key) return null;
  const { same = {}, gone = [], ...change } = rounds[index].request.change;
  const fresh = change.new ?? {};
  const at = has(fresh, key) ? (same[key] ?? 0) : body[key].length;
  const broken = AHEAD.filter((name) => has(fresh, name) || gone.includes(name));
  const { tokens } = rounds[index].request;
  const number = tokens && !broken.length ? sum(...tokens.messages.slice(0, at + tokens.messages.length - body[key].length),
    tokens.parts.tools) ?? 0 : null;
  const before = `request ${rounds[index - 1].number}`;
  let text = `the part shared with ${before} ends here`;
  if (broken.length) text += `, but a prompt cache could reuse nothing: ${broken.join(", ")} changed`;
  else if (number !== null) {
    text += `: a prompt cache could reuse about ${count(number)} tokens${tokens.parts.tools ? ", tool definitions included" : ""}`;
  }
  return { key, at, tokens: number, broken, text, all: at === body[key].length };
}

/** Whether the node at a path is new since the request before; only the topmost new node is marked. */
export function isNew(change, path) {
  const [key, place] = path;
  if (!has(change.new ?? {}, key)) return false;
  return has(change.same ?? {}, key) ? path.length === 2 && place >= change.same[key] : path.length === 1;
}

/** "What is new" in words and as a value to unfold. */
export function novelty(rounds, index) {
  const { change } = rounds[index].request;
  const fresh = change.new ?? {};
  const value = {};
  const said = [];
  const before = index ? `request ${rounds[index - 1].number}` : "";
  for (const [key, part] of Object.entries(fresh)) {
    const at = change.same?.[key];
    if (at === undefined) {
      value[key] = part;
      continue;
    }
    part.forEach((entry, place) => (value[`${key}[${at + place}]`] = entry));
    const first = at === 1 ? "The first entry" : `The first ${count(at)} entries`;
    said.push(`${first} of “${key}” ${at === 1 ? "is that" : "are those"} of ${before}; ${count(part.length)} new.`);
    if (!part.length) said.push(`“${key}” ends there now.`);
  }
  if (!index) said.push("The first request: all of it is new.");
  const whole = Object.keys(fresh).filter((key) => !has(change.same ?? {}, key));
  if (index && whole.length) said.push(`Set anew: ${whole.join(", ")}.`);
  if (change.gone) said.push(`No longer there: ${change.gone.join(", ")}.`);
  if (change.order) said.push("The keys stand in another order.");
  if (index && !said.length) said.push(`Nothing: it is ${before} once more.`);
  return { text: said.join(" "), value };
}

export const read = (usage) => (usage ? sum(usage.input, usage.cache_read, usage.cache_write) : null);
export const written = (usage) => (usage ? sum(usage.output, usage.reasoning) : null);

/** Tokens in and out, and seconds, of all that has come so far; null where nothing was reported. */
export function totals(state) {
  const replies = state.rounds.map((round) => round.reply).filter(Boolean);
  const usage = state.ending?.usage;
  const longest = (round) => Math.max(0, ...round.calls.map((call) => call.seconds ?? 0)); // calls run side by side
  const spent = state.rounds.map((round) => (round.reply?.seconds ?? 0) + longest(round));
  return {
    read: usage ? read(usage) : sum(...replies.map((reply) => read(reply.usage))),
    written: usage ? written(usage) : sum(...replies.map((reply) => written(reply.usage))),
    seconds: state.ending?.seconds ?? (state.rounds.length ? sum(...spent) : null),
  };
}

/** Counted beside reported, in words, with the difference named. */
export function compared(round) {
  const { tokens } = round.request;
  const reported = read(round.reply?.usage);
  const said = [];
  const doubt = tokens?.exact ? "" : " (an estimate: this model's tokenizer is not public)";
  if (tokens) said.push(`${plural(tokens.total, "token")} counted${doubt}`);
  if (reported !== null) said.push(`${count(reported)} ${tokens ? "" : "tokens "}reported`);
  else if (round.reply) said.push("none reported");
  if (tokens && reported !== null && reported !== tokens.total) {
    said.push(`difference ${difference(reported - tokens.total, round.reply, "input")}`);
  }
  return said.join(" · ");
}

/** What was reported beyond what was counted, with the names that are known for it (tokens.differences). */
function difference(number, reply, side) {
  const names = Object.entries(reply.explained?.[side].differences ?? {});
  const each = names.map(([name, tokens]) => (names.length === 1 ? name : `${name} ${signed(tokens)}`));
  return each.length ? `${signed(number)} (${each.join(", ")})` : signed(number);
}

/** How a run stands: kind is running, stop, halt or error. */
export function standing(state) {
  if (state.ending) {
    const { reason, meaning, error } = state.ending;
    const kind = reason === "stop" ? "stop" : reason === "error" ? "error" : "halt";
    return { kind, text: `ended: ${reason.replaceAll("_", " ")}`, meaning, error, next: NEXT[reason] ?? "" };
  }
  const round = state.rounds[state.rounds.length - 1];
  if (!round) return { kind: "running", text: "starting" };
  if (state.question) return { kind: "asks", text: "waiting for you" };
  const open = round.calls.filter((call) => !call.result).map((call) => call.name);
  let text = `running: round ${round.number} done`;
  if (open.length) text = `running ${open.join(", ")}`;
  else if (!round.reply && !round.live && round.retries?.length) text = `running: request ${round.number}, ${waits(round).at(-1)}`;
  else if (!round.reply) text = `running: ${round.live ? "" : "waiting for "}reply ${round.number}${round.live ? " is coming" : ""}`;
  return { kind: "running", text };
}

/** The seven steps with the state of each: done, failed, skipped, asked, now or todo. */
export function ladder(call, running) {
  const taken = new Map(call.steps.map((step) => [step.name, step]));
  let open = running && !call.result;
  return STEPS.map((name) => {
    const step = taken.get(name);
    if (step) return { name, state: step.state, note: step.note };
    const state = open ? "now" : call.result || !running ? "skipped" : "todo";
    open = false;
    return { name, state, note: "" };
  });
}

/** What was said of steps that did not fail: leave, masks, cuts, repeats. */
export const remarks = (rungs) =>
  rungs.filter((step) => step.note && step.state !== "failed").map((step) => `${step.name}: ${step.note}`);

/** One line for each time that a request failed and went out again (text.waited). */
export const waits = (round) =>
  (round.retries ?? []).map((retry) => (retry.seconds ? `waited ${seconds(retry.seconds)}: ${retry.reason}` : retry.reason));

/** One line for each time that the conversation was cut for a request (text.compacted). */
export const cuts = (round) => (round.compacted ?? []).map(({ strategy, before, after, what }) =>
  `compacted: ${what.join(", ") || strategy}, ${count(before)} → ${plural(after, "token")}`);

export const failed = (call) => Boolean(call.result?.code) || call.steps.some((step) => step.state === "failed");

/** What went wrong, as it stands in the rail: failed calls, and a reply that never became whole. */
export function failures(state) {
  const broken = (round) => state.ending?.reason === "error" && !round.reply;
  return state.rounds.flatMap((round, index) => [
    ...(broken(round) ? [`${index}/${round.live ? "reply" : "request"}`] : []),
    ...round.calls.flatMap((call, place) => (failed(call) ? [`${index}/call/${place}`] : [])),
  ]);
}

/** What stands in the rail, in order: "0/request", "0/reply", "0/call/0" … */
export function items(state) {
  return state.rounds.flatMap((round, index) => [
    `${index}/request`,
    ...(round.reply || round.live ? [`${index}/reply`] : []),
    ...round.calls.map((_, place) => `${index}/call/${place}`),
  ]);
}

// ------------------------------------------------------------------------------------------------ JSON in words

const nameOf = (value) => value?.function?.name ?? value?.name;

/** A text of JSON as a value; undefined where it is not JSON, or where JavaScript would round its numbers. */
export function parsed(text) {
  if (/[0-9]{16}/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A call as one line: write_file(path="report.md", content=… 412 characters). */
export function signature(name, text) {
  const value = parsed(text);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return `${name}(${cut(text, 80)})`;
  const shown = Object.entries(value).map(([key, part]) => {
    const form = JSON.stringify(part);
    const length = typeof part === "string" ? part.length : form.length;
    return form.length <= 48 ? `${key}=${form}` : `${key}=… ${plural(length, "character")}`;
  });
  return `${name}(${shown.join(", ")})`;
}

function content(value) {
  const text = value.content ?? value.parts ?? value.text ?? value.output;
  if (typeof text === "string") return text;
  if (!Array.isArray(text)) return "";
  return text.map((part) => part?.text ?? (typeof part?.content === "string" ? part.content : "")).filter(Boolean).join(" ");
}

/** What a folded object or list holds, short: {assistant, calls read_file, search_files}. */
export function summary(value) {
  if (Array.isArray(value)) {
    const names = value.map(nameOf).filter(Boolean);
    if (names.length && names.length === value.length) return cut(names.join(" · "), 120);
    return value.length === 1 ? "1 entry" : `${count(value.length)} entries`;
  }
  const said = [];
  if (value.role ?? value.type) said.push(value.role ?? value.type);
  const parts = Array.isArray(value.content) ? value.content : Array.isArray(value.parts) ? value.parts : [];
  const asked = Array.isArray(value.tool_calls) ? value.tool_calls : [];
  const calls = [...asked, ...parts.filter((part) => part?.type === "tool_use" || part?.functionCall)];
  if (calls.length) said.push(`calls ${calls.map((call) => nameOf(call) ?? call?.functionCall?.name).join(", ")}`);
  if (value.tool_call_id ?? value.call_id) said.push(`answers ${value.tool_call_id ?? value.call_id}`);
  if (nameOf(value)) said.push(nameOf(value));
  const text = content(value) || value.description || value.function?.description;
  if (typeof text === "string" && text) said.push(JSON.stringify(cut(text.replace(/\s+/g, " "), 72)));
  return said.length ? said.join(", ") : cut(Object.keys(value).join(", "), 80);
}

/** Paths of all keys and values in which a text occurs, in the order of the tree; at most 1,000. */
export function search(value, wanted, most = 1000) {
  const found = [];
  const needle = wanted.toLowerCase();
  const look = (node, path, key) => {
    if (found.length >= most) return;
    const plain = node === null || typeof node !== "object";
    if (`${key} ${plain ? node : ""}`.toLowerCase().includes(needle)) found.push(path);
    if (plain) return;
    const list = Array.isArray(node);
    for (const name of Object.keys(node)) look(node[name], [...path, list ? +name : name], list ? "" : name);
  };
  if (needle) look(value, [], "");
  return found;
}

export const at = (value, path) => path.reduce((node, key) => node[key], value);

const MARK = /… [\d,]+ characters in all, [\d,]+ not shown here …/;
/** Whether the view holds only the ends of a long text in here (fold.MOST_CHARACTERS). */
export const isCut = (value) => MARK.test(JSON.stringify(value));

const bearer = ["Authorization: Bearer $OPENAI_API_KEY"];
const HEADERS = {
  chat_completions: bearer,
  responses: bearer,
  anthropic_messages: ["x-api-key: $ANTHROPIC_API_KEY", "anthropic-version: 2023-06-01"],
  gemini_generate: ["x-goog-api-key: $GEMINI_API_KEY"],
};
const quoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The request as a command for a POSIX shell. Addresses and keys stay variables: no key is ever in the state. */
export function curl(wire, path, body) {
  const headers = ["Content-Type: application/json", ...(HEADERS[wire] ?? bearer)].map((line) => `-H "${line}"`);
  return [`curl -N "$BASE_URL"${quoted(path)}`, ...headers, `--data-raw ${quoted(JSON.stringify(body, null, 2))}`].join(" \\\n  ");
}

/** A JSON value as Python writes it; what JSON escapes in a text, Python reads alike. */
export function python(value, margin = "") {
  if (value === null || typeof value === "boolean") return { null: "None", true: "True", false: "False" }[value];
  if (typeof value !== "object") return JSON.stringify(value);
  const deeper = `${margin}    `;
  const [left, right] = Array.isArray(value) ? "[]" : "{}";
  const parts = Array.isArray(value) ? value.map((part) => python(part, deeper))
    : Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: ${python(part, deeper)}`);
  return parts.length ? `${left}\n${parts.map((part) => `${deeper}${part},\n`).join("")}${margin}${right}` : left + right;
}

/** The request as Python with httpx. Addresses and keys come from the environment, as in `curl`. */
export function httpx(wire, path, body) {
  const headers = (HEADERS[wire] ?? bearer).map((line) => {
    const [, name, value] = /^(\S+): (.*)$/.exec(line);
    return `    "${name}": f"${value.replace(/\$(\w+)/, "{os.environ['$1']}")}",\n`;
  });
  const address = `os.environ["BASE_URL"] + ${JSON.stringify(path)}`;
  const send = `with httpx.stream("POST", ${address}, json=body, headers=headers, timeout=60) as reply:`;
  return `import os\n\nimport httpx\n\nheaders = {\n${headers.join("")}}\nbody = ${python(body)}\n${send}\n`
    + "    for line in reply.iter_lines():\n        print(line)\n";
}

const partsOf = (entry) => [entry.content, entry.parts, entry.output].find(Array.isArray) ?? [];
const RESULT = (part) => ["tool_result", "function_call_output"].includes(part?.type) || part?.functionResponse;
const CALL = (part) => ["tool_use", "function_call"].includes(part?.type) || part?.functionCall;
const PICTURE = (part) => /image/.test(part?.type ?? "") || /^image/.test(part?.inlineData?.mimeType ?? "");
const SPEAKER = { model: "assistant" };

/** The parts of a request (see PARTS) that stand in one entry of its list of messages. */
function partsIn(entry, last) {
  const inner = partsOf(entry);
  const said = [];
  if (inner.some(PICTURE)) said.push("images");
  if (entry.role === "tool" || RESULT(entry) || inner.some(RESULT)) return [...said, "tool_results"];
  if (entry.tool_calls?.length || CALL(entry) || inner.some(CALL)) said.push("tool_calls");
  const speaker = SPEAKER[entry.role] ?? entry.role;
  if (speaker === "user") said.push(last ? "user" : "history");
  else if (speaker && (speaker !== "assistant" || content(entry))) said.push(speaker);
  return said;
}

/** Where a part of the token bar stands in a request body: JSON paths, first to last. Overhead stands nowhere. */
export function placesOf(body, part) {
  const key = listKey(body);
  const asks = (entry) => entry.role === "user" && !partsOf(entry).some(RESULT);
  const last = key ? body[key].findLastIndex(asks) : -1;
  const within = (entry, place) => partsIn(entry, place === last).includes(part);
  const entries = (key ? body[key] : []).flatMap((entry, place) => (within(entry, place) ? [[key, place]] : []));
  const ahead = { system: SYSTEM, tools: ["tools"] }[part] ?? [];
  return [...ahead.filter((name) => has(body, name)).map((name) => [name]), ...entries];
}

// ------------------------------------------------------------------------------------------------ a stream once more

/** The moments of a stream, [milliseconds, [[kind, index, text]]] each, out of the runs that the state holds. */
export const unpacked = (runs) => runs.flatMap(([kind, index, times, texts]) =>
  texts.map((text, place) => [times[place], [[kind, index, text]]]));

/** What an accumulator holds after the first `upTo` moments of a stream; a call is whole when its arguments are one JSON value. */
export function replayed(stream, upTo) {
  const held = { text: [], thinking: [] };
  const calls = [];
  const callAt = (index) => {
    while (calls.length <= index) calls.push({ name: "", pieces: [], scan: scanner() });
    return calls[index];
  };
  for (const [, pieces] of stream.slice(0, upTo)) {
    for (const [kind, index, text] of pieces) {
      if (kind === "call") callAt(index).name += text;
      else if (kind === "arguments") {
        callAt(index).pieces.push(text);
        callAt(index).scan.take(text);
      } else held[kind === "thinking" ? "thinking" : "text"].push(text);
    }
  }
  const shown = calls.map(({ name, pieces, scan }) => ({ name, arguments: pieces.join(""), whole: scan.whole(pieces) }));
  return { text: held.text.join(""), thinking: held.thinking.join(""), calls: shown };
}

/** Follows brackets and quotes: a text is parsed only where it may be whole; to try after each piece would cost its square. */
function scanner() {
  let [depth, inText, escaped, begun] = [0, false, false, false];
  return {
    take(text) {
      for (const sign of text) {
        if (escaped) escaped = false;
        else if (inText) [escaped, inText] = [sign === "\\", sign !== '"'];
        else if (sign === '"') inText = true;
        else if (sign === "{" || sign === "[") depth += 1;
        else if (sign === "}" || sign === "]") depth -= 1;
        begun ||= sign.trim() !== "";
      }
    },
    closed: () => begun && depth === 0 && !inText,
    whole(pieces) {
      if (!this.closed()) return false;
      try {
        return JSON.parse(pieces.join("")) !== undefined;
      } catch {
        return false;
      }
    },
  };
}

/** After which moment the arguments of each call are whole: [{index, name, at}], in the order of the moments. */
export function becomesWhole(stream) {
  const calls = new Map();
  const found = [];
  stream.forEach(([, pieces], place) => {
    for (const [kind, index, text] of pieces) {
      if (!calls.has(index)) calls.set(index, { name: "", pieces: [], scan: scanner(), done: false });
      const call = calls.get(index);
      if (kind === "call") call.name += text;
      if (kind !== "arguments" || call.done) continue;
      call.pieces.push(text);
      call.scan.take(text);
      if (!call.scan.closed()) continue;
      call.done = call.scan.whole(call.pieces);
      if (call.done) found.push({ index, name: call.name, at: place + 1 });
    }
  });
  return found;
}

/** Milliseconds of each moment; where no clock ran, each took twenty. */
export const clock = (stream) => stream.map(([time], place) => time ?? place * 20);

/** The same for playing: what came at once, as from a model on this machine, is spread so that it can be seen. */
export function paced(times, least = 10) {
  let now = 0;
  return times.map((time, place) => (now = place ? now + Math.max(least, time - times[place - 1]) : time));
}

/** How many moments had come after so many milliseconds. */
export function momentsAt(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ------------------------------------------------------------------------------------------------ what a person is asked

/** What can be said at a question (stepping.CHOICES), as it stands on the buttons. */
export const CHOICES = {
  approve: "Approve", always: "Always in this run", next: "Next", to_call: "Run to the next call", run_on: "Run on",
  reject: "Reject…", inject: "Inject a fault…", back: "Go back…", stop: "Stop",
};
export const KEYS = { a: "approve", w: "always", e: "edit", r: "reject", n: "next", c: "to_call", g: "run_on", i: "inject" };
const ONWARD = ["approve", "always", "next", "to_call", "run_on"]; // what was edited goes with these

/** What is asked, in one line. */
export function asking(question, state) {
  const round = state.rounds[question.round];
  const number = round?.number ?? question.round + 1;
  const name = round?.calls[question.call]?.name ?? "the call";
  return {
    request: `Request ${number} is about to go out.`,
    call: question.asks ? `Let it run ${name}?` : `${name} is about to run.`,
    result: `The result of ${name} has come; the model has not read it yet.`,
    model: `You are the model: write reply ${number}.`,
    mcp: `${sentence(question.title ?? "a server")} asks you.`,
  }[question.at] ?? "The run waits for you.";
}

/** Where in the rail a question stands. */
export const itemOf = (question, state) => {
  const { round, call } = question;
  const known = call !== null && call !== undefined && state.rounds[round]?.calls[call];
  return known ? `${round}/call/${call}` : `${round}/request`;
};

const kindOf = (value) => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value;
};
const ARTICLE = { array: "a list", integer: "a whole number", object: "an object", null: "null" };
const withArticle = (kind) => ARTICLE[kind] ?? `a ${kind}`;

/** What does not fit a schema, in one line, or "". Only types, required, enum and unknown names: the kernel checks the rest. */
function lacking(value, schema, path) {
  if (schema === null || typeof schema !== "object") return "";
  const here = path ? `“${path}”: ` : "";
  const kinds = [schema.type ?? []].flat();
  const kind = kindOf(value);
  if (kinds.length && !kinds.includes(kind) && !(kind === "integer" && kinds.includes("number"))) {
    return `${here}${kinds.map(withArticle).join(" or ")} is needed, not ${cut(JSON.stringify(value), 40)}`;
  }
  if (Array.isArray(schema.enum) && kind !== "object" && kind !== "array" && !schema.enum.includes(value)) {
    return `${here}one of ${cut(schema.enum.map((choice) => JSON.stringify(choice)).join(", "), 120)} is needed`;
  }
  const under = (key) => (path ? `${path}.${key}` : String(key));
  const first = (found) => found.find(Boolean) ?? "";
  if (kind === "array") return first(value.map((part, place) => lacking(part, schema.items, under(place))));
  if (kind !== "object") return "";
  const known = schema.properties ?? {};
  const missing = (schema.required ?? []).find((key) => !has(value, key));
  if (missing !== undefined) return `“${under(missing)}” is missing`;
  const unknown = schema.additionalProperties === false ? Object.keys(value).find((key) => !has(known, key)) : undefined;
  if (unknown !== undefined) return `“${under(unknown)}” is not known; there are: ${Object.keys(known).join(", ") || "none"}`;
  return first(Object.keys(value).map((key) => (has(known, key) ? lacking(value[key], known[key], under(key)) : "")));
}

/** What is wrong with an edited text, in one line; "" where nothing is. */
export function misfit(text, schema) {
  try {
    return lacking(JSON.parse(text), schema, "");
  } catch (error) {
    return `this is no JSON: ${error.message.replace(/\s+/g, " ")}`;
  }
}

// ------------------------------------------------------------------------------------------------ two lines of a run

/** Where two JSON values differ: [{path, left, right}], undefined for what is not there; at most `most`. */
export function differences(left, right, most = 200) {
  const found = [];
  const box = (value) => value !== null && typeof value === "object";
  const look = (one, two, path) => {
    if (found.length >= most || one === two) return;
    if (!box(one) || !box(two) || Array.isArray(one) !== Array.isArray(two)) {
      found.push({ path, left: one, right: two });
      return;
    }
    for (const key of new Set([...Object.keys(one), ...Object.keys(two)])) {
      look(has(one, key) ? one[key] : undefined, has(two, key) ? two[key] : undefined, [...path, Array.isArray(one) ? +key : key]);
    }
  };
  look(left, right, []);
  return found;
}

/** Where two lines of a run part: the place of the round, and what differs in it; null where they never do. */
export function parting(one, two) {
  const [ones, twos] = [bodies(one.rounds), bodies(two.rounds)];
  for (let index = 0; index < Math.max(ones.length, twos.length); index += 1) {
    const rows = [[one, ones], [two, twos]].map(([line, made]) => seen(line.rounds[index], made[index]));
    const found = differences(...rows);
    if (found.length) return { index, found };
  }
  return null;
}

/** What of a round counts when two are compared: no times, no tokens. */
const seen = (round, body) => (round ? {
  request: body,
  reply: round.reply ? { text: round.reply.text, finish: round.reply.finish } : null,
  calls: round.calls.map((call) => ({ name: call.name, arguments: call.arguments, result: call.result?.text ?? null })),
} : undefined);

// ------------------------------------------------------------------------------------------------ messages in order

/** Puts the widget's messages in order: what came twice or late is dropped, what came early waits. */
export function inOrder() {
  let seen = null;
  const waiting = new Map();
  const ready = () => {
    const changes = [];
    for (const seq of waiting.keys()) if (seq <= seen) waiting.delete(seq);
    while (waiting.has(seen + 1)) {
      seen += 1;
      changes.push(...waiting.get(seen));
      waiting.delete(seen);
    }
    return changes;
  };
  return {
    /** A whole state: the changes to carry out after it, or null when it says nothing new. */
    state(seq) {
      if (seen !== null && seq <= seen) return null;
      seen = seq;
      return ready();
    },
    changes(seq, changes) {
      if (seen !== null && seq <= seen) return [];
      waiting.set(seq, changes);
      return seen === null ? [] : ready();
    },
    /** Whether a state has to be asked for. */
    get lacks() {
      return seen === null || waiting.size > 0;
    },
  };
}

// ------------------------------------------------------------------------------------------------ The page: small things

function h(tag, attributes = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...children.filter((child) => child !== null && child !== undefined));
  return el;
}

const write = (el, text) => {
  if (el.textContent !== text) el.textContent = text;
};
/** Text that comes in pieces: what is there stays, so that a selection in it stays too. */
const grow = (node, text) => {
  if (node.data === text) return;
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
};
/** The same for a text that may become very long: only its end is laid out while it comes, since each piece costs that again. */
function growing(node) {
  let from = 0;
  return (text, whole) => {
    if (whole) from = 0;
    else if (text.length - from > 2 * LAID_OUT) from = text.length - LAID_OUT;
    grow(node, from ? `… ${plural(from, "character")} before this …\n${text.slice(from)}` : text);
  };
}
const LAID_OUT = 8000;

const show = (el, visible) => {
  if (el.hidden === visible) el.hidden = !visible;
};
const hidden = (text) => h("span", { class: "nba-sr" }, text);
const glyph = (text) => h("span", { class: "nba-glyph", "aria-hidden": "true" }, text);
const pill = (text, kind = "") => h("span", { class: `nba-pill ${kind}` }, text);
const bar = (part, size, total) => {
  const el = h("i", { class: `nba-part nba-${has(PARTS, part) ? part : "overhead"}` });
  if (total === undefined) el.style.flexGrow = size;
  else el.style.width = `${100 * share(size, total)}%`;
  return el;
};
const ordered = (parts) => {
  const known = Object.keys(PARTS).filter((part) => parts[part]);
  return [...known, ...Object.keys(parts).filter((part) => !has(PARTS, part) && parts[part])];
};
const words = (part) => PARTS[part] ?? part.replaceAll("_", " ");

/** Whether a colour as the browser writes it is dark; null where it is transparent or not understood. */
export function isDark(colour) {
  const [r, g, b, alpha = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  if (b === undefined || alpha < 0.5 || !colour.startsWith("rgb")) return null;
  return 0.299 * r + 0.587 * g + 0.114 * b < 128;
}

function darkHost(el) {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  if (vscodeThemeKind) return !vscodeThemeKind.endsWith("light");
  for (let place = el.isConnected ? el.parentElement : document.body; place; place = place.parentElement) {
    const dark = isDark(getComputedStyle(place).backgroundColor);
    if (dark !== null) return dark;
  }
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  return scheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "nba-sr" }); // a page without the clipboard permission, such as plain http
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function copyButton(page, text, label = "Copy") {
  const button = h("button", { type: "button", class: "nba-button" }, label);
  page.act(button, async () => {
    await copy(text());
    write(button, "Copied");
    page.later(1200, () => write(button, label));
  });
  return button;
}

const block = (text, label) => h("pre", { class: "nba-block", tabindex: "0", "aria-label": label }, text);
const kept = (title, text, label) => h("details", { class: "nba-details" }, h("summary", {}, title), block(text, label));
/** The messages of an MCP server's wire, one after the other. */
export const wireText = (messages) => messages.map(({ direction, method, id, seconds: took, bytes, body }) => {
  const said = [`${direction === "sent" ? "→" : "←"} ${method || "answer"}`, id === null ? "a notice" : `#${id}`, plural(bytes, "byte"), seconds(took)];
  return `${said.filter(Boolean).join(" · ")}\n${body ?? "(too large to keep)"}`;
}).join("\n\n");

const notices = (texts) => (texts.length ? h("ul", { class: "nba-notices" }, ...texts.map((text) => h("li", {}, text))) : null);

/** A picture that came with a tool's result; only bytes that are here, never an address that would be fetched. */
function picture(image) {
  if (image.data && /^image\/(png|jpeg|gif|webp)$/.test(image.media_type)) {
    return h("img", { class: "nba-image", alt: "picture from the tool", src: `data:${image.media_type};base64,${image.data}` });
  }
  return h("p", { class: "nba-dim" }, image.url ? `picture at ${image.url} (not fetched)` : `${image.media_type} (not shown)`);
}

// ------------------------------------------------------------------------------------------------ the tree of a JSON value

const SHORT = 110; // characters of a text in its row
const MANY = 100; // entries of a list that are drawn at once

/** A lazy tree: what is folded is not in the page. `memory` outlives it: {open: Set of paths, most: Map of path to entries}. */
function tree(page, value, { memory, label, change = null, tokens = new Map(), weigh = () => undefined, line = null }) {
  const nodes = new WeakMap();
  const root = h("div", { class: "nba-tree", role: "tree", "aria-label": label });
  const id = (path) => JSON.stringify(path);

  function entries(node) {
    return Object.entries(node.value).map(([key, part]) => [Array.isArray(node.value) ? +key : key, part]);
  }

  function wordsOf(node) {
    const { value: part, open } = node;
    if (typeof part === "string") {
      const flat = JSON.stringify(part);
      if (!node.folds) return [h("span", { class: "nba-s" }, flat)];
      const size = h("span", { class: "nba-dim" }, ` ${plural(part.length, "character")}`);
      return open ? [size] : [h("span", { class: "nba-s" }, cut(flat, SHORT)), size];
    }
    if (part === null || typeof part !== "object") return [h("span", { class: "nba-v" }, String(part))];
    const [left, right] = Array.isArray(part) ? "[]" : "{}";
    if (!node.folds) return [left + right];
    const fresh = change && node.path.length === 1 && has(change.same ?? {}, node.path[0]) ? change.new[node.path[0]].length : 0;
    const size = Array.isArray(part) ? `${count(part.length)}${fresh ? ` · ${count(fresh)} new` : ""}` : "";
    return open ? [`${left} `, h("span", { class: "nba-dim" }, size)]
      : [`${left} `, h("span", { class: "nba-dim" }, (size ? `${size}: ` : "") + summary(part)), ` ${right}`];
  }

  function draw(node) {
    const key = node.path[node.path.length - 1];
    const name = typeof key === "string" ? [h("span", { class: "nba-k" }, JSON.stringify(key)), ": "] : [];
    const text = h("span", { class: "nba-cell" }, glyph(node.folds ? (node.open ? "▾" : "▸") : ""), ...name, ...wordsOf(node));
    text.style.paddingInlineStart = `${node.path.length * 14}px`;
    const number = tokens.get(id(node.path)) ?? weigh(node.path);
    const whole = tokens.get("[]");
    const shade = number === undefined || !whole || !node.path.length ? 0 : Math.min(1, number / whole);
    node.row.style.setProperty("--share", shade.toFixed(3));
    const tail = h("span", { class: "nba-tok" }, number === undefined ? "" : count(number));
    if (number !== undefined) tail.title = `${plural(number, "token")}${whole ? `, ${percent(number, whole)} of the request` : ""}`;
    node.row.replaceChildren(text, tail);
    if (node.folds) node.el.setAttribute("aria-expanded", String(node.open));
    const size = number === undefined ? "" : `, ${plural(number, "token")}`;
    const heard = [...(name.length ? [name[0].textContent, ": "] : []), ...wordsOf({ ...node, open: false })];
    node.el.setAttribute("aria-label", heard.map((part) => part.textContent ?? part).join("") + size);
  }

  function make(path, part) {
    const box = part !== null && typeof part === "object";
    const folds = box ? Object.keys(part).length > 0 : typeof part === "string" && (part.length > SHORT || part.includes("\n"));
    const row = h("div", { class: "nba-row" });
    const fresh = change !== null && isNew(change, path);
    const el = h("div", { role: "treeitem", class: "nba-node", tabindex: "-1", "aria-level": path.length + 1 }, row);
    el.classList.toggle("nba-new", fresh);
    if (fresh) el.setAttribute("aria-description", "new since the request before");
    const node = { path, value: part, folds, row, el, open: false, kids: null };
    nodes.set(el, node);
    page.act(row, () => {
      if (!String(getSelection())) focus(el);
      if (folds && !String(getSelection())) fold(node, !node.open);
    });
    draw(node);
    if (folds && memory.open.has(id(path))) fold(node, true);
    return el;
  }

  function fill(node) {
    if (typeof node.value === "string") {
      const text = h("div", { class: "nba-long" }, node.value);
      text.style.marginInlineStart = `${node.path.length * 14 + 18}px`;
      return [text];
    }
    const all = entries(node);
    const most = memory.most.get(id(node.path)) ?? MANY;
    const rows = all.slice(0, most).map(([key, part]) => make([...node.path, key], part));
    if (line && node.path.length === 1 && node.path[0] === line.key && !line.all && rows[line.at]) {
      rows.splice(line.at, 0, h("div", { class: "nba-line", "aria-hidden": "true" }, line.text));
    }
    if (all.length > most) rows.push(more(node, all.length - most));
    return rows;
  }

  function more(node, rest) {
    const offer = `show ${count(Math.min(rest, MANY))} of ${count(rest)} more`;
    const row = h("div", { class: "nba-row" }, h("span", { class: "nba-cell nba-dim" }, offer));
    const el = h("div", { role: "treeitem", class: "nba-node", tabindex: "-1", "aria-level": node.path.length + 2 }, row);
    const widen = () => {
      reach(node, (memory.most.get(id(node.path)) ?? MANY) + MANY);
      focus(node.el);
    };
    nodes.set(el, { el, row, path: node.path, folds: true, open: false, widen });
    page.act(row, widen);
    return el;
  }

  function reach(node, most) {
    memory.most.set(id(node.path), most);
    node.kids.replaceChildren(...fill(node));
  }

  function fold(node, open) {
    if (node.widen) return node.widen();
    if (!node.folds || node.open === open) return undefined;
    node.open = open;
    if (open) {
      memory.open.add(id(node.path));
      node.kids = h("div", { role: "group" });
      node.kids.append(...fill(node));
      node.el.append(node.kids);
    } else {
      memory.open.delete(id(node.path));
      node.kids.remove();
      node.kids = null;
    }
    return draw(node);
  }

  function focus(el, options) {
    root.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    el.setAttribute("tabindex", "0");
    el.focus(options);
  }

  function reveal(path) {
    let { el } = nodes.get(root.firstChild);
    for (let depth = 0; depth < path.length; depth += 1) {
      const node = nodes.get(el);
      fold(node, true);
      const place = Object.keys(node.value).indexOf(String(path[depth]));
      if (place >= (memory.most.get(id(node.path)) ?? MANY)) reach(node, place + MANY);
      el = [...node.kids.children].filter((child) => nodes.has(child))[place];
    }
    const node = nodes.get(el);
    if (typeof node.value === "string") fold(node, true);
    root.querySelector(".nba-hit")?.classList.remove("nba-hit");
    node.row.classList.add("nba-hit");
    node.row.scrollIntoView({ block: "nearest" });
    return el;
  }

  function press(event) {
    const el = event.target.closest('[role="treeitem"]');
    const node = el && nodes.get(el);
    if (!node) return false;
    const all = [...root.querySelectorAll('[role="treeitem"]')];
    const place = all.indexOf(el);
    const go = { ArrowUp: all[place - 1], ArrowDown: all[place + 1], Home: all[0], End: all[all.length - 1] };
    if (event.key in go) {
      if (go[event.key]) focus(go[event.key]);
    } else if (event.key === "ArrowRight") {
      if (node.open && node.kids.querySelector('[role="treeitem"]')) focus(node.kids.querySelector('[role="treeitem"]'));
      else fold(node, true);
    } else if (event.key === "ArrowLeft") {
      const parent = el.parentElement.closest('[role="treeitem"]');
      if (node.open) fold(node, false);
      else if (parent) focus(parent);
    } else if (event.key === "Enter" || event.key === " ") {
      fold(node, !node.open);
    } else if (event.key === "c" && !node.widen) {
      copy(typeof node.value === "string" ? node.value : JSON.stringify(node.value, null, 2));
    } else {
      return false;
    }
    return true;
  }

  root.append(make([], value));
  root.firstChild.setAttribute("tabindex", "0");
  page.keys.set(root, press);
  return { el: root, reveal, focus };
}

/** A tree with its search field and its copy button. */
function jsonPanel(page, value, options) {
  const drawn = tree(page, value, options);
  const named = `Search in ${options.label}`;
  const field = h("input", { type: "search", class: "nba-search", placeholder: "Search", "aria-label": named });
  const told = h("span", { class: "nba-dim nba-num", role: "status" });
  let found = [];
  let place = -1;
  const step = (by) => {
    if (!found.length) return;
    place = (place + by + found.length) % found.length;
    drawn.reveal(found[place]);
    write(told, `${count(place + 1)} of ${count(found.length)}`);
  };
  page.typed.set(field, () => {
    found = search(value, field.value);
    place = -1;
    write(told, field.value ? "nothing found" : "");
    step(1);
  });
  page.keys.set(field, (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") drawn.focus(drawn.el.querySelector('[tabindex="0"]') ?? drawn.el.firstChild);
    else return false;
    return true;
  });
  const button = copyButton(page, () => JSON.stringify(value, null, 2));
  const tools = h("div", { class: "nba-toolbar" }, field, told, h("span", { class: "nba-space" }), button);
  const warning = isCut(value) ? notices(["A long text is cut in this view; the run object holds it whole."]) : null;
  return { el: h("div", {}, tools, ...(warning ? [warning] : []), drawn.el), reveal: (path) => drawn.focus(drawn.reveal(path)) };
}

// ------------------------------------------------------------------------------------------------ tabs

/** Tabs whose panels are made when they are first looked at. `kind` is what the choice is remembered for. */
function tabbed(page, kind, tabs, { keep = true, label = `Views of the ${kind}` } = {}) {
  const made = new Map();
  const panel = h("div", { role: "tabpanel", class: "nba-panel" });
  const buttons = tabs.map(({ name }) => h("button", { type: "button", role: "tab", class: "nba-tab" }, name));
  const list = h("div", { class: "nba-tabs", role: "tablist", "aria-label": label }, ...buttons);
  const choose = (place) => {
    const { name, build } = tabs[place];
    page.chosen.set(kind, name);
    buttons.forEach((button, number) => {
      button.setAttribute("aria-selected", String(number === place));
      button.setAttribute("tabindex", number === place ? "0" : "-1");
    });
    if (!keep || !made.has(name)) made.set(name, build());
    panel.setAttribute("aria-label", name);
    if (panel.firstChild !== made.get(name)) panel.replaceChildren(made.get(name));
  };
  buttons.forEach((button, place) => page.act(button, () => choose(place)));
  page.keys.set(list, (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return false;
    const next = (buttons.indexOf(event.target) + by + buttons.length) % buttons.length;
    choose(next);
    buttons[next].focus();
    return true;
  });
  const open = (name) => choose(Math.max(0, tabs.findIndex((tab) => tab.name === name)));
  open(page.chosen.get(kind));
  return { el: h("div", {}, list, panel), open, focus: () => buttons.find((button) => button.tabIndex === 0).focus() };
}

// ------------------------------------------------------------------------------------------------ what the pane shows

function tokenTable(round) {
  const { tokens } = round.request;
  const line = (name, number, part, of) => h("tr", {}, h("th", { scope: "row" }, ...(part ? [bar(part, 1), name] : [name])),
    h("td", { class: "nba-num" }, count(number)), h("td", { class: "nba-num" }, percent(number, tokens.total)),
    h("td", { class: "nba-track", "aria-hidden": "true" }, bar(of, number, tokens.total)));
  const rows = ordered(tokens.parts).flatMap((part) => [
    line(words(part), tokens.parts[part], part, part),
    ...(part === "tools" ? Object.entries(tokens.tools).map(([name, number]) => {
      const row = line(name, number, null, "tools");
      row.className = "nba-inner";
      return row;
    }) : []),
  ]);
  const head = h("tr", {}, ...["Part", "Tokens", "Share"].map((name) => h("th", { scope: "col" }, name)), h("td"));
  const reported = read(round.reply?.usage);
  const last = (name, text) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "nba-num" }, text), h("td"), h("td"));
  const foot = [last(tokens.exact ? "Counted" : "Counted (an estimate)", count(tokens.total)),
    last("Reported by the provider", round.reply ? (reported === null ? "not reported" : count(reported)) : "not yet")];
  if (reported !== null && reported !== tokens.total) foot.push(last("Difference", signed(reported - tokens.total)));
  return h("table", { class: "nba-table" }, h("caption", {}, `Tokens of request ${round.number}, counted with ${tokens.encoding}`),
    h("thead", {}, head), h("tbody", {}, ...rows), h("tfoot", {}, ...foot));
}

function requestView(page, item, index) {
  const { rounds } = page.state;
  const round = rounds[index];
  const body = page.bodies()[index];
  const line = prefix(rounds, index, body);
  const change = index ? round.request.change : null;
  const tokens = round.request.tokens;
  const small = [`POST ${round.request.path}`, plural(round.request.bytes, "byte")];
  if (line?.tokens && tokens) small.push(`${percent(line.tokens, tokens.total)} the same as request ${rounds[index - 1].number}`);
  const key = listKey(body);
  const opened = ["[]", ...(key ? [JSON.stringify([key])] : [])];
  const json = () => (shown = jsonPanel(page, body, { memory: page.memory(`${item}/json`, opened),
    label: `the JSON of request ${round.number}`, change, tokens: tokensAt(body, tokens), line,
    weigh: (path) => weightAt(body, page.weighings()[index], path) })).el;
  const fresh = () => {
    const { text, value } = novelty(rounds, index);
    const open = ["[]", ...Object.keys(value).map((name) => JSON.stringify([name]))];
    const shown = Object.keys(value).length ? [jsonPanel(page, value, { memory: page.memory(`${item}/new`, index ? open : ["[]"]),
      label: `what is new in request ${round.number}` }).el] : [];
    const ends = line ? h("p", { class: "nba-dim" }, `${sentence(line.text)}.`) : null;
    return h("div", {}, h("p", {}, text), ends, ...shown);
  };
  const command = (name, text, hint) => () => {
    const cutHere = isCut(body) ? ["A long text is cut in this view, so this is not the whole request."] : [];
    const tools = h("div", { class: "nba-toolbar" }, h("span", { class: "nba-dim" }, hint), h("span", { class: "nba-space" }),
      copyButton(page, () => text));
    return h("div", {}, tools, notices(cutHere) ?? "", block(text, name));
  };
  const { wire } = page.state;
  const commands = [["cURL", curl(wire, round.request.path, body), "BASE_URL and the key are variables of your shell."],
    ["Python", httpx(wire, round.request.path, body), "BASE_URL and the key come from the environment."]];
  let shown = null;
  const tabs = tabbed(page, "request", [{ name: "JSON", build: json }, { name: "What is new", build: fresh },
    { name: "Tokens", build: () => (tokens ? tokenTable(round) : h("p", {}, "This view was made without a token count.")) },
    ...commands.map(([name, text, hint]) => ({ name, build: command(name, text, hint) }))]);
  const slot = h("div");
  const reveal = (path) => {
    tabs.open("JSON");
    shown.reveal(path);
  };
  const named = `Request ${round.number}${round.purpose ? `, for a ${round.purpose}` : ""}`;
  const title = h("h4", { class: "nba-title" }, named, h("small", {}, small.join(" · ")));
  const waited = h("div");
  const update = () => {
    const lines = waits(page.state.rounds[index]);
    if (lines.length !== (waited.firstChild?.childNodes.length ?? 0)) waited.replaceChildren(notices(lines));
  };
  update();
  const { budget } = round.request;
  const room = budget ? h("p", { class: "nba-dim" }, `${sentence(budget.words)}.`) : "";
  return { el: h("div", {}, title, room, notices([...cuts(round), ...round.request.notices]), waited, slot, tabs.el), tabs, update,
    slot, reveal };
}

const BUCKETS = {
  input: "read at full price", cache_read: "read from a cache", cache_write: "written to a cache", output: "written",
  reasoning: "reasoning",
};
const ANSWER = ["[]", '["choices"]', '["choices",0]', '["choices",0,"message"]', '["content"]', '["output"]', '["candidates"]'];

function replyView(page, item, index) {
  const small = h("small");
  const text = document.createTextNode("");
  const thinking = document.createTextNode("");
  const [textGrows, thinkingGrows] = [growing(text), growing(thinking)];
  const thought = h("details", { class: "nba-details" }, h("summary", {}, "Thinking"), h("div", { class: "nba-text" }, thinking));
  const said = h("div", { class: "nba-text nba-answer" }, text);
  const calls = h("div", { class: "nba-calls" });
  const none = h("p", { class: "nba-dim" });
  const facts = h("dl", { class: "nba-facts" });
  const noted = h("div");
  const answer = h("div", {}, thought, said, calls, none, facts, noted);
  const jsonBox = h("div");
  const noStream = h("p", { class: "nba-dim" }, "The reply is still coming.");
  const streamBox = h("div", {}, noStream);
  let done = null;
  let looked = false; // whether the stream was asked for: to draw it for each reply that comes would be in vain

  function fillStream() {
    if (done?.stream?.length) streamBox.replaceChildren(microscope(page, unpacked(done.stream)));
    else if (done) write(noStream, "The reply came whole, or its stream was not kept.");
  }

  function callLine(place) {
    const node = document.createTextNode("");
    const name = h("b");
    calls.append(h("div", { class: "nba-call" }, h("code", {}, name, node)));
    return { name, grows: growing(node) };
  }
  const lines = [];
  function updateCalls(list, whole) {
    list.forEach((call, place) => {
      lines[place] ??= callLine(place);
      write(lines[place].name, call.name);
      lines[place].grows(call.arguments ? ` ${call.arguments}` : "", whole);
    });
  }

  function finish(reply) {
    done = reply;
    const wire = reply.raw_finish && reply.raw_finish !== reply.finish ? ` (on the wire: ${reply.raw_finish})` : "";
    const first = reply.first === null ? "" : `, first piece after ${seconds(reply.first)}`;
    const usage = Object.entries(BUCKETS).filter(([key]) => reply.usage && reply.usage[key] !== null);
    const spent = usage.map(([key, name]) => `${name} ${count(reply.usage[key])}`).join(" · ");
    const pairs = [["Finish", reply.finish + wire], ["Time", seconds(reply.seconds) + first],
      ["Tokens", spent || "not reported by the provider"]].filter(([, value]) => value);
    facts.replaceChildren(...pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    noted.replaceChildren(...[notices(reply.notices)].filter(Boolean));
    const label = `the JSON of reply ${page.state.rounds[index].number}`;
    jsonBox.replaceChildren(jsonPanel(page, reply.body, { memory: page.memory(`${item}/json`, ANSWER), label }).el);
    if (looked) fillStream();
  }

  function update() {
    const round = page.state.rounds[index];
    const { reply, live } = round;
    const shown = reply ?? live ?? { text: "", thinking: "", calls: [] };
    textGrows(shown.text, Boolean(reply));
    thinkingGrows(shown.thinking, Boolean(reply));
    show(said, Boolean(shown.text));
    show(thought, Boolean(shown.thinking));
    updateCalls(reply ? round.calls : live?.calls ?? [], Boolean(reply));
    const wordsNow = reply ? [reply.finish.replaceAll("_", " "), seconds(reply.seconds)].filter(Boolean).join(" · ")
      : page.state.ending ? "cut off" : "coming…";
    write(small, wordsNow);
    said.classList.toggle("nba-coming", !reply && !page.state.ending);
    show(none, !shown.text && !lines.length && !shown.thinking);
    write(none, reply ? "No text and no call." : "Nothing has come yet.");
    if (reply && reply !== done) finish(reply);
    if (!reply && !jsonBox.firstChild) jsonBox.append(h("p", { class: "nba-dim" }, "The whole reply is not there yet."));
  }
  update();
  const tabs = tabbed(page, "reply", [{ name: "Answer", build: () => answer }, { name: "JSON", build: () => jsonBox },
    { name: "Stream", build: () => {
      looked = true;
      fillStream();
      return streamBox;
    } }]);
  const title = h("h4", { class: "nba-title" }, `Reply ${page.state.rounds[index].number}`, small);
  return { el: h("div", {}, title, tabs.el), tabs, update };
}

const SIGNS = { done: "✓", failed: "✗", skipped: "–", asked: "?", now: "●", todo: "○" };

function callView(page, item, index, place) {
  const steps = h("ol", { class: "nba-steps", "aria-label": "Steps of the call" });
  const fault = h("p", { class: "nba-fault" });
  const notes = h("ul", { class: "nba-dim nba-notes" });
  const small = h("small");
  const outcome = h("div");
  const line = h("code");
  const args = h("div");
  const slot = h("div");
  let written = null;
  let result;

  /** The arguments as they go to the tool; a person may change them, and then those that the model asked for stay beside them. */
  function writeArguments(call) {
    if (call.arguments === written) return;
    written = call.arguments;
    write(line, signature(call.name, call.arguments));
    const value = parsed(call.arguments);
    const shown = value !== undefined && value !== null && typeof value === "object"
      ? tree(page, value, { memory: page.memory(`${item}/arguments`, ["[]"]), label: `the arguments of ${call.name}` }).el
      : block(call.arguments || "(none)", "arguments as the model wrote them");
    args.replaceChildren(h("div", { class: "nba-toolbar" }, h("h5", {}, "Arguments"), h("span", { class: "nba-space" }),
      copyButton(page, () => call.arguments)), shown);
    if (typeof call.asked === "string") args.append(kept("What the model asked for, before a person changed it", call.asked,
      "arguments of the model"));
  }

  function update() {
    const call = page.state.rounds[index].calls[place];
    const running = !page.state.ending;
    const rungs = ladder(call, running);
    writeArguments(call);
    const code = call.result?.code;
    const { question } = page.state;
    const here = question && itemOf(question, page.state) === item;
    const waits = here || call.asks ? `waits for ${here && !question.asks ? "you" : "your leave"}` : "running…";
    const outcomeNow = code ? `failed: ${code}` : call.result ? "done" : running ? waits : "no result";
    write(small, [call.id, outcomeNow, seconds(call.seconds)].filter(Boolean).join(" · "));
    steps.replaceChildren(...rungs.map(({ name, state, note }) => h("li", { class: `nba-step nba-${state}`, title: note || null },
      glyph(SIGNS[state]), name, hidden(`: ${state === "todo" ? "to come" : state}`))));
    notes.replaceChildren(...remarks(rungs).map((line) => h("li", {}, line)));
    const broken = rungs.find((step) => step.state === "failed");
    show(fault, Boolean(broken || code));
    write(fault, broken ? `Failed at “${broken.name}”${broken.note ? `: ${broken.note}` : ""}` : `Failed: ${code}`);
    if (call.result === result) return;
    result = call.result;
    const pictures = (result?.images ?? []).map(picture);
    const said = result && (result.text || !pictures.length) ? [block(result.text || "(empty)", "result")] : [];
    const nothing = result ? [] : [h("p", { class: "nba-dim" }, "None yet.")];
    const trace = call.traceback ? [kept("Traceback (for you; the model does not get it)", call.traceback, "traceback")] : [];
    const wire = call.wire?.length ? [kept(`MCP: ${plural(call.wire.length, "message")} on the wire`, wireText(call.wire), "messages")] : [];
    const shown = call.pictures.map(picture);
    const printed = call.printed || shown.length ? [h("h5", {}, "What the tool printed and showed"),
      ...(call.printed ? [block(call.printed, "output of the tool")] : []), ...shown] : [];
    const whole = call.whole === null ? [] : [kept("The whole result (the model got less)", call.whole, "whole result")];
    const given = call.given ? [kept("What the tool gave, before a person changed it", call.given.text, "result of the tool")] : [];
    outcome.replaceChildren(h("h5", {}, "Result, as the model reads it"), ...nothing, ...said, ...pictures, ...given, ...whole,
      ...printed, ...trace, ...wire);
  }
  update();
  const title = h("h4", { class: "nba-title nba-signature" }, line, small);
  return { el: h("div", {}, title, steps, notes, fault, slot, args, outcome), update, slot };
}

// ------------------------------------------------------------------------------------------------ the stream under a microscope

const AROUND = 6; // fragments that are shown before and after the one that came last
const ENDING = 2000; // characters of a text that are shown of its end: a longer one would be laid out anew at each step

/** A stored stream played again. Only what is around the present moment is in the page, however long the stream is. */
function microscope(page, stream) {
  const times = clock(stream);
  const pace = paced(times);
  const wholes = becomesWhole(stream);
  const last = stream.length;
  let [place, direction, now, since] = [last, 0, 0, 0];

  const press = (label, text, does) => {
    const made = h("button", { type: "button", class: "nba-button", "aria-label": label, title: label }, text);
    page.act(made, does);
    return made;
  };
  const jump = (to) => {
    direction = 0;
    place = Math.min(last, Math.max(0, to));
    draw();
  };
  const play = (way) => {
    if (direction === way) return jump(place);
    if (place === (way > 0 ? last : 0)) place = way > 0 ? 0 : last;
    [direction, now, since] = [way, place ? pace[place - 1] : pace[0] - 1, performance.now()];
    draw();
    return tick();
  };
  function tick() {
    if (!direction || !el.isConnected) return;
    const passed = performance.now() - since;
    since += passed;
    now += direction * passed * speedNow();
    const reached = momentsAt(pace, now);
    place = direction > 0 ? Math.max(place, reached) : Math.min(place, reached);
    if (place === (direction > 0 ? last : 0)) direction = 0;
    draw();
    page.later(33, tick);
  }
  const speed = h("input", { type: "number", class: "nba-field nba-speed", value: "1", min: "0.01", step: "any",
    "aria-label": "Speed, 1 is as it came, with 10 ms at least between fragments" });
  const speedNow = () => Math.max(0.01, Number(speed.value) || 1);
  const slide = h("input", { type: "range", class: "nba-slide", min: "0", max: String(last), step: "1",
    "aria-label": "Place in the stream" });
  page.typed.set(slide, () => jump(+slide.value));
  const back = press("Play backwards", "◀", () => play(-1));
  const forth = press("Play", "▶", () => play(1));
  const controls = h("div", { class: "nba-toolbar" }, press("To the start", "|◀", () => jump(0)), back,
    press("One fragment back", "‹", () => jump(place - 1)), press("One fragment on", "›", () => jump(place + 1)), forth,
    press("To the end", "▶|", () => jump(last)), h("label", { class: "nba-dim" }, speed, " × speed"));
  const told = h("p", { class: "nba-dim nba-num" });
  const marks = h("div", { class: "nba-toolbar" }, ...wholes.slice(0, 50).map(({ name, at: moment }) => {
    const made = h("button", { type: "button", class: "nba-button" }, `arguments of ${name} whole at ${count(moment)}`);
    page.act(made, () => jump(moment));
    return made;
  }));
  const list = h("ol", { class: "nba-moments", "aria-label": "Fragments around this moment" });
  const holds = h("div", { class: "nba-holds", role: "group", "aria-label": "What the accumulator holds" });

  const row = (number) => {
    const [, pieces] = stream[number - 1];
    const said = pieces.map(([kind, , text]) => `${kind} ${JSON.stringify(text)}`).join(", ");
    const here = number === place;
    return h("li", { class: `nba-moment ${here ? "nba-here" : ""}`, "aria-current": here ? "step" : null },
      h("span", { class: "nba-dim nba-num" }, `${count(number)} · ${count(times[number - 1])} ms`),
      h("code", {}, cut(said, 160) || "nothing"));
  };
  const tail = (text) => (text.length > ENDING
    ? `… ${plural(text.length - ENDING, "character")} before this …\n${text.slice(-ENDING)}` : text);
  const held = (title, text, mark) =>
    h("div", {}, h("h5", {}, title, h("span", { class: "nba-mark" }, mark && ` ${mark}`)), block(tail(text) || "(empty)", title));

  function draw() {
    const { text, thinking, calls } = replayed(stream, place);
    slide.value = String(place);
    const time = place ? `${count(times[place - 1])} ms` : "before the first";
    slide.setAttribute("aria-valuetext", `${count(place)} of ${count(last)} fragments, ${time}`);
    write(told, `${count(place)} of ${plural(last, "fragment")} · ${time}`);
    for (const [made, way] of [[back, -1], [forth, 1]]) {
      write(made, direction === way ? "❚❚" : way > 0 ? "▶" : "◀");
      made.setAttribute("aria-label", direction === way ? "Pause" : way > 0 ? "Play" : "Play backwards");
    }
    const from = Math.max(1, Math.min(place - AROUND, last - 2 * AROUND));
    const shown = Array.from({ length: Math.min(last, 2 * AROUND + 1) }, (_, more) => row(from + more));
    list.replaceChildren(...shown);
    const wholeNow = (index) => wholes.find((entry) => entry.index === index && entry.at === place);
    holds.replaceChildren(...(thinking ? [held("Thinking", thinking, "")] : []),
      ...(text || !calls.length ? [held("Text", text, "")] : []),
      ...calls.map((call, index) => held(`Call ${call.name}`, call.arguments,
        wholeNow(index) ? "✓ whole just now" : call.whole ? "✓ whole" : "… not whole yet")));
  }
  const el = h("div", {}, controls, slide, told, ...(wholes.length ? [marks] : []), h("div", { class: "nba-scope" }, list, holds));
  draw();
  return el;
}

// ------------------------------------------------------------------------------------------------ the question

/** The result of a tool is edited as the text that it is; the rest is JSON. */
function plainText({ edits, schema }) {
  const value = schema?.type === "string" && edits ? parsed(edits) : undefined;
  return typeof value === "string" ? value : null;
}

const samePlace = (one, two) => one && two && ["at", "round", "call"].every((key) => one[key] === two[key]);

/** What a person is asked, with its buttons. Nothing is sent twice, and nothing that is plainly wrong. */
function questionPanel(page, question, before) {
  const said = asking(question, page.state);
  const plain = plainText(question);
  const original = plain ?? question.edits ?? "";
  const again = question.problem && samePlace(question, before?.question) ? before : null;
  const wrong = h("p", { class: "nba-fault", role: "alert", hidden: !question.problem }, question.problem ?? "");
  const lines = original.split("\n").length;
  const editor = h("textarea", { class: "nba-editor", spellcheck: "false", rows: Math.min(14, Math.max(3, lines + 1)),
    "aria-label": plain === null ? "JSON that goes on instead" : "Text that goes on instead" });
  editor.value = again?.typed() ?? original;
  const reason = h("input", { type: "text", class: "nba-field nba-wide", "aria-label": "Reason, for the model",
    placeholder: "Reason, for the model" });
  const choose = (label, options) => h("select", { class: "nba-field", "aria-label": label },
    ...options.map(([value, text]) => h("option", { value }, text)));
  const fault = choose("What goes wrong", (question.faults ?? []).map((name) => [name, name.replaceAll("_", " ")]));
  const earlier = page.state.rounds.slice(0, question.round + 1);
  const rounds = choose("Round to go back to", earlier.map(({ number }, index) => [index, `round ${number}`]));
  const told = h("p", { class: "nba-dim nba-sent", hidden: true });
  const isChanged = () => !drawers.edit.box.hidden && editor.value !== original;
  let [sent, doubted] = [false, ""];

  function complain(text) {
    write(wrong, text);
    show(wrong, Boolean(text));
  }

  function send(choice, more = {}) {
    if (sent || !page.answer) return;
    const message = { kind: "answer", id: question.id, choice, ...more };
    if (ONWARD.includes(choice) && isChanged()) {
      message.text = plain === null ? editor.value : JSON.stringify(editor.value);
      const bad = misfit(message.text, question.schema);
      if (bad && !(question.at === "model" && doubted === editor.value)) {
        doubted = editor.value; // who plays the model may be as wrong as a model, when it is meant
        complain(`Not sent: ${bad}.${question.at === "model" ? " Press the button again to send it all the same." : ""}`);
        editor.focus();
        return;
      }
    }
    sent = true;
    complain("");
    fields.disabled = true;
    el.focus({ preventScroll: true });
    write(told, `Sent: ${CHOICES[choice].replace("…", "")}${"text" in message ? ", with what was changed" : ""}.`);
    show(told, true);
    page.answered(ONWARD.includes(choice));
    page.answer(message);
  }

  const button = (label, does, more = {}) => {
    const made = h("button", { type: "button", class: "nba-button", ...more }, label);
    page.act(made, does);
    return made;
  };
  const shortcut = (choice) => Object.keys(KEYS).find((key) => KEYS[key] === choice);
  const drawer = (name, label, field, ...rest) => {
    const box = h("div", { class: "nba-drawer", hidden: true }, field, ...rest);
    const opener = button(label, () => toggle(name), { "aria-expanded": "false", "aria-keyshortcuts": shortcut(name) });
    return { box, opener, field };
  };
  const drawers = {
    edit: drawer("edit", "Edit…", editor, button("Leave it as it was", () => {
      editor.value = original;
      complain("");
      toggle("edit");
    })),
    reject: drawer("reject", CHOICES.reject, reason, button("Reject", () => send("reject", { reason: reason.value }))),
    inject: drawer("inject", CHOICES.inject, fault, button("Inject", () => send("inject", { fault: fault.value }))),
    back: drawer("back", CHOICES.back, rounds, button("Go back, as a branch", () => send("back", { round: +rounds.value }))),
  };
  function toggle(name) {
    const open = drawers[name].box.hidden;
    for (const [other, { box, opener }] of Object.entries(drawers)) {
      if (other !== name && (other === "edit" || !open)) continue; // an edit stays beside the others, in sight
      show(box, other === name && open);
      opener.setAttribute("aria-expanded", String(!box.hidden));
    }
    drawers[name][open ? "field" : "opener"].focus();
  }
  const offered = Object.keys(CHOICES).filter((choice) => question.choices.includes(choice));
  const first = offered.find((choice) => ONWARD.includes(choice));
  const label = (choice) => (question.at === "model" && choice === "next" ? "Send this reply" : CHOICES[choice]);
  const buttons = offered.map((choice) => drawers[choice]?.opener ?? button(label(choice), () => send(choice),
    { class: `nba-button ${choice === first ? "nba-first" : ""}`, "aria-keyshortcuts": shortcut(choice) }));
  const edits = question.edits !== null && question.edits !== undefined;
  if (edits) buttons.splice(offered.indexOf(first) + 1, 0, drawers.edit.opener);
  const fields = h("fieldset", { class: "nba-fields" }, h("div", { class: "nba-choices" }, ...buttons),
    ...Object.values(drawers).map(({ box }) => box));
  const asks = question.asks ? h("p", { class: "nba-why" }, question.asks) : null;
  const el = h("div", { class: "nba-ask", role: "group", tabindex: "-1", "aria-label": said }, h("b", {}, said), asks, wrong,
    page.answer ? fields : h("p", { class: "nba-dim" }, "The run waited for a person here."), told);
  const mayEdit = edits && Boolean(first);
  if (mayEdit && (question.at === "model" || (again && again.edited()))) {
    show(drawers.edit.box, true);
    drawers.edit.opener.setAttribute("aria-expanded", "true");
  }
  page.keys.set(editor, (event) => {
    if (event.key === "Escape") drawers.edit.opener.focus();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(first);
    else return false;
    return true;
  });
  page.keys.set(reason, (event) => {
    if (event.key === "Enter") send("reject", { reason: reason.value });
    else if (event.key === "Escape") drawers.reject.opener.focus();
    else return false;
    return true;
  });
  /** A key that means something here; true when it did. */
  function press(key) {
    const choice = has(KEYS, key) ? KEYS[key] : "";
    if (sent || !page.answer || !(choice === "edit" ? mayEdit : question.choices.includes(choice))) return false;
    if (!drawers[choice]) send(choice);
    else if (drawers[choice].box.hidden) toggle(choice);
    else drawers[choice].field.focus();
    return true;
  }
  const keys = Object.entries(KEYS).filter(([, choice]) => (choice === "edit" ? mayEdit : question.choices.includes(choice)));
  const short = (choice) => (choice === "edit" ? "edit" : CHOICES[choice].replace("…", "").toLowerCase());
  const help = keys.map(([key, choice]) => `${key} ${short(choice)}`).join(" · ");
  const waits = (other) => !sent && JSON.stringify(other) === JSON.stringify(question);
  return { el, question, press, waits, said: `${said}${question.asks ? ` ${question.asks}` : ""}`, help,
    typed: () => editor.value, edited: isChanged };
}

// ------------------------------------------------------------------------------------------------ branches

/** Where two lines of the run part, as a table. */
function comparison(one, two, name) {
  const found = parting(one, two);
  if (!found) return h("p", {}, "The two lines are the same, but for times.");
  const number = (one.rounds[found.index] ?? two.rounds[found.index]).number;
  const before = found.index ? `The same up to round ${found.index}. ` : "";
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const shown = (value) => (value === undefined ? "(not there)" : cut(written(value), 4000));
  const where = ([kind, ...path]) => {
    if (kind === undefined) return "the whole round";
    const steps = kind === "calls" && path.length ? [`call ${path[0] + 1}`, ...path.slice(1)] : [kind, ...path];
    return steps.join(" › ");
  };
  const rows = found.found.map(({ path, left, right }) => h("tr", {}, h("th", { scope: "row" }, where(path)),
    ...[[left, "this line"], [right, name]].map(([value, line]) => h("td", {}, block(shown(value), `${where(path)}, ${line}`)))));
  const head = ["Where", "This line", name].map((title) => h("th", { scope: "col" }, title));
  return h("table", { class: "nba-table nba-differs" }, h("caption", {}, `${before}They part in round ${number}.`),
    h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...rows));
}

/** Tabs over the lines of a run; each earlier line is an inspector of its own, and can be compared with this one. */
function lines(page, here) {
  const el = h("div", { class: "nba-lines" });
  let [drawn, inner, tabs] = [null, null, null];
  function update() {
    const branches = page.state.branches ?? [];
    show(el, branches.length > 0);
    if (branches.length === drawn) return;
    drawn = branches.length;
    const other = h("div");
    const leave = () => {
      inner?.destroy();
      inner = null;
      other.replaceChildren();
    };
    const build = (fill) => () => {
      leave();
      show(here, !fill);
      fill?.(other);
      page.turned();
      return other;
    };
    const named = ({ label, from_round: from }) => label || `left at round ${from + 1}`;
    const opened = (branch) => build((box) => (inner = mount(box, branch.state, { line: named(branch) })));
    const compared = (branch) =>
      build((box) => box.append(h("div", { class: "nba-compare" }, comparison(page.state, branch.state, named(branch)))));
    tabs = tabbed(page, "line", [{ name: "This line", build: build(null) },
      ...branches.map((branch) => ({ name: named(branch), build: opened(branch) })),
      ...branches.map((branch) => ({ name: `Compare with ${named(branch)}`, build: compared(branch) }))],
    { keep: false, label: "Lines of this run" });
    el.replaceChildren(tabs.el);
  }
  return { el, update, home: () => tabs?.open("This line"), destroy: () => inner?.destroy() };
}

function viewOf(page, item) {
  const [index, kind, place] = item.split("/");
  if (kind === "request") return requestView(page, item, +index);
  return kind === "reply" ? replyView(page, item, +index) : callView(page, item, +index, +place);
}

// ------------------------------------------------------------------------------------------------ head, meter, rail

function head(page) {
  const name = h("b", {}, "%%agent");
  const pills = h("span", { class: "nba-pills" });
  const totalsText = h("span", { class: "nba-num" });
  const time = h("span", { class: "nba-num" });
  const status = h("span", { class: "nba-status", role: "status" });
  const note = h("div", { class: "nba-note" });
  const follow = h("button", { type: "button", class: "nba-button" }, "Follow the run");
  page.act(follow, () => page.follow());
  const ask = h("button", { type: "button", class: "nba-button nba-first" }, "Show the question");
  page.act(ask, () => page.showQuestion());
  const wrong = h("button", { type: "button", class: "nba-button", "aria-keyshortcuts": "x" }, "Next error");
  page.act(wrong, () => page.nextError());
  const el = h("header", { class: "nba-head" }, name, pills, h("span", { class: "nba-space" }), wrong, ask, follow, totalsText,
    time, status);
  let facts = "";
  function update() {
    const { state } = page;
    const stands = standing(state);
    const round = state.rounds.length;
    const wanted = [[state.mock ? `mock model · ${state.model}` : state.model, state.mock ? "nba-mock" : ""],
      [state.wire.replaceAll("_", " "), ""], [round ? `round ${count(round)}` : "", ""]].filter(([text]) => text);
    if (facts !== JSON.stringify(wanted)) pills.replaceChildren(...wanted.map(([text, kind]) => pill(text, kind)));
    facts = JSON.stringify(wanted);
    const spent = totals(state);
    write(totalsText, spent.read === null && spent.written === null ? "" : `in ${count(spent.read)} · out ${count(spent.written)}`);
    totalsText.title = "tokens, as the provider reported them";
    write(time, seconds(spent.seconds));
    write(status, stands.text);
    status.className = `nba-status nba-${stands.kind}`;
    status.title = stands.meaning ?? "";
    show(note, Boolean(stands.meaning));
    note.className = `nba-note nba-${stands.kind}`;
    if (stands.meaning) {
      const said = [`${sentence(stands.meaning)}.`, stands.error, stands.next].filter(Boolean);
      if (note.childNodes.length !== said.length) note.replaceChildren(...said.map((text) => h("p", {}, text)));
    }
    show(follow, stands.kind === "running" && !page.following);
    show(ask, stands.kind === "asks" && (page.aside() || page.item !== itemOf(state.question, state)));
    show(wrong, failures(state).length > 0);
  }
  return { el, note, update };
}

function meter(page) {
  const el = h("div", { class: "nba-meter" });
  let drawn = "";
  function update() {
    const index = +page.item.split("/")[0];
    const round = page.state.rounds[index];
    const tokens = round?.request.tokens;
    show(el, Boolean(round && (tokens || round.reply)));
    const now = JSON.stringify([index, tokens?.total, round?.reply?.usage, Boolean(round?.reply), page.state.window]);
    if (!round || now === drawn) return;
    drawn = now;
    const { window: room } = page.state;
    const right = room && tokens ? (tokens.total > room ? `${count(tokens.total - room)} tokens over the window of ${count(room)}`
      : `${percent(tokens.total, room)} of the window of ${count(room)}`) : room ? `window ${count(room)}` : "window not known";
    const caption = h("div", { class: "nba-caption" }, h("span", {}, `Request ${round.number}: ${compared(round)}`),
      h("span", { class: room && tokens && tokens.total > room ? "nba-over" : "" }, right));
    if (!tokens) return el.replaceChildren(caption);
    const parts = ordered(tokens.parts);
    const before = index ? page.state.rounds[index - 1].request.tokens?.parts : null;
    const more = (part) => (before ? tokens.parts[part] - (before[part] ?? 0) : 0);
    const label = parts.map((part) => `${words(part)} ${percent(tokens.parts[part], tokens.total)}`).join(", ");
    const stack = h("div", { class: "nba-bar", role: "img", "aria-label": `Tokens of request ${round.number} by part: ${label}` });
    for (const part of parts) {
      const piece = bar(part, tokens.parts[part]);
      piece.title = `${words(part)}: ${count(tokens.parts[part])}`;
      page.act(piece, () => page.showPart(index, part));
      stack.append(piece);
    }
    const filled = bar("window", Math.min(tokens.total, room ?? 0), room ?? 1);
    const gauge = h("div", { class: "nba-gauge", "aria-hidden": "true" }, filled);
    const links = [];
    const legend = h("ul", { class: "nba-legend", "aria-label": "Parts of the request" }, ...parts.map((part) => {
      const said = [bar(part, 1), `${words(part)} ${count(tokens.parts[part])}`, more(part) ? h("b", {}, ` ${signed(more(part))}`)
        : null];
      if (part === "overhead") return h("li", {}, ...said.filter(Boolean));
      const made = h("button", { type: "button", class: "nba-link", title: `Show ${words(part)} in the JSON`,
        tabindex: links.length ? "-1" : "0" }, ...said.filter(Boolean));
      links.push(made);
      page.act(made, () => page.showPart(index, part));
      return h("li", {}, made);
    }));
    page.keys.set(legend, (event) => { // one stop of the Tab key; the arrows move in it
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const from = links.indexOf(event.target);
      if (!by || from < 0) return false;
      const next = links[(from + by + links.length) % links.length];
      links.forEach((made) => made.setAttribute("tabindex", made === next ? "0" : "-1"));
      next.focus();
      return true;
    });
    const rows = parts.map((part) => [words(part), count(tokens.parts[part]), percent(tokens.parts[part], tokens.total)]);
    const table = h("table", { class: "nba-sr" }, h("caption", {}, `Tokens of request ${round.number}`),
      ...rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", {}, cell)))));
    return el.replaceChildren(caption, stack, ...(room ? [gauge] : []), legend, table);
  }
  return { el, update };
}

function rail(page) {
  const el = h("nav", { class: "nba-rail", "aria-label": "Rounds" });
  const groups = [];
  const buttons = new Map();

  function button(item, list) {
    if (buttons.has(item)) return buttons.get(item);
    const parts = { sign: glyph(""), name: h("span", { class: "nba-name" }), tail: h("span", { class: "nba-tail nba-num" }) };
    const made = h("button", { type: "button", class: "nba-item", tabindex: "-1" }, parts.sign, parts.name, parts.tail);
    page.act(made, () => page.select(item));
    list.append(made);
    buttons.set(item, { el: made, ...parts });
    return buttons.get(item);
  }

  function draw(item, list, { sign, name, tail, kind, said }) {
    const at = button(item, list);
    write(at.sign, sign);
    write(at.name, name);
    write(at.tail, tail);
    const wanted = `nba-item nba-is-${kind}`;
    if (at.el.className !== wanted) at.el.className = wanted;
    if (at.el.getAttribute("aria-label") !== said) at.el.setAttribute("aria-label", said);
  }

  function group(index) {
    const round = page.state.rounds[index];
    const sign = glyph("▾");
    const time = h("span", { class: "nba-tail nba-num" });
    const top = h("button", { type: "button", class: "nba-round", tabindex: "-1", "aria-expanded": "true" }, sign,
      h("span", { class: "nba-name" },
        `Round ${round.number}${round.purpose ? ` · ${round.purpose}` : ""}`), time);
    const list = h("div", { class: "nba-items" });
    const fold = (open) => {
      show(list, open);
      top.setAttribute("aria-expanded", String(open));
      write(sign, open ? "▾" : "▸");
    };
    page.act(top, () => fold(list.hidden));
    el.append(h("div", { class: "nba-group" }, top, list));
    return { top, list, time, fold };
  }

  function update(index) {
    const round = page.state.rounds[index];
    const { list, time } = (groups[index] ??= group(index));
    const running = !page.state.ending;
    const { tokens } = round.request;
    write(time, seconds(round.reply?.seconds));
    draw(`${index}/request`, list, { sign: "↑", name: "request", tail: tokens ? count(tokens.total) : "", kind: "request",
      said: `Request ${round.number}${tokens ? `, ${plural(tokens.total, "token")}` : ""}` });
    if (round.reply || round.live) {
      const calls = (round.reply ? round.calls : round.live.calls).length;
      const name = calls ? plural(calls, "call") : round.reply || round.live.text ? "answer" : "reply";
      const out = written(round.reply?.usage);
      const [tail, heard] = round.reply ? [out === null ? "" : count(out), out === null ? "" : `, ${plural(out, "token")}`]
        : running ? ["…", ", coming"] : ["cut off", ", cut off"];
      draw(`${index}/reply`, list, { sign: "↓", name, tail, kind: round.reply ? "reply" : running ? "open" : "failed",
        said: `Reply ${round.number}, ${name}${heard}` });
    }
    const { question } = page.state;
    round.calls.forEach((call, place) => {
      const bad = failed(call);
      const asked = running && question?.round === index && question.call === place;
      const open = !call.result && running;
      const sign = bad ? "✗" : open ? "◐" : call.result ? "⚙\ufe0e" : "–";
      const heard = [`Call ${call.name}`, bad ? "failed" : asked ? "waiting for you" : open ? "running" : "",
        seconds(call.seconds)].filter(Boolean).join(", ");
      draw(`${index}/call/${place}`, list, { sign, name: call.name, tail: asked ? "asks" : open ? "…" : seconds(call.seconds),
        kind: bad ? "failed" : asked ? "asked" : open ? "open" : "call", said: heard });
    });
  }

  function mark(item) {
    for (const [name, { el: made }] of buttons) {
      if (name === item) made.setAttribute("aria-current", "true");
      else made.removeAttribute("aria-current");
      made.setAttribute("tabindex", name === item ? "0" : "-1");
    }
    const chosen = buttons.get(item)?.el;
    if (!chosen) return;
    groups[+item.split("/")[0]].fold(true);
    const [box, view] = [chosen.getBoundingClientRect(), el.getBoundingClientRect()]; // scrollIntoView would move the notebook
    if (box.top < view.top || box.bottom > view.bottom) el.scrollTop += box.top - view.top - view.height / 2;
    if (box.left < view.left || box.right > view.right) el.scrollLeft += box.left - view.left - view.width / 2;
  }

  function press(event) {
    const here = event.target.closest("button");
    const all = [...el.querySelectorAll("button")].filter((made) => !made.parentElement.hidden);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const own = groups.find(({ top, list }) => top === here || list.contains(here));
    if (by) {
      const next = all[all.indexOf(here) + by];
      next?.focus({ preventScroll: true });
      if (next?.classList.contains("nba-item")) page.run(next);
    } else if (event.key === "ArrowLeft" && own) {
      own.fold(false);
      own.top.focus();
    } else if (event.key === "ArrowRight" && own) {
      if (here === own.top && !own.list.hidden) own.list.querySelector("button").focus();
      own.fold(true);
    } else {
      return false;
    }
    return true;
  }
  page.keys.set(el, press);
  /** Another run in the place of this one: a branch begins with the rounds that it kept. */
  function clear() {
    el.replaceChildren();
    groups.length = 0;
    buttons.clear();
  }
  return { el, update, mark, clear, focus: () => buttons.get(page.item)?.el.focus() };
}

// ------------------------------------------------------------------------------------------------ the whole

const FOOT = "Keys: ↑ ↓ move · ← → fold · n what is new · / search · c copy the value · x next error";

/**
 * Draw a run's state into an element and follow it.
 * @param {Element} el where it goes; @param {object} state as views/fold.py makes it (copied, never changed)
 * @param {{answer?: function(object): void, line?: string}} hooks what a person says to a question goes to answer: without it
 *   nothing can be said; line names an earlier line of a run inside the inspector of that run
 * @returns {{apply(changes: Array): void, destroy(): void}}
 */
export function mount(el, state, { answer = null, line = "" } = {}) {
  const undo = new AbortController();
  const timers = new Set();
  const clicks = new WeakMap();
  const memories = new Map();
  let whole = null; // the request bodies, put together when first asked for
  let weighed = null; // and their weights
  let view = null;
  let low = true; // whether the end of the pane is in sight
  let height = 0; // where the pane was scrolled to
  let frame = 0;
  let asked = null; // the panel of the question that is open
  let led = false; // whether the person answers here, so that the next question may take the focus
  let parts = {}; // of the token bar: which was shown last, and which of its places comes next
  const page = {
    state: copied(state),
    item: "",
    following: true,
    keys: new WeakMap(), // element -> what a key does in it; true when it did something
    typed: new WeakMap(),
    chosen: new Map(),
    act: (made, does) => {
      made.dataset.act = "";
      clicks.set(made, does);
    },
    run: (made) => clicks.get(made)?.(),
    later: (time, does) => {
      const timer = setTimeout(() => (timers.delete(timer), does()), time);
      timers.add(timer);
    },
    memory: (name, open) => {
      if (!memories.has(name)) memories.set(name, { open: new Set(open), most: new Map() });
      return memories.get(name);
    },
    bodies: () => (whole ??= bodies(page.state.rounds)),
    weighings: () => (weighed ??= weighings(page.state.rounds)),
    select: (item) => choose(item, false),
    turned: () => top.update(),
    aside: () => here.hidden, // another line of the run is looked at
    answer,
    answered: (goesOn) => {
      page.following = goesOn || page.following;
      led = true;
    },
    showQuestion: () => {
      branches.home();
      choose(itemOf(page.state.question, page.state), page.following);
      asked?.el.focus();
    },
    nextError: () => {
      const [all, wrong] = [items(page.state), failures(page.state)];
      const here = all.indexOf(page.item);
      choose(wrong.find((item) => all.indexOf(item) > here) ?? wrong[0], false);
      rounds.focus();
    },
    showPart: (index, part) => {
      choose(`${index}/request`, false);
      const places = placesOf(page.bodies()[index], part);
      if (!places.length) return;
      const turn = `${index}/${part}`;
      parts = { turn, next: parts.turn === turn ? parts.next + 1 : 0 };
      view.reveal(places[parts.next % places.length]);
    },
    follow: () => choose(items(page.state).pop(), true),
  };
  const [top, gauge, rounds] = [head(page), meter(page), rail(page)];
  const pane = h("div", { class: "nba-pane" });
  const foot = h("footer", { class: "nba-foot" }, FOOT);
  const told = h("p", { class: "nba-sr", role: "status" });
  const here = h("div", {}, gauge.el, h("div", { class: "nba-body" }, rounds.el, pane));
  const branches = lines(page, here);
  const empty = h("p", { class: "nba-dim" }, "Nothing has been sent yet.");
  const root = h("section", { class: "nba", "data-rounds": "0", "data-status": "running", tabindex: "-1" },
    top.el, top.note, branches.el, here, foot, told);

  function choose(item, following) {
    page.following = following;
    if (item && item !== page.item) {
      page.item = item;
      view = viewOf(page, item);
      pane.replaceChildren(view.el);
      pane.scrollTop = 0;
      height = 0;
      low = true;
      rounds.mark(item);
    }
    placeQuestion();
    gauge.update();
    top.update();
  }

  /** The panel keeps what was typed when another item is looked at. */
  function placeQuestion() {
    if (!asked || page.item !== itemOf(asked.question, page.state)) return;
    if (asked.el.parentElement !== view.slot) view.slot.append(asked.el);
  }

  const active = () => root.getRootNode().activeElement;

  /** Another question, or none: it is shown and said; the focus follows only where the person answered here. */
  function ask() {
    const { question, ending } = page.state;
    const before = asked;
    if (question && !ending && before?.waits(question)) { // the whole state came again: what is being typed stays
      placeQuestion();
      return;
    }
    const focused = led && (root.contains(active()) || active() === document.body);
    asked = question && !ending ? questionPanel(page, question, before) : null;
    before?.el.remove();
    if (!asked) {
      if (focused && before && active() === document.body) root.focus({ preventScroll: true });
    } else {
      if (page.following || !page.item || focused) choose(itemOf(question, page.state), page.following);
      placeQuestion();
      if (focused) asked.el.focus({ preventScroll: true });
      if (asked.el.isConnected) near(asked.el);
      led = false;
    }
    write(told, asked ? asked.said : "");
    write(foot, asked && answer ? `Keys: ${asked.help} · ↑ ↓ move · / search · x next error` : FOOT);
  }

  /** Into sight inside the pane: scrollIntoView would move the notebook. */
  function near(box) {
    const [inner, outer] = [box.getBoundingClientRect(), pane.getBoundingClientRect()];
    if (inner.bottom > outer.bottom || inner.top < outer.top) pane.scrollTop += inner.top - outer.top - 8;
  }

  /** Stay at the end of a text that grows. Measured once a frame: to ask for a height after each piece would cost seconds. */
  function keepLow() {
    if (frame || !low) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      pane.scrollTop = pane.scrollHeight;
    });
  }

  function refresh(changed) {
    const { state: now } = page;
    for (const index of changed) if (now.rounds[index]) rounds.update(index);
    const free = !asked || page.item !== itemOf(asked.question, now); // a question that is looked at is not led away from
    if ((page.following && free) || !page.item) choose(items(now).pop(), page.following);
    else top.update();
    branches.update();
    const shown = page.item && changed.has(+page.item.split("/")[0]);
    if (shown) view.update?.();
    gauge.update();
    if (shown && page.following) keepLow();
    if (!page.item && !empty.isConnected) pane.replaceChildren(empty);
    root.dataset.rounds = now.rounds.length;
    root.dataset.status = now.ending ? "ended" : "running";
    root.setAttribute("aria-label", `Run${line && `, ${line}`}: ${cut(now.prompt, 120)}`);
  }

  const everything = () => new Set(page.state.rounds.keys());

  function apply(changes) {
    const fewer = ([, path, value]) => path.length === 1 && path[0] === "rounds" && value.length < page.state.rounds.length;
    const another = changes.some(fewer);
    changeState(page.state, changes);
    const changed = new Set();
    let redrawn = false;
    for (const [, path] of changes) {
      if (path[0] === "rounds" && path.length > 1) changed.add(path[1]);
      else if (path[0] === "rounds" || path[0] === "ending") everything().forEach((index) => changed.add(index));
      if (path[0] === "rounds" && (path.length < 3 || path[2] === "request")) whole = weighed = null;
      redrawn ||= path[0] === "rounds" && path[2] === "request" && page.item === `${path[1]}/request`;
    }
    const moved = changes.some(([, [key]]) => key === "question" || key === "ending");
    if (moved) for (const place of [asked?.question, page.state.question]) if (place) changed.add(place.round);
    led ||= Boolean(moved && asked?.el.contains(active()));
    if (another) {
      rounds.clear();
      page.following = true;
    }
    const item = page.item;
    if (another || redrawn) page.item = "";
    if (redrawn && !another) choose(item, page.following); // a person changed what goes out
    refresh(changed);
    if (moved) ask();
  }

  function find() {
    const field = pane.querySelector(".nba-search");
    if (field) field.focus();
    else if (view?.tabs) {
      view.tabs.open("JSON");
      pane.querySelector(".nba-search")?.focus();
    }
  }

  function news() {
    if (!page.item) return;
    page.chosen.set("request", "What is new");
    const item = `${page.item.split("/")[0]}/request`;
    if (item === page.item) view.tabs.open("What is new");
    else choose(item, false);
    view.tabs.focus();
  }

  /** Keys are taken at the window, before the notebook: there "x" would cut the cell and an arrow would leave it. */
  function press(event) {
    const [target] = event.composedPath();
    if (!(target instanceof Element) || target.closest(".nba") !== root) return;
    const typing = target.matches("input:not([type=range]), textarea, select");
    const sends = target.matches("textarea") && event.key === "Enter"; // the notebook would run the cell
    if ((event.ctrlKey || event.metaKey || event.altKey) && !sends) return;
    if (event.key === "Tab" || /^F\d+$/.test(event.key)) return;
    if (!typing && (event.key === "Escape" || (event.shiftKey && event.key === "Enter"))) return;
    event.stopPropagation();
    if (!typing && !event.repeat && asked?.press(event.key)) return event.preventDefault();
    for (let place = target; place && place !== root; place = place.parentElement) {
      if (page.keys.get(place)?.(event)) return event.preventDefault();
    }
    const does = { n: news, "/": find, x: page.nextError }[event.key];
    if (typing || !does) return;
    event.preventDefault();
    does();
  }

  const on = (target, kind, does, options = {}) => target.addEventListener(kind, does, { ...options, signal: undo.signal });
  on(root, "click", (event) => {
    const made = event.target.closest("[data-act]");
    if (made && root.contains(made)) clicks.get(made)?.(event);
  });
  on(root, "input", (event) => page.typed.get(event.target)?.());
  const stay = (event) => { // whoever reads is not led away; whoever answers is
    if (page.item && page.following && !event.target.closest(".nba-ask")) choose(page.item, false);
  };
  on(pane, "pointerdown", stay);
  on(pane, "focusin", stay);
  on(pane, "scroll", () => { // the event comes a frame late, when the text may have grown: only going up is a wish to stay
    if (pane.scrollHeight - pane.scrollTop - pane.clientHeight < 24) low = true;
    else if (pane.scrollTop < height) low = false;
    height = pane.scrollTop;
  });
  on(window, "keydown", press, { capture: true });

  const colour = () => (root.dataset.theme = darkHost(root) ? "dark" : "light");
  const watch = new MutationObserver(colour);
  for (const place of [document.body, document.documentElement]) {
    watch.observe(place, { attributeFilter: ["class", "style", "data-jp-theme-light", "data-vscode-theme-kind"] });
  }
  on(matchMedia("(prefers-color-scheme: dark)"), "change", colour);
  el.append(root);
  colour();
  page.later(0, colour); // a widget is drawn before it is put into the page
  refresh(everything());
  ask();

  return {
    apply,
    destroy() {
      undo.abort();
      branches.destroy();
      watch.disconnect();
      timers.forEach(clearTimeout);
      cancelAnimationFrame(frame);
      root.remove();
    },
  };
}

// ------------------------------------------------------------------------------------------------ the widget

const SOON = 150; // ms between two hellos: the first is sometimes lost while the front end starts its subshell
const LATER = 2000; // ms, after the first 40

/** anywidget's entry: draws the model's truth, follows its messages, and says hello until it is answered. */
function render({ model, el }) {
  const truth = model.get("truth");
  const shown = mount(el, truth.state, { answer: (message) => model.send(message) });
  const order = inOrder();
  const view = Math.random().toString(36).slice(2);
  let answered = false;
  let timer = null;
  let tries = 0;
  order.state(truth.seq);

  const hello = () => {
    timer = null;
    if (answered && !order.lacks) return;
    tries += 1;
    try {
      model.send({ type: "hello", view });
    } catch {
      // the kernel has gone; it may come back
    }
    if (tries < 40 || !model.get("truth").state.ending) timer = setTimeout(hello, tries < 40 ? SOON : LATER);
  };
  const take = ({ seq, state }) => {
    const changes = order.state(seq);
    if (changes) shown.apply([...Object.entries(state).map(([key, value]) => ["set", [key], value]), ...changes]);
  };
  const hear = (message) => {
    if (message.type === "state") {
      answered = true;
      take(message);
    } else if (message.type === "changes") {
      const changes = order.changes(message.seq, message.changes);
      if (changes.length) shown.apply(changes);
    }
    if (answered && !order.lacks) tries = 0;
    else if (timer === null) timer = setTimeout(hello, SOON);
  };
  const unasked = () => take(model.get("truth")); // a cell that blocks the kernel cannot hear a hello
  model.on("msg:custom", hear);
  model.on("change:truth", unasked);
  hello();
  return () => {
    clearTimeout(timer);
    model.off("msg:custom", hear);
    model.off("change:truth", unasked);
    shown.destroy();
  };
}

export default { render };
