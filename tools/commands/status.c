// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl status: print the state of the daemon and of one queue.
 */
#include <inttypes.h>
#include <sys/utsname.h>
#include <time.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/module.h"
#include "tools/output/error.h"
#include "tools/output/json.h"
#include "tools/output/print.h"
#include "tools/output/span.h"
#include "tools/output/time-text.h"
#include "tools/refusals.h"
#include "tools/session.h"

static const char *engine_text(uint32_t engine)
{
	switch (engine) {
	case EXPIRY_ENGINE_EMBEDDED:
		return "embedded";
	case EXPIRY_ENGINE_KERNEL:
		return "kernel";
	}
	return "unknown";
}

static const char *loop_text(uint32_t loop)
{
	switch (loop) {
	case EXPIRY_LOOP_IO_URING:
		return "io_uring";
	case EXPIRY_LOOP_EPOLL:
		return "epoll";
	}
	return "unknown";
}

/* Returns the module's state, which may explain an embedded engine. */
static enum module_state module_here(void)
{
	struct utsname name;

	uname(&name);
	return module_state("", name.release);
}

/* Returns the part of @all that is not durable. They are counted one after the other.
 */
static uint64_t not_durable(uint64_t all, uint64_t durable)
{
	return all > durable ? all - durable : 0;
}

/* Prints what ends with an embedded engine. */
static void print_loss(const struct expiry_server_stat *server)
{
	uint64_t timers = not_durable(server->timers, server->journal_timers);
	uint64_t queues = not_durable(server->queues, server->journal_queues);

	if (timers)
		printf("  at its end   %" PRIu64 " timer%s in %" PRIu64
		       " queue%s %s lost\n", timers, timers == 1 ? "" : "s",
		       queues, queues == 1 ? "" : "s",
		       timers == 1 ? "is" : "are");
}

/* Prints the journal of durable queues, if there is any. */
static void print_journal(const struct ctl *ctl,
			  const struct expiry_server_stat *server)
{
	if (!server->journal_size && !server->journal_queues)
		return;
	printf("  durable      %" PRIu64 " timers in %" PRIu64 " queues, %" PRIu64
	       " were overdue at the start\n",
	       (uint64_t)server->journal_timers,
	       (uint64_t)server->journal_queues,
	       (uint64_t)server->journal_overdue);
	printf("  journal      %" PRIu64 " bytes on the disk, %" PRIu64
	       " written in %" PRIu64 " commits and %" PRIu64 " checkpoints\n",
	       (uint64_t)server->journal_size, (uint64_t)server->journal_bytes,
	       (uint64_t)server->journal_commits,
	       (uint64_t)server->journal_checkpoints);
	printf("               %" PRIu64 " records written, %" PRIu64
	       " wait for the disk, %" PRIu64 " requests refused\n",
	       (uint64_t)server->journal_records,
	       (uint64_t)server->journal_waiting,
	       (uint64_t)server->refused_journal);
	if (server->journal_failed)
		printf("               %sit has failed%s in %" PRIu64
		       " thread%s: durable queues are refused until it is mended\n",
		       yellow(ctl), plain(ctl), (uint64_t)server->journal_failed,
		       server->journal_failed == 1 ? "" : "s");
	else if (server->journal_failures)
		printf("               %" PRIu64 " failures were mended\n",
		       (uint64_t)server->journal_failures);
}

