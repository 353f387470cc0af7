import json
import time

import pytest

from nb_agent.messages import Definition, Message, Text, ToolCall, ToolResult
from nb_agent.mock.planner import plan
from nb_agent.mock.plans import Ask
from nb_agent.mock.reading import findings, kind_of, shape
from nb_agent.mock.words import concepts, is_chinese

NUMBER, WHOLE, TEXT = {"type": "number"}, {"type": "integer"}, {"type": "string"}


def tool(name, description, required=None, /, **parameters):
    properties = {
        key: {"type": "string", "description": part} if isinstance(part, str) else part for key, part in parameters.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties) if required is None else required}
    return Definition(name, description, schema)


UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}
WEATHER = tool("get_weather", "Get the current weather for a city.", ["city"], city="Name of the city, e.g. Paris", unit=UNIT)
STOCK = tool("get_stock_price", "Get the current stock price.", symbol="Ticker symbol, e.g. AAPL")
INVENTORY = tool(
    "check_inventory",
    "Check how many units of a product are in stock.",
    warehouse="Code, e.g. east-01",
    sku="Code such as SKU-A100",
)
ORDER = tool("search_order", "Look up an order by its id.", order_id="Order id, e.g. ORD-1001")
CUSTOMER = tool("get_customer", "Get a customer's name and email.", customer_id="Customer id, e.g. C-204")
TIME = tool("get_time", "Get the current time in a city.", city=TEXT)
ADD, MULTIPLY = tool("add", "Add two numbers.", a=WHOLE, b=WHOLE), tool("multiply", "Multiply two numbers.", a=NUMBER, b=NUMBER)
CALCULATE = tool("calculate", "Evaluate an arithmetic expression.", expression=TEXT)
CONVERT = tool("convert_currency", "Convert an amount of money.", amount=NUMBER, from_currency=TEXT, to_currency=TEXT)
EMAIL = tool("send_email", "Send an email.", to="Recipient", subject="Subject line", body="Body text")
TRANSLATE = tool("translate", "Translate text into a language.", text=TEXT, target_language=TEXT)
FIND_USERS = tool("users_db__find_users", "Find users.", [], city=TEXT, name=TEXT, limit={"type": "integer", "default": 10})
QUERY = tool("users_db__query", "Run a read-only SQL query.", sql="One SELECT statement over the table users")
LIST = tool("files__list_directory", "List the entries of a directory.", path="A directory")
READ = tool("read_file", "Read a text file.", path="Path of the file")
WRITE = tool("write_file", "Write text to a file.", path="Path of the file", content="Text to write")
FLIGHTS = tool(
    "search_flights", "Search flights.", ["origin", "destination"], origin=TEXT, destination=TEXT, date=TEXT, passengers=WHOLE
)
TASK = tool(
    "add_task", "Add a task.", ["title"], title="What to do", priority={"type": "string", "enum": ["low", "medium", "high"]}
)
ZH_WEATHER = tool("lookup", "查询指定城市的天气", city="城市名称，例如：北京")
FIBONACCI = tool("fib", "计算斐波那契数列的第 n 项", n=WHOLE)
EMPLOYEE = tool("lookup_employee", "Look up an employee.", employee_id="Employee id, e.g. E-17")
DEPARTMENT = tool("get_department", "Get a department's name.", dept_id=TEXT)
FIND_USER, ORDERS = (
    tool("find_user", "Find a user by name.", name=TEXT),
    tool("list_orders", "List the orders of a user.", user_id=WHOLE),
)
SUM = tool("sum_numbers", "Sum a list of numbers.", numbers={"type": "array", "items": NUMBER})
PERSON = {"type": "object", "properties": {"name": TEXT, "email": TEXT, "age": WHOLE}, "required": ["name", "email"]}
CREATE = tool("create_user", "Create a user.", user=PERSON)

ANSWERS = {
    "get_weather": lambda given: {"city": given["city"], "temperature": 18},
    "get_stock_price": lambda given: 187.5,
    "search_order": lambda given: {"order_id": given["order_id"], "customer_id": "C-204"},
    "get_customer": lambda given: {"id": given["customer_id"], "name": "Ann Lee", "city": "Oslo"},
    "lookup_employee": lambda given: {"name": "Kim", "department_id": "D-3"},
    "find_user": lambda given: {"id": 7, "name": given["name"]},
    "read_file": lambda given: f"text of {given['path']}",
}


def result(call_id, name, value):
    text = value if isinstance(value, str) else json.dumps(value)
    return Message("tool", (ToolResult(call_id, name, (Text(text),)),))


