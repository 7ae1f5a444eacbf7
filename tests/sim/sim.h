/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon, and programs that use the library, in one process on a simulated
 * kernel: io_uring, sockets, clocks, memory and threads. Every decision comes from one
 * seed, so a seed is a run.
 *
 *   sim.c         one run, and the options
 *   runs.c        many runs, shrinking
 *   world.c       the scheduler: which thread, completion or step is next
 *   ring.c        io_uring: queues, provided buffers, the functions of liburing
 *   opcode.c      io_uring: the opcodes
 *   file.c        descriptors: sockets, eventfd, signalfd, timerfd; calls
 *   call.c        blocking calls of programs
 *   program.c     programs that use the library
 *   oracle.c      what such a program must see
 *   memory.c      allocations that fail
 *   thread.c      threads and semaphores
 *   peer.c        the clients of the daemon, and what they check
 *   request.c     the requests that they make up
 *   engine.c      the embedded engine, slow or failing, beside a naive twin
 *   manager.c     the service manager, its watchdog and its store
 *   declared.c    the files of declared queues
 *   lives.c       several lives of the daemon on one disk; lives.h has its parts
 *   log.c         the reader of the log
 *   inside.c      invariants of the daemon's own structs
 *   inside-durable.c  its journals
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <expiry/wire.h>

#define SIM_CLIENTS	12	/* connected at a time */
#define SIM_RECORD	sizeof(struct expiry_record)
#define SIM_US		1000ULL
#define SIM_MS		1000000ULL
#define SIM_S		1000000000ULL

struct config;
struct declaration;
struct engine_io;
struct io_uring;
struct program;

/* Random numbers: splitmix64. */
struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Returns a number below @n. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return rng_next(rng) % n;
}

/* Returns true @per_mille times of a thousand. */
static inline bool rng_hits(struct rng *rng, uint32_t per_mille)
{
	return rng_below(rng, 1000) < per_mille;
}

enum sim_phase {
	SIM_START,	/* the daemon probes its kernel: no faults */
	SIM_RUN,	/* steps, and faults */
	SIM_DRAIN,	/* clients read all, give credit, and ask nothing new */
	SIM_CLOSE,	/* clients have closed their connections */
	SIM_STOP,	/* the daemon was told to end */
};

/**
 * struct sim - a run
 * @steps: how many, at most; @step: the present one
 * @keep: which of them are done, NULL = all
 * @kernel: of decisions of the kernel and the scheduler
 * @mono_ns: CLOCK_MONOTONIC; @boot_ahead and @real_ahead: the other clocks
 * @complete: how often a completion that could come comes, per mille
 * @partial: how often a transfer is cut, per mille
 * @error: how often an operation fails, per mille
 * @age: which features the kernel lacks, 0 = none
 * @has_multishot: multishot receive is reliable; @has_quiet: likewise a
 *	send whose success is skipped
 * @cq_entries: of the completion queue, 0 = as asked for; likewise @sq_entries
 * @slow: how often the engine answers later, per mille; @broken: or fails
 * @steal_in: the allocation that many from now fails, 0 = none
 * @shield: allocations are not the daemon's own
 * @has_failed: an allocation has failed
 * @forgives: clients may be ended for the memory of others
 * @has_lied: a client that makes its HELLO up may have made queues
 * @clock_sets: steps of CLOCK_REALTIME; @reloads: of the settings
 * @busy_manager: how often the service manager does not read, per mille
 * @keeps: it keeps queues over a restart
 * @declares: there are files of declared queues
 * @io: operations of the engine in flight
 * @crashes: there are durable queues, and the daemon crashes; the next are about that
 * @life: how often it has
 * @boots: how often the machine was started anew
 * @has_power: the last crash was the daemon's alone
 * @commits_late: answers wait for the write alone
 * @drops: few clients drop queues and make them again, in another thread
 */
struct sim {
	uint64_t seed;
	uint32_t steps;
	uint32_t step;
	const bool *keep;
	bool verbose;
	enum sim_phase phase;
	struct rng kernel;

	uint64_t mono_ns;
	uint64_t boot_ahead;
	uint64_t real_ahead;

	uint32_t complete;
	uint32_t partial;
	uint32_t error;
	uint32_t age;
	bool has_multishot;
	bool has_quiet;
	uint32_t cq_entries;
	uint32_t sq_entries;
	uint32_t slow;
	uint32_t broken;
	uint32_t steal_in;
	uint32_t shield;
	bool has_failed;
	bool forgives;
	bool has_lied;
	uint32_t clock_sets;
	uint32_t reloads;
	uint32_t busy_manager;
	bool keeps;
	bool declares;
	uint32_t io;

