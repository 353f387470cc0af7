import json

import pytest

from nb_agent.messages import Definition, Message, Text, ToolCall, ToolResult
from nb_agent.mock import scenarios
from nb_agent.mock.planner import plan
from nb_agent.mock.plans import Ask

PROMPT = "Read `config.yaml` and list the Markdown files, then write a summary to `report.md`"
PROMPT_ZH = "读取 `config.yaml` 并列出 Markdown 文件，然后把摘要写入 `report.md`"
CONFIG = "# settings\nname: demo\nserver:\n  port: 8080  # http\n  hosts:\n    - a.example\n"


def tool(name, *parameters):
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return Definition(name, f"{name}.", {"type": "object", "properties": properties, "required": list(parameters)})


def tools(prefix=""):
    return (
        tool(f"{prefix}read_file", "path"),
        tool(f"{prefix}search_files", "pattern"),
        tool(f"{prefix}write_file", "path", "content"),
    )


def played(prompt, given, results, **options):
    messages, rounds = [Message.of("system", "Be brief."), Message.of("user", prompt)], []
    for _ in range(8):
        answer = plan(Ask("mock", tuple(messages), given, **options))
        if not answer.calls:
            return rounds, answer.text
        calls = [ToolCall(f"c{len(messages)}{n}", call.name, json.dumps(call.arguments)) for n, call in enumerate(answer.calls)]
        messages.append(Message("assistant", tuple(calls)))
        messages += [
            Message("tool", (ToolResult(call.id, call.name, (Text(results[call.name.rpartition("__")[2]]),)),)) for call in calls
        ]
        rounds.append([(call.name, call.arguments) for call in answer.calls])
    raise AssertionError(f"no end: {rounds}")


RESULTS = {"read_file": CONFIG, "search_files": '["README.md", "docs/a.md"]', "write_file": '{"written": 99}'}


def test_the_file_task_takes_three_rounds():
    rounds, text = played(PROMPT, tools(), RESULTS)
    assert rounds[0] == [("read_file", {"path": "config.yaml"}), ("search_files", {"pattern": "*.md"})]
    assert [name for name, _ in rounds[1]] == ["write_file"]
    assert len(rounds) == 2
    assert text == "I read config.yaml and found 2 files that match *.md: README.md, docs/a.md. The summary is in report.md."


def test_one_file_is_not_called_files():
    _, text = played(PROMPT, tools(), {**RESULTS, "search_files": '["README.md"]'})
    assert text == "I read config.yaml and found 1 file that matches *.md: README.md. The summary is in report.md."


def test_the_report_is_made_of_the_real_results():
    rounds, _ = played(PROMPT, tools(), RESULTS)
    assert rounds[1][0][1] == {
        "path": "report.md",
        "content": "# Summary\n\n## Settings in config.yaml\n\n- name: demo\n- server.port: 8080\n- server.hosts: a.example\n\n"
        "## Files that match *.md (2)\n\n- README.md\n- docs/a.md\n",
    }


def test_the_file_task_in_chinese():
    rounds, text = played(PROMPT_ZH, tools(), RESULTS)
    assert [[name for name, _ in calls] for calls in rounds] == [["read_file", "search_files"], ["write_file"]]
    assert "README.md" in rounds[1][0][1]["content"]
    assert text == "已读取 config.yaml，找到 2 个匹配 *.md 的文件：README.md、docs/a.md。摘要已写入 report.md。"


def test_the_file_task_with_tools_of_an_mcp_server():
    rounds, text = played(PROMPT, tools("files__"), RESULTS)
    assert [name for calls in rounds for name, _ in calls] == ["files__read_file", "files__search_files", "files__write_file"]
    assert text.endswith("The summary is in report.md.")


@pytest.mark.parametrize(
    "found",
    [
        '["README.md", "docs/a.md"]',
        "README.md\ndocs/a.md",
        '{"files": ["README.md", "docs/a.md"]}',
        '[{"name": "README.md"}, {"path": "docs/a.md"}]',
    ],
)
def test_the_list_of_files_may_have_any_usual_form(found):
    rounds, _ = played(PROMPT, tools(), {**RESULTS, "search_files": found})
    assert rounds[1][0][1]["content"].endswith("## Files that match *.md (2)\n\n- README.md\n- docs/a.md\n")


def test_what_could_not_be_read_is_said_and_left_out_of_the_report():
    failed = '{"success": false, "error": "no such file", "code": "not_found"}'
    rounds, text = played(PROMPT, tools(), {**RESULTS, "read_file": failed})
    assert "Settings" not in rounds[1][0][1]["content"]
    assert text.endswith("The summary is in report.md. read_file for config.yaml failed: no such file.")


def test_nothing_is_written_where_nothing_was_read():
    failed = '{"success": false, "error": "no access"}'
    rounds, text = played(PROMPT, tools(), {"read_file": failed, "search_files": failed})
    assert len(rounds) == 1
    assert text.startswith("I read no file and found 0 files")
    assert "was not written" in text


def test_the_file_task_one_call_at_a_time():
    rounds, _ = played(PROMPT, tools(), RESULTS, parallel=False)
    assert [[name for name, _ in calls] for calls in rounds] == [["read_file"], ["search_files"], ["write_file"]]


def test_other_prompts_and_other_tools_get_no_script():
    assert scenarios.find("Read config.yaml", tools()) is None
    assert scenarios.find("Write 'x' to report.md", tools()) is None
    assert scenarios.find(PROMPT, tools()[:2]) is None
    assert scenarios.find(PROMPT, ()) is None


@pytest.mark.parametrize("prompt", ["Tell me a long story", "Answer slowly, please", "讲一个长故事"])
def test_a_long_text_has_several_paragraphs(prompt):
    rounds, text = played(prompt, tools(), {})
    assert rounds == []
    assert len(text.split("\n\n")) >= 4
    assert len(text) > 250
