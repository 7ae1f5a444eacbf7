// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ledger: see ledger.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ledger.h"

/* Maps populated memory: page faults would count as the daemon's time. */
static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int ledger_init(struct ledger *ledger, uint32_t nr_max)
{
	*ledger = (struct ledger) {
		.timers = map(nr_max * sizeof(*ledger->timers)),
		.lateness = map(nr_max * sizeof(*ledger->lateness)),
		.nr_max = nr_max,
	};
	if (ledger->timers && ledger->lateness)
		return 0;
	ledger_deinit(ledger);
	return -ENOMEM;
}

void ledger_deinit(struct ledger *ledger)
{
	if (ledger->timers)
		munmap(ledger->timers,
		       ledger->nr_max * sizeof(*ledger->timers));
	if (ledger->lateness)
		munmap(ledger->lateness,
		       ledger->nr_max * sizeof(*ledger->lateness));
	ledger->timers = NULL;
	ledger->lateness = NULL;
}

void ledger_broken(struct ledger *ledger)
{
	uint32_t i;

	for (i = 0; i < ledger->nr; i++)
		ledger->timers[i].in_doubt |= !!ledger->timers[i].in_flight;
}

void ledger_sent(struct ledger *ledger, struct expiry_record *record)
{
	struct ledger_timer *timer;

	if (record->op == EXPIRY_OP_ARM)
		record->cookie = ledger->nr++;
	timer = &ledger->timers[record->cookie];
	timer->in_flight = record->op;
	if (record->op == EXPIRY_OP_ARM) {
		timer->armed = true;
		timer->deadline = record->deadline_ns;
		ledger->armed++;
		ledger->outstanding++;
	} else {
		timer->changed = true;
		timer->asked = record->deadline_ns;
	}
	ledger->unanswered++;
}

static void armed(struct ledger *ledger, struct ledger_timer *timer,
		  const struct expiry_record *record, uint64_t now_ns)
{
	ledger->named++;
	/* Its expiration may have overtaken this answer, and given the id. */
	if (timer->delivered && timer->id != record->id)
		ledger->misdated++;
	timer->id = record->id;
	timer->timely = now_ns <= timer->deadline;
}

static void refreshed(struct ledger *ledger, struct ledger_timer *timer,
		      const struct expiry_record *record, uint64_t now_ns)
{
	ledger->refreshed++;
	if (record->deadline_ns != timer->asked ||
	    (timer->delivered && timer->deadline != timer->asked &&
	     !timer->in_doubt))
		ledger->misdated++;
	timer->deadline = timer->asked;
	timer->timely = now_ns <= timer->deadline;
}

static void cancelled(struct ledger *ledger, struct ledger_timer *timer)
{
	ledger->cancelled++;
	timer->cancelled = true;
	if (timer->delivered)
		ledger->cancelled_delivered += !timer->in_doubt;
	else
		ledger->outstanding--;
}

/* Checks a timer that expired before the request: it must have come with its
 * values from before the refresh. A first attempt may have changed it.
 */
static void too_late(struct ledger *ledger, struct ledger_timer *timer,
		     uint8_t op)
{
	if (op == EXPIRY_OP_CANCEL && timer->in_doubt && !timer->delivered) {
		cancelled(ledger, timer);
		return;
	}
	ledger->too_late++;
	if (op == EXPIRY_OP_REFRESH && timer->delivered &&
	    timer->deadline == timer->asked && !timer->in_doubt)
		ledger->misdated++;
}

static void refused(struct ledger *ledger, struct ledger_timer *timer,
		    const struct expiry_record *record)
{
	if (!ledger->refused++)
		ledger->refusal = record->status;
	if (record->op == EXPIRY_OP_ARM) {
		ledger->armed--;
		ledger->named++;
		timer->armed = false;
		if (timer->delivered)
			ledger->unknown++;
		else
			ledger->outstanding--;
	}
}

void ledger_answer(struct ledger *ledger, const struct expiry_record *record,
		   uint64_t now_ns)
{
	struct ledger_timer *timer;

	if (record->cookie >= ledger->nr ||
	    ledger->timers[record->cookie].in_flight != record->op) {
		ledger->unknown++;
		return;
	}
	timer = &ledger->timers[record->cookie];
	timer->in_flight = 0;
	ledger->unanswered--;
	if (!record->status && record->op == EXPIRY_OP_ARM)
		armed(ledger, timer, record, now_ns);
	else if (!record->status && record->op == EXPIRY_OP_REFRESH)
		refreshed(ledger, timer, record, now_ns);
	else if (!record->status)
		cancelled(ledger, timer);
	else if (record->status == -ENOENT && record->op != EXPIRY_OP_ARM)
		too_late(ledger, timer, record->op);
	else
		refused(ledger, timer, record);
}