	bool crashes;
	uint32_t life;
	uint32_t boots;
	bool has_power;
	bool commits_late;
	bool drops;

	uint64_t requests;
	uint64_t expirations;
	uint64_t connections;
	uint64_t turns;
};

extern struct sim sim;

/* Ends the run: prints the seed, the step and the fault. */
void sim_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));
void sim_trace(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
#define trace(...) \
	do { \
		if (sim.verbose) \
			sim_trace(__VA_ARGS__); \
	} while (0)

/* Memory of the simulator itself, zeroed: never fails. */
void *sim_alloc(size_t size);
void *sim_realloc(void *memory, size_t size);
void sim_free(void *memory);

uint64_t sim_now(uint32_t clock_id);

/* Runs the seed sim.seed in this process. */
void sim_run(void);

/* ------------------------------------------------------------------ world.c */

/* Runs the daemon and its clients to the end. */
void world_run(const struct config *config,
	       int (*configure)(struct config *config));

/* ------------------------------------------------------------------ thread.c */

/* Starts a thread of the daemon. */
void thread_start(void *(*run)(void *data), void *data);
/* Lets another thread or the world go on. With a ring: until it has something. */
void thread_yield(struct io_uring *ring);
/* Runs a random thread that can run; false: there is none. */
bool thread_run_one(struct rng *rng);
bool threads_ended(void);
/* Starts a program, which is no thread of the daemon. */
void thread_start_program(void *(*run)(void *data), void *data);
/* Returns the argument of the thread that runs. */
void *thread_data(void);
bool thread_is_daemon(void);
bool thread_is_program(void);
/* Waits until @is_ready or @until_ns. Returns whether it is. */
bool thread_wait(bool (*is_ready)(void *data), void *data, uint64_t until_ns);
/* Returns the time of the next of these, EXPIRY_NEVER: none. */
uint64_t threads_next_ns(void);

/* -------------------------------------------------------------------- ring.c */

/* Completes some of what could be completed, or all of it. Returns false if there
 * is nothing that could be.
 */
bool rings_progress(struct rng *rng, bool all);
bool ring_has_completion(const struct io_uring *ring);
/* Returns the time of the next timeout, CLOCK_MONOTONIC; EXPIRY_NEVER: none. */
uint64_t rings_next_ns(void);
/* Buffers that the kernel has, and those in completions not yet seen. */
uint32_t ring_nr_buffers(const struct io_uring *ring);
uint32_t ring_nr_unseen(const struct io_uring *ring);
/* The machine crashes: of the writes under way some are done. */
void rings_write_some(struct rng *rng);
/* Returns whether an operation on the descriptor is under way; @sends: a send. */
bool rings_use(int fd, bool sends);

/* -------------------------------------------------------------------- file.c */

/**
 * struct stream - one end of a connection
 * @other: NULL once that is closed
 * @fd: of the daemon's end, -1 = a client's
 * @data: received and not read, @len bytes from @head
 * @max: most of that
 * @is_ended: the other end sends no more; @is_deaf: this end receives no more
 * @is_reset: the other end closed without having read all
 * @moved: the number of the last send that took something, or that blocked
 * @has_starved: the last receive found no buffer; @was_in_vain: nor was there one
 *	when it was asked for again
 * @was_short: a send took less than all, which blocks the daemon's client
 */
struct stream {
	struct stream *other;
	struct peer *peer;
	int fd;
	char *data;
	size_t head;
	size_t len;
	size_t max;
	bool is_ended;
	bool is_deaf;
	bool is_reset;
	bool was_short;
	bool has_starved;
	bool was_in_vain;
	uint64_t moved;
};

struct stream *stream_of(int fd);
size_t stream_write(struct stream *stream, const void *data, size_t len);
size_t stream_read(struct stream *stream, void *data, size_t len);
void stream_end(struct stream *stream);
/* Cuts the connection: of what is on its way some is lost. */
void stream_cut(struct stream *stream, struct rng *rng);
void stream_close(struct stream *stream);

/* Connects a client: its end, once the daemon accepts the other. */
struct stream *file_connect(struct peer *peer, size_t up_max, size_t down_max);
int file_accept(void);
bool file_is_readable(int fd);
ssize_t file_read(int fd, void *data, size_t len);
void file_signal(int signal);
void file_clock_set(void);
/* Returns the time of the next alarm of a program. */
uint64_t files_next_ns(void);
/* Fails if the daemon has left a descriptor open. */
void files_check_closed(void);

/* -------------------------------------------------------------------- peer.c */

/* One of these for each request, the first is HELLO. */
struct request {
	struct expiry_record record;
	struct expiry_record result;
	uint32_t change;	/* the queue's last, in past.c */
	bool is_submitted;
	bool is_credit;		/* has no reply */
};

enum peer_kind {
	PEER_HONEST,
	PEER_FLOOD,
	PEER_DEAF,
	PEER_SLOW,
	PEER_LIAR,
	PEER_KINDS,
	PEER_PROGRAM = PEER_KINDS,
};

/* A name that clients use, or an anonymous client's own. */
struct topic {
	char name[EXPIRY_NAME_MAX];
	bool is_durable;
	uint32_t clock_id;
	uint8_t mode;
	uint64_t ids[64];
	uint32_t nr_ids;
	uint32_t nr_drops;
};

/**
 * struct peer - a simulated client
 * @number: tags its requests, by their cookies
 * @requests: all of them, @nr of them; @answered: the next to be answered;
 *	@submitted: the last that the engine was given
 * @written: bytes of them that were written
 * @expected: expirations that the engine gave for it, or an observer's copies of
 *	those; @nr_taken received, or left out and counted by MISSED
 * @missed: counted by MISSED and not yet found left out
 * @given: credit in requests written as a whole
 * @collected: expirations that the engine gave for it
 * @may_end: the daemon may end it
 * @is_durable: its queue is
 * @has_dropped: its DROP of a durable queue is carried out, also if its answer is -EIO;
 *	@dropped: the number of that change, 0 = of a queue without a past
 * @partial: bytes of a record, @nr_partial of them; @skip: units of a body
 * @body: the first @nr_body units of it, the counters of a queue
 * @program: which uses the library, NULL = none
 * @outgoing: bytes of the request that it is sending
 * @cut_up: bytes after which the connection is cut; @cut_down: likewise
 */
struct peer {
	uint32_t number;
	enum peer_kind kind;
	uid_t uid;
	struct stream *stream;
	struct topic *topic;
	struct topic own;
	struct expiry_hello hello;
	bool is_open;
	bool is_refused;
	bool is_dropped;
	bool is_durable;
	bool has_dropped;
	uint32_t dropped;
	bool is_gone;
	bool has_ended;
	bool may_end;
	bool reads;
	bool is_unclear;
	bool in_rows;
	uint64_t connected_ns;

	struct request *requests;
	uint32_t nr;
	uint32_t nr_max;
	uint32_t answered;
	uint32_t submitted;
	uint64_t written;

	struct expiry_record *expected;
	uint32_t nr_expected;
	uint32_t expected_max;
	uint32_t nr_taken;
	uint64_t missed;
	uint64_t given;
	uint64_t collected;

	char partial[sizeof(struct expiry_record)];
	uint32_t nr_partial;
	uint32_t skip;
	uint32_t nr_body;
	struct expiry_record body[sizeof(struct expiry_stat) / SIM_RECORD];

	struct program *program;
	char outgoing[sizeof(struct expiry_record)];
	size_t cut_up;
	size_t cut_down;
};

extern struct peer **peers;
extern uint32_t nr_peers;

/* One step of the clients. */
void peers_step(struct rng *rng);
/* Everything that honest clients can do at once. Returns whether it was any. */
bool peers_drain(void);
void peers_close(void);
/* The machine crashes: all that reached their sockets counts as read. */
void peers_read_last(void);
/* At an idle moment: nobody waits for what the daemon owes. */
void peers_check_idle(void);
/* Returns the number of the client's request that the engine gets now, or 0. */
uint32_t request_find(const struct peer *peer,
		      const struct expiry_record *record);
/* Makes a client and connects it; NULL: the backlog is full. */
struct peer *peer_new(uid_t uid, size_t up_max, size_t down_max);
void peer_leave(struct peer *peer);
/* Checks bytes that the client received. */
void peer_receive(struct peer *peer, const char *data, size_t n);
/* Whether the daemon may end the client, or has; its rights apart. */
bool peer_may_end(const struct peer *peer);
/* Checks that the daemon may have ended the client. */
void peer_check_end(const struct peer *peer);
/* Notes that a request was written as a whole. */
void peer_written(struct peer *peer, const struct request *request);
void peer_expect(struct peer *peer, const struct expiry_record *records,
		 uint32_t nr);

/* request.c */
void peer_hello(struct peer *peer, struct rng *rng);
void peer_ask(struct peer *peer, struct rng *rng);
struct request *peer_add(struct peer *peer, const struct expiry_record *record);
/* Returns the cookie of the client's next request: unique in the run. */
uint64_t peer_tag(const struct peer *peer);
void peer_credit(struct peer *peer, uint32_t credit);
void topics_init(struct rng *rng);
struct topic *topic_any(struct rng *rng);
/* Describes the queue of this name. */
void topic_kind(char name, uint32_t *clock_idp, uint32_t *modep);
/* Notes that the queue of this name was dropped. */
void topic_lost(const char *name);
/* Makes up a request on the queue; its cookie is 0. */
void make_request(const struct topic *topic, struct expiry_record *record,
		  struct rng *rng);

/* ------------------------------------------------------------------ engine.c */

/* At an idle moment: nothing is due that a client gives credit for. */
void engine_check_idle(void);
/* Returns whether the daemon has these counters from the engine. */
bool engine_gave_stat(const struct expiry_stat *stat);
/* At the daemon's end: no queue is left. */
void engine_check_ended(void);
/* Returns whether a queue of this name is removed, and not yet freed. */
bool engine_removes(const char *name);
/* Lists the timers of a durable queue, and sets its clock. Returns how many, or -1:
 * there is none of this name.
 */
int engine_rows(const char *name, struct expiry_record *rows, uint32_t max,
		uint32_t *clock_idp);
/* Returns QUEUE@UID of the queue with this descriptor. */
const char *engine_queue_name(int fd);

/* ----------------------------------------------------------------- manager.c */

/* Chooses what the service manager does. */
void manager_init(struct rng *rng);
/* The clock has moved far ahead before the first step. */
void manager_began(void);
/* Returns whether the manager keeps a descriptor of this name. */
bool manager_has(const char *name);
/* The manager keeps a descriptor that is no queue any more. */
void manager_lost(void);
/* Returns the name of a queue that it passes. */
const char *manager_passed(uint32_t i);
/* At an idle moment: it was told all that it is to know. */
void manager_check_idle(void);
/* At the daemon's end. */
void manager_check_ended(void);

/* ---------------------------------------------------------------- declared.c */

/* Chooses the files of declared queues. */
void declared_init(struct rng *rng);
/* Changes one of them. */
void declared_step(struct rng *rng);
/* Returns the file of this name as the daemon last read it, or NULL. */
const struct declaration *declared_find(const char *name);

/* -------------------------------------------------------------------- log.c */

/* The clock has moved far ahead before the first step. */
void log_began(void);
/* At the daemon's end: each line was written, or counted. */
void log_check_ended(void);

/* ------------------------------------------------------------------ inside.c */

/* Checks the structs of the thread that has this ring, at the end of a turn. */
void inside_check(struct io_uring *ring);
/* Returns the client that is the consumer of the daemon's queue, or NULL. */
struct peer *inside_consumer(const void *owner);
/* Fails if a request that has waited for too long is carried out. */
void inside_check_overdue(const struct engine_io *io);
/* Returns the client whose requests the engine gets. */
struct peer *inside_asker(const struct engine_io *io);
/* Lets each observer of the daemon's queue expect a copy of what is delivered. */
void inside_copy(const void *owner, const struct expiry_record *records,
		 uint32_t nr);
const char *inside_name(const void *owner);
bool inside_is_removed(const void *owner);
/* Returns whether a thread has no buffer for a receive, or none for a reply. */
bool inside_lacks_buffers(void);
/* Returns whether the thread with this ring knows of a free buffer. */
bool inside_has_buffer(const struct io_uring *ring);
/* Returns whether the daemon keeps replies of this client in memory of its own. */
bool inside_is_blocked(const struct peer *peer);
/* Checks that no other client has read nothing for longer. */
void inside_check_victim(const struct peer *peer);
/* Checks what a status says. */
void inside_check_status(uint64_t queues, uint64_t clients);
/* Checks that the manager has the queues that the daemon says it has: @nr, 0 = or
 * more. A queue is pending only as long as a message was refused.
 */
void inside_check_kept(uint32_t nr);
/* At an idle moment: declared queues are as their files were last read. */
void inside_check_declared(void);
/* Returns the owner of the daemon's queue. */
uid_t inside_owner(const void *owner);
/* Fails unless nothing is charged or held, without clients. */
void inside_check_empty(void);

/* -------------------------------------------------------- inside-durable.c */

bool inside_is_durable(const void *owner);
/* Marks expirations as the daemon does before it sends them. */
void inside_mark(const void *owner, struct expiry_record *records, uint32_t nr);
/* Asks for a checkpoint, sometimes. */
void inside_want_checkpoint(struct rng *rng);
/* Traces the state of each journal. */
void inside_trace(void);
/* Returns whether a journal takes no records, and has not yet been mended. */
bool inside_journal_fails(void);

#endif /* TESTS_SIM_SIM_H */
