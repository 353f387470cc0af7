"""The pump alone, on sockets and a session as a kernel has them; `test_asking_in_kernels` tries it in real kernels."""

import signal
import threading
from types import SimpleNamespace

import pytest
import zmq
from jupyter_client.session import Session

from nb_agent.views.pump import Pump

KEY = b"of this notebook"


class Log:
    def __init__(self):
        self.lines = []

    def warning(self, line, **_):
        self.lines.append(line)

    exception = warning


class Kernel:
    """What the pump uses of ipykernel 7."""

    def __init__(self, socket):
        self.session, self.log = Session(key=KEY), Log()
        self.told, self.states, self.queued = [], [], []
        self.comm_manager = SimpleNamespace(comm_open=self.comm, comm_msg=self.comm, comm_close=self.comm)
        self.io_loop = SimpleNamespace(add_callback=lambda run, *given: self.queued.append((run, *given)))
        pair = SimpleNamespace(to_socket=socket)
        self.shell_channel_thread = SimpleNamespace(manager=SimpleNamespace(get_shell_channel_to_subshell_pair=lambda _: pair))

    def comm(self, stream, identities, message):
        self.told.append(message["content"])
        if message["content"].get("breaks"):
            raise RuntimeError("a widget of somebody else")

    def shell_main(self, subshell_id, message):
        """Where messages go when no cell runs."""

    def _publish_status(self, status, channel, parent=None):
        self.states.append((status, parent["msg_type"]))


@pytest.fixture
def shell():
    """A kernel, and what sends a message to its main shell."""
    context = zmq.Context()
    page, main = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    main.bind("inproc://shell")
    page.connect("inproc://shell")

    def send(kind, key=KEY, **content):
        page.send_multipart([b"page", *Session(key=key).serialize(Session(key=key).msg(kind, content))])

    yield SimpleNamespace(kernel=Kernel(main), send=send, raw=page.send_multipart)
    context.destroy(linger=0)


def read(kernel):
    """The types and numbers of what was given back; reading it whole works only once."""
    messages = []
    for run, subshell_id, message in kernel.queued:
        assert (run, subshell_id) == (kernel.shell_main, None)
        told = kernel.session.deserialize(kernel.session.feed_identities(message, copy=False)[1], copy=False)
        messages.append((told["msg_type"], told["content"]["number"]))
    return messages


def test_a_click_is_handled_at_once_and_all_else_is_given_back_in_its_order(shell):
    pump = Pump.of(shell.kernel)
    for number, kind in enumerate(["execute_request", "comm_msg", "complete_request", "execute_request"]):
        shell.send(kind, number=number)
    pump.poll()
    assert shell.kernel.told == [{"number": 1}]
    assert shell.kernel.states == [("busy", "comm_msg"), ("idle", "comm_msg")]
    assert shell.kernel.queued == []
    pump.close()
    pump.close()
    assert read(shell.kernel) == [("execute_request", 0), ("complete_request", 2), ("execute_request", 3)]


def test_a_message_that_this_notebook_did_not_sign_is_dropped(shell):
    pump = Pump.of(shell.kernel)
    shell.send("comm_msg", key=b"of somebody else", number=0)
    shell.send("comm_msg", number=1)
    pump.poll()
    assert shell.kernel.told == [{"number": 1}]
    assert len(shell.kernel.log.lines) == 1


@pytest.mark.parametrize(
    "frames",
    [[b"\x00"], [b"no", b"end"], [b"page", b"<IDS|MSG>"], [b"page", b"<IDS|MSG>", b"signature", b"{", b"{}", b"{}", b"{}"]],
)
def test_what_is_no_message_is_left_to_the_kernel(shell, frames):
    pump = Pump.of(shell.kernel)
    shell.raw(frames)
    pump.poll()
    pump.close()
    assert [[bytes(frame) for frame in message] for _, _, message in shell.kernel.queued] == [frames]


def test_a_widget_that_breaks_does_not_end_the_run(shell):
    pump = Pump.of(shell.kernel)
    shell.send("comm_msg", breaks=True)
    shell.send("comm_msg", number=1)
    pump.poll()
    assert [content.get("number") for content in shell.kernel.told] == [None, 1]
    assert shell.kernel.states.count(("idle", "comm_msg")) == 2


def test_an_interrupt_between_two_frames_loses_no_message(shell):
    kernel = shell.kernel
    shell.send("execute_request", number=0)
    shell.send("comm_msg", number=1)
    pump = Pump.of(kernel)
    usual = pump._socket.recv_multipart

    class Interrupted:
        def recv_multipart(self, *given, **named):
            signal.raise_signal(signal.SIGINT)
            return usual(*given, **named)

    pump._socket = Interrupted()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pump.poll()
    assert signal.getsignal(signal.SIGINT) is before
    assert kernel.told == []
    pump.close()
    assert read(kernel) == [("comm_msg", 1), ("execute_request", 0)]


@pytest.mark.parametrize("name", ["_publish_status", "comm_manager", "shell_main", "shell_channel_thread"])
def test_without_a_name_of_the_kernel_there_is_no_pump(shell, name):
    setattr(shell.kernel, name, SimpleNamespace() if name == "shell_channel_thread" else None)
    assert Pump.of(shell.kernel) is None


def test_where_the_kernel_takes_something_else_there_is_no_pump(shell):
    shell.kernel.shell_main = lambda subshell_id: None  # as in the first drafts of ipykernel 8
    assert Pump.of(shell.kernel) is None


def test_another_thread_than_the_main_one_gets_no_pump(shell):
    made = ["not asked"]
    thread = threading.Thread(target=lambda: made.append(Pump.of(shell.kernel)))
    thread.start()
    thread.join(5)
    assert made == ["not asked", None]
    assert Pump.of(None) is None
