"""The magics in a shell without a kernel, as in a terminal: options, tools, completion, configuration."""

import io
import json
import re

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from samples import WEATHER
from traitlets.config import Config

import nb_agent
from nb_agent import Agent, magic, options
from nb_agent.errors import SettingError
from nb_agent.run import Run

HI = "What is the weather in Berlin?"


@pytest.fixture
def shell():
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    nb_agent.load_ipython_extension(shell)
    try:
        yield shell
    finally:
        nb_agent.unload_ipython_extension(shell)
        InteractiveShell.clear_instance()


def cell(shell, code):
    """The result of a cell; an error in it is raised."""
    done = shell.run_cell(code, store_history=True)
    done.raise_error()
    return done.result


def test_the_result_of_a_cell_is_the_run_and_a_terminal_shows_it_as_lines(shell, capsys):
    cell(shell, WEATHER)
    run = cell(shell, f"%%agent\n{HI}\n")
    assert isinstance(run, Run)
    assert shell.user_ns["_"] is run
    shown = capsys.readouterr().out
    assert '→ get_weather({"city":"Berlin"})' in shown
    assert "[mock model mock]" in shown
    assert run.text in shown
    assert shown.count(run.text) == 1


def test_options_are_read_with_quotes_as_a_shell_reads_them(cases):
    line = cases["F05"]["given"]["lines"][0].replace("--max-steps", "--max-rounds")
    read = options.read(line)
    assert (read.system, read.max_rounds) == ('it\'s fine, say "ok"', 3)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--max-rounds 3 don't panic", r"%%agent: No closing quotation in .*; write a quote inside"),
        ("--max-rounds 3 do panic", r"%%agent: 'do panic' is no option; the prompt goes into the lines below"),
        ("--no-such-option 1", r"%%agent: no option named '--no-such-option'"),
        ("--max-rounds many", r"%%agent: argument --max-rounds: invalid int value: 'many'; see %agent help"),
        ("--max-rounds 0", r"%%agent: --max-rounds 0 must be above 0"),
        ("--time-limit -1", r"%%agent: --time-limit -1\.0 must be above 0"),
        ("--model", r"%%agent: argument -m/--model: expected one argument"),
        ("--out 3x", r"%%agent: --out '3x' is no variable name"),
        ("--agent nobody", r"%%agent: --agent 'nobody' is no Agent"),
        ("--tools nothing", r"%%agent: no tool named 'nothing' in this notebook; there are: none"),
        ("--model gpt-4o", r"model 'gpt-4o' names no server"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(line, says, shell):
    with pytest.raises(SettingError, match=says):
        cell(shell, f"%%agent {line}\nhi")


def test_a_system_prompt_holds_for_the_conversation_until_a_new_one_begins(shell):
    assert cell(shell, "%%agent --system 'Be brief.'\nhello").messages[0].text == "Be brief."
    assert cell(shell, "%%agent\nhello").messages[0].text == "Be brief."
    assert cell(shell, "%%agent --new\nhello").messages[0].role == "user"


def test_a_cell_that_cannot_run_changes_nothing(shell):
    cell(shell, "%%agent --system one\nhello")
    with pytest.raises(SettingError):
        cell(shell, "%%agent --new --system two --tools nothing\nhello")
    assert [m.role for m in cell(shell, "%%agent\nhello").messages] == ["system", "user", "assistant", "user", "assistant"]


def test_an_agent_of_ones_own_is_used_with_its_own_conversation(shell):
    shell.user_ns["mine"] = Agent(system="mine")
    assert cell(shell, "%%agent --agent mine\nhello").messages[0].text == "mine"
    assert len(shell.user_ns["mine"].history) == 3
    with pytest.raises(SettingError, match=r"--model does not go with --agent; set mine.model instead"):
        cell(shell, "%%agent --agent mine --model mock\nhello")


def test_only_the_named_tools_are_offered_and_methods_can_be_named(shell):
    cell(shell, WEATHER)
    cell(shell, "class Shop:\n    def price(self, item: str) -> int:\n        'Price of an item.'\n        return 3\nshop = Shop()")
    run = cell(shell, "%%agent --tools shop.price\nWhat is the price of `tea`?")
    assert [tool["function"]["name"] for tool in run.requests[0].body["tools"]] == ["price"]


def test_old_outputs_hold_no_tools_and_an_alias_gives_way_to_the_name(shell):
    first = cell(shell, WEATHER + "\nget_weather")
    cell(shell, "alias = get_weather")
    cell(shell, WEATHER)
    (found,) = magic.found_tools(shell.user_ns)
    assert found is shell.user_ns["get_weather"]
    assert found is not first


def test_streaming_can_be_switched_on_and_off(shell):
    assert cell(shell, "%%agent --no-stream\nhello").requests[0].stream is False
    assert cell(shell, "%%agent --stream\nhello").requests[0].stream is True


def test_configuration_holds_for_all_cells_and_an_option_goes_before_it(shell, capsys):
    shell.run_line_magic("config", "NbAgent.max_rounds=1")
    shell.run_line_magic("config", "NbAgent.stream=False")
    cell(shell, WEATHER)
    run = cell(shell, f"%%agent\n{HI}")
    assert (run.reason, run.requests[0].stream) == ("max_rounds", False)
    assert cell(shell, f"%%agent --max-rounds 5 --new\n{HI}").reason == "stop"


def test_a_value_that_config_refused_does_not_keep_the_extension_from_loading_again(shell):
    shell.config.NbAgent.max_rounds = -1
    nb_agent.unload_ipython_extension(shell)
    nb_agent.load_ipython_extension(shell)
    assert cell(shell, "%%agent\nhello").reason == "stop"


def test_loading_and_unloading_leave_nothing_behind():
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    try:
        before = len(shell.configurables), len(shell.Completer.custom_matchers), dict(shell.magics_manager.registry)
        nb_agent.load_ipython_extension(shell)
        nb_agent.load_ipython_extension(shell)
        assert len(shell.configurables) == before[0] + 2
        nb_agent.unload_ipython_extension(shell)
        nb_agent.unload_ipython_extension(shell)
        assert (len(shell.configurables), len(shell.Completer.custom_matchers), dict(shell.magics_manager.registry)) == before
        assert "agent" not in shell.magics_manager.magics["cell"]
    finally:
        InteractiveShell.clear_instance()


def completed(shell, text):
    with provisionalcompleter():
        return [completion.text for completion in shell.Completer.completions(text, len(text))]


def test_tab_completes_options_models_and_words(shell):
    assert "--model" in completed(shell, "%%agent --m")
    assert set(completed(shell, "%%agent --max")) == {"--max-rounds"}
    assert "openai:" in completed(shell, "%%agent --model o")
    assert "mock-slow" in completed(shell, "%%agent -m mock")
    assert "status" in completed(shell, "%agent sta")
    assert "add" in completed(shell, "%agent mcp a")


def test_tab_in_the_text_of_a_cell_offers_no_options(shell):
    assert "--model" not in completed(shell, "%%agent\nsay --m")


def test_the_line_magic_tells_what_there_is(shell, capsys):
    cell(shell, WEATHER)
    cell(shell, "%%agent\nhello")
    capsys.readouterr()
    for line, words in {
        "status": ["local mock model", "get_weather", "2 messages", "last run"],
        "": ["local mock model"],
        "tools": ["get_weather", "Current weather of a city."],
        "help": ["--max-rounds", "%agent reset", "%config NbAgent"],
        "mcp": ["no MCP servers"],
        "reset": ["empty"],
    }.items():
        shell.run_line_magic("agent", line)
        shown = capsys.readouterr().out
        assert all(word in shown for word in words), (line, shown)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("dance", r"%agent knows no 'dance'; it knows status, tools"),
        ("mcp add x", r"an MCP server needs exactly one of command"),
    ],
)
def test_a_word_that_the_line_magic_does_not_know_is_named(line, says, shell):
    with pytest.raises(SettingError, match=says):
        shell.run_line_magic("agent", line)


