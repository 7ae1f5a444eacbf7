// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a queue: see memory.h.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "compat/compat.h"
#include "memory.h"
#include "pins.h"

/*
 * Pages kept above those in use, and one more in SPARE_SHARE. The hysteresis
 * avoids freeing and allocating again when the size varies.
 */
#define SPARE_PAGES	4U
#define SPARE_SHARE	8U

/*
 * A tmpfs of the module's own, for the files of all queues. The kernel's own
 * mount makes huge pages where shmem_enabled says so: a queue of two timers
 * would take 6 MiB, and trimming it would have to split them.
 */
static struct vfsmount *mount;

static u32 tables_of(const struct core_pages *pages)
{
	return DIV_ROUND_UP(pages->nr_max, CORE_DIR_SIZE);
}

/* Returns whether unpinning could help the current call, now or soon. */
static bool can_reclaim(const struct expiry_memory *memory)
{
	return memory->file && memory->pinned && !memory->reclaimed;
}

/*
 * The last attempt tries hard, short of the OOM killer: the caller can handle
 * -ENOMEM, a killed process cannot.
 */
static gfp_t gfp_hard(bool hard)
{
	return GFP_KERNEL | __GFP_NOWARN |
	       (hard ? __GFP_RETRY_MAYFAIL : __GFP_NORETRY);
}

static gfp_t gfp_of(const struct expiry_memory *memory)
{
	if (memory->nowait)
		return GFP_NOWAIT | __GFP_NOWARN;
	return gfp_hard(!can_reclaim(memory));
}

/*
 * Looks for a page of the file without waiting, not even for its lock: reclaim
 * holds that while it pages out. Returns it with a reference, NULL if it does not
 * exist, -EAGAIN if it takes waiting.
 */
static struct page *find_in_memory(struct address_space *mapping, pgoff_t offset)
{
	struct folio *folio;
	struct page *page;
	bool ready;
	void *entry;

	for (;;) {
		/* Linux 6.1 returns NULL, 6.3 an error. */
		folio = filemap_get_folio(mapping, offset);
		if (!IS_ERR_OR_NULL(folio))
			break;
		entry = xa_load(&mapping->i_pages, offset);
		if (!entry)
			return NULL;
		if (xa_is_value(entry))	/* in swap */
			return ERR_PTR(-EAGAIN);
		/* It came back in between. */
	}
	page = folio_file_page(folio, offset);
	ready = folio_trylock(folio);
	if (ready) {
		/*
		 * To read a page with a memory error is a machine check. For it
		 * shmem has -EIO, where waiting is allowed.
		 */
		ready = folio->mapping == mapping && folio_test_uptodate(folio) &&
			!PageHWPoison(page);
		folio_unlock(folio);
	}
	if (ready)
		return page;
	folio_put(folio);
	return ERR_PTR(-EAGAIN);
}

/* Returns a page with a reference, or an error. */
static struct page *find_page(const struct expiry_page_array *array, u32 index,
			      gfp_t gfp)
{
	struct file *file = array->memory->file;
	pgoff_t offset = array->offset + index;
	struct page *page;

	if (!file) {
		page = alloc_page(gfp | __GFP_ACCOUNT);
		return page ?: ERR_PTR(-ENOMEM);
	}
	if (!gfpflags_allow_blocking(gfp)) {
		page = find_in_memory(file->f_mapping, offset);
		if (page)
			return page;
		/* A new one is created without waiting. */
	}
	return shmem_read_mapping_page_gfp(file->f_mapping, offset,
					   gfp | __GFP_RECLAIMABLE);
}