def played(prompt, *tools, history=(), answers=ANSWERS, **options):
    """The rounds of calls that a prompt leads to, the final text, and the messages."""
    messages, rounds = [*history, Message.of("user", prompt)], []
    for _ in range(8):
        answer = plan(Ask("mock", tuple(messages), tools, **options))
        if not answer.calls:
            return rounds, answer.text, [*messages, Message.of("assistant", answer.text)]
        calls = [ToolCall(f"c{len(messages)}{n}", call.name, json.dumps(call.arguments)) for n, call in enumerate(answer.calls)]
        messages.append(Message("assistant", tuple(calls)))
        messages += [
            result(call.id, call.name, answers.get(call.name, lambda _: "ok")(json.loads(call.arguments))) for call in calls
        ]
        rounds.append([(call.name, call.arguments) for call in answer.calls])
    raise AssertionError(f"no end: {rounds}")


def weather(*cities, **more):
    return [("get_weather", {"city": city, **more}) for city in cities]


ONE_ROUND = [
    ("What's the weather in Paris?", [WEATHER, STOCK], weather("Paris")),
    ("What's the weather in Paris in Fahrenheit?", [WEATHER], weather("Paris", unit="fahrenheit")),
    ("How cold is it in Oslo, in °C?", [WEATHER], weather("Oslo", unit="celsius")),
    ("Compare the weather in Tokyo, Paris, and New York", [WEATHER], weather("Tokyo", "Paris", "New York")),
    ("weather in paris and new york please", [WEATHER], weather("paris", "new york")),
    ("What's the weather in Paris for Anna?", [WEATHER], weather("Paris")),
    (
        "Weather in Berlin, and the stock price of AAPL and MSFT?",
        [WEATHER, STOCK, INVENTORY],
        [*weather("Berlin"), ("get_stock_price", {"symbol": "AAPL"}), ("get_stock_price", {"symbol": "MSFT"})],
    ),
    ("How much is Apple stock?", [STOCK, WEATHER], [("get_stock_price", {"symbol": "AAPL"})]),
    (
        "What's the weather in Paris and the time in Tokyo?",
        [WEATHER, TIME],
        [*weather("Paris"), ("get_time", {"city": "Tokyo"})],
    ),
    ("Weather and time in Paris", [WEATHER, TIME], [*weather("Paris"), ("get_time", {"city": "Paris"})]),
    (
        "What is the stock level of SKU-A100 in east-01?",
        [STOCK, INVENTORY],
        [("check_inventory", {"warehouse": "east-01", "sku": "SKU-A100"})],
    ),
    (
        "Check SKU-A100 in east-01 and SKU-B200 in west-02",
        [INVENTORY],
        [("check_inventory", {"warehouse": w, "sku": s}) for w, s in (("east-01", "SKU-A100"), ("west-02", "SKU-B200"))],
    ),
    (
        "Check SKU-A100 and SKU-B200 in east-01 and west-02",
        [INVENTORY],
        [("check_inventory", {"warehouse": w, "sku": s}) for w in ("east-01", "west-02") for s in ("SKU-A100", "SKU-B200")],
    ),
    ("Add 2 and 3", [ADD, MULTIPLY], [("add", {"a": 2, "b": 3})]),
    ("What is 12 * 7?", [ADD, MULTIPLY], [("multiply", {"a": 12, "b": 7})]),
    ("What is (2 + 3) * 4?", [ADD, MULTIPLY, CALCULATE], [("calculate", {"expression": "(2 + 3) * 4"})]),
    ("Convert 100 USD to EUR", [CONVERT], [("convert_currency", {"amount": 100, "from_currency": "USD", "to_currency": "EUR"})]),
    (
        "Send an email to bob@x.com with subject 'Hi' and body \"See you at 10:30\"",
        [EMAIL, WEATHER],
        [("send_email", {"to": "bob@x.com", "subject": "Hi", "body": "See you at 10:30"})],
    ),
    (
        "Translate 'good morning' to French and German",
        [TRANSLATE],
        [("translate", {"text": "good morning", "target_language": name}) for name in ("French", "German")],
    ),
    ("Find users in Oslo", [FIND_USERS, QUERY, LIST], [("users_db__find_users", {"city": "Oslo"})]),
    ("Show 3 users named Ann", [FIND_USERS, QUERY, LIST], [("users_db__find_users", {"name": "Ann", "limit": 3})]),
    ("How many? Run SELECT count(*) FROM users", [FIND_USERS, QUERY], [("users_db__query", {"sql": "SELECT count(*) FROM users"})]),
    ("List the directory `docs`", [FIND_USERS, LIST], [("files__list_directory", {"path": "docs"})]),
    ("What files are in the current directory?", [FIND_USERS, LIST], [("files__list_directory", {"path": "."})]),
    ("What is in config.yaml?", [READ, WRITE, LIST], [("read_file", {"path": "config.yaml"})]),
    ("Write 'hello' to notes.txt", [READ, WRITE], [("write_file", {"path": "notes.txt", "content": "hello"})]),
    (
        "Find flights from Paris to New York on 2025-03-05 for 2 passengers",
        [FLIGHTS],
        [("search_flights", {"origin": "Paris", "destination": "New York", "date": "2025-03-05", "passengers": 2})],
    ),
    ("Add a high priority task to buy milk", [TASK], [("add_task", {"title": "buy milk", "priority": "high"})]),
    ("Sum the numbers 1, 2 and 3", [SUM], [("sum_numbers", {"numbers": [1, 2, 3]})]),
    (
        "Create a user named Bob with email bob@x.com, age 30",
        [CREATE],
        [("create_user", {"user": {"name": "Bob", "email": "bob@x.com", "age": 30}})],
    ),
    ("北京天气怎么样?", [WEATHER, STOCK], weather("北京")),
    ("请查询北京和上海的天气", [ZH_WEATHER, FIBONACCI], [("lookup", {"city": "北京"}), ("lookup", {"city": "上海"})]),
    ("斐波那契第10项是多少？", [ZH_WEATHER, FIBONACCI], [("fib", {"n": 10})]),
    ("查询SKU-A100在east-01的库存", [INVENTORY, STOCK], [("check_inventory", {"warehouse": "east-01", "sku": "SKU-A100"})]),
    ("列出 docs 目录", [LIST, FIND_USERS], [("files__list_directory", {"path": "docs"})]),
    ("Use get_weather for Oslo", [STOCK, ORDER, WEATHER], weather("Oslo")),
]


