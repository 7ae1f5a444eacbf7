// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The answers of durable queues, in all lives of the daemon. The changes of a
 * queue are kept in order. After each start it must be as after some of them, and not
 * fewer than clients know of.
 */
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/util/util.h"
#include "tests/core/horrible.h"
#include "tests/sim/lives.h"
#include "tests/sim/wrap.h"

#define QUEUES		5	/* names that clients use: a to e */
#define CHANGES		(1U << 16)
#define DELIVERED	4096
#define TIMERS		2048
#define NS_PER_MS	1000000ULL

enum change_kind {
	CHANGE_TIMER,
	CHANGE_MADE,
	CHANGE_DROPPED,
	CHANGE_CLEARED,
};

/**
 * struct change - what an answer has changed
 * @id: of the timer
 * @is_there: the timer is, and is as the other fields say
 * @waits: a delivery of it waits for its ACK
 * @is_last: only that delivery of a periodic timer is left
 * @at_ns: when it was made, on CLOCK_MONOTONIC, in @life
 */
struct change {
	enum change_kind kind;
	uint32_t life;
	uint64_t at_ns;
	uint64_t id;
	uint64_t deadline_ns;
	uint64_t cookie;
	uint32_t period_ms;
	bool is_there;
	bool waits;
	bool is_last;
};

/* An expiration that a client has. */
struct delivered {
	uint64_t id;
	uint64_t cookie;
	uint64_t deadline_ns;
	uint32_t life;
};

/**
 * struct past - a durable queue's
 * @changes: all, @nr of them; the first @least must be there after a start
 * @delivered: the last ones, of @nr_delivered
 * @is_spoiled: some changes are not known
 */
struct past {
	struct change changes[CHANGES];
	uint32_t nr;
	uint32_t least;
	struct delivered delivered[DELIVERED];
	uint32_t nr_delivered;
	bool is_spoiled;
};

/* The timers after some changes. */
struct model {
	const struct change *timers[TIMERS];
	uint32_t nr;
	bool is_made;
};

static struct past *pasts;
static uint64_t *latest_ns;	/* of CLOCK_REALTIME, which may be set back */

