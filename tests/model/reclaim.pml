// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two queues and the reclaim of their memory, for Spin: kmod/shrink.c, and the unlock of
 * kmod/queue.c. They are in one memory cgroup or in two, and each cgroup has its list of
 * tables. A queue has one table, with one page.
 *
 * Faults to plant: -DWAIT, a visit waits for the lock; -DSILENT, it does not ask the
 * lock's holder; -DFIRST, a queue that is locked stays the first of its list;
 * -DONE_LIST, the cgroups have one list.
 */
#define QUEUES	2
#define CGROUPS	2
#define USES	2	/* of each queue */
#define VISITS	5	/* by reclaim that no queue's user runs, of any cgroup */
#define INSIDE	1	/* by a user that allocates under the lock, of its queue's cgroup */

/* A page's state. A visit takes it one step down, a use up to USED. */
#define UNPINNED	0
#define AGED		1
#define USED		2

/* The visits of a list after which a page that nobody uses is unpinned: each item has
 * its turn, twice.
 */
#define ENOUGH	(USED * QUEUES)

byte page[QUEUES];
bool locked[QUEUES];
byte wanted[QUEUES];		/* visits that the lock's holder has to make */
byte cgroup[QUEUES];
chan list[CGROUPS] = [QUEUES] of { byte };
bool listed[QUEUES];

/* For the assertions: visits of the queue's cgroup since it was locked or unlocked. */
byte passed[QUEUES];

#ifdef ONE_LIST
#define LIST(group)	list[0]
#else
#define LIST(group)	list[group]
#endif

/* expiry_memory_age() */
inline age(queue)
{
	page[queue]--
}

inline count_visit(group)
{
	d_step {
		i = 0;
		do
		:: i == QUEUES -> break
		:: i < QUEUES ->
			if
			:: cgroup[i] == group && listed[i] -> passed[i]++
			:: else
			fi;
			i++
		od;
		i = 0
	}
}

/* What reclaim promises for queues that are not locked. */
inline check_idle()
{
	d_step {
		i = 0;
		do
		:: i == QUEUES -> break
		:: i < QUEUES ->
			assert(locked[i] || !listed[i] || passed[i] < ENOUGH);
			i++
		od;
		i = 0
	}
}

/* visit_table() for memory cgroup @group, under the list's spinlock */
inline visit(group)
{
	if
	:: nempty(LIST(group)) ->
		LIST(group) ? item;
		count_visit(group);
#ifdef WAIT
		!locked[item];
#endif
		if
		:: locked[item] ->
#ifndef SILENT
			wanted[item]++;
#endif
#ifdef FIRST
			if
			:: nempty(LIST(group)) ->
				LIST(group) ? next;
				LIST(group) ! item;
				LIST(group) ! next;
				next = 0
			:: empty(LIST(group)) -> LIST(group) ! item
			fi
#else
			LIST(group) ! item
#endif
		:: !locked[item] ->
			assert(cgroup[item] == group);
			age(item);
			if
			:: page[item] == UNPINNED -> listed[item] = false
			:: else -> LIST(group) ! item
			fi
		fi;
		check_idle();
		item = 0
	:: empty(LIST(group))
	fi
}

/* The item is not the first of its list: it is taken from wherever it is. */
inline unlist(queue)
{
	LIST(cgroup[queue]) ?? eval(queue);
	listed[queue] = false
}

/* unpin_some() */
inline unpin_some(queue)
{
	do
	:: wanted[queue] && page[queue] ->
		age(queue);
		wanted[queue]--
	:: !wanted[queue] || !page[queue] -> break
	od;
	wanted[queue] = 0;
	if
	:: page[queue] == UNPINNED && listed[queue] -> unlist(queue)
	:: else
	fi
}

proctype user(byte queue)
{
	byte uses = 0, inside, item, next, i;

	do
	:: uses == USES -> break
	:: uses < USES ->
		atomic {
			!locked[queue];
			locked[queue] = true;
			passed[queue] = 0;
			page[queue] = USED;
			if
			:: !listed[queue] ->
				listed[queue] = true;
				LIST(cgroup[queue]) ! queue
			:: else
			fi
		}
		/* It may have to wait for memory, and run reclaim itself. */
		inside = 0;
		do
		:: inside < INSIDE -> atomic { visit(cgroup[queue]); inside++ }
		:: break
		od;
		atomic {
			unpin_some(queue);
			/* What was asked for while it was locked is done. */
			assert(passed[queue] < ENOUGH || page[queue] == UNPINNED);
			passed[queue] = 0;
			locked[queue] = false
		}
		uses++
	od
}

proctype reclaim()
{
	byte visits = 0, item, next, i;

	do
	:: visits == VISITS -> break
	:: visits < VISITS -> atomic { visit(0); visits++ }
	:: visits < VISITS -> atomic { visit(1); visits++ }
	od
}

init
{
	atomic {
		if
		:: cgroup[1] = 0
		:: cgroup[1] = 1
		fi;
		run user(0);
		run user(1);
		run reclaim()
	}
}
