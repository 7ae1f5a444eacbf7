// SPDX-License-Identifier: LGPL-2.1-or-later
/* No store: the server and the core alone. */
#include "bench/daemon/store.h"

static void none_open(const char *folder)
{
	(void)folder;
}

static void none_put(uint64_t id, const struct store_value *value)
{
	(void)id;
	(void)value;
}

static void none_drop(uint64_t id)
{
	(void)id;
}

static void none_commit(bool sync)
{
	(void)sync;
}

const struct store store = {
	.open = none_open,
	.put = none_put,
	.drop = none_drop,
	.commit = none_commit,
};