@pytest.mark.parametrize(("prompt", "tools", "calls"), ONE_ROUND, ids=[row[0] for row in ONE_ROUND])
def test_independent_calls_come_all_at_once(prompt, tools, calls):
    rounds, _, _ = played(prompt, *tools)
    assert rounds == [calls]


FLAG = {"type": "boolean"}


def one_of(*values):
    return {"type": "string", "enum": list(values)}


USERS = tool("find_users", "Find users by the city they live in or by their name.", [], name=TEXT, city=TEXT, limit=WHOLE)
LESSON_USERS = tool("find_users", "Find users by their city or name.", [], city=one_of("Berlin", "Lima", "京都"), name=TEXT)
LESSON_STOCK = tool(
    "get_stock",
    "How many pieces of an article a warehouse has in stock.",
    sku="number of the article, e.g. SKU-A100",
    warehouse=one_of("east-01", "west-02", "north-03"),
)
PLAIN_STOCK = tool("get_stock", "How many units of a product a warehouse has.", warehouse=TEXT, sku=TEXT)
PRICE = tool("get_price", "Price of an article of the shop.", sku="number of the article, e.g. SKU-A100")
GREET = tool("greet", "Greet a person.", name=TEXT)
ACCOUNT = tool("get_balance", "Get the balance of a bank account.", account_id="Account number, e.g. ACC-100")
TRANSFER = tool("transfer_money", "Transfer money between accounts.", from_account=TEXT, to_account=TEXT, amount=NUMBER)
BOOKS = tool("search_books", "Search the library.", [], title=TEXT, author=TEXT)
RESERVE = tool("reserve_book", "Reserve a book for a member.", title=TEXT, member=TEXT)
FIND_BOOK = tool("find_book", "Find a book by its title.", title=TEXT)
UNITS = tool("convert_units", "Convert a value from one unit to another.", value=NUMBER, from_unit=TEXT, to_unit=TEXT)
LANGUAGE = tool("translate_text", "Translate text.", ["text", "target"], text=TEXT, source=one_of("en", "de", "fr", "it"),
                target=one_of("en", "de", "fr", "it"))  # fmt: skip
RATE = tool("exchange_rate", "Exchange rate of two currencies.", base=one_of("EUR", "USD"), quote=one_of("EUR", "USD"))
EVENT = tool("create_event", "Create a calendar event.", ["title", "date"], title=TEXT, date=TEXT, time=TEXT,
             attendees={"type": "array", "items": TEXT})  # fmt: skip
EVENTS = tool("list_events", "List the calendar events of a day.", date=TEXT)
ROWS = tool("filter_rows", "Filter the rows of a table.", table=TEXT, column=TEXT, op=one_of("==", ">", "<"), value=TEXT)
TABLE = tool("describe_table", "Column statistics of a table.", table=TEXT)
LIGHT = tool("set_light", "Switch a light on or off.", room=TEXT, on=FLAG)
DOOR = tool("lock_door", "Lock or unlock a door.", door=TEXT, locked=FLAG)
ZH_LIGHT = tool("set_light", "打开或关闭房间的灯", room="房间名称", on=FLAG)
ZH_TRANSFER = tool("transfer", "转账", from_account="转出账户", to_account="转入账户", amount=NUMBER)
RENAME = tool("rename_file", "Rename a file.", old_name=TEXT, new_name=TEXT)
DICE = tool("roll_dice", "Roll dice.", [], sides=WHOLE, count=WHOLE)
SALARY = tool("get_salary", "Salary of an employee.", employee_id="e.g. E-17")
ARTICLE = tool("wikipedia", "Look up an article in Wikipedia.", title=TEXT)

