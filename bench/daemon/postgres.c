// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: PostgreSQL with a table of timers, and an index by which those that are
 * due are found. A batch is one prepared statement and one transaction: rows are
 * inserted or updated, others deleted. No timer is named twice in a batch.
 */
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/driver.h"

#define BATCH_MAX	4096U
#define NUMBER_LEN	21U
#define TRIES		300	/* tenths of a second, until it is up */
#define SPREAD_NS	(3600 * NSEC_PER_SEC)
#define TIMES_MAX	1000000U

/* A list of numbers as an array's text. */
struct list {
	char text[BATCH_MAX * NUMBER_LEN + 3];
	char *end;
};

static PGconn *connection;
static uint64_t *ids, next_id;
static uint32_t nr_ids;
static uint64_t random_state = 1;
static struct list wanted, deadlines, ended;
static uint64_t *times_ns;

static void need(PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		die("PostgreSQL: %s", PQerrorMessage(connection));
	PQclear(result);
}

static void execute(const char *sql)
{
	need(PQexec(connection, sql));
}

/* @path: of the socket; its folder is the host. */
static void attach(const char *path)
{
	char words[4096];
	int tries;

	snprintf(words, sizeof(words), "user=postgres dbname=postgres host=%.*s",
		 (int)(strrchr(path, '/') - path), path);
	for (tries = 0; tries < TRIES; tries++) {
		connection = PQconnectdb(words);
		if (PQstatus(connection) == CONNECTION_OK)
			return;
		PQfinish(connection);
		usleep(100000);
	}
	die("PostgreSQL does not answer");
}

static void fill(const char *path, uint32_t timers)
{
	char sql[256];

	attach(path);
	execute("CREATE TABLE timers (id bigint PRIMARY KEY, deadline bigint NOT NULL, "
		"cookie bigint NOT NULL DEFAULT 1)");
	snprintf(sql, sizeof(sql),
		 "INSERT INTO timers SELECT i, 3600e9 * (1 + random()) "
		 "FROM generate_series(1, %u) i", timers);
	execute(sql);
	execute("CREATE INDEX ON timers (deadline)");
	execute("VACUUM ANALYZE timers");
	execute("CHECKPOINT");
	need(PQprepare(connection, "mix",
		       "WITH ended AS (DELETE FROM timers WHERE id = ANY($3::bigint[])) "
		       "INSERT INTO timers SELECT * FROM unnest($1::bigint[], $2::bigint[]) "
		       "ON CONFLICT (id) DO UPDATE SET deadline = EXCLUDED.deadline",
		       3, NULL));
	ids = driver_map((timers + (uint64_t)TIMES_MAX) * sizeof(*ids));
	times_ns = driver_map(TIMES_MAX * sizeof(*times_ns));
	for (nr_ids = 0; nr_ids < timers; nr_ids++)
		ids[nr_ids] = nr_ids + 1;
	next_id = timers;
}

static void list_begin(struct list *list)
{
	list->end = list->text;
	*list->end++ = '{';
}

static void list_add(struct list *list, uint64_t number)
{
	if (list->end > list->text + 1)
		*list->end++ = ',';
	list->end += sprintf(list->end, "%llu", (unsigned long long)number);
}

static const char *list_end(struct list *list)
{
	strcpy(list->end, "}");
	return list->text;
}

static void arm(uint64_t id)
{
	list_add(&wanted, id);
	list_add(&deadlines, SPREAD_NS + bench_below(&random_state, SPREAD_NS));
}

/* Moves a timer that is chosen at random to position @i, and returns it. */
static uint64_t choose(uint32_t i)
{
	uint32_t j = i + bench_below(&random_state, nr_ids - i);
	uint64_t id = ids[j];

	ids[j] = ids[i];
	ids[i] = id;
	return id;
}

static void make_batch(uint32_t count)
{
	uint32_t arms = count / 4, cancels = count / 4, i;

	list_begin(&wanted);
	list_begin(&deadlines);
	list_begin(&ended);
	for (i = 0; i < count - arms; i++) {
		if (i < cancels)
			list_add(&ended, choose(i));
		else
			arm(choose(i));
	}
	/* The new ones take the places of those that end. */
	for (i = 0; i < cancels; i++)
		ids[i] = ++next_id;
	for (i = 0; i < arms; i++)
		arm(ids[i]);
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	uint32_t i, nr = order->requests / order->batch;
	pid_t pid = PQbackendPID(connection);
	uint64_t began_ns;

	if (strcmp(order->op, "mix") || order->batch > BATCH_MAX || !nr ||
	    nr > TIMES_MAX)
		return false;
	cost->server_ns = traffic_cpu_ns(pid);
	for (i = 0; i < nr; i++) {
		const char *values[3];

		make_batch(order->batch);
		values[0] = list_end(&wanted);
		values[1] = list_end(&deadlines);
		values[2] = list_end(&ended);
		began_ns = bench_now();
		need(PQexecPrepared(connection, "mix", 3, values, NULL, NULL, 0));
		times_ns[i] = bench_now() - began_ns;
		cost->took_ns += times_ns[i];
	}
	cost->server_ns = traffic_cpu_ns(pid) - cost->server_ns;
	traffic_sort(cost, times_ns, nr);
	return true;
}

int main(int argc, char **argv)
{
	static struct driver driver = {
		.name = "postgresql",
		.fill = fill,
		.measure = measure,
	};

	return driver_main(&driver, argc, argv);
}