/* Returns the table of page @index, made if need be, or NULL. */
static struct expiry_table *get_table(struct expiry_page_array *array,
				      u32 index, struct expiry_table **spare,
				      gfp_t gfp)
{
	u32 nr = index >> CORE_DIR_SHIFT;
	struct expiry_table *table = array->table[nr];

	if (table)
		return table;
	if (spare && *spare) {
		table = *spare;
		*spare = NULL;
	} else {
		table = expiry_table_new(array->memory->file,
					 gfp | __GFP_ACCOUNT);
	}
	if (!table)
		return NULL;
	table->array = array;
	table->nr = nr;
	/* expiry_memory_fetch() looks without the lock. */
	WRITE_ONCE(array->table[nr], table);
	array->pages.dir[nr] = table->page;
	return table;
}

/*
 * Pins a page and lets the core find it. Takes the reference over, in any case.
 * Returns 0 or -ENOMEM.
 */
static int enter_page(struct expiry_page_array *array, u32 index,
		      struct page *page, struct expiry_fetch *spare, gfp_t gfp)
{
	struct expiry_memory *memory = array->memory;
	u32 slot = index & (CORE_DIR_SIZE - 1);
	struct expiry_table *table;
	int err = -ENOMEM;

	table = get_table(array, index, spare ? &spare->table : NULL, gfp);
	if (!table)
		goto out_put;
	/* Another thread fetched it, too. */
	if (expiry_table_find(table, slot)) {
		put_page(page);
		return 0;
	}
	err = expiry_table_enter(table, slot, page, spare ? &spare->pins : NULL,
				 gfp);
	if (err)
		goto out_put;
	memory->pinned++;
	if (index >= array->made)
		array->made = index + 1;
	return 0;

out_put:
	put_page(page);
	return err;
}

/* Converts an error to one that the core understands. */
static int page_error(struct expiry_memory *memory, int err)
{
	switch (err) {
	case -EAGAIN:
		return err;
	case -ENOMEM:
	case -ENOSPC:	/* the kernel's limit for all memory */
		/* Let the caller unpin pages and try again. */
		return memory->nowait || can_reclaim(memory) ? -EAGAIN : -ENOMEM;
	default:
		return -EIO;
	}
}

/* Returns the address of a pinned page, which the core then finds; else NULL. */
static void *find_pinned(struct expiry_page_array *array, u32 index)
{
	struct expiry_table *table = array->table[index >> CORE_DIR_SHIFT];

	return table ? expiry_table_find(table, index & (CORE_DIR_SIZE - 1)) :
		       NULL;
}

/*
 * Brings a page in: a core_page_in_t. With memory->nowait it takes what is in
 * memory, and creates pages from memory that is free; else it may wait for I/O.
 */
static void *page_in(struct core_pages *pages, u32 index)
{
	struct expiry_page_array *array =
		container_of(pages, struct expiry_page_array, pages);
	struct expiry_memory *memory = array->memory;
	struct mem_cgroup *old;
	struct page *page;
	void *address;
	int err;

	address = find_pinned(array, index);
	if (address)
		return address;

	old = set_active_memcg(memory->memcg);
	page = find_page(array, index, gfp_of(memory));
	err = IS_ERR(page) ? PTR_ERR(page) :
	      enter_page(array, index, page, NULL, gfp_of(memory));
	set_active_memcg(old);
	if (!err)
		return find_pinned(array, index);

	pages->error = page_error(memory, err);
	if (memory->failed == array && memory->failed_index == index) {
		pages->error = memory->failed_err;
	} else if (pages->error == -EAGAIN && memory->nowait) {
		memory->wanted = array;
		memory->wanted_index = index;
	}
	return NULL;
}

/* Gives back what was fetched, but not which page it was. */
static void release(struct expiry_fetch *fetch)
{
	if (fetch->page)
		put_page(fetch->page);
	expiry_table_free(fetch->table);
	expiry_pins_free(fetch->pins);
	fetch->page = NULL;
	fetch->table = NULL;
	fetch->pins = NULL;
}

/**
 * expiry_memory_fetch - bring in a page without the queue's lock
 * @memory: of the queue, configured
 * @fetch: names a page
 * @hard: try hard to get memory; pages of the queue were unpinned for it
 *
 * May sleep and wait for I/O. Gets what the page may need to be installed, too.
 * Sets @fetch->err to 0, -ENOMEM or -EIO.
 */
