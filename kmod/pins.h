/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of pinned pages, by memory cgroup and node: what the shrinker walks.
 *
 * A list_lru derives both from the memory that an item is in. So an item is
 * allocated on the node of the pages that it counts, and charged to the memory
 * cgroup that they are charged to.
 */
#ifndef EXPIRY_PINS_H
#define EXPIRY_PINS_H

#include <linux/list.h>
#include <linux/list_lru.h>
#include <linux/types.h>

struct expiry_table;

/**
 * struct expiry_pins - the pinned pages of one table on one node
 * @lru: in the list of the node and memory cgroup while @nr is not 0
 * @table: the pages are there (const while listed)
 * @next: another node's, of the same table
 * @nr: how many; under the queue's lock
 * @nid: the node of the pages (const)
 */
struct expiry_pins {
	struct list_head lru;
	struct expiry_table *table;
	struct expiry_pins *next;
	u32 nr;
	int nid;
};

extern struct list_lru expiry_pins_lru;

int expiry_pins_init(void);
void expiry_pins_exit(void);

struct expiry_pins *expiry_pins_new(int nid, gfp_t gfp);
void expiry_pins_free(struct expiry_pins *pins);
void expiry_pins_list(struct expiry_pins *pins);
void expiry_pins_unlist(struct expiry_pins *pins);

#endif /* EXPIRY_PINS_H */
