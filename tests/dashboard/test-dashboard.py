#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Alerts and dashboard: well-formed, and each query has data in a Prometheus that
scrapes a daemon."""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "socket"))
import tap                                              # noqa: E402
from client import wait_for                             # noqa: E402
from daemon import ROOT                                 # noqa: E402
from prometheus import LIMIT, RULES, Busy, Prometheus, Scrapes  # noqa: E402

DASHBOARD = os.path.join(ROOT, "packaging/grafana/expiry.json")
UNIT_TESTS = os.path.join(HERE, "rules.yml")
# Grafana's values for its variables.
VARIABLES = {"$__rate_interval": "10s", "$__range": "5m", "$job": "expiry",
             "$instance": ".*", "$queue": ".*"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def promtool(*arguments):
    if not shutil.which("promtool"):
        raise tap.Skip("no promtool: it is in the package prometheus")
    done = subprocess.run(["promtool", *arguments], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False)
    assert not done.returncode, done.stdout


def queries():
    """Returns (panel, query) of the dashboard, variables filled in."""
    found = []
    for panel in json.loads(read(DASHBOARD))["panels"]:
        for target in panel["targets"]:
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            assert "$" not in query, query
            found.append((panel["title"], query))
    return found


def test_rules_are_well_formed():
    promtool("check", "rules", RULES)


def test_each_alert_fires_for_what_it_is_about():
    promtool("test", "rules", UNIT_TESTS)


def test_each_alert_has_a_unit_test():
    named = re.findall(r"alert: (\w+)", read(RULES))
    fired = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", read(UNIT_TESTS))
    assert named and set(named) == set(fired), set(named) ^ set(fired)


def test_panels_stand_side_by_side():
    panels = json.loads(read(DASHBOARD))["panels"]
    cells = set()
    for panel in panels:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"])
               for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells and at["x"] + at["w"] <= 24, panel["title"]
        cells |= own
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_tables_begin_with_queue_and_value():
    """Six columns are wider than a panel: the last ones would not be seen."""
    for panel in json.loads(read(DASHBOARD))["panels"]:
        if panel["type"] == "table":
            (organize,) = [each["options"] for each in panel["transformations"]]
            order = sorted(organize["indexByName"], key=organize["indexByName"].get)
            assert order == ["queue", "instance", "Value"], panel["title"]
            assert all(organize["excludeByName"][name] for name in ("Time", "__name__", "job"))


def lost(ours, theirs, path=""):
    """Returns the parts of @ours that @theirs lacks."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [fault for key, value in ours.items()
                for fault in ([path + "." + key] if key not in theirs and value
                              else lost(value, theirs.get(key), path + "." + key))]
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [path]
        return [fault for number, pair in enumerate(zip(ours, theirs))
                for fault in lost(*pair, "%s[%d]" % (path, number))]
    return [] if ours == theirs or not ours else [path]


def test_grafanas_own_schema_has_every_field():
    """A round trip through the types that Grafana publishes changes nothing."""
    try:
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.models.dashboard import Dashboard
    except ImportError:
        raise tap.Skip("no grafana-foundation-sdk of PyPI") from None
    ours = json.loads(read(DASHBOARD))
    theirs = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
    faults = lost(ours, theirs)
    assert not faults, faults


def test_queries_and_rules_have_data_in_prometheus():
    if not shutil.which("prometheus"):
        raise tap.Skip("no prometheus")
    with Busy() as busy, Scrapes(busy.path) as scrapes, \
            Prometheus(scrapes.address) as prometheus:
        # Scraped with the queue, then without.
        assert wait_for(lambda: prometheus.values('expiry_queue_armed{queue="lost"}'), LIMIT), \
            prometheus.said()
        busy.restart()
        for title, query in queries():
            assert wait_for(lambda query=query: prometheus.values(query), LIMIT), \
                (title, query, prometheus.get("query", query=query))
        # A rule with a misspelt name never fires, and nothing reports it.
        known = set(prometheus.get("label/__name__/values"))
        used = set(re.findall(r"\bexpiry_[a-z_]+", read(RULES) + read(DASHBOARD)))
        assert used and used <= known, used - known
        rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == read(RULES).count("alert:")
        assert all(rule["health"] == "ok" for rule in rules), rules
        firing = {alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"]}
        assert "ExpiryQueueLost" in firing, firing


tap.main()