void expiry_memory_fetch(struct expiry_memory *memory,
			 struct expiry_fetch *fetch, bool hard)
{
	struct expiry_page_array *array = fetch->array;
	gfp_t gfp = gfp_hard(hard);
	struct mem_cgroup *old;
	struct page *page;

	fetch->err = 0;
	old = set_active_memcg(memory->memcg);
	page = find_page(array, fetch->index, gfp);
	if (IS_ERR(page)) {
		fetch->err = PTR_ERR(page) == -ENOMEM ||
			     PTR_ERR(page) == -ENOSPC ? -ENOMEM : -EIO;
		goto out;
	}
	fetch->page = page;
	if (!READ_ONCE(array->table[fetch->index >> CORE_DIR_SHIFT])) {
		fetch->table = expiry_table_new(memory->file,
						gfp | __GFP_ACCOUNT);
		if (!fetch->table)
			fetch->err = -ENOMEM;
	}
	if (memory->file) {
		fetch->pins = expiry_pins_new(page_to_nid(page), gfp);
		if (!fetch->pins)
			fetch->err = -ENOMEM;
	}
	/* They may not be needed. */
	if (hard)
		fetch->err = 0;
	else if (fetch->err)
		release(fetch);
out:
	set_active_memcg(old);
}

/**
 * expiry_memory_install - let the core find a fetched page
 * @memory: of the queue
 * @fetch: with a page or with an error; empty afterwards
 *
 * If there is an error the core gets it for that page, until the next call.
 */
void expiry_memory_install(struct expiry_memory *memory,
			   struct expiry_fetch *fetch)
{
	int err = fetch->err;

	/*
	 * A page that was freed meanwhile is no longer of the file. Without the
	 * page's lock: only this queue frees pages of its file, under its lock, and
	 * the reference keeps a page from being paged out.
	 */
	if (fetch->page &&
	    (!memory->file ||
	     READ_ONCE(page_folio(fetch->page)->mapping) ==
	     memory->file->f_mapping)) {
		err = enter_page(fetch->array, fetch->index, fetch->page, fetch,
				 GFP_NOWAIT | __GFP_NOWARN);
		fetch->page = NULL;
	}
	if (err) {
		memory->failed = fetch->array;
		memory->failed_index = fetch->index;
		memory->failed_err = err;
	}
	expiry_memory_drop(fetch);
}

/**
 * expiry_memory_drop - give back what was fetched
 * @fetch: not installed; empty afterwards. Without the lock, too.
 */
void expiry_memory_drop(struct expiry_fetch *fetch)
{
	release(fetch);
	memset(fetch, 0, sizeof(*fetch));
}

/* Returns the hand's next table with pages, NULL at the end of a round. */
static struct expiry_table *next_table(struct expiry_memory *memory)
{
	struct expiry_page_array *array;
	struct expiry_table *table;

	for (;;) {
		array = &memory->array[memory->hand_array];
		while (memory->hand_table < tables_of(&array->pages)) {
			table = array->table[memory->hand_table++];
			if (table && table->pinned)
				return table;
		}
		memory->hand_table = 0;
		memory->hand_array = (memory->hand_array + 1) % TIMERS_PAGES_NR;
		if (!memory->hand_array)
			return NULL;
	}
}

static u32 unpin_table(struct expiry_memory *memory, struct expiry_table *table,
		       u32 from)
{
	u32 put = expiry_table_unpin(table, from);

	memory->pinned -= put;
	return put;
}

/**
 * expiry_memory_unpin - unpin the pages of one table
 * @memory: of a queue with pageable memory
 *
 * Round-robin: each call takes the next table that has pages. Bounded by
 * CORE_DIR_SIZE pages. Returns how many were unpinned, 0 when none are pinned.
 */