NATURAL = [
    # a list of one kind goes to one parameter, and a value that has been taken asks for no other tool
    (
        "How many SKU-B200 are in east-01 and north-03, and how much do they cost?",
        [LESSON_STOCK, PRICE],
        [("get_stock", {"sku": "SKU-B200", "warehouse": place}) for place in ("east-01", "north-03")]
        + [("get_price", {"sku": "SKU-B200"})],
    ),
    (
        "How many SKU-B200 are in east-01 and north-03, and how much do they cost?",
        [PLAIN_STOCK, PRICE],
        [("get_stock", {"warehouse": place, "sku": "SKU-B200"}) for place in ("east-01", "north-03")]
        + [("get_price", {"sku": "SKU-B200"})],
    ),
    ("Find the users in Berlin and in Lima.", [WEATHER, LESSON_USERS], [("find_users", {"city": c}) for c in ("Berlin", "Lima")]),
    ("Find the users in Berlin and in Lima.", [WEATHER, USERS], [("find_users", {"city": c}) for c in ("Berlin", "Lima")]),
    ("Users from Berlin", [WEATHER, USERS], [("find_users", {"city": "Berlin"})]),
    # people and things that are named
    ("What is the email address of Clara Weiss?", [WEATHER, USERS, ORDER], [("find_users", {"name": "Clara Weiss"})]),
    ("Who is Ann Lee?", [USERS, WEATHER], [("find_users", {"name": "Ann Lee"})]),
    ("Say hello to Maria", [GREET, WEATHER], [("greet", {"name": "Maria"})]),
    ("Which books by Ursula Le Guin do you have?", [BOOKS, WEATHER], [("search_books", {"author": "Ursula Le Guin"})]),
    ('Do you have the book "Dune"?', [RESERVE, FIND_BOOK], [("find_book", {"title": "Dune"})]),
    ("Look up Alan Turing in Wikipedia", [ARTICLE, WEATHER], [("wikipedia", {"title": "Alan Turing"})]),
    # Chinese names with characters that are words elsewhere
    ("weather in Berlin and in 京都", [WEATHER], weather("Berlin", "京都")),
    ("How is the weather in 东京 and 成都?", [WEATHER], weather("东京", "成都")),
    ("新加坡、维也纳和埃及的天气", [WEATHER], weather("新加坡", "维也纳", "埃及")),
    ("上海和北京都下雨吗", [WEATHER], weather("上海", "北京")),
    # numbers, units, expressions, switches
    ("Convert 10 km to miles", [UNITS], [("convert_units", {"value": 10, "from_unit": "km", "to_unit": "miles"})]),
    ("How many feet are in 3 meters?", [UNITS], [("convert_units", {"value": 3, "from_unit": "meters", "to_unit": "feet"})]),
    ("Calculate 15% of 80", [CALCULATE], [("calculate", {"expression": "15 / 100 * 80"})]),
    ("What's the square root of 16?", [CALCULATE], [("calculate", {"expression": "sqrt(16)"})]),
    ("What is 2 + 3.", [CALCULATE], [("calculate", {"expression": "2 + 3"})]),
    ("Roll two dice", [DICE], [("roll_dice", {"count": 2})]),
    ("Turn on the light in the kitchen", [LIGHT, DOOR], [("set_light", {"room": "kitchen", "on": True})]),
    (
        "Turn off the lights in the bedroom and the kitchen",
        [DOOR, LIGHT],
        [("set_light", {"room": room, "on": False}) for room in ("bedroom", "kitchen")],
    ),
    (
        "Unlock the garage door and turn on the light in the hall",
        [DOOR, LIGHT],
        [("lock_door", {"door": "garage", "locked": False}), ("set_light", {"room": "hall", "on": True})],
    ),
    ("Switch off the kitchen light", [LIGHT, DOOR], [("set_light", {"room": "kitchen", "on": False})]),
    ("关闭客厅的灯", [ZH_LIGHT, WEATHER], [("set_light", {"room": "客厅", "on": False})]),
    ("从A001转账100元到A002", [ZH_TRANSFER], [("transfer", {"from_account": "A001", "to_account": "A002", "amount": 100})]),
    (
        "Transfer 250 dollars from ACC-100 to ACC-200",
        [ACCOUNT, TRANSFER],
        [("transfer_money", {"from_account": "ACC-100", "to_account": "ACC-200", "amount": 250})],
    ),
    # a choice by another name, and two choices told apart by from and to
    ("How do you say 'it is late' in French?", [LANGUAGE], [("translate_text", {"text": "it is late", "target": "fr"})]),
    (
        "Translate 'it is late' from English to German and French",
        [LANGUAGE],
        [("translate_text", {"text": "it is late", "source": "en", "target": name}) for name in ("de", "fr")],
    ),
    ("What's the exchange rate from EUR to USD?", [RATE], [("exchange_rate", {"base": "EUR", "quote": "USD"})]),
    ("Rename a.txt to b.txt", [RENAME], [("rename_file", {"old_name": "a.txt", "new_name": "b.txt"})]),
    (
        "Put lunch with Bob on my calendar for tomorrow at 12:30",
        [EVENTS, EVENT],
        [("create_event", {"title": "lunch with Bob", "date": "tomorrow", "time": "12:30"})],
    ),
    (
        "Create an event 'Standup' on 2025-01-02 with ann@x.com and bob@x.com",
        [EVENTS, EVENT],
        [("create_event", {"title": "Standup", "date": "2025-01-02", "attendees": ["ann@x.com", "bob@x.com"]})],
    ),
    ("Describe the table sales", [TABLE, ROWS], [("describe_table", {"table": "sales"})]),
    (
        "Filter rows of `sales` where `price` > 100",
        [TABLE, ROWS],
        [("filter_rows", {"table": "sales", "column": "price", "op": ">", "value": "100"})],
    ),
    ("List the files in /tmp/x.", [LIST], [("files__list_directory", {"path": "/tmp/x"})]),
]


