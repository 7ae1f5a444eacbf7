// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists of pinned pages: see pins.h.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "pins.h"

struct list_lru expiry_pins_lru;	/* made with the shrinker, shrink.c */
static struct kmem_cache *cache;

static int node_of(const struct expiry_pins *pins)
{
	return page_to_nid(virt_to_page(pins));
}

/**
 * expiry_pins_new - allocate an item
 * @nid: the node of its pages
 * @gfp: whether to wait
 *
 * The first allocation also makes the memory cgroup's lists. It is on any node.
 * A caller that may wait gets an item of another node where @nid has no memory
 * for the kernel: its pages are then unpinned when that other node is short.
 *
 * Returns it, or NULL.
 */
struct expiry_pins *expiry_pins_new(int nid, gfp_t gfp)
{
	struct expiry_pins *pins, *there;

	pins = kmem_cache_alloc_lru(cache, &expiry_pins_lru, gfp | __GFP_ZERO);
	if (!pins)
		return NULL;
	if (node_of(pins) != nid) {
		there = kmem_cache_alloc_node(cache, gfp | __GFP_ZERO |
					      __GFP_THISNODE | __GFP_NOWARN,
					      nid);
		if (there || !gfpflags_allow_blocking(gfp)) {
			kmem_cache_free(cache, pins);
			pins = there;
		}
	}
	if (pins) {
		INIT_LIST_HEAD(&pins->lru);
		pins->nid = nid;
	}
	return pins;
}

/**
 * expiry_pins_free - free an item
 * @pins: not in a list; or NULL
 */
void expiry_pins_free(struct expiry_pins *pins)
{
	if (pins)
		kmem_cache_free(cache, pins);
}

/**
 * expiry_pins_list - show an item to the shrinker
 * @pins: in no list
 */
void expiry_pins_list(struct expiry_pins *pins)
{
	compat_list_lru_add(&expiry_pins_lru, &pins->lru);
}

/**
 * expiry_pins_unlist - hide it, and wait for a walk that has found it
 * @pins: in its list or not
 */
void expiry_pins_unlist(struct expiry_pins *pins)
{
	compat_list_lru_del(&expiry_pins_lru, &pins->lru);
}

/**
 * expiry_pins_init - make the slab cache when the module is loaded
 *
 * Returns 0 or -ENOMEM.
 */
int expiry_pins_init(void)
{
	cache = KMEM_CACHE(expiry_pins, SLAB_ACCOUNT);
	return cache ? 0 : -ENOMEM;
}

/**
 * expiry_pins_exit - destroy it at unloading, when there are no queues
 */
void expiry_pins_exit(void)
{
	kmem_cache_destroy(cache);
}
