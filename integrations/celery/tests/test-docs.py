#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The application of docs/celery.md runs as it is written there, with another port."""

import os
import re
import sys

from setup import ROOT, Setup, wait_until   # first: it finds Celery

import tap                              # noqa: E402


def blocks(kind):
    with open(os.path.join(ROOT, "docs", "celery.md"), encoding="utf-8") as file:
        return re.findall(r"^```%s\n(.*?)^```$" % kind, file.read(), re.M | re.S)


def test_the_application_of_the_page():
    (source,) = blocks("python")
    (relay,) = blocks("sh")
    with Setup() as on:
        source, count = re.subn("localhost:6379", "127.0.0.1:%d" % on.redis.port, source)
        assert count == 1
        source = source.replace("//localhost/1", "//127.0.0.1:%d/1" % on.redis.port)
        with open(os.path.join(on.redis.folder, "shop.py"), "w", encoding="utf-8") as file:
            file.write(source)
        on.environment["PYTHONPATH"] += os.pathsep + on.redis.folder
        words = relay.split()
        assert words[0] == "expiry-celery-relay"
        on.program("relay", [sys.executable, "-B", "-m", "expiry_celery", *words[1:]])
        worker = on.program("worker", [sys.executable, "-B", "-m", "celery", "-A", "shop",
                                       "worker", "--pool", "solo", "--loglevel", "INFO"])
        wait_until(lambda: " ready." in worker.log(), 60)
        sys.path.append(on.redis.folder)
        import shop
        result = shop.remind.apply_async(("alice",), countdown=3)
        assert on.parked() == 1
        wait_until(lambda: "alice" in worker.log())
        task = shop.remind.apply_async(("bob",), countdown=3600).id
        result.get(timeout=30)
        del result
        shop.app.control.revoke(task)
        wait_until(lambda: shop.app.AsyncResult(task).state == "REVOKED")
        assert on.parked() == 0


if __name__ == "__main__":
    tap.main()