@pytest.mark.parametrize(("prompt", "tools", "calls"), NATURAL, ids=[f"{n} {row[0]}" for n, row in enumerate(NATURAL)])
def test_natural_prompts_call_what_they_ask_for_and_nothing_else(prompt, tools, calls):
    for given in (tools, tools[::-1]):
        assert played(prompt, *given)[0] == [calls]


@pytest.mark.parametrize(
    "prompt",
    [
        "I was in Berlin and in Lima last year.",
        "My name is Clara Weiss",
        "Paris is nice and so is Rome",
        "Call me later at 10:30",
        "What does E-17 like?",
        "Write a poem about spring",
        "What is the capital of France?",
        "法国的首都是哪里？",
        "12345",
    ],
)
def test_values_alone_call_no_tool(prompt):
    given = (WEATHER, USERS, FIND_USER, EMPLOYEE, SALARY, BOOKS, EVENTS, EVENT, LIGHT, UNITS, LANGUAGE, TRANSFER, ADD)
    assert played(prompt, *given)[0] == []


def test_a_code_that_looks_like_the_example_of_another_tool_is_not_given_to_this_one():
    order = tool("search_order", "Find an order.", order_id="e.g. A-1001")
    customer = tool("get_customer", "Name and email address of a customer.", customer_id="e.g. C-1")
    answers = {"search_order": lambda _: {"customer_id": "C-1"}}
    for prompt in ("Who ordered A-1001, and what is their email address?", "Who is the customer of A-1001?"):
        rounds, _, _ = played(prompt, order, customer, answers=answers)
        assert rounds == [[("search_order", {"order_id": "A-1001"})], [("get_customer", {"customer_id": "C-1"})]]


def test_a_tool_that_only_tells_something_is_called_with_what_the_one_before_found():
    order = tool("search_order", "Find an order by its number.", order_id=TEXT)
    track = tool("track_parcel", "Where a parcel is now.", tracking_code=TEXT)
    answers = {"search_order": lambda _: {"order_id": "1001", "tracking_code": "TR-55"}}
    rounds, _, _ = played("Where is the parcel of order 1001?", order, track, answers=answers)
    assert rounds == [[("search_order", {"order_id": "1001"})], [("track_parcel", {"tracking_code": "TR-55"})]]


def test_what_the_results_already_say_is_not_looked_up_again():
    user = tool("get_user", "Get one user by id: name, city and email address.", user_id="e.g. U-1001")
    answers = {"find_users": lambda _: [{"id": "U-1001", "name": "Clara Weiss", "email": "c@x.com"}]}
    rounds, text, _ = played("What is the email address of Clara Weiss?", user, LESSON_USERS, answers=answers)
    assert rounds == [[("find_users", {"name": "Clara Weiss"})]]
    assert "c@x.com" in text


def test_a_result_is_not_looked_up_as_if_it_were_a_title():
    loans = tool("list_loans", "List the books that a member has on loan.", member_id=WHOLE)
    rounds, _, _ = played("Which books does member 42 have on loan?", loans, FIND_BOOK, RESERVE)
    assert rounds == [[("list_loans", {"member_id": 42})]]


