// SPDX-License-Identifier: LGPL-2.1-or-later
/* The agent of libexpiry: clients/README.md has its commands. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <expiry/expiry.h>

#include "agent.h"

#define BATCH		512U
#define IDS_SHOWN	16U
#define TAGS		64U

static struct expiry *handle;

/* The timers of restore, and how many were yielded. */
static struct {
	uint64_t from;
	uint64_t count;
	uint64_t deadline_ns;
	uint64_t calls;
	uint64_t timers;
} restored;

/* Requests of `start`, in their order, and what came instead of replies. */
static struct {
	char tag[32];
	struct expiry_record reply;
	bool done;
} started[TAGS];
static uint32_t nr_started, nr_done;
static struct expiry_record held[BATCH];
static uint32_t nr_held;

static uint8_t op_of(const char *name)
{
	static const char * const names[] = {
		[EXPIRY_OP_ARM] = "arm", [EXPIRY_OP_REFRESH] = "refresh",
		[EXPIRY_OP_CANCEL] = "cancel", [EXPIRY_OP_ACK] = "ack",
		[EXPIRY_OP_QUERY] = "query", [EXPIRY_OP_CLEAR] = "clear",
	};
	uint8_t op;

	for (op = EXPIRY_OP_ARM; name && op <= EXPIRY_OP_CLEAR; op++) {
		if (!strcmp(name, names[op]))
			return op;
	}
	return 0;
}

/* Makes the record of a request. */
static struct expiry_record record_of(const struct command *c, uint8_t op)
{
	const char *flags = word_get(c, "flags");
	struct expiry_record record = {
		.op = op,
		.id = word_number(c, "id", 0),
		.cookie = word_number(c, "cookie", 0),
		.period_ms = word_number(c, "period", 0),
		.deadline_ns = word_number(c, "at", 0),
	};

	if (word_get(c, "ttl")) {
		record.flags |= EXPIRY_F_RELATIVE;
		record.deadline_ns = word_number(c, "ttl", 0);
	}
	if (word_lists(flags, "new"))
		record.flags |= EXPIRY_F_NEW;
	if (word_lists(flags, "later"))
		record.flags |= EXPIRY_F_LATER;
	return record;
}

/* Prints the answer to a request. */
static void print_reply(const struct expiry_record *reply)
{
	if (reply->status) {
		print_error(reply->status);
		if (reply->status == -ECONNRESET)
			printf(" answered=0 doubtful=1 unsent=0");
		printf("\n");
		return;
	}
	printf("ok");
	switch (reply->op) {
	case EXPIRY_OP_ARM:
		printf(" id=%" PRIu64, (uint64_t)reply->id);
		/* fall through */
	case EXPIRY_OP_REFRESH:
		printf(" deadline=%" PRIu64, (uint64_t)reply->deadline_ns);
		break;
	case EXPIRY_OP_QUERY:
		printf(" deadline=%" PRIu64 " cookie=%" PRIu64 " period=%u",
		       (uint64_t)reply->deadline_ns, (uint64_t)reply->cookie,
		       reply->period_ms);
		break;
	case EXPIRY_OP_CLEAR:
		printf(" count=%" PRIu64, (uint64_t)reply->cookie);
		break;
	}
	printf("\n");
}

static void print_broken(int error, uint32_t answered)
{
	print_error(error);
	/* The library does not know how far it had sent. */
	printf(" answered=%u\n", answered);
}

static void do_request(const struct command *c)
{
	struct expiry_record record = record_of(c, op_of(c->name));
	int ret = expiry_submit(handle, &record, 1);

	if (ret == 1) {
		print_reply(&record);
	} else {
		print_error(ret);
		printf(" answered=0 doubtful=1 unsent=0\n");
	}
}

static void do_encode(const struct command *c)
{
	struct expiry_record record = {
		.op = word_number(c, "op", 0),
		.flags = word_number(c, "flags", 0),
		.status = strtol(word_get(c, "status"), NULL, 10),
		.period_ms = word_number(c, "period", 0),
		.id = word_number(c, "id", 0),
		.deadline_ns = word_number(c, "deadline", 0),
		.cookie = word_number(c, "cookie", 0),
	};

	printf("ok hex=");
	hex_print(&record, sizeof(record));
	printf("\n");
}

static void do_decode(const struct command *c)
{
	struct expiry_record record = { 0 };

	hex_read(word_get(c, "hex"), &record, sizeof(record));
	printf("ok op=%u flags=%u status=%d period=%u id=%" PRIu64 " deadline=%"
	       PRIu64 " cookie=%" PRIu64 "\n", record.op, record.flags,
	       record.status, record.period_ms, (uint64_t)record.id,
	       (uint64_t)record.deadline_ns, (uint64_t)record.cookie);
}