void past_init(void)
{
	pasts = __real_mmap(NULL, QUEUES * sizeof(*pasts),
			    PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	latest_ns = __real_mmap(NULL, sizeof(*latest_ns),
				PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void past_clock(void)
{
	if (latest_ns && *latest_ns < sim_now(CLOCK_REALTIME))
		*latest_ns = sim_now(CLOCK_REALTIME);
}

/* Returns NULL for a name that a liar made up. */
static struct past *past_of(const char *name)
{
	uint32_t i = name[0] - 'a';

	return pasts && i < QUEUES && !name[1] ? &pasts[i] : NULL;
}

/* ------------------------------------------------------------------- changes */

static uint32_t add(struct past *past, const struct change *change)
{
	if (past->nr == CHANGES)
		sim_fail("a durable queue has %u changes", CHANGES);
	past->changes[past->nr] = *change;
	past->changes[past->nr].life = sim.life;
	past->changes[past->nr].at_ns = sim.mono_ns;
	return ++past->nr;
}

void past_made(const char *name)
{
	const struct change change = { .kind = CHANGE_MADE };
	struct past *past = past_of(name);

	if (past)
		add(past, &change);
}

uint32_t past_dropped(const char *name)
{
	const struct change change = { .kind = CHANGE_DROPPED };
	struct past *past = past_of(name);

	return past ? add(past, &change) : 0;
}

uint32_t past_note(const char *name, const struct expiry_record *answer,
		   const struct horrible_timer *timer)
{
	struct change change = { .kind = CHANGE_TIMER, .id = answer->id };
	struct past *past = past_of(name);

	if (!past)
		return 0;
	if (answer->status || answer->op == EXPIRY_OP_QUERY)
		return past->nr;
	if (answer->op == EXPIRY_OP_CLEAR)
		change.kind = CHANGE_CLEARED;
	if (timer) {
		change.is_there = true;
		change.deadline_ns = timer->deadline;
		change.cookie = timer->cookie;
		change.period_ms = timer->period_ms;
		change.waits = timer->unacked || timer->redeliver;
		change.is_last = answer->op == EXPIRY_OP_CANCEL;
	}
	trace("queue %.24s, change %u: op %u, flags %u, id %llx, deadline %llu, period %u, cookie %llx%s%s",
	      name, past->nr + 1, answer->op, answer->flags,
	      (unsigned long long)answer->id,
	      (unsigned long long)answer->deadline_ns, answer->period_ms,
	      (unsigned long long)answer->cookie,
	      change.is_there ? "" : ", ends", change.waits ? ", waits" : "");
	return add(past, &change);
}

void past_spoil(const char *name)
{
	struct past *past = past_of(name);

	if (past)
		past->is_spoiled = true;
}

/* --------------------------------------------------------- what clients know */

void past_answered(const char *name, uint32_t number)
{
	struct past *past = past_of(name);

	if (past && past->least < number)
		past->least = number;
}

void past_attached(const char *name, uint64_t since_ns)
{
	const struct past *past = past_of(name);
	const struct change *change;
	uint32_t i, number = 0;

	/* The last one before, or the first one since: the reply is read late, and
	 * meanwhile the queue may have been dropped and made again.
	 */
	for (i = past ? past->nr : 0; i; i--) {
		change = &past->changes[i - 1];
		if (change->kind != CHANGE_MADE && change->kind != CHANGE_DROPPED)
			continue;
		if (change->kind == CHANGE_MADE)
			number = i;
		if (change->life < sim.life || change->at_ns < since_ns)
			break;
	}
	past_answered(name, number);
}

void past_shown(const char *name, const struct expiry_record *row)
{
	const struct past *past = past_of(name);
	/* A delivery moves a periodic timer, and is no change: its ACK leaves the
	 * same deadline, later.
	 */
	bool waits = row->period_ms && row->flags & EXPIRY_F_REDELIVERED;
	uint32_t i, number = 0;

	/* The first of the last changes that leave the timer like that. */
	for (i = past ? past->nr : 0; i; i--) {
		const struct change *change = &past->changes[i - 1];

		if (change->kind != CHANGE_TIMER || change->id != row->id)
			continue;
		if (change->is_there && change->cookie == row->cookie &&
		    change->period_ms == row->period_ms &&
		    change->deadline_ns == row->deadline_ns &&
		    (change->waits || !waits))
			number = i;
		else if (number)
			break;
	}
	past_answered(name, number);
}

void past_expired(const char *name, uint32_t clock_id,
		  const struct expiry_record *expired)
{
	bool is_marked = expired->flags & EXPIRY_F_REDELIVERED;
	struct past *past = past_of(name);
	uint32_t i;

	if (!past)
		return;
	/* The clock was set back: it was not due when the daemon started. */
	if (clock_id == CLOCK_REALTIME && !(expired->flags & EXPIRY_F_LATE))
		is_marked = true;
	for (i = 0; i < past->nr_delivered && i < DELIVERED; i++) {
		const struct delivered *earlier = &past->delivered[i];

		if (earlier->life < sim.life && earlier->id == expired->id &&
		    earlier->cookie == expired->cookie &&
		    earlier->deadline_ns == expired->deadline_ns &&
		    !is_marked)
			sim_fail("queue %s: id %llx was delivered in life %u, and comes again without REDELIVERED",
				 name, (unsigned long long)expired->id,
				 earlier->life);
	}
	past->delivered[past->nr_delivered++ % DELIVERED] = (struct delivered) {
		.id = expired->id,
		.cookie = expired->cookie,
		.deadline_ns = expired->deadline_ns,
		.life = sim.life,
	};
}

void past_ends(bool is_clean, bool has_power)
{
	uint32_t i;

	past_clock();
	for (i = 0; i < QUEUES; i++) {
		if (is_clean)
			pasts[i].least = pasts[i].nr;
		/* Nothing says when the last interval began. */
		else if (!has_power && sim.commits_late)
			pasts[i].least = 0;
	}
}

/* --------------------------------------------------------------- after a start */

static void apply(struct model *model, const struct change *change)
{
	uint32_t i;

	if (change->kind != CHANGE_TIMER) {
		if (change->kind != CHANGE_CLEARED)
			model->is_made = change->kind == CHANGE_MADE;
		model->nr = 0;
		return;
	}
	for (i = 0; i < model->nr; i++)
		if (model->timers[i]->id == change->id)
			break;
	if (change->is_there && i == TIMERS)
		sim_fail("a durable queue has %u timers", TIMERS);
	if (change->is_there)
		model->timers[i] = change;
	if (change->is_there && i == model->nr)
		model->nr++;
	if (!change->is_there && i < model->nr)
		model->timers[i] = model->timers[--model->nr];
}

/* Returns why the row is not the timer after the change, or NULL. The queue's clock was
 * at @most_ns, and is at @now_ns.
 */
static const char *misfit(const struct change *change,
			  const struct expiry_record *row, uint64_t now_ns,
			  uint64_t most_ns)
{
	uint64_t period_ns = change->period_ms * NS_PER_MS;
	bool is_due = change->deadline_ns <= most_ns;
	uint64_t ahead_ns = row->deadline_ns - change->deadline_ns;

	if (row->cookie != change->cookie || row->period_ms != change->period_ms)
		return "another timer";
	/* Due since the time before its next one, or since a start when the clock had
	 * been set back before that.
	 */
	if (change->is_last)
		return row->deadline_ns <= most_ns ? NULL : "no last delivery";
	if (!period_ns || !is_due) {
		if (ahead_ns)
			return "another deadline";
		return !period_ns || !change->waits ||
		       row->flags & EXPIRY_F_REDELIVERED ?
		       NULL : "a delivery is lost";
	}
	if (row->deadline_ns < change->deadline_ns)
		return "early";
	if (ahead_ns % period_ns)
		return "another phase";
	if (row->deadline_ns > most_ns && !(row->flags & EXPIRY_F_REDELIVERED))
		return "a missed delivery is lost";
	return row->deadline_ns + period_ns > now_ns &&
	       row->deadline_ns <= most_ns + period_ns ? NULL : "another time";
}

static void trace_lost(const struct model *model,
		       const struct expiry_record *rows, int nr)
{
	uint32_t i;
	int j;

	for (i = 0; i < model->nr; i++) {
		for (j = 0; j < nr; j++)
			if (model->timers[i]->id == rows[j].id)
				break;
		if (j == nr)
			trace("id %llx is lost, cookie %llx",
			      (unsigned long long)model->timers[i]->id,
			      (unsigned long long)model->timers[i]->cookie);
	}
}

/* Returns what is wrong with the queue's rows, @nr of them or -1: it is not there. */
static const char *differs(const struct model *model,
			   const struct expiry_record *rows, int nr,
			   uint32_t clock_id)
{
	uint64_t now_ns = sim_now(clock_id);
	uint64_t most_ns = clock_id == CLOCK_REALTIME ? *latest_ns : now_ns;
	const char *why;
	uint32_t i;
	int j;

	if (model->is_made != (nr >= 0))
		return nr < 0 ? "the queue is lost" : "the queue is there again";
	for (j = 0; j < nr; j++) {
		for (i = 0; i < model->nr; i++)
			if (model->timers[i]->id == rows[j].id)
				break;
		if (i == model->nr)
			return "a timer too many";
		why = misfit(model->timers[i], &rows[j], now_ns, most_ns);
		if (why) {
			trace("now %llu: %s: id %llx, deadline %llu, flags %u, period %u, cookie %llx; was %llu, period %u, cookie %llx%s",
			      (unsigned long long)now_ns, why,
			      (unsigned long long)rows[j].id,
			      (unsigned long long)rows[j].deadline_ns,
			      rows[j].flags, rows[j].period_ms,
			      (unsigned long long)rows[j].cookie,
			      (unsigned long long)model->timers[i]->deadline_ns,
			      model->timers[i]->period_ms,
			      (unsigned long long)model->timers[i]->cookie,
			      model->timers[i]->waits ? ", and waits" : "");
			return why;
		}
	}
	if (nr < 0 || model->nr == (uint32_t)nr)
		return NULL;
	trace_lost(model, rows, nr);
	return "a timer is lost";
}

static void check(struct past *past, const char *name)
{
	struct expiry_record *rows = sim_alloc(TIMERS * SIM_RECORD);
	const char *why = NULL, *first = NULL;
	struct model model = { .nr = 0 };
	uint32_t i, fit = UINT32_MAX;
	uint32_t clock_id = CLOCK_MONOTONIC;
	int nr = engine_rows(name, rows, TIMERS, &clock_id);

	for (i = 0; i <= past->nr; i++) {
		if (i)
			apply(&model, &past->changes[i - 1]);
		if (i < past->least)
			continue;
		why = differs(&model, rows, nr, clock_id);
		if (!first)
			first = why;
		if (!why)
			fit = i;
	}
	if (fit == UINT32_MAX)
		sim_fail("life %u: queue %s is not as after any %u to %u of its changes: at first %s, at last %s",
			 sim.life, name, past->least, past->nr, first, why);
	trace("queue %s is as after %u changes, %u to %u are right", name, fit,
	      past->least, past->nr);
	past->nr = fit;
	if (!sim.has_power || past->least > fit)
		past->least = fit;
	sim_free(rows);
}

void past_check(void)
{
	char name[2] = "a";
	uint32_t i;

	past_clock();
	for (i = 0; i < QUEUES; i++, name[0]++)
		if (!pasts[i].is_spoiled)
			check(&pasts[i], name);
}
