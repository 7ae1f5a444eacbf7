#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiry-exporter: metrics by HTTP, with untrusted clients. Limits hold for the number of
connections, for the request's size and for the time."""

import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "socket"))
import tap  # noqa: E402
from client import HOUR, SCALE, WAIT, arm, attach, wait_for  # noqa: E402
from daemon import HAND_OVER, ROOT, Daemon  # noqa: E402
from support_fake import Server  # noqa: E402
from support_fields import all_stats  # noqa: E402
from support_golden import environment, run  # noqa: E402
import manager  # noqa: E402

PROGRAM = os.path.join(ROOT, "build", "expiry-exporter")
# Python leaves SIGPIPE ignored.
PLAIN = ["/usr/bin/env", "--default-signal=PIPE"]
MEMORY = 16384      # bytes for the heads of a request and its answer
CONNECTIONS = 16
LIMIT = 10          # seconds for a request and its answer
DAEMON_LIMIT = 5    # seconds for the daemon
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Exporter:
    """The program on a Unix socket that it inherits as from systemd.

    @path: the daemon's socket
    @sockets: further listening sockets that it inherits
    """

    def __init__(self, path, options=(), sockets=(), variables=None):
        self.folder = tempfile.TemporaryDirectory()
        self.address = os.path.join(self.folder.name, "metrics")
        self.manager = manager.Manager(os.path.join(self.folder.name, "notify"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen(64)
            handed = [listener, *sockets]
            fds = [other.fileno() for other in handed]
            self.process = subprocess.Popen(
                [sys.executable, "-c", HAND_OVER, "metrics",
                 ",".join(str(fd) for fd in fds), *PLAIN, PROGRAM, "--socket", path,
                 *options],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                pass_fds=fds, env={**(variables or os.environ),
                                   "NOTIFY_SOCKET": self.manager.path})

    def __enter__(self):
        assert wait_for(lambda: self.manager.has("READY=1")), self.end()
        return self

    def connect(self):
        return Client(self.address)

    def ask(self, request):
        """Returns the answer to a request."""
        client = self.connect()
        client.send(request)
        answer = client.answer()
        client.socket.close()
        return answer

    def end(self, number=signal.SIGTERM):
        """Returns the exit status and standard error."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=WAIT)
        return self.process.returncode, err

    def __exit__(self, *_):
        if self.process.returncode is None:
            status, err = self.end()
            assert status == 0 and err == "", (status, err)
        self.manager.close()
        self.folder.cleanup()


class Client:
    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(WAIT)
        self.socket.connect(address)
        self.begun = time.monotonic()

    def send(self, data):
        """Returns whether the exporter took the bytes."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def answer(self):
        """Status, {header: value} and body; all None if there was nothing."""
        data = b""
        # Read to the end: an answer before a reset does not count.
        while more := self.socket.recv(1 << 16):
            data += more
        if not data:
            return None, None, None
        head, body = data.split(b"\r\n\r\n", 1)
        first, *lines = head.decode().split("\r\n")
        version, status, reason = first.split(" ", 2)
        assert version == "HTTP/1.1" and reason, first
        return int(status), dict(line.split(": ", 1) for line in lines), body

    def seconds_to_end(self):
        """Waits until the exporter closes the connection. Returns its duration."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        return time.monotonic() - self.begun


def exporter(daemon, *options, **more):
    return Exporter(daemon.path, options, **more)


def test_answers(daemon):
    with attach(daemon.path, "leases") as queue, exporter(daemon) as server:
        queue.batch([arm(HOUR)] * 3)
        for request in (GET, GET.replace(b"1.1", b"1.0"),
                        GET.replace(b" HTTP", b"?a=b HTTP")):
            status, headers, body = server.ask(request)
            assert status == 200, (request, status)
            assert int(headers["Content-Length"]) == len(body), headers
            assert headers["Content-Type"] == ("application/openmetrics-text; "
                                               "version=1.0.0; charset=utf-8")
            assert headers["Connection"] == "close", headers
            assert headers["Cache-Control"] == "no-store", headers
            assert body.startswith(b"# TYPE ") and \
                body.endswith(b"\n# EOF\n"), body
            assert b'\nexpiry_queue_armed{queue="leases"} 3\n' in body
        status, headers, body = server.ask(GET.replace(b"GET", b"HEAD"))
        assert status == 200 and body == b"", body
        assert int(headers["Content-Length"]) > 1000, headers


def test_the_text_of_expiryctl():
    with Server(**all_stats()) as fake:
        status, out, err = run(fake, "metrics")
        assert (status, err) == (0, ""), err
        with Exporter(fake.path, variables=environment()) as server:
            status, _, body = server.ask(GET)
            assert status == 200 and body.decode() == out, body


def test_few_queues(daemon):
    with attach(daemon.path, "one"), attach(daemon.path, "two"):
        for limit in 1, 2:
            with exporter(daemon, "--limit", str(limit)) as server:
                body = server.ask(GET)[2]
                assert body.count(b"\nexpiry_queue_armed{") == limit, body


def resident(process):
    """Returns the KiB of memory that the process has."""
    with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file
                    if line.startswith("VmRSS:"))


def cpu_seconds(process):
    """Returns the processor time that the process has used."""
    with open("/proc/%d/stat" % process.pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_memory_is_freed(daemon):
    queues = [attach(daemon.path, "queue-%03d" % i) for i in range(100)]
    with exporter(daemon) as server:
        for i in range(200):
            if i == 20:
                before = resident(server.process)
            assert server.ask(GET)[0] == 200
        after = resident(server.process)
        assert after < before + 4096, (before, after)
    for queue in queues:
        queue.close()


def test_request_in_pieces(daemon):
    with exporter(daemon) as server:
        client = server.connect()
        for i in range(len(GET)):
            client.send(GET[i:i + 1])
        assert client.answer()[0] == 200


def test_what_is_no_such_request(daemon):
    with exporter(daemon) as server:
        for request, expected in (
                (GET.replace(b"GET", b"POST"), 405),
                (GET.replace(b"GET", b"get"), 405),
                (GET.replace(b"GET", b"DELETE"), 405),
                (GET.replace(b"/metrics", b"/"), 404),
                (GET.replace(b"/metrics", b"/metrics/"), 404),
                (GET.replace(b"/metrics", b"/metrics\x01"), 404),
                (GET.replace(b"/metrics", b"//metrics"), 404)):
            status, headers, body = server.ask(request)
            assert status == expected, (request, status)
            assert int(headers["Content-Length"]) == len(body), headers
            assert headers["Connection"] == "close", headers
            assert headers.get("Allow") == ("GET, HEAD" if status == 405
                                            else None), headers


def test_what_is_no_http(daemon):
    """The library chooses the status, or closes the connection without one."""
    line = b"GET /metrics HTTP/1.1\r\n"
    with exporter(daemon) as server:
        clients = []
        for request in (
                GET.replace(b"HTTP/1.1", b"HTTP/2.0"),
                GET.replace(b" HTTP/1.1", b""),
                GET.replace(b"HTTP/1.1", b"HTTP/1.1 x"),
                GET.replace(b"Host", b"Ho\0st"),
                line + b"\r\n",
                b"\r\n\r\n", b"\n", b" \n\n", b"\0" * 100,
                b"\xff" * 100 + b"\n\n", b"\x16\x03\x01\x02\x00\x01\x00",
                b"x" * 2 * MEMORY,
                line + b"A: b\r\n" * 3000,
                line + b"Host: a\r\nX: " + b"x" * MEMORY + b"\r\n\r\n",
                b"GET /metrics" + b"x" * MEMORY + b" HTTP/1.1\r\n"):
            clients.append((server.connect(), request))
            clients[-1][0].send(request)
        # Those that look incomplete stay to the end of their time, all together.
        for client, request in clients:
            try:
                status = client.answer()[0]
            except ConnectionResetError:
                status = None
            client.socket.close()
            assert status in (None, 400, 414, 431, 505), (request[:60], status)
        # It still answers, and what is long is no fault by itself.
        assert server.ask(GET)[0] == 200
        assert server.ask(GET[:-2] + b"X: " + b"x" * (MEMORY // 2) +
                          b"\r\n\r\n")[0] == 200


def test_a_body_is_not_read(daemon):
    """The answer comes before the body's end."""
    head = b"POST /metrics HTTP/1.1\r\nHost: a\r\n"
    with exporter(daemon) as server:
        for request in (head + b"Content-Length: 18446744073709551615\r\n\r\n",
                        head + b"Content-Length: 1000000\r\n\r\nx",
                        head + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n"):
            status = server.ask(request)[0]
            assert status in (400, 405, 413), (request, status)
            assert status == 405 or b"1844674407370955161" in request


def test_one_that_ends_early(daemon):
    with exporter(daemon) as server:
        for text in (b"", GET[:10], GET[:-2], GET) * CONNECTIONS:
            client = server.connect()
            client.send(text)
            client.socket.close()
        assert server.ask(GET)[0] == 200


def test_one_that_takes_its_time(daemon):
    """Slow clients run together, and others are served meanwhile."""
    names = ["queue-%03d" % i for i in range(200)]
    queues = [attach(daemon.path, name) for name in names]
    with exporter(daemon) as server:
        silent, slow = server.connect(), server.connect()
        deaf, endless = server.connect(), server.connect()
        deaf.send(GET)
        endless.socket.settimeout(0)
        # More bytes do not give it more time.
        while not select.select([slow.socket], [], [], 0.5)[0]:
            assert time.monotonic() - slow.begun < 2 * LIMIT * SCALE
            slow.send(b"x")
            try:
                endless.send(b"POST /metrics HTTP/1.1\r\nX: ")
            except BlockingIOError:
                pass
            assert server.ask(GET)[0] == 200
        seconds = time.monotonic() - slow.begun
        assert LIMIT - 0.01 <= seconds, seconds
        assert LIMIT - 0.01 <= silent.seconds_to_end() < 2 * LIMIT * SCALE
        # Part of the answer is in the socket.
        assert deaf.seconds_to_end() < 2 * LIMIT * SCALE
        for client in silent, slow, deaf, endless:
            client.socket.close()
    for queue in queues:
        queue.close()


def test_too_many_wait(daemon):
    """A client beyond the limit is served when another one ends."""
    with exporter(daemon) as server:
        clients = [server.connect() for _ in range(CONNECTIONS)]
        late = server.connect()
        late.send(GET)
        before = cpu_seconds(server.process)
        assert not select.select([late.socket], [], [], 1)[0]
        used = cpu_seconds(server.process) - before
        assert used < 0.2, used
        clients.pop().socket.close()
        assert late.answer()[0] == 200
        for client in clients:
            client.socket.close()


def test_no_descriptor_for_a_client(daemon):
    with exporter(daemon) as server:
        used = len(os.listdir("/proc/%d/fd" % server.process.pid))
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE,
                         (used + 4, most))
        clients = [server.connect() for _ in range(8)]
        before = cpu_seconds(server.process)
        time.sleep(1)
        spent = cpu_seconds(server.process) - before
        assert spent < 0.2, spent
        for client in clients:
            client.socket.close()
        assert server.ask(GET)[0] == 200


def test_several_sockets(daemon):
    with socket.create_server(("127.0.0.1", 0)) as given, \
            exporter(daemon, "--listen", "127.0.0.1:0", sockets=[given]) as server:
        own = server.process.stdout.readline()
        assert own.startswith("listening on 127.0.0.1:"), own
        for address in (server.address, given.getsockname(),
                        ("127.0.0.1", int(own.rsplit(":", 1)[1]))):
            client = Client(address)
            client.send(GET)
            assert client.answer()[0] == 200, address


def test_an_address_is_free_after_the_end(daemon):
    """The exporter closes each connection first, so the port keeps a state."""
    address = "127.0.0.1:0"
    for _ in range(2):
        with exporter(daemon, "--listen", address) as server:
            address = server.process.stdout.readline().split()[-1]
            client = Client(("127.0.0.1", int(address.rsplit(":", 1)[1])))
            client.send(GET)
            assert client.answer()[0] == 200
            client.socket.close()


def test_ipv6(daemon):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        print("# no IPv6 here")
        return
    with exporter(daemon, "--listen", "[::1]:0") as server:
        own = server.process.stdout.readline()
        assert own.startswith("listening on [::1]:"), own
        port = int(own.rsplit(":", 1)[1])
        with socket.create_connection(("::1", port), WAIT) as client:
            client.sendall(GET)
            assert client.recv(15) == b"HTTP/1.1 200 OK"


def test_no_daemon():
    with Exporter("/nonexistent/socket") as server:
        for _ in range(2):
            status, _, body = server.ask(GET)
            assert status == 503 and body == b"Service Unavailable\n", (status, body)
        status, err = server.end()
        assert status == 0, status
        assert err == ("expiry-exporter: /nonexistent/socket: no daemon answers; "
                       "start it with: systemctl start expiryd, or name its "
                       "socket with --socket\n") * 2, err


def test_no_reader_of_errors():
    with Exporter("/nonexistent/socket") as server:
        server.process.stderr.close()
        for _ in range(2):
            assert server.ask(GET)[0] == 503
        server.process.terminate()
        assert server.process.wait(WAIT) == 0


def test_a_daemon_that_returns(daemon):
    """A failed scrape leaves nothing behind."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with Exporter(path) as server:
            assert server.ask(GET)[0] == 503
            os.symlink(daemon.path, path)
            assert server.ask(GET)[0] == 200
            assert server.end()[0] == 0


def test_a_daemon_that_hangs():
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(os.path.join(folder, "socket"))
        listener.listen()
        with Exporter(listener.getsockname()) as server:
            begun = time.monotonic()
            assert server.ask(GET)[0] == 503
            seconds = time.monotonic() - begun
            assert DAEMON_LIMIT <= seconds < 2 * DAEMON_LIMIT * SCALE, seconds
            assert server.end()[0] == 0


def test_ends_by_signals(daemon):
    for number in signal.SIGTERM, signal.SIGINT:
        with exporter(daemon) as server:
            client = server.connect()
            client.send(GET[:10])
            assert server.end(number) == (0, ""), number


def call(*arguments):
    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=WAIT,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def test_wrong_calls():
    wants = "expected a numeric address and a port, as in 127.0.0.1:9464 or [::1]:9464"
    for arguments, text in (
            ((), "no socket to serve; start expiry-exporter.socket, or name an "
             "address with --listen"),
            (("x",), "x: no argument is expected; see: expiry-exporter --help"),
            (("--socket", ""), "--socket wants a path"),
            (("--limit", "0"), "--limit 0: expected a number from 1 on"),
            (("--limit", "x"), "--limit x: expected a number from 1 on"),
            *((("--listen", address), "--listen %s: %s" % (address, wants))
              for address in ("", "x", ":1", "127.0.0.1", "127.0.0.1:", "::1:9464",
                              "[::1]", "[]:1", "localhost:1", "127.0.0.1:http",
                              "127.0.0.1:70000", "1" * 100 + ":1")),
            (("--listen", "127.0.0.1:0") * 9,
             "at most 8 sockets; leave some --listen out")):
        status, _, err = call(*arguments)
        assert (status, err) == (2, "expiry-exporter: %s\n" % text), (arguments, err)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = "127.0.0.1:%d" % other.getsockname()[1]
        assert call("--listen", address) == (
            1, "", "expiry-exporter: --listen %s: Address already in use\n" % address)
    status, _, err = call("--no-such-option")
    assert status == 2 and "no-such-option" in err, err


def test_what_is_no_listening_socket(daemon):
    left, right = socket.socketpair()
    with left, right:
        server = exporter(daemon, sockets=[left])
        _, err = server.process.communicate(timeout=WAIT)
        assert (server.process.returncode, err) == (
            1, "expiry-exporter: sockets of systemd: Socket operation on "
            "non-socket\n"), err


def test_help():
    status, out, err = call("--help")
    assert (status, err) == (0, "") and out.startswith("Usage: expiry-exporter "), out
    assert call("-h") == (0, out, "")
    with open(os.path.join(ROOT, "VERSION"), encoding="utf-8") as file:
        assert call("--version") == (0, "expiry-exporter %s" % file.read(), "")


if __name__ == "__main__":
    if not os.path.exists(PROGRAM):
        print("1..0 # SKIP no expiry-exporter: libmicrohttpd is not installed")
        sys.exit(4)
    tap.main()