/* Yields the timers of the command's word, as restore= of expiry_open(). */
static int yield(void *arg, uint64_t *cursor, struct expiry_record *timers,
		 uint32_t max)
{
	uint32_t nr = 0;

	(void)arg;
	restored.calls += !*cursor;
	for (; nr < max && *cursor < restored.count; nr++, ++*cursor) {
		timers[nr].id = restored.from + *cursor;
		timers[nr].cookie = timers[nr].id;
		timers[nr].deadline_ns = restored.deadline_ns;
		timers[nr].period_ms = 0;
	}
	restored.timers += nr;
	return nr;
}

static bool set_restored(const struct command *c)
{
	const char *word = word_get(c, "restore");

	memset(&restored, 0, sizeof(restored));
	return word && sscanf(word, "%" SCNu64 ":%" SCNu64 ":%" SCNu64,
			      &restored.from, &restored.count,
			      &restored.deadline_ns) == 3;
}

static void do_restored(const struct command *c)
{
	(void)c;
	printf("ok calls=%" PRIu64 " timers=%" PRIu64 "\n", restored.calls,
	       restored.timers);
}

static void do_id_of(const struct command *c)
{
	unsigned char name[8192], key[128];
	size_t size = hex_read(word_get(c, "name"), name, sizeof(name));
	size_t key_size = hex_read(word_get(c, "key"), key, sizeof(key));
	uint64_t id, check;
	int ret;

	ret = expiry_id_of(name, size, key, key_size, &id, &check);
	if (ret) {
		print_error(ret);
		printf("\n");
	} else {
		printf("ok id=%" PRIu64 " check=%" PRIu64 "\n", id, check);
	}
}

static void do_open(const struct command *c)
{
	static const struct {
		const char *word;
		uint32_t flag;
	} words[] = {
		{ "consume", EXPIRY_OPEN_CONSUME }, { "ack", EXPIRY_OPEN_ACK },
		{ "keyed", EXPIRY_OPEN_KEYED },
		{ "durable", EXPIRY_OPEN_DURABLE },
		{ "existing", EXPIRY_OPEN_EXISTING },
		{ "observe", EXPIRY_OPEN_OBSERVE },
		{ "reconnect", EXPIRY_OPEN_RECONNECT },
	};
	const char *flags = word_get(c, "flags");
	const char *clock = word_get(c, "clock");
	struct expiry_options options = {
		.size = sizeof(options),
		.queue = word_get(c, "queue"),
		.credit = word_number(c, "credit", 0),
		.timeout_ms = word_number(c, "timeout_ms", 0),
	};
	struct expiry_info info;
	char address[256];
	size_t i;
	int ret;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (word_lists(flags, words[i].word))
			options.flags |= words[i].flag;
	}
	if (!strcmp(clock, "monotonic"))
		options.clock_id = CLOCK_MONOTONIC;
	else if (!strcmp(clock, "boottime"))
		options.clock_id = CLOCK_BOOTTIME;
	if (set_restored(c))
		options.restore = yield;
	snprintf(address, sizeof(address), "unix:%s", word_get(c, "path"));
	ret = expiry_open(&handle, address, &options);
	if (ret) {
		print_error(ret);
		printf("\n");
		return;
	}
	expiry_info(handle, &info, sizeof(info));
	printf("ok timers=%" PRIu64 " durable=%u commit=%u\n", info.timers,
	       info.durable, info.commit_ms);
}

static void do_batch(const struct command *c)
{
	struct expiry_record first = record_of(c, op_of(word_get(c, "op")));
	uint32_t i, count = word_number(c, "count", 0), done = 0;
	uint64_t from = word_number(c, "from", 0);
	struct expiry_record *records = calloc(count, sizeof(*records));
	bool refused = false;
	int ret;

	for (i = 0; i < count; i++) {
		records[i] = first;
		records[i].id = from ? from + i : 0;
		records[i].cookie = word_get(c, "cookie") ? first.cookie + i : 0;
	}
	ret = expiry_submit(handle, records, count);
	if (ret < (int)count) {
		print_broken(ret < 0 ? ret : expiry_flush(handle),
			     ret < 0 ? 0 : ret);
		free(records);
		return;
	}
	for (i = 0; i < count; i++)
		done += !records[i].status;
	printf("ok done=%u refused=%s", done, done == count ? "-" : "");
	for (i = 0; i < count; i++) {
		if (!records[i].status)
			continue;
		printf("%s%u:", refused ? "," : "", i);
		print_error_name(records[i].status);
		refused = true;
	}
	if (!from && count <= IDS_SHOWN) {
		for (i = 0; i < count; i++)
			printf("%s%" PRIu64, i ? "," : " ids=",
			       (uint64_t)records[i].id);
	}
	printf("\n");
	free(records);
}

