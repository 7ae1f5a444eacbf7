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
#include <linux/swap.h>
#include <linux/xarray.h>

#include "compat/compat.h"
#include "memory.h"

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

/* Leaks pages and tables on purpose: `make check-debug` must detect it. */
#define FORGETFUL	IS_ENABLED(CONFIG_EXPIRY_CANARY)

static inline struct page *page_of(void *address)
{
	return virt_to_page(address);
}

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
static gfp_t gfp_of(const struct expiry_memory *memory)
{
	bool last = !memory->nowait && !can_reclaim(memory);

	return GFP_KERNEL | __GFP_NOWARN |
	       (last ? __GFP_RETRY_MAYFAIL : __GFP_NORETRY);
}

static struct page *file_page(const struct expiry_page_array *array, u32 index)
{
	struct expiry_memory *memory = array->memory;
	struct address_space *mapping = memory->file->f_mapping;
	pgoff_t offset = array->offset + index;

	/* A page neither in memory nor in swap is created without waiting. */
	if (memory->nowait && xa_is_value(xa_load(&mapping->i_pages, offset)))
		return ERR_PTR(-EAGAIN);
	return shmem_read_mapping_page_gfp(mapping, offset,
					   gfp_of(memory) | __GFP_RECLAIMABLE);
}

static struct page *plain_page(const struct expiry_page_array *array)
{
	struct page *page = alloc_page(gfp_of(array->memory) | __GFP_ACCOUNT);

	return page ?: ERR_PTR(-ENOMEM);
}

/* Returns the page, pinned, and ensures that its table exists. */
static struct page *get_page_and_table(struct expiry_page_array *array,
				       u32 index)
{
	void ***table = &array->pages.dir[index >> CORE_DIR_SHIFT];

	if (!*table) {
		*table = kcalloc(CORE_DIR_SIZE, sizeof(**table),
				 gfp_of(array->memory) | __GFP_ACCOUNT);
		if (!*table)
			return ERR_PTR(-ENOMEM);
	}
	return array->memory->file ? file_page(array, index) : plain_page(array);
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

/* Brings a page in: a core_page_in_t. May sleep, and wait for I/O unless
 * memory->nowait is set.
 */
static void *page_in(struct core_pages *pages, u32 index)
{
	struct expiry_page_array *array =
		container_of(pages, struct expiry_page_array, pages);
	struct expiry_memory *memory = array->memory;
	struct mem_cgroup *old;
	struct page *page;
	void *address;

	old = set_active_memcg(memory->memcg);
	page = get_page_and_table(array, index);
	set_active_memcg(old);

	if (IS_ERR(page)) {
		pages->error = page_error(memory, PTR_ERR(page));
		if (pages->error == -EAGAIN && memory->nowait) {
			memory->wanted = array;
			memory->wanted_index = index;
		}
		return NULL;
	}
	address = page_address(page);
	pages->dir[index >> CORE_DIR_SHIFT][index & (CORE_DIR_SIZE - 1)] =
		address;
	array->pins[index >> CORE_DIR_SHIFT]++;
	if (index >= array->made)
		array->made = index + 1;
	memory->pinned++;
	return address;
}

/*
 * Drops the reference of page_in(). Mark the page dirty: a pinned page may have
 * been written at any time, and a clean one would be dropped instead of swapped
 * out.
 */
static void put_address(struct expiry_memory *memory, void *address)
{
	struct folio *folio = page_folio(page_of(address));

	memory->pinned--;
	if (memory->file) {
		folio_mark_dirty(folio);
		folio_mark_accessed(folio);
	}
	if (!FORGETFUL)
		folio_put(folio);
}

/*
 * Unpins the pages of one table of an array, from @from on. Returns how many.
 * Frees plain pages.
 */
static u32 put_table(struct expiry_page_array *array, u32 nr, u32 from)
{
	void **table = array->pages.dir[nr];
	u32 i, put = 0;

	for (i = from; i < CORE_DIR_SIZE && array->pins[nr]; i++) {
		if (!table[i])
			continue;
		put_address(array->memory, table[i]);
		table[i] = NULL;
		array->pins[nr]--;
		put++;
	}
	return put;
}

static void free_table(struct expiry_page_array *array, u32 nr)
{
	if (!FORGETFUL)
		kfree(array->pages.dir[nr]);
	array->pages.dir[nr] = NULL;
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
	struct expiry_page_array *array;
	u32 put;

	if (!memory->file)
		return 0;
	while (memory->pinned) {
		array = &memory->array[memory->hand_array];
		if (memory->hand_table >= tables_of(&array->pages)) {
			memory->hand_table = 0;
			memory->hand_array = (memory->hand_array + 1) %
					   TIMERS_PAGES_NR;
			continue;
		}
		put = put_table(array, memory->hand_table++, 0);
		if (put)
			return put;
	}
	return 0;
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

/**
 * expiry_memory_fetch - bring in the page that a call could not wait for
 * @memory: of the queue
 *
 * Returns 0 (also when no page is wanted) or the error of the page. Except
 * after -EAGAIN the page is no longer wanted.
 */
int expiry_memory_fetch(struct expiry_memory *memory)
{
	struct expiry_page_array *array = memory->wanted;
	int err = 0;

	if (!array)
		return 0;
	if (!core_page(&array->pages, memory->wanted_index))
		err = array->pages.error;
	if (err != -EAGAIN)
		memory->wanted = NULL;
	return err;
}

/* Returns how many pages of an array to keep. */
static u64 keep_of(const struct expiry_page_array *array)
{
	u32 nr = array->pages.nr;

	return (u64)nr + nr / SPARE_SHARE + SPARE_PAGES;
}

/* Frees the pages of an array from @from on, all in one table. */
static void give_back(struct expiry_page_array *array, u32 from)
{
	struct file *file = array->memory->file;
	loff_t start = (loff_t)(array->offset + from) << PAGE_SHIFT;
	loff_t end = (loff_t)(array->offset + array->made) << PAGE_SHIFT;
	u32 nr = from >> CORE_DIR_SHIFT;

	put_table(array, nr, from & (CORE_DIR_SIZE - 1));
	if (!(from & (CORE_DIR_SIZE - 1)))
		free_table(array, nr);
	if (file)
		shmem_truncate_range(file_inode(file), start, end - 1);
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
 */
void expiry_memory_destroy(struct expiry_memory *memory)
{
	struct expiry_page_array *array;
	u32 i, nr;

	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		array = &memory->array[i];
		nr = array->pages.dir && array->pins ?
		     tables_of(&array->pages) : 0;
		while (nr--) {
			put_table(array, nr, 0);
			free_table(array, nr);
			cond_resched();
		}
		kvfree(array->pages.dir);
		kvfree(array->pins);
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
		array->pins = kvcalloc(tables_of(&array->pages),
				       sizeof(*array->pins),
				       GFP_KERNEL_ACCOUNT);
		if (!array->pages.dir || !array->pins) {
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
