#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The judgement of `make bench-figures`, from fixed results: what is reached, missed
and not measured, the spread, and the exit status."""

import contextlib
import io
import json
import os
import pathlib
import runpy
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FIGURES = HERE.parents[1] / "bench/figures"
sys.path[:0] = [str(FIGURES.parent), str(FIGURES), str(HERE.parent / "socket")]
import judge  # noqa: E402
import tap  # noqa: E402
from report.figures import Results  # noqa: E402
from report.tables import Aims  # noqa: E402

SIZES = judge.Sizes(True)
SMALL, MIDDLE, LARGE = SIZES.small, SIZES.middle, SIZES.large


def row(subject, ns, workload="ttl", nr=SMALL, round=0, **more):
    return {"subject": subject, "workload": workload, "timers": nr, "round": round,
            "ns": ns, "main": True, **more}


def everywhere(ns):
    """@ns by subject, in every workload and at every size."""
    workloads = {*judge.FAR_AHEAD, *judge.WHEEL, "descending"}
    return Results(row(subject, value, workload, nr) for subject, value in ns.items()
                   for workload in sorted(workloads) for nr in (SMALL, MIDDLE, LARGE))


def rows_of(part, *arguments):
    """{what: (aim, here, verdict)} of one part of the judgement."""
    aims = Aims()
    part(aims, *arguments)
    return {what: tuple(rest) for what, *rest in aims.rows}


def one(found, *words):
    """The only line with all these words."""
    lines = [key for key in found if all(word in key for word in words)]
    assert len(lines) == 1, (words, list(found))
    return found[lines[0]]


def test_a_peer_is_beaten_where_every_workload_is():
    ns = {"sorted-plain": 10, **dict.fromkeys(judge.PEERS, 31)}
    found = rows_of(judge.peers, everywhere(ns), "sorted-plain", SIZES)
    assert all(verdict == "ok" for *_, verdict in found.values()), found
    # One of them, in one workload, at one size.
    slow = everywhere(ns)
    for each in slow.rows:
        if each["subject"] == "libev" and each["workload"] == "equal" and \
                each["timers"] == MIDDLE:
            each["ns"] = 9
    found = rows_of(judge.peers, slow, "sorted-plain", SIZES)
    _, here, verdict = one(found, "never slower than libev,")
    assert verdict == "MISSED" and here.startswith("0.90") and "equal" in here, here
    assert one(found, "equal at", "times as fast")[2] == "MISSED"
    assert one(found, "never slower than rbtree")[2] == "ok"
    assert one(found, "ttl at", "times as fast")[2] == "ok"


def test_one_that_was_not_measured_is_no_success():
    found = rows_of(judge.peers, everywhere({"sorted-plain": 10, "libev": 40}),
                    "sorted-plain", SIZES)
    assert one(found, "never slower than libev,")[2] == "ok"
    assert one(found, "never slower than rbtree")[2] == "not measured"
    assert one(found, "ttl at")[2] == "not measured"
    for part in judge.peers, judge.wheels:
        found = rows_of(part, Results([]), "sorted-plain", SIZES)
        assert {verdict for *_, verdict in found.values()} == {"not measured"}, found
    # But a storm of all timers that would take minutes is left out.
    huge = judge.Sizes(False)
    rows = [row(subject, ns, "storm-100", nr) for subject, ns in
            (("sorted-plain", 10), ("wheel", 40)) for nr in
            (huge.small, huge.middle, huge.large)][:-1]
    found = rows_of(judge.wheels, Results(rows), "sorted-plain", huge)
    assert one(found, "bare wheel, storm-100")[2] == "ok", found
    assert one(found, "bare wheel, storm-10,")[2] == "not measured", found
    half = [each for each in everywhere({"sorted-plain": 10, "wheel": 40}).rows
            if each["timers"] != LARGE]
    found = rows_of(judge.wheels, Results(half), "sorted-plain", SIZES)
    assert one(found, "bare wheel, ttl")[2] == "not measured", found
    half = [each for each in everywhere({"sorted-plain": 10, "libev": 40}).rows
            if each["timers"] != LARGE]
    found = rows_of(judge.peers, Results(half), "sorted-plain", SIZES)
    assert found["never slower than libev"][2] == "not measured", found


def test_ratios_are_of_rounds_that_took_turns():
    rounds = [("sorted-plain", [10, 20, 10]), ("wheel", [20, 40, 30])]
    rows = [row(subject, ns, round=number) for subject, values in rounds
            for number, ns in enumerate(values)]
    figure = judge.ratio(Results(rows), "sorted-plain", "wheel", "ttl", SMALL)
    assert figure.rounds == [2, 2, 3] and figure.median == 2
    assert judge.times(figure) == "2.00 (2.00\u20133.00)"
    for each in rows:
        each["interleaved"] = False
    figure = judge.ratio(Results(rows), "sorted-plain", "wheel", "ttl", SMALL)
    assert figure.rounds == [3], "of the medians"


def test_the_fair_wheel_may_be_faster_in_descending():
    ns = {"sorted-plain": 24, "wheel": 25, "wheel-ids": 10}
    found = rows_of(judge.wheels, everywhere(ns), "sorted-plain", SIZES)
    assert one(found, "checked ids, descending")[2] == "ok"
    assert one(found, "checked ids, ttl")[2] == "MISSED"
    assert one(found, "bare wheel, ttl")[2] == "ok"


def test_keyed_queues_are_judged_by_the_difference():
    rows = [row(f"radix-{kind}", ns, nr=nr, round=round)
            for nr, values in ((SMALL, ((50, 85), (60, 96), (40, 70))),
                               (LARGE, ((100, 191), (100, 190), (100, 192))))
            for round, pair in enumerate(values)
            for kind, ns in zip(("plain", "keyed"), pair)]
    found = rows_of(judge.keyed, Results(rows), "radix", SIZES)
    aim, here, verdict = found["keyed less plain, ttl, 10^4"]
    assert (aim, verdict) == ("\u2264 35 ns", "ok") and \
        here == "35.0 (30.0\u201336.0) ns", (aim, here)
    _, here, verdict = found["keyed less plain, ttl, 10^5"]
    assert verdict == "MISSED" and here.startswith("91.0"), here


def test_the_longest_operation_is_of_all_kinds():
    lines = [{"subject": "sorted", "unit": "lines", "timers": MIDDLE, "queue": "keyed",
              "work": work, "op": op, "max": most}
             for work, op, most in (("hold", "arm", 400), ("drain", "deliver", 501),
                                    ("hold", "nothing", 900),
                                    ("hold", "drop stale", 800))]
    bounds = [{"subject": "sorted", "queue": "plain", "work": "hold", "op": op,
               "unit": "ns", "timers": nr, "p9999": 6000}
              for op in ("arm", "deliver") for nr in (MIDDLE, LARGE)]
    found = rows_of(judge.single, Results(bounds), Results(lines), "sorted", SIZES)
    assert one(found, "longest request")[1:] == \
        ("501 lines, deliver while drain, keyed", "MISSED"), found
    assert one(found, "arm alone", "2\u00b710^4")[2] == "MISSED"
    assert one(found, "deliver alone", "2\u00b710^4")[2] == "ok"
    assert one(found, "longest call")[1].startswith("800 lines"), found
    found = rows_of(judge.single, Results([]), Results([]), "sorted", SIZES)
    assert one(found, "longest request")[2] == "not measured"


def test_heaps_are_judged_at_each_number_of_nodes():
    rows = [{"subject": subject, "work": "hold", "timers": nr, "round": 1, "ns": ns}
            for nr in SIZES.nodes for subject, ns in
            (("sorted", 10), ("4-ary", 41), ("binary-branch-free", 49))]
    found = rows_of(judge.heaps, Results(rows), "sorted", SIZES)
    assert one(found, "times as fast as 4-ary")[2] == "ok"
    assert one(found, "times as fast as binary")[2] == "MISSED"
    assert one(found, "never slower than 4-ary")[2] == "ok"
    rows[1]["ns"] = 9
    found = rows_of(judge.heaps, Results(rows), "sorted", SIZES)
    assert one(found, "never slower than 4-ary")[1:] == ("0.90 10", "MISSED"), found
    found = rows_of(judge.heaps, Results(rows[3:]), "sorted", SIZES)
    assert one(found, "never slower than 4-ary")[2] == "not measured"


def test_transfers_are_those_of_so_many_resident_pages():
    trace = {"layout": "radix", "element": 16, "operations": 100, "pages": 40,
             "in": [15] * 9 + [3] * 31, "out": [6] * 9 + [2] * 31}
    rows = [{**trace, "bits": bits} for bits in (None, 2)]
    found = rows_of(judge.paper, Results(rows), "radix")
    assert one(found, " 9 resident", "as shipped")[1:] == ("0.210 transfers", "MISSED")
    assert one(found, "32 resident", "2 bits")[1:] == ("0.050 transfers", "ok")
    assert one(found, "32 resident", "3 bits")[2] == "not measured"


def test_the_daemon_is_judged_beside_another_commit():
    rows = [{"op": "arm", "tree": tree, "round": round, "timers": nr, "per_second": rate}
            for nr, rates in ((SMALL, (150, 100)), (MIDDLE, (139, 100)))
            for round in range(3) for tree, rate in zip(("this", "base"), rates)]
    found = rows_of(judge.daemon, Results(rows), "abcdef")
    assert one(found, "512, 10^4 timers")[1:] == ("1.50", "ok"), found
    assert one(found, "512, 2\u00b710^4")[1:] == ("1.39", "MISSED")
    assert rows_of(judge.daemon, Results([]), "abcdef")["through the daemon"][2] == \
        "not measured"


def shown(kept, *arguments, **benches):
    """Runs `bench/figures/run` on the results of a last run, with what it would measure
    now; returns its status and text."""
    run = runpy.run_path(str(FIGURES / "run"))
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        (build / "results.json").write_text(json.dumps(kept), encoding="utf-8")
        main = run["main"]
        main.__globals__.update(BUILD=build, KEPT=build / "results.json")
        run["BENCHES"].update(benches)
        before, sys.argv = sys.argv, ["run", *(arguments or ["--show"])]
        try:
            with contextlib.redirect_stdout(out):
                status = main()
        finally:
            sys.argv = before
        assert (build / "figures.md").read_text(encoding="utf-8") in out.getvalue()
    return status, out.getvalue()


def test_what_is_missing_is_said_and_makes_the_status():
    status, text = shown({"machine": [["processor", "none"]], "quick": True,
                          "base": None, "failed": ["timers"], "results": {},
                          "seconds": 1})
    assert status == 1
    assert "not measured" in text and " 0 MISSED" in text and "A quick run" in text
    assert "No BASE=COMMIT" in text


def test_what_is_not_measured_anew_is_of_the_last_run():
    kept = {"machine": [], "quick": True, "base": "abcdef", "failed": [], "seconds": 1,
            "results": {"daemon": [
                {"op": "arm", "tree": tree, "round": 0, "timers": SMALL, "per_second": rate}
                for tree, rate in (("this", 150), ("base", 100))]}}
    for arguments in ["heaps"], ["--base", "123456", "heaps"]:
        _, text = shown(kept, "--quick", *arguments, heaps=lambda *_: [])
        assert "a second of abcdef" in text and "1.50" in text, text
        assert "123456" not in text and "No BASE=COMMIT" not in text, text
    _, text = shown(kept, "--quick", "daemon", daemon=lambda *_: [])
    assert "No BASE=COMMIT" in text, text
    # Results of larger numbers are not those of a quick run's.
    _, text = shown({**kept, "quick": False}, "--quick", "heaps", heaps=lambda *_: [])
    assert "No BASE=COMMIT" in text and "abcdef" not in text, text


if __name__ == "__main__":
    tap.main(needs_daemon=False)
