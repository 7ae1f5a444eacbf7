#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions of Starlette below uvicorn, with real requests: each end is told once, in time
and not early, whatever is killed. EXPIRY_TEST_KILLS seconds of kills (10)."""

import http.client
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PATH = [os.path.join(ROOT, *folder) for folder in (
    ("integrations", "support"), ("integrations", "starlette", "src"),
    ("clients", "python", "src"))] + [HERE]
sys.path[:0] = [*PATH, os.path.join(ROOT, "tests", "socket")]

import python           # noqa: E402
python.need("starlette", "uvicorn")

import tap              # noqa: E402
from processes import Expiryd, Program, wait_until  # noqa: E402
from redis_server import free_port                  # noqa: E402
from starlette.testclient import TestClient         # noqa: E402

SECONDS = int(os.environ.get("EXPIRY_TEST_KILLS", "10"))
SEED = int(os.environ.get("EXPIRY_TEST_SEED", time.time_ns() % 10**6))
AGE = 2.0


class Setup:
    """A daemon, and as many servers as wanted. @variables: of the application"""

    def __init__(self, servers=1, daemon_options=(), **variables):
        self.folder = tempfile.mkdtemp(prefix="expiry-starlette-")
        self.daemon = Expiryd(*daemon_options)
        self.environment = dict(os.environ, FOLDER=self.folder,
                                EXPIRY_SOCKET=self.daemon.path, PYTHONDONTWRITEBYTECODE="1",
                                PYTHONPATH=os.pathsep.join(PATH), **variables)
        self.ports = [free_port() for _ in range(servers)]
        self.servers = [Program(
            [sys.executable, "-B", "-m", "uvicorn", "application:app", "--port", str(port),
             "--log-level", "warning"], self.environment,
            os.path.join(self.folder, "%d.log" % port), HERE) for port in self.ports]
        for number in range(servers):
            self.wait_up(number)

    def wait_up(self, number=0):
        def is_up():
            try:
                return self.get("/look", server=number)
            except OSError:
                return False
        wait_until(is_up)

    def get(self, path, key=None, server=0):
        """Returns the answer, and the session's key after it: "" if the cookie is removed,
        None if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[server], timeout=10)
        try:
            connection.request("GET", path, headers={
                "Cookie": "other=1; session=%s; more=2" % key} if key else {})
            reply = connection.getresponse()
            body = reply.read()
            assert reply.status == 200, (reply.status, body, self.log())
            cookie = reply.getheader("Set-Cookie", "")
        finally:
            connection.close()
        new = cookie.partition("session=")[2].partition(";")[0] if cookie else None
        return json.loads(body), "" if new == "null" else new

    def visit(self, server=0, **words):
        """Begins a session. Returns its key, and when it ends at the earliest."""
        before = time.time()
        _, key = self.get("/visit?" + "&".join("%s=%s" % pair for pair in words.items()),
                          server=server)
        assert key
        return key, before

    def told(self, key=None):
        try:
            with open(os.path.join(self.folder, "notes"), encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [line for line in lines if key in (None, line[1])]

    def rows(self):
        with sqlite3.connect(os.path.join(self.folder, "sessions.db")) as connection:
            return dict(connection.execute("SELECT key, ends FROM sessions"))

    def log(self):
        return "\n".join(server.log() for server in self.servers)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for server in self.servers:
            server.kill()
        if kind:
            print("\n".join("# " + line for line in self.log().splitlines()[-30:]))
        self.daemon.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def test_a_session_that_expires_is_told_once_and_in_time():
    with Setup() as on:
        began = {}
        for number in range(100):
            key, before = on.visit(name="n%d" % number)
            began[key] = (before, number)
        assert on.get("/look", key)[0] == {"name": "n99"}
        wait_until(lambda: len(on.told()) >= 100)
        time.sleep(0.3)
        assert len(on.told()) == 100
        for at, key, reason, data in on.told():
            before, number = began[key]
            assert 0 <= at / 1e9 - before - AGE < 3, (at / 1e9 - before, key)
            assert reason == "expired" and data == {"name": "n%d" % number}
        assert not on.rows()
        assert on.get("/look", key)[0] == {}
        assert on.get("/counters")[0] == {"told": 100, "failed": 0, "swept": 0, "refused": 0}


def test_visits_keep_a_session():
    with Setup() as on:
        key, _ = on.visit(name="bob")
        last = 0
        for _ in range(8):
            time.sleep(0.5)
            last = time.time()
            assert on.get("/look", key) == ({"name": "bob"}, key)
            assert not on.told()
        wait_until(on.told)
        # An end moves in steps of a hundredth of the session's length.
        assert on.told()[0][0] / 1e9 >= last + AGE * 0.99 - 0.001, (on.told(), last)


def test_a_session_that_is_ended_is_told_at_once_with_its_reason():
    with Setup(MAX_AGE="3600") as on:
        key, _ = on.visit(name="carol")
        other, _ = on.visit(name="dave")
        assert on.get("/leave", key) == ({}, "")
        (line,) = wait_until(on.told)
        assert line[1:] == [key, "deleted", {"name": "carol"}]
        assert on.get("/look", key) == ({}, None) and set(on.rows()) == {other}
        assert on.get("/leave") == ({}, None)


def test_a_login_changes_the_key_and_ends_nothing():
    with Setup() as on:
        key, _ = on.visit(name="erin")
        _, new = on.get("/enter", key)
        assert new and new != key
        assert on.get("/look", key) == ({}, None)
        assert on.get("/look", new)[0] == {"name": "erin", "user": "alice"}
        wait_until(on.told)
        time.sleep(0.5)
        assert [line[1] for line in on.told()] == [new], on.told()


def test_a_slow_request_does_not_bring_an_ended_session_back():
    """The middleware alone, with an application that waits for another request."""
    from expiry_starlette import SessionMiddleware, Sessions
    with Setup(MAX_AGE="3600") as on:
        key, _ = on.visit(name="frank")
        sessions = Sessions(os.path.join(on.folder, "sessions.db"), None)
        sessions.store.open()

        async def slow(scope, receive, send):
            assert scope["session"]["name"] == "frank"
            on.get("/leave", key)
            scope["session"]["name"] = "again"
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        client = TestClient(SessionMiddleware(slow, sessions, max_age=3600))
        reply = client.get("/", cookies={"session": key})
        assert "null" in reply.headers["set-cookie"]
        wait_until(on.told)
        time.sleep(0.3)
        assert [line[3] for line in on.told()] == [{"name": "frank"}] and not on.rows()
        sessions.store.close()


def test_cookies_that_are_no_key_are_no_session():
    with Setup() as on:
        key, _ = on.visit(name="grace")
        for text in ("", "x", key.upper() if key != key.upper() else "A" * 32, "0" * 32,
                     key + "0", "' OR 1=1", "%s%%00" % key[:29], "\xff" * 32, "null"):
            assert on.get("/look", text)[0] == {}, text
        _, other = on.get("/visit?a=1", "f" * 32)
        assert other and other != "f" * 32, "a client chose the key"


def test_a_session_above_the_limit_is_an_error():
    with Setup() as on:
        connection = http.client.HTTPConnection("127.0.0.1", on.ports[0], timeout=10)
        connection.request("GET", "/visit?a=" + "x" * 1000)
        assert connection.getresponse().status == 500
        connection.close()
        assert not on.rows()
        wait_until(lambda: "bytes of at most 1000" in on.log())


def test_the_cookie_s_attributes():
    from expiry_starlette import SessionMiddleware
    made = SessionMiddleware(None, None, "sid", 60, "/shop", "strict", True, "example.com")
    assert made._cookie("k", 60) == "sid=k; max-age=60; path=/shop; httponly; " \
        "samesite=strict; secure; domain=example.com"


def test_a_callback_that_fails_is_called_again_and_holds_up_no_other():
    with Setup(SWEEP="0.2", GRACE="0") as on:
        fail = os.path.join(on.folder, "fail")
        with open(fail, "w", encoding="utf-8"):
            pass
        key, _ = on.visit(name="heidi")
        wait_until(lambda: on.get("/counters")[0]["failed"] >= 2)
        other, _ = on.visit(name="ivan")
        os.unlink(fail)
        wait_until(lambda: len(on.told()) == 2)
        assert {line[1] for line in on.told()} == {key, other}
        assert on.get("/counters")[0]["failed"] < 20


def test_of_two_servers_one_tells_and_the_other_takes_over():
    with Setup(servers=2) as on:
        for number in range(40):
            on.visit(server=number % 2, name="n%d" % number)
        wait_until(lambda: len(on.told()) >= 40)
        told = [on.get("/counters", server=number)[0]["told"] for number in (0, 1)]
        assert sorted(told) == [0, 40], told
        teller = told.index(40)
        keys = [on.visit(server=number % 2, name="m%d" % number)[0] for number in range(40)]
        on.servers[teller].kill()
        wait_until(lambda: len(on.told()) >= 80)
        assert sorted(line[1] for line in on.told()[40:]) == sorted(keys)


def test_refused_timers_are_told_by_the_sweep():
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        config.write("timers_per_queue = 5\n")
        config.flush()
        with Setup(daemon_options=("--config", config.name), SWEEP="0.5", GRACE="0.2") as on:
            for number in range(30):
                on.visit(name="n%d" % number)
            wait_until(lambda: len(on.told()) >= 30)
            found = on.get("/counters")[0]
            assert found["told"] == 30 and found["swept"] >= 20, found
            assert found["refused"] >= 20
            assert on.log().count("refuses timers") == 1, on.log()


def test_a_server_that_starts_without_a_daemon_serves_and_tells_later():
    with Setup() as on:
        on.servers[0].kill()
        on.daemon.stop()
        on.servers[0].start()
        on.wait_up()
        keys = [on.visit(name="n%d" % number)[0] for number in range(10)]
        time.sleep(AGE + 0.5)
        assert not on.told()
        on.daemon.start()
        wait_until(lambda: len(on.told()) >= 10)
        assert sorted(line[1] for line in on.told()) == sorted(keys)


def test_each_end_is_told_while_servers_and_daemon_are_killed():
    dice = random.Random(SEED)
    print("# seed %d" % SEED)
    # A timer that is asked for while the daemon is away is the sweep's: each minute else.
    with Setup(servers=2, SWEEP="2") as on:
        began, kills = {}, 0
        end, next_kill = time.monotonic() + SECONDS, time.monotonic() + 1
        while time.monotonic() < end:
            server = dice.randrange(2)
            key, before = on.visit(server=server, name="n%d" % len(began))
            began[key] = before
            if time.monotonic() > next_kill:
                what = dice.choice(("server", "daemon", "both"))
                if what != "daemon":
                    on.servers[server].kill()
                if what != "server":
                    on.daemon.kill()
                if what != "daemon":
                    on.servers[server].start()
                    on.wait_up(server)
                kills += 1
                next_kill = time.monotonic() + 0.3 + dice.random()
            time.sleep(0.005)
        wait_until(lambda: not on.rows(), AGE + 30)
        told = [line[1] for line in on.told()]
        assert set(told) == set(began), (SEED, set(began) - set(told))
        early = [key for at, key, *_ in on.told() if at / 1e9 < began[key] + AGE]
        assert not early, (SEED, early)
        # One may be told again if its server is killed between the call and the row.
        print("# %d sessions, %d kills, %d told twice" % (
            len(began), kills, len(told) - len(set(told))))
        assert len(told) - len(set(told)) <= kills, SEED


def test_a_websocket_sees_the_session():
    from expiry_starlette import SessionMiddleware, Sessions
    with tempfile.TemporaryDirectory() as folder:
        sessions = Sessions(os.path.join(folder, "db"), None)
        sessions.store.open()

        async def talk(scope, receive, send):
            if scope["type"] == "http":
                scope["session"]["name"] = "judy"
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": json.dumps(scope["session"])})
            await send({"type": "websocket.close", "code": 1000})
        client = TestClient(SessionMiddleware(talk, sessions))
        client.get("/")
        with client.websocket_connect("/") as socket:
            assert json.loads(socket.receive_text()) == {"name": "judy"}
        sessions.store.close()


if __name__ == "__main__":
    tap.main()