/* Takes expirations: those that came instead of a reply to `start` first. */
static int receive(struct expiry_record *records, uint32_t max, int timeout_ms)
{
	uint32_t nr = nr_held < max ? nr_held : max;

	if (!nr)
		return expiry_receive(handle, records, max, timeout_ms);
	memcpy(records, held, nr * sizeof(*held));
	nr_held -= nr;
	memmove(held, held + nr, nr_held * sizeof(*held));
	return nr;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

static int left_ms(uint64_t end_ms)
{
	uint64_t now = now_ms();

	return now < end_ms ? (int)(end_ms - now) : 0;
}

static void do_receive(const struct command *c)
{
	uint32_t max = word_number(c, "max", 1), nr = 0;
	uint64_t end_ms = now_ms() + word_number(c, "timeout_ms", 0);
	struct expiry_record record;
	int ret = 1;

	while (nr < max && ret > 0) {
		ret = receive(&record, 1, left_ms(end_ms));
		if (ret <= 0)
			break;
		if (record.op == EXPIRY_OP_EXPIRED) {
			print_timer("due", &record);
			nr++;
		} else if (record.op == EXPIRY_OP_CLOCK_SET) {
			printf("clock_set now=%" PRIu64 "\n",
			       (uint64_t)record.deadline_ns);
		} else {
			printf("missed count=%" PRIu64 "\n",
			       (uint64_t)record.cookie);
		}
	}
	if (ret < 0 && !nr) {
		print_error(ret);
		printf("\n");
	} else {
		printf("ok count=%u\n", nr);
	}
}

static void do_drain(const struct command *c)
{
	static struct expiry_record due[BATCH];
	uint32_t count = word_number(c, "count", 1), nr = 0;
	uint32_t early = 0, unordered = 0, redelivered = 0;
	uint64_t end_ms = now_ms() + word_number(c, "timeout_ms", 0);
	bool ack = !strcmp(word_get(c, "ack"), "yes");
	uint64_t sum = 0, last = 0, now;
	int ret = 1, i;

	while (nr < count && ret > 0) {
		ret = receive(due, BATCH, left_ms(end_ms));
		now = expiry_now(handle);
		for (i = 0; i < ret; i++) {
			if (due[i].op != EXPIRY_OP_EXPIRED)
				continue;
			nr++;
			sum += due[i].id;
			early += due[i].deadline_ns > now;
			redelivered += !!(due[i].flags & EXPIRY_F_REDELIVERED);
			unordered += due[i].deadline_ns < last;
			last = due[i].deadline_ns;
		}
		for (i = 0; ack && i < ret; i++)
			due[i].op = EXPIRY_OP_ACK, due[i].flags = 0;
		if (ack && ret > 0 && expiry_submit(handle, due, ret) < ret)
			ret = -ECONNRESET;
	}
	if (ret < 0) {
		print_error(ret);
		printf("\n");
		return;
	}
	printf("ok count=%u sum=%" PRIu64 " early=%u unordered=%u redelivered=%u\n",
	       nr, sum, early, unordered, redelivered);
}

/* Ends a list. */
static void print_cursor(int ret, uint64_t cursor)
{
	if (ret < 0) {
		print_error(ret);
		printf("\n");
	} else {
		printf("ok cursor=%" PRIu64 "\n", cursor);
	}
}

static void do_scan(const struct command *c)
{
	uint64_t cursor = word_number(c, "cursor", 0);
	uint32_t max = word_number(c, "max", 1);
	struct expiry_record *rows = calloc(max, sizeof(*rows));
	int i, ret = expiry_scan(handle, &cursor, rows, max);

	for (i = 0; i < ret; i++)
		print_timer("timer", &rows[i]);
	free(rows);
	print_cursor(ret, cursor);
}

static void do_stat(const struct command *c)
{
	struct expiry_server_stat server;
	struct expiry_stat stat;
	int ret = expiry_stat(handle, &stat, &server, sizeof(server));

	(void)c;
	if (ret) {
		print_error(ret);
		printf("\n");
		return;
	}
	printf("ok now=%" PRIu64 " next=%" PRIu64 " armed=%" PRIu64 " unacked=%"
	       PRIu64 " limit=%" PRIu64 " arms=%" PRIu64 " delivered=%" PRIu64
	       " engine=%u uptime=%" PRIu64 "\n", (uint64_t)stat.now_ns,
	       (uint64_t)stat.next_ns, (uint64_t)stat.armed,
	       (uint64_t)stat.unacked, (uint64_t)stat.limit,
	       (uint64_t)stat.arms, (uint64_t)stat.delivered, server.engine,
	       (uint64_t)server.uptime_ns);
}

static void do_queues(const struct command *c)
{
	uint64_t cursor = word_number(c, "cursor", 0);
	uint32_t max = word_number(c, "max", 1);
	struct expiry_queue *rows = calloc(max, sizeof(*rows));
	int i, ret = expiry_queues(handle, &cursor, rows, max);

	for (i = 0; i < ret; i++)
		printf("queue name=%s armed=%" PRIu64 " uid=%u consumers=%u\n",
		       *rows[i].name ? rows[i].name : "-",
		       (uint64_t)rows[i].stat.armed, rows[i].daemon.uid,
		       rows[i].daemon.consumers);
	free(rows);
	print_cursor(ret, cursor);
}

static void do_drop(const struct command *c)
{
	int ret = expiry_drop(handle);

	(void)c;
	if (ret)
		print_error(ret);
	else
		printf("ok");
	printf("\n");
}

static void do_start(const struct command *c)
{
	struct expiry_record record = record_of(c, op_of(c->name));

	if (nr_started == TAGS || expiry_post(handle, &record, 1) != 1 ||
	    expiry_flush(handle) < 0) {
		printf("error ENOBUFS\n");
		return;
	}
	snprintf(started[nr_started].tag, sizeof(started->tag), "%s", c->tag);
	started[nr_started++].done = false;
	printf("ok\n");
}

static void do_wait(const struct command *c)
{
	struct expiry_record record;
	uint32_t i = 0;
	int ret = 0;

	while (i < nr_started && strcmp(started[i].tag, c->tag))
		i++;
	while (ret >= 0 && i < nr_started && !started[i].done) {
		ret = expiry_next(handle, &record, 1);
		if (!ret)
			ret = expiry_wait(handle, -1);
		else if (ret > 0 && record.op == EXPIRY_OP_EXPIRED && nr_held < BATCH)
			held[nr_held++] = record;
		else if (ret > 0 && record.op < EXPIRY_OP_EXPIRED) {
			started[nr_done].reply = record;
			started[nr_done++].done = true;
		}
	}
	if (i == nr_started) {
		printf("error EINVAL\n");
	} else if (ret < 0) {
		print_error(ret);
		printf(" answered=0 doubtful=1 unsent=0\n");
	} else {
		print_reply(&started[i].reply);
	}
}

static void do_close(const struct command *c)
{
	(void)c;
	expiry_close(handle);
	handle = NULL;
	nr_started = 0;
	nr_done = 0;
	nr_held = 0;
	printf("ok\n");
}

static void do_agent(const struct command *c)
{
	(void)c;
	printf("ok language=c can=start,names,restore\n");
}

static void do_left(const struct command *c)
{
	(void)c;
	printf("ok tasks=0\n");
}

static const struct {
	const char *name;
	void (*run)(const struct command *c);
} commands[] = {
	{ "agent", do_agent }, { "encode", do_encode }, { "decode", do_decode },
	{ "open", do_open }, { "arm", do_request }, { "refresh", do_request },
	{ "cancel", do_request }, { "ack", do_request }, { "query", do_request },
	{ "clear", do_request }, { "batch", do_batch }, { "receive", do_receive },
	{ "drain", do_drain }, { "scan", do_scan }, { "stat", do_stat },
	{ "queues", do_queues }, { "drop", do_drop }, { "start", do_start },
	{ "wait", do_wait }, { "close", do_close }, { "left", do_left },
	{ "id_of", do_id_of }, { "restored", do_restored },
};

/* Ends each word with a NUL, and the last with two. */
static char *split(char *line)
{
	char *word = strchr(line, ' ');

	for (; word; word = strchr(word, ' '))
		*word++ = '\0';
	return line + strlen(line) + 1;
}

static void run(char *line)
{
	struct command command = { .name = line };
	const char *name = line;
	size_t i;

	line[strlen(line) + 1] = '\0';
	command.rest = split(line);
	if (!strcmp(name, "start") || !strcmp(name, "wait")) {
		command.tag = command.rest;
		command.name = command.rest + strlen(command.rest) + 1;
		command.rest = (char *)command.name + strlen(command.name) + 1;
	}
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (!strcmp(name, commands[i].name)) {
			commands[i].run(&command);
			fflush(stdout);
			return;
		}
	}
	printf("error ENOSYS\n");
	fflush(stdout);
}

int main(void)
{
	static char line[1 << 16];

	/* Room for a second NUL behind the last word. */
	while (fgets(line, sizeof(line) - 2, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		run(line);
	}
	expiry_close(handle);
	return 0;
}