static void print_server(const struct ctl *ctl,
			 const struct expiry_server_stat *server)
{
	bool embedded = server->engine == EXPIRY_ENGINE_EMBEDDED;
	char text[TIME_TEXT];

	printf("%sexpiryd%s at %s, up %s\n", bold(ctl), plain(ctl), ctl->path,
	       span_text(text, server->uptime_ns));
	printf("  engine       %s%s%s%s\n", embedded ? yellow(ctl) : "",
	       engine_text(server->engine), plain(ctl),
	       embedded && !server->journal_queues ?
	       ": queues live in the daemon and end with it" :
	       embedded ? ": queues live in the daemon" :
	       server->engine == EXPIRY_ENGINE_KERNEL ?
	       ": queues live in the kernel module" : "");
	if (server->loop == EXPIRY_LOOP_EPOLL)
		puts("  loop         epoll: io_uring is refused or not wanted here");
	if (embedded)
		printf("  module       %s\n", module_advice(module_here()));
	if (embedded)
		print_loss(server);
	printf("  queues       %" PRIu64 "\n", (uint64_t)server->queues);
	printf("  timers       %" PRIu64 "\n", (uint64_t)server->timers);
	if (!server->next_ns)
		puts("  next         unknown, there are too many queues");
	else
		printf("  next         %s\n",
		       server->next_ns == EXPIRY_NEVER ? "none" :
		       time_text(text, server->next_ns, CLOCK_REALTIME, 3));
	printf("  late         %s at worst\n",
	       span_text(text, server->lateness_max_ns));
	printf("  connections  %" PRIu64 "\n", (uint64_t)server->connections);
	printf("  requests     %" PRIu64 "\n", (uint64_t)server->records);
	printf("  expirations  %" PRIu64 "\n", (uint64_t)server->expirations);
	printf("  refused      %" PRIu64 " connections, %" PRIu64
	       " queues, %" PRIu64 " timers, %" PRIu64 " observers, %" PRIu64
	       " requests when busy\n",
	       (uint64_t)server->refused_connections,
	       (uint64_t)server->refused_queues,
	       (uint64_t)server->refused_timers,
	       (uint64_t)server->refused_observers,
	       (uint64_t)server->refused_busy);
	printf("  cut          %" PRIu64 " times credit, to its limit\n",
	       (uint64_t)server->refused_credit);
	printf("  ended        %" PRIu64 " connections for breaking the protocol, %"
	       PRIu64 " for not reading, %" PRIu64 " without HELLO\n",
	       (uint64_t)server->closed_protocol,
	       (uint64_t)server->closed_backlog,
	       (uint64_t)server->closed_hello);
	printf("  not read     %" PRIu64 " bytes by clients\n",
	       (uint64_t)server->backlog);
	printf("  missed       %" PRIu64 " copies by observers\n",
	       (uint64_t)server->copies_missed);
	print_journal(ctl, server);
	printf("  log          %" PRIu64 " lines lost, %" PRIu64
	       " about clients left out\n", (uint64_t)server->log_dropped,
	       (uint64_t)server->log_left_out);
}

static void print_queue(const struct ctl *ctl, const struct expiry_stat *stat,
			const struct expiry_server_stat *server)
{
	char when[TIME_TEXT], span[SPAN_TEXT];

	printf("%squeue%s %s\n", bold(ctl), plain(ctl),
	       ctl->device ? "(of the device)" : ctl->queue);
	printf("  clock        %s\n", clock_name(stat->clock_id));
	printf("  kind         %s, %s%s\n",
	       stat->mode & EXPIRY_MODE_KEYED ? "keyed" : "plain",
	       stat->mode & EXPIRY_MODE_ACK ? "acknowledging" : "at most once",
	       ctl_is_durable(ctl) ? ", durable" : "");
	if (ctl_is_durable(ctl) && ctl_commit_ms(ctl))
		printf("  commit       flushed every %s\n",
		       span_text(span, ctl_commit_ms(ctl) * 1000000ULL));
	else if (ctl_is_durable(ctl))
		puts("  commit       flushed before each answer");
	printf("  timers       %" PRIu64 " armed, %" PRIu64
	       " unacknowledged, %" PRIu64 " at most\n", (uint64_t)stat->armed,
	       (uint64_t)stat->unacked, (uint64_t)stat->limit);
	printf("  next         %s", time_text(when, stat->next_ns,
					      stat->clock_id, 3));
	if (stat->next_ns != EXPIRY_NEVER && stat->next_ns > stat->now_ns)
		printf(" (in %s)",
		       span_text(span, stat->next_ns - stat->now_ns));
	printf("\n");
	if (!ctl->device)
		printf("  consumer     %s\n", server->consumers ? "yes" : "no");
}

