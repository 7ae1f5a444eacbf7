/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, /sys/kernel/tracing/events/expiry. Each names the queue by its
 * serial number, as fdinfo does. Times are nanoseconds on the queue's clock.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM expiry

#if !defined(EXPIRY_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define EXPIRY_TRACE_H

#include <linux/tracepoint.h>

#include "queue_state.h"

#define expiry_show_clock(id)				\
	__print_symbolic(id,				\
			 { CLOCK_REALTIME, "realtime" },	\
			 { CLOCK_MONOTONIC, "monotonic" },	\
			 { CLOCK_BOOTTIME, "boottime" },	\
			 { CLOCK_BOOTTIME_ALARM, "boottime-alarm" })

#define expiry_show_mode(mode)				\
	__print_flags(mode, "|",			\
		      { EXPIRY_MODE_ACK, "ack" },	\
		      { EXPIRY_MODE_KEYED, "keyed" })

/* Reports a newly configured queue. */
TRACE_EVENT(expiry_config,
	TP_PROTO(const struct expiry_queue *queue),
	TP_ARGS(queue),
	TP_STRUCT__entry(
		__field(u32, queue)
		__field(u32, clock)
		__field(u32, mode)
		__field(u32, layout)
		__field(u64, limit)
		__field(u64, slack_ns)
	),
	TP_fast_assign(
		__entry->queue = queue->serial;
		__entry->clock = queue->clock_id;
		__entry->mode = queue->timers.mode;
		__entry->layout = queue->layout == &bheap_sorted ? 1 :
				  queue->layout == &bheap_radix ? 2 : 0;
		__entry->limit = queue->timers.limit;
		__entry->slack_ns = queue->slack_ns;
	),
	TP_printk("queue=%u clock=%s mode=%s layout=%s limit=%llu slack_ns=%llu",
		  __entry->queue, expiry_show_clock(__entry->clock),
		  expiry_show_mode(__entry->mode),
		  __print_symbolic(__entry->layout, { 0, "subtree" },
				   { 1, "sorted" }, { 2, "radix" }),
		  __entry->limit, __entry->slack_ns)
);

/* Reports records processed in one critical section: @done of @count, fewer
 * where a page was missing. @armed and @nodes are the values afterwards.
 */
TRACE_EVENT(expiry_submit,
	TP_PROTO(const struct expiry_queue *queue, u32 count, u32 done),
	TP_ARGS(queue, count, done),
	TP_STRUCT__entry(
		__field(u32, queue)
		__field(u32, count)
		__field(u32, done)
		__field(u32, nodes)
		__field(u64, armed)
		__field(u64, next_ns)
	),
	TP_fast_assign(
		__entry->queue = queue->serial;
		__entry->count = count;
		__entry->done = done;
		__entry->nodes = queue->timers.heap.nr;
		__entry->armed = queue->timers.armed;
		__entry->next_ns = timers_next_ns(&queue->timers);
	),
	TP_printk("queue=%u count=%u done=%u armed=%llu nodes=%u next_ns=%llu",
		  __entry->queue, __entry->count, __entry->done,
		  __entry->armed, __entry->nodes, __entry->next_ns)
);

/* Reports that the hrtimer fired, in its interrupt, @late_ns after its
 * deadline.
 */
TRACE_EVENT(expiry_fire,
	TP_PROTO(const struct expiry_queue *queue, u64 deadline_ns, s64 late_ns),
	TP_ARGS(queue, deadline_ns, late_ns),
	TP_STRUCT__entry(
		__field(u32, queue)
		__field(u64, deadline_ns)
		__field(s64, late_ns)
	),
	TP_fast_assign(
		__entry->queue = queue->serial;
		__entry->deadline_ns = deadline_ns;
		__entry->late_ns = late_ns;
	),
	TP_printk("queue=%u deadline_ns=%llu late_ns=%lld",
		  __entry->queue, __entry->deadline_ns, __entry->late_ns)
);

/* Reports that a reader got @given of @taken records; the others were restored.
 * The first was taken @late_ns after its deadline (CLOCK_SET: 0).
 */
TRACE_EVENT(expiry_deliver,
	TP_PROTO(const struct expiry_queue *queue,
		 const struct expiry_record *first, u32 taken, u32 given),
	TP_ARGS(queue, first, taken, given),
	TP_STRUCT__entry(
		__field(u32, queue)
		__field(u32, taken)
		__field(u32, given)
		__field(u64, deadline_ns)
		__field(u64, late_ns)
	),
	TP_fast_assign(
		__entry->queue = queue->serial;
		__entry->taken = taken;
		__entry->given = given;
		__entry->deadline_ns = first->deadline_ns;
		__entry->late_ns = first->op == EXPIRY_OP_EXPIRED ?
			queue->timers.held_ns - first->deadline_ns : 0;
	),
	TP_printk("queue=%u taken=%u given=%u deadline_ns=%llu late_ns=%llu",
		  __entry->queue, __entry->taken, __entry->given,
		  __entry->deadline_ns, __entry->late_ns)
);

/* Reports stale nodes that left the heap in one critical section: @dropped of
 * them, with @nodes left for @armed timers.
 */
TRACE_EVENT(expiry_sweep,
	TP_PROTO(const struct expiry_queue *queue, u64 dropped),
	TP_ARGS(queue, dropped),
	TP_STRUCT__entry(
		__field(u32, queue)
		__field(u32, nodes)
		__field(u64, dropped)
		__field(u64, armed)
	),
	TP_fast_assign(
		__entry->queue = queue->serial;
		__entry->nodes = queue->timers.heap.nr;
		__entry->dropped = dropped;
		__entry->armed = queue->timers.armed;
	),
	TP_printk("queue=%u dropped=%llu nodes=%u armed=%llu",
		  __entry->queue, __entry->dropped, __entry->nodes,
		  __entry->armed)
);

#endif /* EXPIRY_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
