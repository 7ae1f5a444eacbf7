// SPDX-License-Identifier: LGPL-2.1-or-later
/* LMDB: a batch is a transaction; keys are integers, so that they compare fast. */
#include <lmdb.h>

#include "bench/bench.h"
#include "bench/daemon/store.h"

#define MAP_SIZE	(16ULL << 30)

static MDB_env *env;
static MDB_txn *txn;
static MDB_dbi dbi;

static void need(int error)
{
	if (error && error != MDB_NOTFOUND)
		die("LMDB: %s", mdb_strerror(error));
}

static void begin(void)
{
	if (!txn)
		need(mdb_txn_begin(env, NULL, 0, &txn));
}

static void end(void)
{
	if (txn)
		need(mdb_txn_commit(txn));
	txn = NULL;
}

static void lmdb_open(const char *folder)
{
	need(mdb_env_create(&env));
	need(mdb_env_set_mapsize(env, MAP_SIZE));
	need(mdb_env_open(env, folder, MDB_NOSYNC, 0600));
	begin();
	need(mdb_dbi_open(txn, NULL, MDB_INTEGERKEY | MDB_CREATE, &dbi));
	end();
}

static void lmdb_put(uint64_t id, const struct store_value *value)
{
	MDB_val key = { sizeof(id), &id };
	MDB_val data = { sizeof(*value), (void *)value };

	begin();
	need(mdb_put(txn, dbi, &key, &data, 0));
}

static void lmdb_drop(uint64_t id)
{
	MDB_val key = { sizeof(id), &id };

	begin();
	need(mdb_del(txn, dbi, &key, NULL));
}

static void lmdb_commit(bool sync)
{
	need(mdb_env_set_flags(env, MDB_NOSYNC, !sync));
	end();
}

const struct store store = {
	.open = lmdb_open,
	.put = lmdb_put,
	.drop = lmdb_drop,
	.commit = lmdb_commit,
};