def test_an_interrupt_is_one_line_and_the_run_is_kept(shell, monkeypatch):
    def send(request):
        yield b'data: {"choices": [{"index": 0, "delta": {"content": "he"}}]}\n\n'
        raise KeyboardInterrupt

    monkeypatch.setattr("nb_agent.mock.send", send)
    with pytest.raises(magic.Interrupted) as caught:
        cell(shell, "%%agent -o run\nhello")
    assert len(caught.value._render_traceback_()) == 1
    assert shell.user_ns["run"].reason == "cancelled"


def test_an_expected_error_is_shown_as_one_line(shell, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr("sys.stdout", shown)
    shell.run_cell("%%agent --model gpt-4o\nhello")
    assert shown.getvalue().strip().startswith("SettingError: model 'gpt-4o' names no server")
    assert shown.getvalue().strip().count("\n") == 0


# ------------------------------------------------------------------------------------------- runs that wait for a later cell


def test_a_detached_run_is_gone_on_with_from_later_cells(shell, capsys):
    cell(shell, WEATHER)
    run = cell(shell, f"%%agent --detach\n{HI}\n")
    assert run.reason is None
    assert "waits at the request of round 1" in capsys.readouterr().out
    cell(shell, "%agent to_call")
    assert 'get_weather({"city":"Berlin"})' in capsys.readouterr().out
    cell(shell, '%agent edit {"city": "Oslo"}')
    cell(shell, "%agent run_on")
    assert run.reason == "stop"
    assert "Oslo" in run.tool_results[0].text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%agent edit", '"messages"'),
        ("%agent inject", "rate_limit"),
        ("%agent inject bad_key", "API key"),
        ("%agent reject no", "'reject' is no answer here"),
        ("%agent branch one", "takes the number of a round"),
        ("%agent approve never", "stands alone or with 'always'"),
        ("%agent stop", "ended"),
        ("%agent next", "ended"),
        ("%agent branch 1", "'back' is no answer here"),
    ],
)
def test_each_word_says_what_it_did_or_why_not(shell, capsys, line, says):
    cell(shell, f"%%agent --detach\n{HI}\n")
    capsys.readouterr()
    done = shell.run_cell(line)
    told = capsys.readouterr().out + str(done.error_in_exec or "")
    assert re.search(says, told)