/*
 * Returns whether the timer must come in order: its deadline was in force
 * before it came, so every later deadline must wait for it. Without an answer
 * that is unknown.
 */
static bool has_place(const struct ledger_timer *timer)
{
	return timer->timely && timer->in_flight != EXPIRY_OP_ARM &&
	       timer->in_flight != EXPIRY_OP_REFRESH;
}

static bool is_deadline(const struct ledger_timer *timer, uint64_t deadline)
{
	return timer->deadline == deadline ||
	       ((timer->in_flight == EXPIRY_OP_REFRESH || timer->in_doubt) &&
		timer->asked == deadline);
}

/* Checks an expiration against the one before. Those that are marked are a sequence of
 * their own: what was due when the server ended, then what is due.
 */
static void check_order(struct ledger *ledger, const struct ledger_timer *timer,
			const struct expiry_record *record)
{
	uint64_t *last = record->flags & EXPIRY_F_REDELIVERED ?
				 &ledger->last_again : &ledger->last;

	if (record->deadline_ns < *last && has_place(timer))
		ledger->disorder++;
	if (record->deadline_ns > *last)
		*last = record->deadline_ns;
}

void ledger_expired(struct ledger *ledger, const struct expiry_record *record,
		    uint64_t now_ns)
{
	uint64_t deadline = record->deadline_ns;
	struct ledger_timer *timer;

	if (record->cookie >= ledger->nr ||
	    !ledger->timers[record->cookie].armed) {
		ledger->unknown++;
		return;
	}
	timer = &ledger->timers[record->cookie];
	check_order(ledger, timer, record);
	if (now_ns < deadline)
		ledger->early++;
	if (timer->delivered) {
		if (record->flags & EXPIRY_F_REDELIVERED || timer->in_doubt)
			ledger->again++;
		else
			ledger->duplicate++;
		return;
	}
	if (timer->cancelled && !timer->in_doubt) {
		ledger->cancelled_delivered++;
		return;
	}
	/* It had expired before: that is why there was none to cancel. */
	if (timer->cancelled) {
		timer->cancelled = false;
		ledger->cancelled--;
		ledger->outstanding++;
	}
	if (!is_deadline(timer, deadline) ||
	    (timer->id && timer->id != record->id))
		ledger->misdated++;

	ledger->outstanding--;
	timer->delivered = true;
	timer->deadline = deadline;
	timer->id = record->id;
	ledger->lateness[ledger->delivered++] =
		now_ns > deadline ? now_ns - deadline : 0;
}

void ledger_add(struct ledger *sums, const struct ledger *ledger)
{
	sums->nr_max += ledger->nr_max;
	sums->nr += ledger->nr;
	sums->named += ledger->named;
	sums->unanswered += ledger->unanswered;
	sums->outstanding += ledger->outstanding;
	sums->armed += ledger->armed;
	sums->refreshed += ledger->refreshed;
	sums->cancelled += ledger->cancelled;
	sums->too_late += ledger->too_late;
	sums->refused += ledger->refused;
	if (!sums->refusal)
		sums->refusal = ledger->refusal;
	sums->delivered += ledger->delivered;
	sums->early += ledger->early;
	sums->misdated += ledger->misdated;
	sums->disorder += ledger->disorder;
	sums->again += ledger->again;
	sums->duplicate += ledger->duplicate;
	sums->cancelled_delivered += ledger->cancelled_delivered;
	sums->unknown += ledger->unknown;
}

bool ledger_clean(const struct ledger *ledger)
{
	return !ledger->outstanding && !ledger->unanswered &&
	       !ledger->refused && !ledger->early && !ledger->misdated &&
	       !ledger->disorder && !ledger->duplicate &&
	       !ledger->cancelled_delivered && !ledger->unknown;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void ledger_sort(struct ledger *ledger)
{
	qsort(ledger->lateness, ledger->delivered, sizeof(*ledger->lateness),
	      compare);
}

uint64_t ledger_percentile(const struct ledger *ledger, unsigned int permille)
{
	uint64_t rank = (ledger->delivered * permille + 999) / 1000;

	return rank ? ledger->lateness[rank - 1] : 0;
}
