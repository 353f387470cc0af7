"""Keys and personal data are replaced by marks; ordinary texts stay as they are."""

import base64
import json
import time
from urllib.parse import quote, quote_plus

import pytest

from nb_agent.errors import SettingError
from nb_agent.guards.masking import NO_MASKS, PATTERNS, Masks, secrets_of

KEYS = Masks()
ALL = Masks.of("keys", "personal")

#: (a text, what must be gone, what must stay); what looks like a provider's key is put together, for scanners of repositories.
SECRET = [
    ("dsn=postgresql://ann:pa55word@db.example.test/x", "pa55word", "db.example.test/x"),
    ("redis://:pa55word@cache:6379/0", "pa55word", "cache:6379"),
    ("mysql+pymysql://root:p@ss/w0rd@h/db", "w0rd", "@h/db"),
    ("https://ann:8080hunter@h/", "8080hunter", "@h/"),
    ("ann:pa55word@tcp(127.0.0.1:3306)/shop", "pa55word", "127.0.0.1"),
    ("password=pa55word", "pa55word", "password="),
    ('{"password": "pa55word", "host": "x"}', "pa55word", '"host": "x"'),
    ("{'password': 'pa55word'}", "pa55word", "'}"),
    ('{\\"password\\": \\"pa55word\\", \\"n\\": 1}', "pa55word", '\\"n\\": 1'),
    ('{"password":"pa\\"55word x","n":1}', "55word", '"n":1'),
    ('{"password": "hunter', "hunter", "password"),
    ("export DB_PASSWORD='pa55 word'\nHOST=x", "pa55", "HOST=x"),
    ("Server=db;User Id=ann;Password=pa55word;Encrypt=yes", "pa55word", ";Encrypt=yes"),
    ("UID=ann;PWD=pa55word;", "pa55word", "UID=ann"),
    ("host=db password=hunter dbname=x", "hunter", "dbname=x"),
    ("Config{user=ann, password=hunter, host=x}", "hunter", "host=x}"),
    ("password: hunter\nuser: ann", "hunter", "user: ann"),
    ("The password is pa55word.", "pa55word", "is [masked: password]."),
    ("密码：pa55word", "pa55word", "密码"),
    ("<password>hunter</password>", "hunter", "</password>"),
    ("login --password pa55word --host x", "pa55word", "--host x"),
    ("[('user', 'ann'), ('password', 'pa55word')]", "pa55word", "'user', 'ann'"),
    ("curl -u ann:pa55word https://x", "pa55word", "https://x"),
    ("auth=('ann', 'hunter2')", "hunter2", "'ann'"),
    ("machine x login ann password pa55word", "pa55word", "machine x"),
    ("Authorization: Basic YW5uOnBhNTV3b3Jk", "YW5uOnBhNTV3b3Jk", "Basic"),
    ("{'Authorization': 'Bearer opensesame'}", "opensesame", "Bearer"),
    ("[(b'Authorization', b'Bearer opensesame')]", "opensesame", "Bearer"),
    ("X-Api-Key: 0123abcd4567", "0123abcd4567", "X-Api-Key"),
    ("Cookie: session=0123abcd4567; theme=dark", "0123abcd4567", "Cookie"),
    ("https://x/?token=abc1&page=2", "abc1", "&page=2"),
    ("?a=1&access_token=opensesame#x", "opensesame", "a=1"),
    ("https://b.example.test/x?sv=1&sig=abcDEF123456%2Bxyz%3D", "abcDEF123456", "sv=1"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "wJalr", "aws_secret_access_key"),
    ("OPENAI_API_KEY=opensesamevalue", "opensesame", "OPENAI_API_KEY"),
    ('"client_secret": "abcDEFghi"', "abcDEFghi", "client_secret"),
    ("AccountKey=abcd1234efgh5678==;EndpointSuffix=x", "abcd1234", "EndpointSuffix=x"),
    ('api_key: str = "abcdef12345"', "abcdef12345", "api_key: str"),
    ("see AKIA" + "IOSFODNN7EXAMPLE, ok", "IOSFODNN7", ", ok"),
    ("ghp_" + "0123456789abcdefghijABCDEFGHIJ012345", "0123456789", "[masked: api key]"),
    ("xoxb-" + "123456789012-abcdefABCDEF", "123456789012", "[masked"),
    ("AIza" + "SyA0123456789abcdefghijklmnopqrstuv", "SyA0123", "[masked"),
    ("sk-ant-" + "api03-abcDEF123456-ghiJKL789_mno", "abcDEF", "[masked"),
    ("text\\nsk-" + "abcdef0123456789abcd\\n", "abcdef", "text\\n["),
    ("sk_live_" + "abcdef1234567890ABCD", "abcdef", "[masked"),
    ("110201543:AA" + "HdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "HdqTcv", "[masked"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "eyJ", "[masked: token]"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0123456789\nab\n-----END RSA PRIVATE KEY-----", "MIIEow", "BEGIN RSA"),
    ("-----BEGIN PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "b3Blbn", "BEGIN"),
]

ORDINARY = """Token: the unit of text that a model reads.
max_tokens=4096, total_tokens: 1234, "completion_tokens": 12
{"token": "Hello", "logprob": -0.3, "token": " Paris"}
{"next_page_token": "CAUQAA1234567890", "nextPageToken":"abc123def456"}
{"eos_token": "<|endoftext|>", "pad_token": "<pad1234567>"}
Password must have 8 characters and one digit. password: required
"password": {"type": "string", "description": "the password"}
"api_key": null, "token": true, password=None, secret: false
api_key=os.environ["OPENAI_API_KEY"]
password = getpass.getpass("%s's password: " % name)
token = self.token; private_key: Ed448PrivateKey = Ed448PrivateKey.generate()
def login(user: str, password: str) -> Token:
connect(user=user, password=password, token=token)
password=${DB_PASSWORD} token=$TOKEN key={key} f"{api_key}" %(password)s
export OPENAI_API_KEY=<your key>; api_key="YOUR_API_KEY"; api_key='your-api-key-here'; sk-...
PWD=/home/ann/work
password authentication failed for user "ann"; the token has expired or is invalid
The key to success is patience. sort_key=created_at, key=lambda row: row[1]
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
commit 0123456789abcdef0123456789abcdef01234567 123e4567-e89b-12d3-a456-426614174000
risk-assessment-of-the-2024-report task-0123456789abcdef0 class="sk-spinner-wave-container"
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
http://127.0.0.1:8000/v1 https://x.example.test:443/a@b http://host:8080?mail=ann@x.test
Basic usage: install the package. Basic internationalization. Bearer authentication is used.
WWW-Authenticate: Basic realm="admin area"
Cookie: a small biscuit. docker run -u 1000:1000 image:tag
tokens = text.split(), token_type: "bearer", session_id=abc123def456
for token in tokens: print(token) # ("username", "password") ["token", "value"]
SELECT password FROM users WHERE id = 1
密码必须包含数字。令牌是模型读的单位。
Keyboard: key=Enter code=13 ?key=name&sort=asc"""

PERSONAL = [
    ("ann.lee+x@mail.example.co.uk", "ann", "e-mail"),
    ("邮箱ann@example.test。", "ann", "e-mail"),
    ("call +49 30 1234567", "1234567", "phone number"),
    ("(555) 123-4567", "4567", "phone number"),
    ("555-123-4567", "4567", "phone number"),
    ("电话13812345678", "138", "phone number"),
    ("phone number: 138-1234-5678", "5678", "phone number"),
    ("Tel.: 030 1234567", "1234567", "phone number"),
    ('"phone": "5551234"', "5551234", "phone number"),
    ("020 7946 0958", "0958", "phone number"),
    ("4111 1111 1111 1111", "1111", "card number"),
    ("378282246310005", "3782", "card number"),
    ("DE89 3704 0044 0532 0130 00", "3704", "IBAN"),
    ("GB82 WEST 1234 5698 7654 32 THANKS", "WEST", "IBAN"),
    ("身份证号：11010519491231002X。", "1949", "resident id"),
    ("SSN 078-05-1120", "1120", "social security number"),
]

NUMBERS = """order 4111111111111112 and 1234567890123456
order number: 15912345678, order 4111111111111111
2024-01-02 03:04:05, 1706745600000, 1706745600, 2024-01-02T03:04:05.123456Z
192.168.100.200 10.0.0.1:8080 3.14159265358979 -0.123456789012345
npm i left-pad@1.3.0 user@localhost icon@2x.png @app.route git@github.com:owner/repo.git
123e4567-e89b-12d3-a456-426614174000 ISBN 9783161484100
114-3941689-8772232  1Z999AA10123456784 RE-2024-000123
1,234,567,890.12 | 1 234 567 890 | 252.227-7013
DE89370400440532013001 110105194912310021 000-12-3456"""


@pytest.mark.parametrize(("text", "gone", "kept"), SECRET)
def test_a_secret_is_masked_and_the_text_around_it_stays(text, gone, kept):
    covered = KEYS.cover(text)
    assert gone not in covered
    assert kept in covered
    assert KEYS.cover(covered) == covered, "covering again changes nothing"


@pytest.mark.parametrize("text", f"{ORDINARY}\n{NUMBERS}".split("\n"))
def test_ordinary_text_stays(text):
    assert KEYS.cover(text) == text


@pytest.mark.parametrize("text", NUMBERS.split("\n"))
def test_numbers_that_belong_to_nobody_stay(text):
    assert ALL.cover(text) == text


@pytest.mark.parametrize(("text", "gone", "label"), PERSONAL)
def test_personal_data_are_masked_only_when_asked(text, gone, label):
    covered = ALL.covered(text)
    assert gone not in covered.text
    assert covered.counts == {label: 1}
    assert KEYS.cover(text) == text


def test_an_error_text_with_keys_in_it_keeps_what_helps(cases):
    given, expect = cases["H16"]["given"], cases["H16"]["expect"]
    for masks in (KEYS, KEYS.with_secrets(given["configured_secrets"])):
        covered = masks.cover(given["tool_raises"])
        assert [word for word in expect["forbidden"] if word in covered] == []
        assert [word for word in expect["kept"] if word not in covered] == []


def test_a_known_secret_is_found_in_every_form():
    secret = "a/b+c\"d'é&tulips"
    forms = [secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret), json.dumps(json.dumps(secret))]
    forms += [json.dumps(secret, ensure_ascii=False), repr(secret), base64.urlsafe_b64encode(secret.encode()).decode()]
    masks = Masks((secret,), ())
    assert [form for form in forms if "tulips" in masks.cover(form) or "[masked: secret]" not in masks.cover(form)] == []


@pytest.mark.parametrize("user", ["a", "bb", "ccc"])
@pytest.mark.parametrize("end", ["", "x", "xy"])
def test_a_known_secret_is_found_inside_of_base64(user, end):
    text = base64.b64encode(f"{user}:open-sesame-2024{end}".encode()).decode()
    covered = Masks(("open-sesame-2024",), ()).cover(text)
    left = covered.replace("[masked: secret]", "")
    assert "[masked: secret]" in covered
    assert len(left) <= 12, "the user's name and what stands beside the secret"


def test_a_short_secret_is_masked_only_where_it_stands_alone():
    assert Masks(("llama", "abc"), ()).cover("llamas, llama, abc") == "llamas, [masked: secret], abc"


def test_no_secret_is_shown_by_its_masks():
    assert "open" not in repr(Masks(("open-sesame",)))


def test_a_mark_is_never_masked_again():
    masks = Masks(("secret", "masked"), Masks.of({"word": r"\bkey\b"}).patterns + PATTERNS["keys"])
    covered = masks.cover("password=pa55word a secret key")
    assert covered == "password=[masked: password] a [masked: secret] [masked: word]"
    assert masks.cover(covered) == covered


def test_what_was_masked_is_counted_for_a_note():
    covered = KEYS.covered("password=pa55word, password: hunter2 and sk-" + "abcdef0123456789abcd")
    assert covered.note == "3 masked (api key, password)"
    assert KEYS.found("nothing here") == {}
    assert KEYS.covered("nothing here").note == ""


def test_a_json_text_stays_json():
    value = {"password": 'a"b\\c', "text": "mail\nann@example.test", "n": [{"api_key": "0123abcd4567"}]}
    covered = json.loads(ALL.cover(json.dumps(value)))
    assert covered == {"password": "[masked: password]", "text": "mail\n[masked: e-mail]", "n": [{"api_key": "[masked: api key]"}]}


def test_a_user_adds_patterns():
    masks = Masks.of("keys", {"employee number": r"\bE-\d{6}\b", "room": r"room (?P<value>\d+)"})
    assert masks.cover("E-123456 in room 12") == "[masked: employee number] in room [masked: room]"


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        (("persnal",), "there is no set of patterns named 'persnal'; there are: keys, personal"),
        (
            ({"badge": "E-(\\d"},),
            "the pattern 'badge' is no regular expression: missing ), unterminated subpattern at position 2; it is 'E-(\\\\d'",
        ),
        (({"any": "x*"},), "the pattern 'any' also matches where there is nothing, so everywhere; it is 'x*'"),
    ],
)
def test_a_set_or_pattern_that_cannot_work_is_named(sets, text):
    with pytest.raises(SettingError) as caught:
        Masks.of(*sets)
    assert str(caught.value) == text


