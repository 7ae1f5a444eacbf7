// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The lock of a queue, its readers and its memory, for Spin: kmod/read.c, cmd.c, use.c
 * and memory.c, without the core. -DOLD is the module before decision 24: it kept the
 * records of a reader (`held`) while the lock was free.
 *
 * The submitter has a real-time policy, and the reader its processor: where the
 * submitter can run, the reader cannot. The other processes have processors of their
 * own. All but the submitter end after a bounded number of steps. So an endless run
 * is one of the submitter's.
 *
 * There is one timer, periodic or not, on a plain queue. Memory is counted in pages;
 * a page that is unpinned is paged out at once. What is done under the lock is atomic,
 * since all else of the queue is under the lock, too. Only the copy to the reader is not: there
 * the submitter may come.
 */
#define READS	2	/* of the reader */
#define ARMS	1	/* of the submitter */
#define TRIES	1	/* TRIES_MAX of kmod/use.c: pages fetched before a use is patient */
#define FRAMES	3	/* pages of memory */
#define EVENTS	2	/* of the memory: others take or free a page, or it is short */

/*
 * Pages: NODES and SLOTS of an ARM; DUE, with the timer's node and slot; END, which only
 * the end of the timer needs: the index beside its line.
 */
#define NODES	0
#define SLOTS	1
#define DUE	2
#define END	3
#define PAGES	4
#define NONE	PAGES

bool locked;
byte frames;			/* pages of memory that are free */

/* Under the lock: */
bool pinned[PAGES];
byte nr_pinned;
bool held;			/* OLD: records are being copied to the reader */

/* The timer, under the lock: */
bool periodic;
bool armed = true;
bool due = true;
bool unacked;
bool rewind;			/* a reader must restore it first */
bool cancelled;
byte given;			/* how often it has reached the reader */

bool asleep = true;		/* the submitter cannot run */

inline unpin_all()
{
	d_step {
		frames = frames + nr_pinned;
		nr_pinned = 0;
		pinned[NODES] = false;
		pinned[SLOTS] = false;
		pinned[DUE] = false;
		pinned[END] = false
	}
}

inline pin(page)
{
	frames--;
	pinned[page] = true;
	nr_pinned++
}

/* A real-time thread sleeps while it waits for a mutex: the reader may run. */
inline lock_rt()
{
	if
	:: !locked
	:: else -> asleep = true; !locked; asleep = false
	fi;
	locked = true
}

/* Pages may be unpinned whenever a use ends; not while records are held. */
inline unlock()
{
	if
	:: !held -> unpin_all()
	:: true
	fi;
	locked = false
}

/*
 * page_in(): pins a page. Where the use may not wait it can fail although there is
 * memory: the page is in swap.
 */
inline page_in(page, waits, ok)
{
	if
	:: pinned[page] -> ok = true
	:: !pinned[page] && frames > 0 -> pin(page); ok = true
	:: !pinned[page] && (frames == 0 || !waits) -> ok = false
	fi
}

/* Restores a timer that was delivered. */
inline restore(waits, ok)
{
	page_in(NODES, waits, ok);
	if
	:: ok -> unacked = false; due = true; armed = true; rewind = false
	:: else -> rewind = true
	fi
}

#ifdef OLD

proctype submitter()
{
	byte arms = 0;
	bool ok, reclaimed;

	do
	:: arms == ARMS -> break
	:: else ->
		asleep = false;
again:
		atomic {
			lock_rt();
			reclaimed = false;
retry:
			page_in(NODES, true, ok);
			if
			:: ok -> page_in(SLOTS, true, ok)
			:: else
			fi;
			if
			:: !ok && nr_pinned && !reclaimed && !held ->
				unpin_all();
				reclaimed = true;
				goto retry
			:: !ok && nr_pinned && !reclaimed && held ->
				unlock();	/* -EAGAIN, cond_resched() */
				goto again
			:: else			/* done, or -ENOMEM */
			fi;
			unlock()
		}
progress:
		atomic {
			ok = false;
			reclaimed = false;
			arms++;
			asleep = true
		}
	od
}

proctype reader() provided (asleep)
{
	byte reads = 0;
	bool ok, taken;

	do
	:: reads == READS -> break
	:: else ->
		atomic {
			!locked;
			if
			:: rewind -> restore(true, ok)
			:: else
			fi;
			taken = false;
			if
			:: due && !rewind ->
				page_in(DUE, true, ok);
				/* The end of a periodic timer was not prepared. */
				if
				:: ok && !periodic -> page_in(END, true, ok)
				:: else
				fi;
				if
				:: ok ->
					due = false;
					armed = periodic;
					unacked = true;
					taken = true;
					held = true
				:: else
				fi
			:: else
			fi;
			unlock()
		}
		/* Here the records are copied. */
		if
		:: taken ->
			atomic {
				!locked;
				if
				:: given++;
					ok = true;
					if
					:: unacked && !armed ->
						page_in(END, true, ok)
					:: else
					fi;
					/* timers_release() cannot fail. */
					assert(ok);
					unacked = false
				:: restore(true, ok)
				fi;
				held = false;
				unlock()
			}
		:: else
		fi;
		reads++
	od
}

#else