def test_a_full_stop_after_a_bracket_is_no_path():
    search = tool("search_files", "Find files by a pattern.", pattern="e.g. *.md")
    prompt = "Read config.yaml and find all Markdown files (*.md). Then write a summary to report.md."
    rounds, _, _ = played(prompt, READ, search, WRITE)
    assert rounds[0] == [("read_file", {"path": "config.yaml"}), ("search_files", {"pattern": "*.md"})]
    assert [f.text for f in findings("List . and ./ and (../docs).") if f.kind == "path"] == [".", "./", "../docs"]


def test_a_plan_takes_a_few_milliseconds_among_many_tools():
    crowd = tuple({row.name: row for _, tools, _ in NATURAL for row in tools}.values())
    ask = Ask("mock", (Message.of("user", "How many SKU-B200 are in east-01, and what is the weather in 成都?"),), crowd)
    plan(ask)

    def spent():
        begun = time.process_time()
        plan(ask)
        return time.process_time() - begun

    assert min(spent() for _ in range(5)) < 0.05  # ten are meant, for a handful of tools on a machine that does nothing else


def test_the_choice_does_not_depend_on_the_order_of_the_tools():
    for prompt, tools, calls in ONE_ROUND:
        rounds, _, _ = played(prompt, *reversed(tools))
        assert rounds == [calls], prompt


def test_other_tools_are_left_alone_among_many():
    crowd = (
        WEATHER,
        STOCK,
        INVENTORY,
        ORDER,
        CUSTOMER,
        TIME,
        ADD,
        MULTIPLY,
        CONVERT,
        EMAIL,
        TRANSLATE,
        FIND_USERS,
        LIST,
        READ,
        WRITE,
    )
    assert played("What is the weather in Paris?", *crowd)[0] == [weather("Paris")]
    assert played("Check stock of SKU-A100 in east-01", *crowd)[0] == [
        [("check_inventory", {"warehouse": "east-01", "sku": "SKU-A100"})]
    ]
    assert played("Who is the customer of order ORD-1001?", *crowd)[0] == [
        [("search_order", {"order_id": "ORD-1001"})],
        [("get_customer", {"customer_id": "C-204"})],
    ]


CHAINS = [
    ("Who placed order ORD-1001?", [ORDER, CUSTOMER], ["search_order", "get_customer"], {"customer_id": "C-204"}),
    (
        "What is the email of the customer who placed ORD-1001?",
        [CUSTOMER, ORDER],
        ["search_order", "get_customer"],
        {"customer_id": "C-204"},
    ),
    ("订单 ORD-1001 的客户是谁?", [ORDER, CUSTOMER], ["search_order", "get_customer"], {"customer_id": "C-204"}),
    (
        "What's the weather in the city of the customer who placed ORD-1001?",
        [WEATHER, ORDER, CUSTOMER],
        ["search_order", "get_customer", "get_weather"],
        {"city": "Oslo"},
    ),
    (
        "Which department does employee E-17 work in?",
        [EMPLOYEE, DEPARTMENT],
        ["lookup_employee", "get_department"],
        {"dept_id": "D-3"},
    ),
    ("List the orders of the user named Ann", [ORDERS, FIND_USER], ["find_user", "list_orders"], {"user_id": 7}),
    (
        "Read config.yaml and save it to `copy.yaml`",
        [READ, WRITE],
        ["read_file", "write_file"],
        {"path": "copy.yaml", "content": "text of config.yaml"},
    ),
]


@pytest.mark.parametrize(("prompt", "tools", "names", "last"), CHAINS, ids=[row[0] for row in CHAINS])
def test_a_call_that_needs_an_earlier_result_waits_for_it(prompt, tools, names, last):
    rounds, text, _ = played(prompt, *tools)
    assert [[name for name, _ in calls] for calls in rounds] == [[name] for name in names]
    assert rounds[-1][0][1] == last
    assert text


def test_a_result_with_several_ids_leads_to_several_calls():
    answers = {
        "search_order": lambda given: {"customer_id": f"C-{given['order_id'][-1]}"},
        "get_customer": lambda given: {"name": "x"},
    }
    rounds, _, _ = played("Find the customers of orders ORD-1001 and ORD-1002", ORDER, CUSTOMER, answers=answers)
    assert [name for name, _ in rounds[0]] == ["search_order", "search_order"]
    assert rounds[1] == [("get_customer", {"customer_id": "C-1"}), ("get_customer", {"customer_id": "C-2"})]


def test_an_order_number_is_never_taken_for_a_customer_number():
    plain = tool("get_customer", "Get a customer.", customer_id=TEXT)
    whole = tool("get_customer", "Get a customer.", customer_id=WHOLE)
    order = tool("search_order", "Find an order.", order_id=WHOLE)
    assert played("Who is the customer of order ORD-1001?", ORDER, plain)[0][0] == [("search_order", {"order_id": "ORD-1001"})]
    assert played("Who is the customer of order 1001?", order, whole)[0][0] == [("search_order", {"order_id": 1001})]