u32 expiry_memory_unpin(struct expiry_memory *memory)
{
	struct expiry_table *table = NULL;

	if (!memory->file)
		return 0;
	while (memory->pinned && !table)
		table = next_table(memory);
	return table ? unpin_table(memory, table, 0) : 0;
}

/**
 * expiry_memory_age - unpin the pages of one table that were not used
 * @memory: of a queue
 * @unpinned: how many were
 *
 * Round-robin, as expiry_memory_unpin(). Pages that were used since the table's last
 * turn stay until the next. Returns false at the end of a round.
 */
bool expiry_memory_age(struct expiry_memory *memory, u32 *unpinned)
{
	struct expiry_table *table;

	*unpinned = 0;
	if (!memory->file || !memory->pinned)
		return false;
	table = next_table(memory);
	if (!table)
		return false;
	*unpinned = expiry_table_age(table);
	memory->pinned -= *unpinned;
	return true;
}

/**
 * expiry_memory_age_pins - the same for one table's pages on one node
 * @memory: of the queue
 * @pins: of one of its tables; the caller unlists it if none are left
 *
 * For the shrinker: called with the list's lock held. Returns how many pages were
 * unpinned.
 */
u32 expiry_memory_age_pins(struct expiry_memory *memory,
			   struct expiry_pins *pins)
{
	u32 put = expiry_table_age_node(pins->table, pins);

	memory->pinned -= put;
	return put;
}

/**
 * expiry_memory_reclaim - free memory after a call that returned -EAGAIN
 * @memory: of the queue
 *
 * A page was missing while others were pinned: unpin all of them, so that the
 * kernel can page them out. Returns whether to repeat the call; if it fails
 * again, it fails with -ENOMEM. False only if the caller may not wait.
 */
bool expiry_memory_reclaim(struct expiry_memory *memory)
{
	if (memory->nowait || !can_reclaim(memory))
		return false;
	while (expiry_memory_unpin(memory))
		cond_resched();
	memory->reclaimed = true;
	return true;
}

/* Returns how many pages of an array to keep. */
static u64 keep_of(const struct expiry_page_array *array)
{
	u32 nr = array->pages.nr;

	return (u64)nr + nr / SPARE_SHARE + SPARE_PAGES;
}

static void free_table(struct expiry_page_array *array, u32 nr)
{
	struct expiry_table *table = array->table[nr];

	if (!table)
		return;
	array->pages.dir[nr] = NULL;
	WRITE_ONCE(array->table[nr], NULL);
	expiry_table_free(table);
}

/* Frees the pages of an array from @from on, all in one table. */
static void give_back(struct expiry_page_array *array, u32 from)
{
	struct expiry_memory *memory = array->memory;
	loff_t start = (loff_t)(array->offset + from) << PAGE_SHIFT;
	loff_t end = (loff_t)(array->offset + array->made) << PAGE_SHIFT;
	u32 nr = from >> CORE_DIR_SHIFT;

	if (array->table[nr])
		unpin_table(memory, array->table[nr], from & (CORE_DIR_SIZE - 1));
	if (!(from & (CORE_DIR_SIZE - 1)))
		free_table(array, nr);
	if (memory->file)
		shmem_truncate_range(file_inode(memory->file), start, end - 1);
	array->made = from;
}

/**
 * expiry_memory_trim - free some of the unused pages
 * @memory: of the queue
 *
 * Bounded by CORE_DIR_SIZE pages. Returns whether it did anything: call again.
 */
bool expiry_memory_trim(struct expiry_memory *memory)
{
	struct expiry_page_array *array;
	u32 i, from;

	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		array = &memory->array[i];
		if (array->made <= keep_of(array))
			continue;
		from = max_t(u32, keep_of(array),
			     (array->made - 1) & ~(CORE_DIR_SIZE - 1));
		give_back(array, from);
		return true;
	}
	return false;
}

/**
 * expiry_memory_idle - check that nothing is left to unpin or free
 * @memory: of the queue
 */
