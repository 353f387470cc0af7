"""The size of an image from its first bytes, and what it costs in each family."""

import base64
import io
import json
import struct

import pytest

from nb_agent import adapters
from nb_agent.tokens import IMAGE, breakdown
from nb_agent.tokens.images import described, weigh


def png(width, height):
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02" + b"\x00" * 40


def jpeg(width, height, *, notes=0):
    about = b"\xff\xe1" + struct.pack(">H", notes + 2) + b"\x00" * notes if notes else b""
    table = b"\xff\xc4\x00\x04\x00\x00"
    return b"\xff\xd8" + about + table + b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x00" * 20


def webp(kind, body):
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + b"\x00\x00\x00\x00" + body + b"\x00" * 8


FILES = {
    "png": png(640, 480),
    "jpeg": jpeg(640, 480),
    "jpeg with a preview": jpeg(640, 480, notes=60_000),
    "gif": b"GIF89a" + struct.pack("<HH", 640, 480) + b"\x00" * 10,
    "webp": webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 640, 480)),
    "webp without loss": webp(b"VP8L", b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")),
    "webp with more": webp(b"VP8X", b"\x00" * 4 + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")),
}


@pytest.mark.parametrize("kind", FILES)
def test_the_size_is_read_from_the_first_bytes(kind):
    text = base64.b64encode(FILES[kind]).decode()
    assert described(text) == described(f"data:image/png;base64,{text}") == "640x480"
    assert described(text, "high") == "640x480 high"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_files_that_another_library_wrote_are_read(form):
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("RGB", (321, 123), "red").save(file, form)
    assert described(base64.b64encode(file.getvalue()).decode()) == "321x123"


@pytest.mark.parametrize(
    "source", [None, "", 7, "https://x.test/i.png", "data:,", "A" * 400_000, "iVBORw0KGgo=", "/9j/" * 50, "🌲"]
)
def test_what_is_no_image_is_not_described(source):
    assert described(source) == ""


def test_every_file_that_is_cut_off_is_read_or_not_described():
    for file in FILES.values():
        for size in range(min(len(file), 64)):
            assert described(base64.b64encode(file[:size]).decode()) in ("", "640x480")


@pytest.mark.parametrize(
    ("text", "model", "tokens"),
    [
        ("", "gpt-4o", IMAGE),
        ("1024x1024 high", "gpt-4o", 765),
        ("2048x4096", "gpt-4o", 1105),
        ("4000x4000 low", "gpt-4o", 85),
        ("1024x1024", "azure/gpt-4o-mini", 2833 + 4 * 5667),
        ("1024x1024", "gpt-4.1-mini", 1659),
        ("512x512", "openai/o3", 225),
        ("1000x1000", "claude-sonnet-4-5", 1334),
        ("8000x8000", "us.anthropic.claude-opus-4-8", 1600),
        ("300x300", "gemini-2.5-pro", 258),
        ("960x540", "models/gemini-2.5-pro", 6 * 258),
        ("960x540", "team-blue", IMAGE),
        ("0x0", "gpt-4o", 255),
        ("A" * 1_000_000, "gpt-4o", IMAGE),
    ],
)
def test_an_image_costs_what_the_providers_document_says(text, model, tokens):
    assert weigh(text, model) == tokens


def bodies(data):
    url = f"data:image/png;base64,{data}"
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {
        "chat_completions": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]},
        "responses": {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url, "detail": "auto"}]}]},
        "anthropic_messages": {"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]},
        "gemini_generate": {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]},
    }


@pytest.mark.parametrize("wire", adapters.WIRES)
def test_every_wire_format_says_how_large_its_images_are(wire):
    body = bodies(base64.b64encode(png(1024, 1024)).decode())[wire]
    segments = adapters.WIRES[wire].segments(json.loads(json.dumps(body)))
    found = breakdown(segments, model="gpt-4o")
    assert found.parts["images"] == 765
    assert not found.exact
    assert breakdown(segments, model="mock").parts["images"] == IMAGE
