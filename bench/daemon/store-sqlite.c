// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * SQLite: a batch is a transaction of two prepared statements; the log ahead of
 * writing (WAL), synchronous = FULL.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/daemon/store.h"

static sqlite3 *db;
static sqlite3_stmt *put, *drop;
static bool in_transaction, is_synced;

static void execute(const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		die("SQLite: %s: %s", sql, error);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		die("SQLite: %s: %s", sql, sqlite3_errmsg(db));
	return statement;
}

static void sqlite_open(const char *folder)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/timers", folder);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die("SQLite: %s", sqlite3_errmsg(db));
	execute("PRAGMA journal_mode = WAL");
	execute("PRAGMA synchronous = OFF");
	execute("PRAGMA locking_mode = EXCLUSIVE");
	execute("PRAGMA cache_size = -1048576");	/* KiB: all of it */
	execute("CREATE TABLE timers (id INTEGER PRIMARY KEY, deadline, cookie, period)");
	put = prepare("REPLACE INTO timers VALUES (?, ?, ?, ?)");
	drop = prepare("DELETE FROM timers WHERE id = ?");
}

static void step(sqlite3_stmt *statement, uint64_t id)
{
	if (!in_transaction)
		execute("BEGIN");
	in_transaction = true;
	sqlite3_bind_int64(statement, 1, id);
	if (sqlite3_step(statement) != SQLITE_DONE)
		die("SQLite: %s", sqlite3_errmsg(db));
	sqlite3_reset(statement);
}

static void sqlite_put(uint64_t id, const struct store_value *value)
{
	sqlite3_bind_int64(put, 2, value->deadline_ns);
	sqlite3_bind_int64(put, 3, value->cookie);
	sqlite3_bind_int64(put, 4, value->period_ms);
	step(put, id);
}

static void sqlite_drop(uint64_t id)
{
	step(drop, id);
}

/* The setting cannot change within a transaction: it is the next one's. */
static void sqlite_commit(bool sync)
{
	if (in_transaction)
		execute("COMMIT");
	in_transaction = false;
	if (sync && !is_synced)
		execute("PRAGMA synchronous = FULL");
	is_synced = sync;
}

const struct store store = {
	.open = sqlite_open,
	.put = sqlite_put,
	.drop = sqlite_drop,
	.commit = sqlite_commit,
};