bool expiry_memory_idle(const struct expiry_memory *memory)
{
	u32 i;

	if (memory->file && memory->pinned)
		return false;
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		if (memory->array[i].made > keep_of(&memory->array[i]))
			return false;
	return true;
}

/**
 * expiry_memory_resident - count the pages in memory, pinned or not
 * @memory: of the queue
 */
u64 expiry_memory_resident(const struct expiry_memory *memory)
{
	if (!memory->file)
		return memory->pinned;
	return READ_ONCE(memory->file->f_mapping->nrpages);
}

/**
 * expiry_memory_destroy - free everything
 * @memory: partly made, or all zero; all zero afterwards
 *
 * The lock keeps the shrinker away from tables that are not freed yet.
 */
void expiry_memory_destroy(struct expiry_memory *memory)
{
	struct expiry_page_array *array;
	u32 i, nr;

	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		array = &memory->array[i];
		nr = array->pages.dir && array->table ?
		     tables_of(&array->pages) : 0;
		while (nr--) {
			if (!array->table[nr])
				continue;
			unpin_table(memory, array->table[nr], 0);
			free_table(array, nr);
			cond_resched();
		}
		kvfree(array->pages.dir);
		kvfree(array->table);
	}
	WARN_ON_ONCE(memory->pinned);
	if (memory->file)
		fput(memory->file);
	memset(memory, 0, sizeof(*memory));
}

/**
 * expiry_memory_init - make the empty page arrays of a queue
 * @memory: all zero
 * @config: gives their maximum size
 * @memcg: charged for the pages, must outlive @memory; or NULL
 * @pageable: whether pages may be paged out
 *
 * Returns 0 or -ENOMEM, -ENFILE; then @memory is all zero again.
 */
int expiry_memory_init(struct expiry_memory *memory,
		       const struct timers_config *config,
		       struct mem_cgroup *memcg, bool pageable)
{
	struct expiry_page_array *array;
	struct file *file;
	pgoff_t offset = 0;
	int i, err = 0;

	BUILD_BUG_ON(CORE_PAGE_SIZE != PAGE_SIZE);

	memory->memcg = memcg;
	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		array = &memory->array[i];
		array->memory = memory;
		array->offset = offset;
		array->pages.page_in = page_in;
		array->pages.nr_max = timers_pages_max(config, i);
		offset += array->pages.nr_max;
		if (!array->pages.nr_max)
			continue;
		array->pages.dir = kvcalloc(tables_of(&array->pages),
					    sizeof(*array->pages.dir),
					    GFP_KERNEL_ACCOUNT);
		array->table = kvcalloc(tables_of(&array->pages),
					sizeof(*array->table),
					GFP_KERNEL_ACCOUNT);
		if (!array->pages.dir || !array->table) {
			err = -ENOMEM;
			goto out_destroy;
		}
	}
	if (pageable) {
		file = compat_shmem_file(mount, "expiry",
					 (loff_t)offset << PAGE_SHIFT);
		if (IS_ERR(file)) {
			/* shmem returns -ENOSPC if it has no memory for the
			 * inode.
			 */
			err = PTR_ERR(file) == -ENOSPC ? -ENOMEM : PTR_ERR(file);
			goto out_destroy;
		}
		memory->file = file;
	}
	return 0;

out_destroy:
	expiry_memory_destroy(memory);
	return err;
}

/**
 * expiry_memory_mount - mount the tmpfs of the queues when the module is loaded
 *
 * Returns 0, -ENOMEM, -EINVAL (the kernel has no tmpfs).
 */
int expiry_memory_mount(void)
{
	char options[] = "huge=never";	/* changed by the parser */

	mount = vfs_kern_mount(get_fs_type("tmpfs"), SB_KERNMOUNT, "tmpfs",
			       IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) ?
			       options : NULL);
	return PTR_ERR_OR_ZERO(mount);
}

/**
 * expiry_memory_unmount - unmount it at unloading, when there are no queues
 */
void expiry_memory_unmount(void)
{
	mntput(mount);
}
