// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * RocksDB: a batch is a synced write. Files of its log are used again, as the
 * journal's segments are, so that a sync has no size to write.
 */
#include <rocksdb/c.h>

#include "bench/bench.h"
#include "bench/daemon/store.h"

#define LOGS	4

static rocksdb_t *db;
static rocksdb_writebatch_t *batch;
static rocksdb_writeoptions_t *synced, *unsynced;

static void rocksdb_store_open(const char *folder)
{
	rocksdb_options_t *options = rocksdb_options_create();
	char *error = NULL;

	rocksdb_options_set_create_if_missing(options, 1);
	rocksdb_options_set_recycle_log_file_num(options, LOGS);
	db = rocksdb_open(options, folder, &error);
	if (error)
		die("RocksDB: %s", error);
	batch = rocksdb_writebatch_create();
	synced = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(synced, 1);
	unsynced = rocksdb_writeoptions_create();
}

static void rocksdb_store_put(uint64_t id, const struct store_value *value)
{
	rocksdb_writebatch_put(batch, (const char *)&id, sizeof(id),
			       (const char *)value, sizeof(*value));
}

static void rocksdb_store_drop(uint64_t id)
{
	rocksdb_writebatch_delete(batch, (const char *)&id, sizeof(id));
}

static void rocksdb_store_commit(bool sync)
{
	char *error = NULL;

	rocksdb_write(db, sync ? synced : unsynced, batch, &error);
	if (error)
		die("RocksDB: %s", error);
	rocksdb_writebatch_clear(batch);
}

const struct store store = {
	.open = rocksdb_store_open,
	.put = rocksdb_store_put,
	.drop = rocksdb_store_drop,
	.commit = rocksdb_store_commit,
};