def test_a_branch_of_a_detached_run_begins_again_at_its_round(shell, capsys):
    cell(shell, WEATHER)
    cell(shell, f"%%agent --detach\n{HI}\n")
    for _ in range(3):
        cell(shell, "%agent next")
    capsys.readouterr()
    cell(shell, "%agent branch 1")
    assert "the request of round 1" in capsys.readouterr().out
    cell(shell, "%agent run_on")
    agent = shell.magics_manager.registry["AgentMagics"].agent
    assert agent.last_run.reason == "stop"
    assert len(agent.last_run.branches) == 1


def test_words_for_a_run_that_waits_say_that_there_is_none(shell):
    with pytest.raises(SettingError, match="no run waits here"):
        cell(shell, "%agent next")


def test_a_cell_is_stepped_or_detached_and_not_both(shell):
    with pytest.raises(SettingError, match="not allowed with"):
        options.read("--step --detach")


# ------------------------------------------------------------------------------------------------------- MCP servers

SERVER = "python -m nb_agent.mcp.lesson_server --dir ."


def test_servers_are_added_listed_diagnosed_and_removed_by_words(shell, capsys):
    cell(shell, f"%agent mcp add people --trust --era legacy -- {SERVER}")
    assert "people__find_users" in capsys.readouterr().out
    cell(shell, "%agent mcp list")
    assert "people: " in capsys.readouterr().out
    cell(shell, "%agent mcp doctor people")
    assert "the server starts by itself" in capsys.readouterr().out.lower()
    cell(shell, "%agent mcp remove people")
    cell(shell, "%agent mcp")
    assert "no MCP servers" in capsys.readouterr().out


def test_a_configuration_file_adds_its_servers_and_says_which_could_not_start(shell, capsys, tmp_path):
    command, *args = SERVER.split()
    servers = {"people": {"command": command, "args": args}, "nothing": {"command": "no-such-program-anywhere"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    cell(shell, f"%agent mcp config {tmp_path / 'mcp.json'}")
    told = capsys.readouterr().out
    assert "no-such-program-anywhere" in told
    assert "people: " in told


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("mcp dance", "knows no 'dance'; it knows add, config, list"),
        ("mcp doctor nobody", "takes the name of a server; there are: none"),
        ("mcp add x --era old -- y", "invalid choice: 'old'"),
        ("mcp add x --url http://127.0.0.1:9 --header oops", "write NAME=VALUE, not 'oops'"),
        ("mcp config", "takes the path of one file"),
        ("mcp config /no/such/file.json", "no/such/file"),
    ],
)
def test_words_about_servers_that_mean_nothing_say_what_would(shell, line, says):
    with pytest.raises(SettingError, match=says):
        cell(shell, f"%agent {line}")


def test_an_agent_serves_its_tools_until_it_is_closed():
    @nb_agent.tool(tier="read")
    def double(number: int) -> int:
        """Twice a number.

        Args:
            number: which one, e.g. 3
        """
        return number * 2

    served, client = Agent(tools=[double]), Agent()
    try:
        client.mcp("other", url=served.serve(), trusted=True)
        assert client.run("Double 21, please.", tools="other", view=False).tool_results[0].text == "42"
    finally:
        client.close()
        served.close()
