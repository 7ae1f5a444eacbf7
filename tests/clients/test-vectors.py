#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every client passes clients/vectors. Arguments are words of the names of those that
are wanted.

A row of the table is a file, or a conversation; a column is a client.
"""

import sys
import traceback

import agents
import conversation
import vectors

PIECES = 0, 1, 31


def encode_and_decode(agent, lines):
    fields = dict(lines)
    wanted = vectors.bytes_of(fields.pop("hex"))
    if sys.byteorder != "little":
        raise conversation.Skip("this machine is big-endian")
    words = ["%s=%s" % field for field in fields.items()]
    encoded = agent.ok("encode " + " ".join(words))
    assert bytes.fromhex(encoded["hex"]) == wanted, encoded
    decoded = agent.ok("decode hex=" + wanted.hex())
    assert fields.items() <= decoded.values.items(), decoded


def name(agent, lines):
    if "names" not in agent.can:
        raise conversation.Skip("it has no id_of")
    fields = dict(lines)
    key, text = ("-" if fields[word] == '""' else fields[word]
                 for word in ("key", "name"))
    line = "id_of name=%s key=%s" % (text, key)
    if "refused" in fields:
        agent.refused(line, "EINVAL")
        return
    answer = agent.ok(line)
    assert (answer["id"], answer["check"]) == (fields["id"], fields["check"]), answer


def talk(agent, lines):
    if sys.byteorder != "little":
        raise conversation.Skip("this machine is big-endian")
    for piece in PIECES:
        conversation.talk(agent, lines, piece)
        agent.close()


FILES = {"records.txt": encode_and_decode, "names.txt": name, "calls.txt": talk,
         "lies.txt": talk}


def main(wanted):
    names = agents.found()
    table = agents.Table(names)
    running = {}
    for file, function in FILES.items():
        for title, lines in vectors.read(file):
            row = "%s: %s" % (file.partition(".")[0], title)
            if wanted and not any(word in row for word in wanted):
                continue
            for agent in names:
                try:
                    if agent not in running:
                        running[agent] = agents.Agent(agent)
                    function(running[agent], lines)
                    table.report(row, agent, "ok")
                except conversation.Skip as reason:
                    table.report(row, agent, "skipped", str(reason))
                except Exception:
                    table.report(row, agent, "FAILED", traceback.format_exc(limit=-2))
                    # Its state is unknown: start another.
                    if agent in running:
                        running.pop(agent).kill()
    for agent in running.values():
        with agent:
            pass
    return table.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
