#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics by HTTP from the installed units, and what the journal has of it."""

import socket

from service import (LIMIT, SOCKET, UNIT, Cursor, figure, main, serves, show,
                     systemctl)
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


def test_scrapes_write_nothing_into_the_journal():
    serves()
    systemctl("start", "expiry-exporter.socket")
    # The first one starts the service.
    assert scrape().startswith("HTTP/1.1 200 ")
    journal = Cursor()
    for _ in range(SCRAPES):
        assert scrape().startswith("HTTP/1.1 200 ")
    entries = [entry["MESSAGE"] for entry in journal.about("expiry-exporter")]
    assert not entries, entries
    figure("%d scrapes, no entry" % SCRAPES)


def test_scrape_that_failed_has_its_reason_in_the_journal():
    serves()
    systemctl("start", "expiry-exporter.socket")
    systemctl("stop", "expiryd.socket", UNIT)
    journal = Cursor()

    def entries():
        return [entry["MESSAGE"] for entry in journal.about("expiry-exporter")]
    assert scrape().startswith("HTTP/1.1 503 ")
    found = wait_for(lambda: any(SOCKET in text for text in entries()), LIMIT)
    systemctl("start", "expiryd.socket", UNIT)
    assert found, entries()


def test_a_stopped_exporter_starts_again():
    serves()
    systemctl("start", "expiry-exporter.socket")
    assert scrape().startswith("HTTP/1.1 200 ")
    systemctl("stop", "expiry-exporter.service")
    assert scrape().startswith("HTTP/1.1 200 ")
    assert show("Result", "expiry-exporter.service") == "success"


if __name__ == "__main__":
    main()
