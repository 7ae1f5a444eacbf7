#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics by HTTP from the installed units, and what the journal has of it."""

import socket

from service import LIMIT, SOCKET, UNIT, Cursor, figure, main, serves, systemctl
# Where service has looked.
from client import wait_for

METRICS = "/run/expiryd/metrics"
SCRAPES = 5


def scrape():
    """Returns the answer to one request."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LIMIT)
        connection.connect(METRICS)
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with connection.makefile("rb") as file:
            return file.read().decode()


def all_ended():
    """Waits until no process of a scrape is left."""
    return wait_for(lambda: not systemctl(
        "list-units", "--all", "--plain", "--no-legend", "expiry-metrics@*"), LIMIT)


def test_scrapes_write_nothing_into_the_journal():
    serves()
    systemctl("start", "expiry-metrics.socket")
    journal = Cursor()
    for _ in range(SCRAPES):
        assert scrape().startswith("HTTP/1.1 200 ")
    assert all_ended()
    entries = [entry["MESSAGE"] for entry in journal.about("expiry-metrics@")]
    assert not entries, entries
    figure("%d scrapes, no entry" % SCRAPES)


def test_scrape_that_failed_has_its_reason_in_the_journal():
    serves()
    systemctl("start", "expiry-metrics.socket")
    systemctl("stop", "expiryd.socket", UNIT)
    journal = Cursor()
    assert scrape().startswith("HTTP/1.1 503 ")
    assert all_ended()
    entries = [entry["MESSAGE"] for entry in journal.about("expiry-metrics@")]
    systemctl("start", "expiryd.socket", UNIT)
    assert any(SOCKET in text for text in entries), entries
    assert any("Failed with result" in text for text in entries), entries


if __name__ == "__main__":
    main()
