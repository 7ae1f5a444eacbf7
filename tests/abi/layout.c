// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Structs that may grow at their end: where members are that programs use today.
 * abidiff cannot tell such a growth from two members that changed places.
 * test-abi.sh compiles this.
 */
#include <stddef.h>
#include <expiry/expiry.h>

#define AT(type, member, offset, bytes) \
	_Static_assert(offsetof(struct type, member) == (offset) && \
		       sizeof(((struct type *)0)->member) == (bytes), #member)

#ifdef __LP64__
AT(expiry_options, size, 0, 4);
AT(expiry_options, flags, 4, 4);
AT(expiry_options, queue, 8, 8);
AT(expiry_options, clock_id, 16, 4);
AT(expiry_options, credit, 20, 4);
AT(expiry_options, window, 24, 4);
AT(expiry_options, timeout_ms, 28, 4);
AT(expiry_options, slack_ns, 32, 8);
AT(expiry_options, limit, 40, 8);
AT(expiry_options, restore, 48, 8);
AT(expiry_options, restore_arg, 56, 8);
#endif

AT(expiry_info, clock_id, 0, 4);
AT(expiry_info, mode, 4, 4);
AT(expiry_info, window, 8, 4);
AT(expiry_info, credit, 12, 4);
AT(expiry_info, timers, 16, 8);
AT(expiry_info, device, 24, 4);
AT(expiry_info, reconnects, 28, 4);

AT(expiry_server_stat, engine, 0, 4);
AT(expiry_server_stat, consumers, 4, 4);
AT(expiry_server_stat, credit, 8, 4);
AT(expiry_server_stat, producers, 12, 4);
AT(expiry_server_stat, uptime_ns, 16, 8);
AT(expiry_server_stat, queues, 24, 8);
AT(expiry_server_stat, connections, 32, 8);
AT(expiry_server_stat, records, 40, 8);
AT(expiry_server_stat, expirations, 48, 8);
AT(expiry_server_stat, refused_connections, 56, 8);
AT(expiry_server_stat, refused_queues, 64, 8);
AT(expiry_server_stat, refused_timers, 72, 8);
AT(expiry_server_stat, closed_protocol, 80, 8);
AT(expiry_server_stat, refused_busy, 88, 8);
AT(expiry_server_stat, refused_credit, 96, 8);
AT(expiry_server_stat, closed_backlog, 104, 8);
AT(expiry_server_stat, backlog, 112, 8);
AT(expiry_server_stat, loop, 120, 4);
AT(expiry_server_stat, turn_ns, 128, 320);
AT(expiry_server_stat, batch, 448, 320);
AT(expiry_server_stat, request_ns, 768, 320);
AT(expiry_server_stat, timers, 1088, 8);
AT(expiry_server_stat, next_ns, 1096, 8);
AT(expiry_server_stat, lateness_max_ns, 1104, 8);
AT(expiry_server_stat, closed_hello, 1112, 8);
AT(expiry_server_stat, log_dropped, 1120, 8);
AT(expiry_server_stat, log_left_out, 1128, 8);
AT(expiry_server_stat, refused_observers, 1136, 8);
AT(expiry_server_stat, copies_missed, 1144, 8);
AT(expiry_server_stat, durable, 1152, 8);
AT(expiry_server_stat, journal_queues, 1160, 8);
AT(expiry_server_stat, journal_timers, 1168, 8);
AT(expiry_server_stat, journal_overdue, 1176, 8);
AT(expiry_server_stat, journal_waiting, 1184, 8);
AT(expiry_server_stat, journal_records, 1192, 8);
AT(expiry_server_stat, journal_commits, 1200, 8);
AT(expiry_server_stat, journal_bytes, 1208, 8);
AT(expiry_server_stat, journal_size, 1216, 8);
AT(expiry_server_stat, journal_checkpoints, 1224, 8);
AT(expiry_server_stat, journal_failures, 1232, 8);
AT(expiry_server_stat, journal_failed, 1240, 8);
AT(expiry_server_stat, refused_journal, 1248, 8);
AT(expiry_server_stat, commit_ns, 1280, 320);
