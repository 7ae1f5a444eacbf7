/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One spelling for interfaces that differ between kernels from 6.1 on.
 * Kbuild.include tests the headers for each.
 */
#ifndef EXPIRY_COMPAT_H
#define EXPIRY_COMPAT_H

#include <linux/alarmtimer.h>
#include <linux/bits.h>
#include <linux/expiry.h>
#include <linux/hrtimer.h>
#include <linux/list_lru.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/shmem_fs.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#ifdef EXPIRY_HAVE_IO_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

/*
 * Returns the 16 bytes of the SQE for the command. The ring is shared with its
 * user: read every field once.
 */
static inline const struct expiry_batch *
compat_cmd_batch(const struct io_uring_cmd *cmd)
{
#if defined(EXPIRY_HAVE_SQE_CMD_TYPED)
	return io_uring_sqe_cmd(cmd->sqe, struct expiry_batch);
#elif defined(EXPIRY_HAVE_SQE_CMD)
	return io_uring_sqe_cmd(cmd->sqe);
#else
	return cmd->cmd;
#endif
}

/*
 * Completes a command; the handler must return the result. On 6.1 a returned
 * count would be taken for a failure and would break the request's links.
 */
static inline int compat_cmd_done(struct io_uring_cmd *cmd, int ret,
				  unsigned int issue_flags)
{
#ifdef EXPIRY_HAVE_CMD_DONE_ONE
	io_uring_cmd_done(cmd, ret, issue_flags);
#else
	io_uring_cmd_done(cmd, ret, 0, issue_flags);
#endif
	return -EIOCBQUEUED;
}

static inline void
compat_hrtimer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*function)(struct hrtimer *),
		     clockid_t clock_id, enum hrtimer_mode mode)
{
#ifdef EXPIRY_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, clock_id, mode);
#else
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
#endif
}

/* Sets an alarm. Returns false if it is not set because it has expired already;
 * older kernels set it in any case.
 */
static inline bool compat_alarm_start(struct alarm *alarm, ktime_t expires)
{
#ifdef EXPIRY_HAVE_ALARM_START_TIMER
	return alarm_start_timer(alarm, expires, false);
#else
	alarm_start(alarm, expires);
	return true;
#endif
}

/* Returns whether the machine has a clock that wakes it. */
static inline bool compat_has_alarm(void)
{
#ifdef EXPIRY_HAVE_ALARM_RTC
	return alarmtimer_get_rtcdev();
#else
	return false;
#endif
}

/* Makes a file of pageable memory on a mount, charged page by page. */
static inline struct file *compat_shmem_file(struct vfsmount *mount,
					     const char *name, loff_t size)
{
#ifdef EXPIRY_HAVE_VMA_FLAGS
	return shmem_file_setup_with_mnt(mount, name, size,
					 mk_vma_flags(VMA_NORESERVE_BIT));
#else
	return shmem_file_setup_with_mnt(mount, name, size, VM_NORESERVE);
#endif
}

/*
 * Returns the caller's memory cgroup, referenced, or NULL if it is not
 * available. Without it the first toucher of a page is charged.
 */
static inline struct mem_cgroup *compat_memcg_get_current(void)
{
#ifdef EXPIRY_HAVE_MEMCG_FROM_MM
	return get_mem_cgroup_from_mm(current->mm);
#else
	return NULL;
#endif
}

/*
 * Returns whether the kernel calls shrinkers with a list_lru for this memory
 * cgroup. It does not where kernel memory is not charged to them
 * (cgroup.memory=nokmem). The root's shrinkers are called for the whole machine.
 */
static inline bool compat_memcg_shrinks(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	if (!memcg || !memcg->css.parent)
		return true;
#if defined(EXPIRY_HAVE_MEMCG_KMEM_ONLINE)
	return memcg_kmem_online();
#elif defined(EXPIRY_HAVE_MEMCG_KMEM_ENABLED)
	return memcg_kmem_enabled();
#endif
#endif
	return true;
}

/*
 * Makes and registers a shrinker together with its list_lru, by memory cgroup
 * and node; NULL on failure. It may be called before this returns. It is given
 * @batch objects at a time. compat_shrinker_t is its callback type.
 */
typedef unsigned long compat_shrinker_t(struct shrinker *shrinker,
					struct shrink_control *sc);

#ifdef EXPIRY_HAVE_SHRINKER_ALLOC
static inline struct shrinker *
compat_shrinker_new(const char *name, struct list_lru *list,
		    compat_shrinker_t *count, compat_shrinker_t *scan,
		    long batch)
{
	struct shrinker *shrinker;

	shrinker = shrinker_alloc(SHRINKER_MEMCG_AWARE | SHRINKER_NUMA_AWARE,
				  "%s", name);
	if (!shrinker)
		return NULL;
	if (list_lru_init_memcg(list, shrinker)) {
		shrinker_free(shrinker);
		return NULL;
	}
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = DEFAULT_SEEKS;
	shrinker->batch = batch;
	shrinker_register(shrinker);
	return shrinker;
}

static inline void compat_shrinker_free(struct shrinker *shrinker,
					struct list_lru *list)
{
	shrinker_free(shrinker);
	list_lru_destroy(list);
}
#else
static inline struct shrinker *
compat_shrinker_new(const char *name, struct list_lru *list,
		    compat_shrinker_t *count, compat_shrinker_t *scan,
		    long batch)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = DEFAULT_SEEKS;
	shrinker->batch = batch;
	shrinker->flags = SHRINKER_MEMCG_AWARE | SHRINKER_NUMA_AWARE;
	if (register_shrinker(shrinker, "%s", name))
		goto out_free;
	/* The list needs the number that the shrinker was just given. */
	if (list_lru_init_memcg(list, shrinker))
		goto out_unregister;
	return shrinker;

out_unregister:
	unregister_shrinker(shrinker);
out_free:
	kfree(shrinker);
	return NULL;
}

static inline void compat_shrinker_free(struct shrinker *shrinker,
					struct list_lru *list)
{
	unregister_shrinker(shrinker);
	list_lru_destroy(list);
	kfree(shrinker);
}
#endif

#ifdef EXPIRY_HAVE_LIST_LRU_OBJ
#define compat_list_lru_add	list_lru_add_obj
#define compat_list_lru_del	list_lru_del_obj
#else
#define compat_list_lru_add	list_lru_add
#define compat_list_lru_del	list_lru_del
#endif

/* The parameters of a list_lru_walk_cb between list and context. */
#ifdef EXPIRY_HAVE_LIST_LRU_LOCK
#define COMPAT_LIST_LRU_LOCK	spinlock_t *lock,
#else
#define COMPAT_LIST_LRU_LOCK
#endif

#endif /* EXPIRY_COMPAT_H */