/* Gets a page, or notes the error for the core: -ENOMEM for that page. */
inline get_frame()
{
	if
	:: frames > 0 -> frames--; fetched = missing; failed = NONE
	:: else -> failed = missing
	fi
}

/* expiry_use_fetch(), without the lock, up to where it takes it to unpin all. */
inline fetch()
{
	if
	:: tries == TRIES -> patient = true
	:: else -> tries++; get_frame()
	fi
}

/* Its rest, with the lock. */
inline fetch_hard()
{
	unpin_all();
	locked = false;
	get_frame()
}

/* expiry_memory_install() */
inline install()
{
	if
	:: fetched == NONE
	:: fetched != NONE ->
		frames++;
		if
		:: pinned[fetched]
		:: else -> pin(fetched)
		fi;
		fetched = NONE
	fi
}

proctype submitter()
{
	byte arms = 0, tries, missing, fetched, failed;
	bool ok, reclaimed, patient;

	do
	:: arms == ARMS -> break
	:: else ->
		atomic {
			asleep = false;
			patient = false;
			tries = 0;
			fetched = NONE;
			failed = NONE
		}
again:
		atomic {
			lock_rt();
			install();
			reclaimed = false;
retry:
			missing = NODES;
			page_in(NODES, patient, ok);
			if
			:: ok -> missing = SLOTS; page_in(SLOTS, patient, ok)
			:: else
			fi;
			if
			:: ok || missing == failed -> skip	/* or -ENOMEM */
			:: else ->
				if
				:: patient && nr_pinned && !reclaimed ->
					unpin_all();
					reclaimed = true;
					goto retry
				:: patient && (!nr_pinned || reclaimed) ->
					skip			/* -ENOMEM */
				:: !patient ->
					failed = NONE;
					unlock();
					goto missed
				fi
			fi;
			unlock()
		}
		goto progress;
missed:
		/* It sleeps for I/O, or not. */
		if
		:: asleep = true; asleep = false
		:: true
		fi;
		atomic {
			fetch();
			if
			:: failed == missing -> lock_rt(); fetch_hard()
			:: else
			fi
		}
		goto again;
progress:
		atomic {
			ok = false;
			reclaimed = false;
			missing = NONE;
			arms++;
			asleep = true
		}
	od
}

proctype reader() provided (asleep)
{
	byte reads = 0, tries, missing, fetched, failed;
	bool ok, patient;

	do
	:: reads == READS -> break
	:: else ->
		atomic {
			patient = false;
			tries = 0;
			fetched = NONE;
			failed = NONE
		}
again:
		atomic {
			!locked;
			locked = true;
			install();
			missing = NONE;
			if
			:: rewind ->
				restore(patient, ok);
				missing = (ok -> NONE : NODES)
			:: else
			fi;
			if
			:: due && !rewind ->
				missing = DUE;
				page_in(DUE, patient, ok);
				if
				:: ok -> missing = END; page_in(END, patient, ok)
				:: else
				fi;
				if
				:: ok ->
					missing = NONE;
					due = false;
					armed = periodic;
					unacked = true
				:: else
				fi
			:: else
			fi
		}
		/* Here the records are copied, without a fault. */
		atomic {
			if
			:: unacked && !rewind ->
				given++;
				/* timers_release() cannot fail. */
				assert(armed || pinned[END]);
				unacked = false
			:: unacked && !rewind -> restore(patient, ok)
			:: else
			fi;
			assert(!unacked || rewind);
			ok = false;
			unlock()
		}
		if
		:: missing != NONE && missing != failed && !patient ->
			atomic {
				failed = NONE;
				fetch();
				if
				:: failed == missing -> !locked; fetch_hard()
				:: else
				fi
			}
			goto again
		:: else			/* read, or nothing is due, or -ENOMEM */
		fi;
		reads++
	od
}

#endif

/* Another client's CANCEL. A timer that is being delivered ends with the delivery. */
proctype canceller()
{
	bool ok;

	atomic {
		!locked;
		if
		:: armed && unacked -> armed = false; cancelled = true
		:: armed && !unacked ->
			page_in(END, true, ok);
			if
			:: ok -> armed = false; due = false; cancelled = true
			:: else			/* -ENOMEM */
			fi
		:: !armed			/* -ENOENT */
		fi;
		unlock()
	}
}

/*
 * Other programs use memory up and free it. Reclaim visits the queue; it tries the
 * lock, and waits for nothing.
 */
proctype others(byte taken)
{
	byte events = 0;

	do
	:: events == EVENTS -> break
	:: else ->
		atomic {
			if
			:: frames > 0 -> frames--; taken++
			:: taken > 0 -> frames++; taken--
			:: !locked && !held && nr_pinned -> unpin_all()
			fi;
			events++
		}
	od
}

/* When all have ended, nothing is lost and nothing came twice. */
init
{
	atomic {
		select(frames : 0 .. FRAMES);
		if
		:: periodic = true
		:: periodic = false
		fi;
		run submitter();
		run reader();
		run canceller();
		run others(FRAMES - frames)
	}
	_nr_pr == 1;
	assert(given <= 1);
	assert(given || due || rewind || cancelled);
	assert(!unacked || rewind);
	assert(!locked)
}
