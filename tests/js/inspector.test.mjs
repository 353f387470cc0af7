// The pure part of the inspector, under Node, with no page. The page itself is tested in Chromium (tests/test_views_inspector.py).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(new URL("../../nb_agent/views/static/inspector.js", import.meta.url), "utf8");
const m = await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);

const round = (number, change, rest = {}) => ({ number, request: { path: "/v1", bytes: 1, change, notices: [], tokens: null, ...rest }, live: null, reply: null, calls: [] });
const call = (rest = {}) => ({ id: "c", name: "f", arguments: "{}", steps: [], seconds: null, result: null, traceback: null, ...rest });

test("the file stands alone: no import, no HTML from text, no address that is fetched", () => {
  assert.doesNotMatch(source, /^\s*import\b|\bimport\(|require\(/m);
  assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser/);
  assert.doesNotMatch(source, /https?:\/\/|fetch\(|XMLHttpRequest|localStorage/);
});

test("changes set, append and add, as in Python", () => {
  const state = { rounds: [{ text: "a" }] };
  m.changeState(state, [["add", ["rounds", 0, "text"], "b"], ["set", ["rounds", 1], { n: 1 }], ["set", ["end"], null]]);
  assert.deepEqual(state, { rounds: [{ text: "ab" }, { n: 1 }], end: null });
});

test("two views that get the same message do not share its values", () => {
  const changes = [["set", ["live"], { text: "" }], ["add", ["live", "text"], "a"]];
  const [one, two] = [m.changeState({}, changes), m.changeState({}, changes)];
  assert.equal(one.live.text, "a");
  assert.equal(two.live.text, "a");
});

test("rebuild gives the body back: grown, cut, replaced, gone and reordered", () => {
  assert.deepEqual(m.rebuild({ m: [1, 2], t: 0 }, { same: { m: 2 }, new: { m: [3] } }), { m: [1, 2, 3], t: 0 });
  assert.deepEqual(m.rebuild({ m: [1, 2] }, { same: { m: 1 }, new: { m: [] } }), { m: [1] });
  assert.deepEqual(m.rebuild({ m: [1], x: 1 }, { new: { m: [2] }, gone: ["x"] }), { m: [2] });
  assert.deepEqual(Object.keys(m.rebuild({ a: 1, b: 2 }, { order: ["b", "a"] })), ["b", "a"]);
  assert.deepEqual(m.rebuild({}, { new: { constructor: 1 } }), { constructor: 1 });
});

test("bodies puts all requests together", () => {
  const rounds = [round(1, { new: { messages: [1] } }), round(2, { same: { messages: 1 }, new: { messages: [2] } }), round(3, {})];
  assert.deepEqual(m.bodies(rounds).map((body) => body.messages), [[1], [1, 2], [1, 2]]);
});

test("shares, numbers and times read well", () => {
  assert.equal(m.share(1, 0), 0);
  assert.deepEqual([m.percent(1, 1000), m.percent(0, 10), m.percent(1, 2)], ["<1 %", "0 %", "50 %"]);
  assert.deepEqual([m.count(1234), m.count(null), m.count(0)], ["1,234", "–", "0"]);
  assert.deepEqual([0.0004, 0.003, 0.41, 59.99, 119.7, null].map(m.seconds), ["<1 ms", "3 ms", "0.41 s", "59.99 s", "2 min 0 s", ""]);
  assert.deepEqual([m.plural(1, "call"), m.plural(2, "call")], ["1 call", "2 calls"]);
});

test("only the topmost new node is marked", () => {
  const change = { same: { messages: 2 }, new: { messages: [{}], model: "x" } };
  assert.equal(m.isNew(change, ["messages", 1]), false);
  assert.equal(m.isNew(change, ["messages", 2]), true);
  assert.equal(m.isNew(change, ["messages", 2, "role"]), false);
  assert.equal(m.isNew(change, ["model"]), true);
  assert.equal(m.isNew(change, []), false);
});

test("the shared prefix ends at the first new message, with the tokens that a cache could reuse", () => {
  const tokens = { messages: [10, 20, 30], tools: { f: 5 }, parts: { tools: 5 }, total: 65 };
  const rounds = [round(1, { new: { messages: [1, 2] } }), round(2, { same: { messages: 2 }, new: { messages: [3] } }, { tokens })];
  const found = m.prefix(rounds, 1, { messages: [1, 2, 3] });
  assert.deepEqual([found.key, found.at, found.tokens, found.all], ["messages", 2, 35, false]);
  assert.match(found.text, /about 35 tokens, tool definitions included$/);
  assert.equal(m.prefix(rounds, 0, { messages: [1, 2] }), null);
});

test("a change ahead of the messages leaves a cache nothing", () => {
  const tokens = { messages: [10, 20], tools: {}, parts: {}, total: 30 };
  const rounds = [round(1, { new: {} }), round(2, { same: { messages: 1 }, new: { messages: [2], tools: [] } }, { tokens })];
  const found = m.prefix(rounds, 1, { messages: [1, 2] });
  assert.equal(found.tokens, null);
  assert.match(found.text, /could reuse nothing: tools changed/);
});

test("tokens find their nodes, also where the system text stands beside the messages", () => {
  const tokens = { messages: [7, 10], tools: { f: 5 }, parts: { tools: 5 }, total: 30 };
  const found = m.tokensAt({ system: "s", messages: [{}], tools: [{ name: "f" }] }, tokens);
  assert.deepEqual([...found], [["[]", 30], ['["system"]', 7], ['["messages",0]', 10], ['["messages"]', 10], ['["tools",0]', 5], ['["tools"]', 5]]);
  assert.equal(m.tokensAt({ messages: [{}] }, null).size, 0);
});

test("every node of a body finds the tokens of its text, in later rounds too", () => {
  const rounds = [
    { request: { change: { new: { model: "m", messages: [{ role: "user", content: "a b" }] } }, weights: { model: 1, messages: [4, [4, 1, 2]] } } },
    { request: { change: { same: { messages: 1 }, new: { messages: [{ role: "tool", parts: ["x"] }] } }, weights: { messages: [5, [5, 1, [1, 1]]] } } },
    { request: { change: { gone: ["model"] }, weights: {} } },
  ];
  const [whole, weights] = [m.bodies(rounds), m.weighings(rounds)];
  const at = (index, ...path) => m.weightAt(whole[index], weights[index], path);
  assert.equal(at(0, "messages", 0, "content"), 2);
  assert.equal(at(1, "messages"), 9);
  assert.equal(at(1, "messages", 0, "content"), 2);
  assert.equal(at(1, "messages", 1, "parts", 0), 1);
  assert.equal(at(2, "model"), undefined);
  assert.equal(at(0), undefined);
  assert.equal(at(0, "messages", 0, "role", 7), undefined);
});

test("what is new is said in words", () => {
  const rounds = [round(1, { new: { messages: [1, 2] } }), round(2, { same: { messages: 2 }, new: { messages: [3], model: "b" }, gone: ["x"] }), round(3, {})];
  const { text, value } = m.novelty(rounds, 1);
  assert.match(text, /The first 2 entries of “messages” are those of request 1; 1 new\. Set anew: model\. No longer there: x\./);
  assert.deepEqual(value, { "messages[2]": 3, model: "b" });
  assert.match(m.novelty(rounds, 0).text, /all of it is new/);
  assert.match(m.novelty(rounds, 2).text, /once more/);
});

test("counted and reported are compared and never mixed up; not reported is not zero", () => {
  const reply = (usage) => ({ usage });
  const usage = { input: 4, cache_read: 2, cache_write: null, output: null, reasoning: null };
  const tokens = { total: 5, exact: false, parts: {}, tools: {}, messages: [] };
  assert.equal(m.compared({ ...round(1, {}, { tokens }), reply: reply(usage) }),
    "5 tokens counted (an estimate: this model's tokenizer is not public) · 6 reported · difference +1");
  assert.equal(m.compared({ ...round(1, {}, { tokens: { ...tokens, exact: true } }), reply: reply(null) }), "5 tokens counted · none reported");
  assert.equal(m.compared({ ...round(1, {}), reply: reply(usage) }), "6 tokens reported");
  assert.equal(m.written(usage), null);
});

test("totals add what is known", () => {
  const done = (input) => ({ seconds: 1, usage: input === null ? null : { input, cache_read: null, cache_write: null, output: 1, reasoning: null } });
  const state = { rounds: [{ ...round(1, {}), reply: done(3), calls: [call({ seconds: 0.5 }), call({ seconds: 0.2 })] }, { ...round(2, {}), reply: done(null) }], ending: null };
  assert.deepEqual(m.totals(state), { read: 3, written: 1, seconds: 2.5 });
  assert.deepEqual(m.totals({ rounds: [], ending: null }), { read: null, written: null, seconds: null });
});

test("the standing of a run is named at each stage", () => {
  const text = (...rounds) => m.standing({ rounds, ending: null }).text;
  assert.equal(text(), "starting");
  assert.equal(text(round(1, {})), "running: waiting for reply 1");
  assert.equal(text({ ...round(1, {}), live: {} }), "running: reply 1 is coming");
  assert.equal(text({ ...round(1, {}), reply: {}, calls: [call(), call({ result: {} })] }), "running f");
  const ended = m.standing({ rounds: [], ending: { reason: "max_rounds", meaning: "the limit", error: null } });
  assert.deepEqual([ended.kind, ended.text, ended.next], ["halt", "ended: max rounds", m.NEXT.max_rounds]);
});

test("the ladder always has seven steps, and shows which one failed or is under way", () => {
  const states = (one, running) => m.ladder(one, running).map((step) => step.state).join(" ");
  const steps = [{ name: "known", state: "done", note: "" }, { name: "parsed", state: "failed", note: "why" }];
  assert.equal(states(call({ steps: steps.slice(0, 1) }), true), "done now todo todo todo todo todo");
  assert.equal(states(call({ steps, result: { code: "x" } }), true), "done failed skipped skipped skipped skipped skipped");
  assert.equal(states(call(), false), "skipped skipped skipped skipped skipped skipped skipped");
});

test("a call becomes one line with long values named by their length", () => {
  assert.equal(m.signature("w", JSON.stringify({ path: "a.md", content: "x".repeat(412) })), 'w(path="a.md", content=… 412 characters)');
  assert.equal(m.signature("w", '{"path": "a'), 'w({"path": "a)');
  assert.equal(m.signature("w", "[1]"), "w([1])");
  assert.equal(m.parsed('{"id": 12345678901234567890}'), undefined, "a number that JavaScript would round is shown as text");
});

test("folded values say what they hold", () => {
  assert.equal(m.summary({ role: "assistant", content: null, tool_calls: [{ function: { name: "a" } }, { function: { name: "b" } }] }), "assistant, calls a, b");
  assert.equal(m.summary({ role: "tool", tool_call_id: "c1", content: "ok" }), 'tool, answers c1, "ok"');
  assert.equal(m.summary({ role: "user", content: [{ type: "text", text: "hi" }] }), 'user, "hi"');
  assert.equal(m.summary([{ name: "a" }, { function: { name: "b" } }]), "a · b");
  assert.equal(m.summary([1, 2]), "2 entries");
  assert.equal(m.summary({ x: 1, y: 2 }), "x, y");
  assert.equal(m.summary({ role: "user", content: "🙂".repeat(72) }).includes("\ud83d…"), false, "no half of an emoji");
});

test("search finds keys and values, folded or not, and gives up at its limit", () => {
  assert.deepEqual(m.search({ a: [{ Town: "x" }], b: "TOWN" }, "town"), [["a", 0, "Town"], ["b"]]);
  assert.deepEqual(m.search({ a: 1 }, ""), []);
  assert.equal(m.search(Array(50).fill("x"), "x", 10).length, 10);
});

test("the command is one that a shell reads as it is meant", () => {
  const body = { messages: [{ content: "it's $HOME `id` \"q\" \\ !\n报告 🙂" }] };
  const text = m.curl("anthropic_messages", "/v1/it's", body);
  const shell = 'BASE_URL=http://h ANTHROPIC_API_KEY=k; curl() { printf "%s\\0" "$@"; }; eval "$1"';
  const words = execFileSync("bash", ["-c", shell, "bash", text], { encoding: "utf8" }).split("\0");
  assert.equal(words[1], "http://h/v1/it's");
  assert.ok(words.includes("x-api-key: k"));
  assert.deepEqual(JSON.parse(words[words.indexOf("--data-raw") + 1]), body);
});

test("messages of the widget are put in order, once each", () => {
  const order = m.inOrder();
  assert.equal(order.lacks, true);
  assert.deepEqual(order.changes(2, ["b"]), [], "nothing before the first state");
  assert.deepEqual(order.state(1), ["b"]);
  assert.equal(order.lacks, false);
  assert.deepEqual(order.changes(2, ["b"]), [], "twice");
  assert.deepEqual(order.changes(4, ["d"]), [], "a gap");
  assert.equal(order.lacks, true);
  assert.deepEqual(order.changes(3, ["c"]), ["c", "d"]);
  assert.equal(order.state(4), null, "somebody else's hello");
  assert.deepEqual(order.changes(7, ["g"]), []);
  assert.deepEqual(order.state(6), ["g"]);
  assert.equal(order.lacks, false);
});

test("a dark background is told from a light one", () => {
  assert.deepEqual(["rgb(17, 20, 24)", "rgb(255, 255, 255)", "rgba(0, 0, 0, 0)", "transparent"].map(m.isDark), [true, false, null, null]);
});

test("what stands in the rail follows the state", () => {
  const state = { rounds: [{ ...round(1, {}), reply: {}, calls: [call(), call()] }, { ...round(2, {}), live: {} }] };
  assert.deepEqual(m.items(state), ["0/request", "0/reply", "0/call/0", "0/call/1", "1/request", "1/reply"]);
});

test("each wait before a request went out again is one line, and the newest is where the run stands", () => {
  const waiting = { ...round(1, {}), retries: [{ reason: "overload", seconds: 0.5, attempt: 1 }, { reason: "rate limit", seconds: 2, attempt: 2 }] };
  assert.deepEqual(m.waits(waiting), ["waited 0.50 s: overload", "waited 2.00 s: rate limit"]);
  assert.deepEqual(m.waits(round(1, {})), []);
  assert.deepEqual(m.waits({ retries: [{ reason: "too long, a shorter one follows", seconds: 0, attempt: 1 }] }), ["too long, a shorter one follows"]);
  assert.equal(m.standing({ ending: null, rounds: [waiting] }).text, "running: request 1, waited 2.00 s: rate limit");
});

test("a request says what was left out of the conversation", () => {
  const cut = { strategy: "stub_results", before: 3900, after: 2100, what: ["14 results of read_file became stubs"] };
  assert.deepEqual(m.cuts({ ...round(1, {}), compacted: [cut, { ...cut, what: [] }] }), [
    "compacted: 14 results of read_file became stubs, 3,900 → 2,100 tokens", "compacted: stub_results, 3,900 → 2,100 tokens"]);
  assert.deepEqual(m.cuts(round(1, {})), []);
});

const STREAM = [
  [10, [["thinking", 0, "hm"], ["call", 0, "read"]]], [20, [["arguments", 0, '{"a": "}']]], [35, [["text", 0, "Hi"], ["call", 1, "list"]]],
  [50, [["arguments", 1, "["]], "raw"], [60, [["arguments", 0, '\\""}'], ["arguments", 1, "]"]]],
];

test("a stream played again holds at each moment what an accumulator holds", () => {
  assert.deepEqual(m.replayed(STREAM, 0), { text: "", thinking: "", calls: [] });
  assert.deepEqual(m.replayed(STREAM, 2), { text: "", thinking: "hm", calls: [{ name: "read", arguments: '{"a": "}', whole: false }] });
  assert.deepEqual(m.replayed(STREAM, 4).calls.map((call) => call.whole), [false, false]);
  const { text, calls } = m.replayed(STREAM, 99);
  assert.equal(text, "Hi");
  assert.deepEqual(calls, [{ name: "read", arguments: '{"a": "}\\""}', whole: true }, { name: "list", arguments: "[]", whole: true }]);
});

test("the moment at which arguments become whole is found once, and brackets in a text do not count", () => {
  assert.deepEqual(m.becomesWhole(STREAM), [{ index: 0, name: "read", at: 5 }, { index: 1, name: "list", at: 5 }]);
  assert.deepEqual(m.becomesWhole([[0, [["call", 0, "f"]]], [1, [["arguments", 0, "{"]]]]), []);
  assert.deepEqual(m.becomesWhole([[0, [["arguments", 0, "{]"]]]]), []);
});

test("65,000 fragments are replayed in time, also where each could be the last", () => {
  const stream = Array.from({ length: 65_000 }, (_, place) => [place, [["arguments", 0, place % 2 ? "}" : "{"]]]);
  const begun = performance.now();
  m.becomesWhole([[0, [["arguments", 0, "["]]], ...stream]);
  assert.equal(m.replayed(stream, 65_000).calls[0].arguments.length, 65_000);
  assert.ok(performance.now() - begun < 1000);
});

test("a place in time is a place in the stream, also without a clock", () => {
  assert.deepEqual(m.clock(STREAM), [10, 20, 35, 50, 60]);
  assert.deepEqual(m.clock([[null, []], [null, []]]), [0, 20]);
  assert.deepEqual(m.paced([277, 277, 277, 300]), [277, 287, 297, 320]);
  assert.deepEqual([0, 10, 34, 60].map((time) => m.momentsAt([10, 20, 35, 50, 60], time)), [0, 1, 2, 5]);
});

test("edited JSON is held against the simple parts of its schema", () => {
  const schema = { type: "object", required: ["a"], properties: { a: { type: ["integer", "null"] }, b: { type: "array", items: { enum: ["x", "y"] } } } };
  assert.equal(m.misfit('{"a": 1, "b": ["x"], "c": 3}', schema), "");
  assert.equal(m.misfit('{"a": null}', schema), "");
  assert.equal(m.misfit('{"a": 1.5}', schema), "“a”: a whole number or null is needed, not 1.5");
  assert.equal(m.misfit('{"a": 1, "b": ["x", "z"]}', schema), "“b.1”: one of \"x\", \"y\" is needed");
  assert.equal(m.misfit("{}", schema), "“a” is missing");
  assert.equal(m.misfit('{"a": 1}', { ...schema, additionalProperties: false }), "");
  assert.equal(m.misfit("3", { type: "number" }), "");
  assert.match(m.misfit('{"a":\n', schema), /^this is no JSON: [^\n]+$/);
  assert.equal(m.misfit("anything: [", null).split("\n").length, 1);
});

test("a request is Python that Python reads", () => {
  const body = { a: [1, -2.5, true, null, "it's \"so\"\n\\ \u2028 报告 🙂"], "b\n": {}, c: [] };
  const code = m.httpx("anthropic_messages", "/v1/it's", body);
  assert.match(code, /f"\{os\.environ\['ANTHROPIC_API_KEY'\]\}"/);
  const said = execFileSync("python3", ["-c", "import ast, json, sys\ntree = ast.parse(sys.stdin.read())\n"
    + "print(json.dumps([ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == 'body'][0]))"], { input: code });
  assert.deepEqual(JSON.parse(said), body);
});

test("each part of the token bar is found in the body of each wire format", () => {
  const chat = { messages: [{ role: "system", content: "s" }, { role: "user", content: "1" }, { role: "assistant", content: "t", tool_calls: [{}] },
    { role: "tool", content: "r" }, { role: "user", content: "2" }], tools: [{}] };
  const at = (body, ...parts) => parts.map((part) => m.placesOf(body, part).map((path) => path.join("/")));
  assert.deepEqual(at(chat, "system", "history", "assistant", "tool_calls", "tool_results", "user", "tools", "overhead"),
    [["messages/0"], ["messages/1"], ["messages/2"], ["messages/2"], ["messages/3"], ["messages/4"], ["tools"], []]);
  const claude = { system: "s", messages: [{ role: "user", content: [{ type: "text", text: "q" }, { type: "image" }] },
    { role: "assistant", content: [{ type: "tool_use", name: "f" }] }, { role: "user", content: [{ type: "tool_result" }] }] };
  assert.deepEqual(at(claude, "system", "user", "images", "tool_calls", "tool_results"), [["system"], ["messages/0"], ["messages/0"], ["messages/1"], ["messages/2"]]);
  const responses = { instructions: "s", input: [{ role: "user", content: "q" }, { type: "function_call" }, { type: "function_call_output", output: "o" }] };
  assert.deepEqual(at(responses, "system", "user", "tool_calls", "tool_results"), [["instructions"], ["input/0"], ["input/1"], ["input/2"]]);
  const gemini = { contents: [{ role: "user", parts: [{ text: "q" }] }, { role: "model", parts: [{ functionCall: {} }] }, { role: "user", parts: [{ functionResponse: {} }] }] };
  assert.deepEqual(at(gemini, "user", "tool_calls", "tool_results"), [["contents/0"], ["contents/1"], ["contents/2"]]);
});

test("two lines of a run part where something was changed, and not where only times differ", () => {
  const line = (result, rest = {}) => ({ rounds: [
    { ...round(1, { new: { messages: ["a"] } }), reply: { text: "t", finish: "tool_calls", seconds: 1, ...rest } },
    { ...round(2, { same: { messages: 1 }, new: { messages: ["b"] } }), calls: [call({ result: { text: result } })] },
  ] });
  assert.equal(m.parting(line("x"), line("x", { seconds: 2 })), null);
  assert.deepEqual(m.parting(line("x"), line("y")), { index: 1, found: [{ path: ["calls", 0, "result"], left: "x", right: "y" }] });
  const shorter = { rounds: line("x").rounds.slice(0, 1) };
  assert.equal(m.parting(line("x"), shorter).index, 1);
  assert.deepEqual(m.differences({ a: [1, 2] }, { a: [1], b: 0 }), [{ path: ["a", 1], left: 2, right: undefined }, { path: ["b"], left: undefined, right: 0 }]);
});

test("a question says what is asked and where it stands", () => {
  const state = { rounds: [{ ...round(1, {}), calls: [call({ name: "write" })] }], question: {}, ending: null };
  const asked = { at: "call", round: 0, call: 0, asks: "it writes" };
  assert.equal(m.asking(asked, state), "Let it run write?");
  assert.equal(m.asking({ ...asked, asks: "" }, state), "write is about to run.");
  assert.equal(m.itemOf(asked, state), "0/call/0");
  assert.equal(m.itemOf({ ...asked, call: null, at: "request" }, state), "0/request");
  assert.deepEqual(m.standing(state), { kind: "asks", text: "waiting for you" });
});