def test_the_answer_quotes_the_values_of_the_results():
    _, text, _ = played("What's the weather in Paris and Rome?", WEATHER)
    assert text == "- Weather for Paris: temperature 18.\n- Weather for Rome: temperature 18."
    _, text, _ = played("What is the stock price of AAPL?", STOCK)
    assert text == "The result of get_stock_price for AAPL is 187.5."


def test_the_answer_is_in_the_language_of_the_prompt():
    assert played("北京天气怎么样?", WEATHER)[1] == "get_weather（北京）：temperature 18。"


def test_a_failed_result_is_told_as_failed_and_not_called_again():
    answers = {"get_weather": lambda _: {"success": False, "error": "no such city", "code": "tool_failed"}}
    rounds, text, _ = played("Weather in Atlantis?", WEATHER, answers=answers)
    assert rounds == [weather("Atlantis")]
    assert text == "get_weather for Atlantis failed: no such city."


def test_what_depends_on_a_failed_result_is_not_called():
    answers = {"search_order": lambda _: {"success": False, "error": "no order ORD-9", "code": "not_found"}}
    rounds, text, _ = played("Who is the customer of order ORD-9?", ORDER, CUSTOMER, answers=answers)
    assert [[name for name, _ in calls] for calls in rounds] == [["search_order"]]
    assert text == "search_order for ORD-9 failed: no order ORD-9."


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (ToolCall("w", "get_wether", '{"city": "Paris"}'), "unknown_tool"),
        (ToolCall("w", "get_weather", '{"town": "Paris"}'), "invalid_arguments"),
        (ToolCall("w", "get_weather", '{"ci'), "truncated_arguments"),
    ],
)
def test_a_call_that_could_not_be_run_is_corrected_once(wrong, code):
    failure = {"success": False, "error": "it does not fit", "code": code}
    history = (Message.of("user", "Weather in Paris?"), Message("assistant", (wrong,)), result("w", wrong.name, failure))
    answer = plan(Ask("mock", history, (WEATHER,)))
    assert [(call.name, call.arguments) for call in answer.calls] == weather("Paris")
    again = (
        *history,
        Message("assistant", (ToolCall("x", "get_weather", '{"city": "Paris"}'),)),
        result("x", "get_weather", failure),
    )
    assert not plan(Ask("mock", again, (WEATHER,))).calls


def test_arguments_that_a_person_changed_are_not_insisted_on():
    call = ToolCall("a", "get_weather", '{"city": "Lyon"}')
    history = (
        Message.of("user", "Weather in Paris?"),
        Message("assistant", (call,)),
        result("a", "get_weather", {"temperature": 9}),
    )
    answer = plan(Ask("mock", history, (WEATHER,)))
    assert answer.text == "Weather for Lyon: temperature 9."


def test_a_missing_argument_is_asked_for_by_name_and_taken_from_the_next_prompt():
    rounds, text, history = played("What is the weather?", WEATHER)
    assert rounds == []
    assert text == "To call `get_weather` I need `city` (Name of the city, e.g. Paris). Which one do you mean?"
    assert played("Paris", WEATHER, history=history)[0] == [weather("Paris")]


def test_a_prompt_that_goes_on_takes_over_the_arguments_before():
    _, _, history = played("Weather in Paris in fahrenheit?", WEATHER)
    assert played("And in London?", WEATHER, history=history)[0] == [weather("London", unit="fahrenheit")]
    _, _, history = played("北京天气怎么样?", WEATHER)
    assert played("上海呢？", WEATHER, history=history)[0] == [weather("上海")]


@pytest.mark.parametrize("prompt", ["hello", "Thanks!", "What is the capital of France?", "Explain what a token is", ""])
def test_a_prompt_that_no_tool_matches_gets_a_text_that_says_mock(prompt):
    for tools in ((), (WEATHER, STOCK, ORDER)):
        rounds, text, _ = played(prompt, *tools)
        assert rounds == []
        assert "mock model" in text
        assert all(tool.name in text for tool in tools)


def test_tools_are_left_out_where_the_prompt_or_the_request_forbids_them():
    assert played("Weather in Paris, without using tools", WEATHER)[0] == []
    assert played("Weather in Paris", WEATHER, choice="none")[0] == []


def test_a_demanded_call_is_made_once_even_without_arguments():
    assert played("hi", WEATHER, choice="required")[0] == [weather("Paris")]
    assert played("Weather in Rome", WEATHER, STOCK, choice="required")[0] == [weather("Rome")]
    odd = tool(
        "paint",
        "Paint a wall.",
        colour={"enum": ["red", "blue"]},
        layers={"type": "integer", "minimum": 2},
        dry={"type": "boolean"},
    )
    assert played("hi", odd, choice="required")[0] == [[("paint", {"colour": "red", "layers": 2, "dry": False})]]