static void server_json(struct json *json,
			const struct expiry_server_stat *server)
{
	json_text(json, "engine", engine_text(server->engine));
	json_text(json, "module", server->engine == EXPIRY_ENGINE_KERNEL ?
		  "loaded" : module_word(module_here()));
	json_text(json, "loop", loop_text(server->loop));
	json_u64(json, "uptime_ns", server->uptime_ns);
	json_u64(json, "queues", server->queues);
	json_u64(json, "connections", server->connections);
	json_u64(json, "records", server->records);
	json_u64(json, "expirations", server->expirations);
	json_u64(json, "refused_connections", server->refused_connections);
	json_u64(json, "refused_queues", server->refused_queues);
	json_u64(json, "refused_timers", server->refused_timers);
	json_u64(json, "refused_observers", server->refused_observers);
	json_u64(json, "refused_busy", server->refused_busy);
	json_u64(json, "refused_journal", server->refused_journal);
	json_u64(json, "refused_credit", server->refused_credit);
	json_u64(json, "closed_protocol", server->closed_protocol);
	json_u64(json, "closed_backlog", server->closed_backlog);
	json_u64(json, "closed_hello", server->closed_hello);
	json_u64(json, "backlog", server->backlog);
	json_u64(json, "copies_missed", server->copies_missed);
	json_u64(json, "log_dropped", server->log_dropped);
	json_u64(json, "log_left_out", server->log_left_out);
	json_u64(json, "journal_queues", server->journal_queues);
	json_u64(json, "journal_timers", server->journal_timers);
	json_u64(json, "journal_overdue", server->journal_overdue);
	json_u64(json, "journal_waiting", server->journal_waiting);
	json_u64(json, "journal_records", server->journal_records);
	json_u64(json, "journal_commits", server->journal_commits);
	json_u64(json, "journal_bytes", server->journal_bytes);
	json_u64(json, "journal_size", server->journal_size);
	json_u64(json, "journal_checkpoints", server->journal_checkpoints);
	json_u64(json, "journal_failures", server->journal_failures);
	json_u64(json, "journal_failed", server->journal_failed);
	json_u64(json, "timers", server->timers);
	json_u64(json, "lateness_max_ns", server->lateness_max_ns);
	if (server->next_ns)
		json_time(json, "next_of_all", server->next_ns, CLOCK_REALTIME);
	else
		json_no_time(json, "next_of_all");
}

static void queue_json(struct json *json, const struct ctl *ctl,
		       const struct expiry_stat *stat,
		       const struct expiry_server_stat *server)
{
	if (ctl->queue) {
		json_text(json, "queue", ctl->queue);
		json_bool(json, "consumer", server->consumers);
	}
	json_text(json, "clock", clock_name(stat->clock_id));
	json_bool(json, "keyed", stat->mode & EXPIRY_MODE_KEYED);
	json_bool(json, "ack", stat->mode & EXPIRY_MODE_ACK);
	json_bool(json, "durable", ctl_is_durable(ctl));
	if (ctl_is_durable(ctl))
		json_u32(json, "commit_ms", ctl_commit_ms(ctl));
	json_u64(json, "armed", stat->armed);
	json_u64(json, "unacked", stat->unacked);
	json_u64(json, "limit", stat->limit);
	json_time(json, "next", stat->next_ns, stat->clock_id);
	json_time(json, "now", stat->now_ns, stat->clock_id);
}

static void print_json(const struct ctl *ctl, const struct expiry_stat *stat,
		       const struct expiry_server_stat *server)
{
	struct json json;

	json_begin(&json);
	json_text(&json, "address", ctl->address);
	if (!ctl->device)
		server_json(&json, server);
	if (ctl->queue || ctl->device)
		queue_json(&json, ctl, stat, server);
	json_end(&json);
}

static int run_status(struct ctl *ctl, char **args)
{
	struct expiry_server_stat server;
	struct expiry_stat stat;
	int ret;

	(void)args;
	if (ctl->device && ctl->queue)
		return ctl_usage("status: a device's queues have no names; leave --queue out");
	ret = ctl_open(ctl, ctl->queue, 0, 0);
	if (ret)
		return ret;
	ret = expiry_stat(ctl->handle, &stat, &server, sizeof(server));
	if (ret && ctl->queue)
		return ctl_request_refused(ctl, NULL, ret, EXPIRY_OP_STAT);
	if (ret)
		return ctl_refused(ctl->path, ret, EXPIRY_OP_STAT);
	/* Leave out this command's own connection. */
	if (server.connections)
		server.connections--;
	if (ctl->json) {
		print_json(ctl, &stat, &server);
		return 0;
	}
	if (ctl->device)
		printf("%s answers\n", ctl->path);
	else
		print_server(ctl, &server);
	if (ctl->queue || ctl->device)
		print_queue(ctl, &stat, &server);
	return 0;
}

const struct command cmd_status = {
	.name = "status",
	.args = "",
	.summary = "show the daemon, and with --queue a queue",
	.examples =
		"  expiryctl status\n"
		"  expiryctl status --queue leases --json\n",
	.device = true,
	.run = run_status,
};
