#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The application of docs/starlette.md runs as it is written there."""

import http.client
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PATH = [os.path.join(ROOT, *folder) for folder in (
    ("integrations", "support"), ("integrations", "starlette", "src"),
    ("clients", "python", "src"))]
sys.path[:0] = [*PATH, os.path.join(ROOT, "tests", "socket")]

import python           # noqa: E402
python.need("starlette", "uvicorn")

import tap              # noqa: E402
from processes import Expiryd, Program, wait_until  # noqa: E402
from redis_server import free_port                  # noqa: E402


def get(port, path, cookie=""):
    """Returns the cookie that the answer has."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"Cookie": cookie})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200, reply.status
        return reply.getheader("Set-Cookie", "").partition(";")[0]
    except OSError:
        return ""
    finally:
        connection.close()


def test_the_page_s_application():
    with open(os.path.join(ROOT, "docs", "starlette.md"), encoding="utf-8") as file:
        (text,) = re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)
    daemon = Expiryd()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "shop.py"), "w", encoding="utf-8") as file:
            file.write(text)
        port = free_port()
        server = Program(
            [sys.executable, "-B", "-m", "uvicorn", "shop:app", "--port", str(port)],
            dict(os.environ, EXPIRY_SOCKET=daemon.path, PYTHONPATH=os.pathsep.join(PATH)),
            os.path.join(folder, "log"), folder)
        try:
            cookie = wait_until(lambda: get(port, "/enter?user=alice"))
            get(port, "/leave", cookie)
            wait_until(lambda: "the session of alice is over: deleted\n" in server.log())
            get(port, "/enter?user=bob")
            wait_until(lambda: "the session of bob is over: expired\n" in server.log())
        finally:
            server.kill()
            daemon.remove()


if __name__ == "__main__":
    tap.main()