def test_one_call_at_a_time_where_several_are_not_allowed():
    rounds, text, _ = played("Weather in Paris and Rome", WEATHER, parallel=False)
    assert rounds == [weather("Paris"), weather("Rome")]
    assert text.count("temperature 18") == 2


def test_tools_that_delete_are_called_only_where_the_prompt_says_so():
    cancel = tool("cancel_order", "Cancel an order.", order_id="Order id, e.g. ORD-1001")
    assert played("What is the status of order ORD-1001?", cancel)[0] == []
    assert played("Cancel order ORD-1001", cancel)[0] == [[("cancel_order", {"order_id": "ORD-1001"})]]


def test_defaults_are_left_out_and_flags_are_read():
    sort = tool("sort_lines", "Sort the lines of a file.", ["path"], path="File", reverse={"type": "boolean", "default": False})
    assert played("Sort the lines of a.txt", sort)[0] == [[("sort_lines", {"path": "a.txt"})]]
    assert played("Sort the lines of a.txt in reverse", sort)[0] == [[("sort_lines", {"path": "a.txt", "reverse": True})]]


def test_references_and_optional_types_of_a_schema_are_followed():
    schema = {
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/City"}, "unit": {"anyOf": [UNIT, {"type": "null"}]}},
        "required": ["city"],
        "$defs": {"City": {"type": "string", "description": "A city"}},
    }
    rounds, _, _ = played("Weather in Oslo in celsius", Definition("get_weather", "The weather.", schema))
    assert rounds == [weather("Oslo", unit="celsius")]


ODD = [
    {},
    {"type": "object"},
    {"type": "object", "properties": []},
    {"type": "object", "properties": {"a": True, "b": None}, "required": ["a", "missing"]},
    {"type": "object", "properties": {"a": {"enum": [{"x": 1}, None, "red"]}}, "required": "a"},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": ["integer", "null"], "minimum": "x"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array", "items": {"type": "array", "items": {}}}}},
    {"type": "object", "properties": {"a": {"anyOf": "x", "examples": "x", "format": 3, "description": None}}, "required": ["a"]},
    {"type": "object", "properties": {"": {"type": "string"}, "名字": {"const": 1}}, "required": [""]},
]
PROMPTS = [
    "Paint 3 walls red",
    "",
    "((((",
    "粉刷墙 SKU-A1",
    "a" * 3000,
    "\ud83d paint 9" + "9" * 400,
    "paint `",
    "- * / + 'x' \"",
    "0" * 50,
]


@pytest.mark.parametrize("schema", ODD, ids=range(len(ODD)))
def test_no_schema_and_no_prompt_is_too_odd(schema):
    for prompt in PROMPTS:
        for choice in ("auto", "required"):
            answer = plan(
                Ask("mock", (Message.of("user", prompt),), (Definition("paint", "Paint walls. 粉刷", schema),), choice=choice)
            )
            assert answer.text or answer.calls


def test_results_of_any_form_are_told():
    for value in (
        "",
        "plain",
        "two\nlines",
        None,
        [],
        {},
        [1, 2],
        [{"a": 1}] * 30,
        {"a": {"b": [None, True]}},
        "null",
        "{broken",
        0,
    ):
        answers = {"get_weather": lambda _, value=value: value if isinstance(value, str) else json.dumps(value)}
        assert played("Weather in Paris?", WEATHER, answers=answers)[1].startswith(
            ("Weather for Paris", "The result of", "get_weather")
        )


def test_a_text_in_a_wanted_form_is_json_of_that_form():
    form = {"type": "object", "properties": {"city": TEXT, "degrees": WHOLE}, "required": ["city", "degrees"]}
    _, text, _ = played("Berlin has 21 degrees", form=form)
    assert json.loads(text) == {"city": "Berlin", "degrees": 21}
    assert "answer" in json.loads(played("hello", form={})[1])


def test_values_are_found_with_their_kinds():
    found = [
        (f.kind, f.text) for f in findings("Read `a.md` on 2025-03-05 at 10:30, mail bob@x.com about SKU-A100 and ‘two words’")
    ]
    assert found == [
        ("path", "a.md"),
        ("date", "2025-03-05"),
        ("time", "10:30"),
        ("email", "bob@x.com"),
        ("code", "SKU-A100"),
        ("text", "two words"),
    ]
    assert [f.text for f in findings("查询SKU-A100在east-01的库存")] == ["SKU-A100", "east-01"]
    assert kind_of("east-01") == "code"
    assert shape("ORD-1001") == "A-0"


def test_words_meet_over_endings_synonyms_and_languages():
    assert "weather" in concepts("forecasts") & concepts("天气") & concepts("get_weather")
    assert not concepts("times") & concepts("time")
    assert is_chinese("查询 SKU-A100 的库存")
    assert not is_chinese("What's the weather in 北京?")