def test_nothing_is_masked_without_masks():
    assert NO_MASKS.cover("password=pa55word") == "password=pa55word"
    assert NO_MASKS.with_secrets(["open-sesame"]).cover("open-sesame") == "[masked: secret]"


def test_secrets_are_told_from_settings_by_name_and_value():
    secret = {
        "OPENAI_API_KEY": "sk-0123456789",
        "DB_PASSWORD": "hunter2!!",
        "github_token": "ghp_abcdefg",
        "SECRET_KEY_BASE": "abcdefgh",
    }
    plain = {
        "PWD": "/home/ann/work",
        "A_TOKEN": "disabled",
        "KEYBOARD": "qwertyuiop",
        "MONKEY": "bananas-and-more",
        "X_KEY": "12345678",
    }
    plain |= {"MAX_TOKENS": "123456789", "GIT_PASSWORD": "password", "APP_KEY": "C:\\x\\y\\z.pem", "SHORT_KEY": "abc1234"}
    plain |= {"AUTH_TOKEN": "https://x.example.test/token", "GOOGLE_APPLICATION_CREDENTIALS": "/x/y/z.json"}
    assert secrets_of(secret | plain) == tuple(secret.values())


@pytest.mark.parametrize(
    "unit",
    ["a", "=", "eyJ", "eyJ-", "-", "1 ", "a@a.", "password='", 'token=\\"', "://a:", "-----BEGIN PRIVATE KEY-----", "sk-", "密码"],
)
def test_a_long_text_takes_time_in_proportion_to_its_length(unit):
    def seconds(length):
        text = unit * (length // len(unit))
        began = time.perf_counter()
        ALL.cover(text)
        return time.perf_counter() - began

    seconds(1_000)  # expressions are compiled
    assert seconds(1_000_000) < 8, "a quadratic one would take minutes"
