// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The performance that one client gets from expiryd: requests a second by size
 * of batch, with a given number of live timers, and the daemon's memory for a
 * live timer. README.md has the method; bench/quick starts the daemon.
 */
#include <getopt.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <expiry/expiry.h>

#include "bench/bench.h"
#include "bench/mix.h"

#define BATCH		512U
#define PIPELINE	8U	/* batches in flight, if more than one */
#define ROUNDS_MAX	99U
#define FAR_NS		(3600 * NSEC_PER_SEC)	/* nothing falls due meanwhile */

/**
 * struct subject - a queue, and the names of all its timers
 * @handle: the connection to it
 * @mix: the names of its timers
 * @records: room for @nr_records requests and their answers
 * @server_clock: of the daemon's processor time
 */
struct subject {
	struct expiry *handle;
	struct mix mix;
	struct expiry_record *records;
	uint32_t nr_records;
	clockid_t server_clock;
};

/* Cost of some requests: time, and processor time of either side. */
struct cost {
	uint64_t took_ns;
	uint64_t server_ns;
	uint64_t client_ns;
};

/* Maps populated memory: the client's page faults are not the daemon's cost. */
static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory");
	return memory;
}

/* ------------------------------------------------------------------------
 * The daemon, from outside
 */

/* Returns the listening process: the daemon, which made its own socket. */
static pid_t server_pid(const struct subject *subject)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(expiry_fd(subject->handle), SOL_SOCKET, SO_PEERCRED,
		       &peer, &len))
		die("SO_PEERCRED: %m");
	return peer.pid;
}

static uint64_t cpu_ns(clockid_t clock_id)
{
	struct timespec ts;

	if (clock_gettime(clock_id, &ts))
		die("processor time cannot be read: %m");
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Returns the resident bytes of a process, shared pages by halves. */
static uint64_t resident(pid_t pid)
{
	unsigned long long kib = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	file = fopen(path, "r");
	if (!file)
		die("%s: %m", path);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Pss: %llu", &kib) == 1)
			break;
	}
	fclose(file);
	if (!kib)
		die("%s: no Pss", path);
	return kib * 1024;
}

static const char *engine(const struct subject *subject,
			  struct expiry_stat *stat)
{
	struct expiry_server_stat server;
	int ret;

	ret = expiry_stat(subject->handle, stat, &server, sizeof(server));
	if (ret)
		die("%s", expiry_explain(ret, EXPIRY_OP_STAT));
	return server.engine == EXPIRY_ENGINE_KERNEL ? "kernel" : "embedded";
}

static void subject_init(struct subject *subject, const char *address,
			 bool keyed, uint32_t nr_max, uint32_t nr_records)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = keyed ? EXPIRY_OPEN_KEYED : 0,
		.clock_id = CLOCK_MONOTONIC,
		.timeout_ms = 30000,
	};
	int ret;

	memset(subject, 0, sizeof(*subject));
	ret = expiry_open(&subject->handle, address, &options);
	if (ret)
		die("%s: %s", address, expiry_explain(ret, EXPIRY_OP_HELLO));
	subject->mix.keyed = keyed;
	subject->mix.from_ns = expiry_now(subject->handle) + FAR_NS;
	subject->mix.ids = map(sizeof(*subject->mix.ids) * nr_max);
	subject->mix.random = 1;
	subject->records = map(sizeof(*subject->records) * nr_records);
	subject->nr_records = nr_records;
	if (clock_getcpuclockid(server_pid(subject), &subject->server_clock))
		die("the daemon's processor time cannot be read");
}

/* ------------------------------------------------------------------------
 * Requests
 */

/* Sends requests and waits for the answers of each batch before the next. */
static void send_waiting(struct subject *subject, uint32_t nr, uint32_t batch)
{
	uint32_t done, count;
	int ret;

	for (done = 0; done < nr; done += ret) {
		count = nr - done < batch ? nr - done : batch;
		ret = expiry_submit(subject->handle, subject->records + done,
				    count);
		if (ret < 0)
			die("%s", expiry_explain(ret, EXPIRY_OP_ARM));
	}
}

/* Sends requests while earlier answers are in transit. Answers come in the
 * order of the requests, so they overwrite them.
 */
static void send_ahead(struct subject *subject, uint32_t nr, uint32_t batch)
{
	uint32_t sent = 0, done = 0, count;
	int ret;

	while (done < nr) {
		ret = 0;
		count = nr - sent < batch ? nr - sent : batch;
		if (count && sent + count - done <= PIPELINE * batch) {
			ret = expiry_post(subject->handle,
					  subject->records + sent, count);
			if (ret < 0)
				die("%s", expiry_explain(ret, EXPIRY_OP_ARM));
			sent += ret;
			if ((uint32_t)ret == count && sent < nr)
				continue;
		}
		ret = sent > done ? expiry_next(subject->handle,
						subject->records + done,
						sent - done) : 0;
		if (ret < 0)
			die("%s", expiry_explain(ret, EXPIRY_OP_ARM));
		done += ret;
		if (!ret && expiry_wait(subject->handle, 30000) <= 0)
			die("the daemon is silent");
	}
}

/* Makes @nr requests, then measures their answering. */
static struct cost work(struct subject *subject, mix_make_t *make, uint32_t nr,
			uint32_t batch, bool ahead)
{
	struct expiry_record *record = subject->records;
	struct cost cost;
	uint32_t i;

	for (i = 0; i < nr; i++)
		make(&subject->mix, &record[i]);
	cost.server_ns = cpu_ns(subject->server_clock);
	cost.client_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	cost.took_ns = bench_now();
	if (ahead)
		send_ahead(subject, nr, batch);
	else
		send_waiting(subject, nr, batch);
	cost.took_ns = bench_now() - cost.took_ns;
	cost.client_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cost.client_ns;
	cost.server_ns = cpu_ns(subject->server_clock) - cost.server_ns;

	mix_answers(&subject->mix, record, nr);
	return cost;
}

/* Brings the queue to @nr live timers, unmeasured. */
static void bring_to(struct subject *subject, uint32_t nr)
{
	uint32_t count;

	while (subject->mix.nr != nr) {
		count = subject->mix.nr < nr ? nr - subject->mix.nr : subject->mix.nr - nr;
		if (count > subject->nr_records)
			count = subject->nr_records;
		work(subject, subject->mix.nr < nr ? mix_arm : mix_cancel, count,
		     BATCH, true);
	}
}

/* ------------------------------------------------------------------------
 * The machine
 */

static void cpu_model(char *text, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256], *value;

	snprintf(text, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		value = strchr(line, ':');
		if (strncmp(line, "model name", 10) || !value)
			continue;
		value[strcspn(value, "\n\"\\")] = 0;
		snprintf(text, size, "%.100s", value + 2);
		break;
	}
	if (file)
		fclose(file);
}

static bool json;

static void describe_machine(const struct subject *subject)
{
	struct expiry_stat stat;
	struct utsname name;
	char model[128];

	uname(&name);
	cpu_model(model, sizeof(model));
	printf(json ? "{\"bench\":\"quick\",\"engine\":\"%s\",\"kernel\":\"%s\","
		      "\"cpu\":\"%s\",\"processors\":%ld}\n" :
		      "engine %s, Linux %s, %s, %ld processors\n",
	       engine(subject, &stat), name.release, model,
	       sysconf(_SC_NPROCESSORS_ONLN));
	fflush(stdout);
}

/* ------------------------------------------------------------------------
 * Requests a second
 */

/* The measurements of every round, side by side. */
static const struct kind {
	bool keyed;
	bool ahead;
	uint32_t batch;
	uint32_t requests;
} kinds[] = {
	{ false, false, 1, 20000 },
	{ false, false, 16, 160000 },
	{ false, false, BATCH, 1000000 },
	{ false, true, BATCH, 1000000 },
	{ true, false, 1, 20000 },
	{ true, false, 16, 160000 },
	{ true, false, BATCH, 1000000 },
	{ true, true, BATCH, 1000000 },
};

#define KINDS		(sizeof(kinds) / sizeof(*kinds))
#define REQUESTS_MAX	1000000U

/* Figures of one kind, by round: requests a second, and nanoseconds of
 * processor time of a request, of the daemon and of the client.
 */
struct rates {
	double rate[ROUNDS_MAX];
	double server[ROUNDS_MAX];
	double client[ROUNDS_MAX];
};

static void measure(struct subject *subject, const struct kind *kind,
		    uint32_t timers, struct rates *rates, uint32_t round)
{
	struct cost cost;

	/* A quarter of the requests adds a timer; half-way it is @timers. */
	bring_to(subject, timers - kind->requests / 8);
	cost = work(subject, mix_any, kind->requests, kind->batch,
		    kind->ahead);
	rates->rate[round] = kind->requests * (double)NSEC_PER_SEC /
			     cost.took_ns;
	rates->server[round] = (double)cost.server_ns / kind->requests;
	rates->client[round] = (double)cost.client_ns / kind->requests;
}

static void report(const struct kind *kind, uint32_t timers,
		   struct rates *rates, uint32_t rounds)
{
	struct bench_figure rate = bench_median(rates->rate, rounds);
	struct bench_figure server = bench_median(rates->server, rounds);
	struct bench_figure client = bench_median(rates->client, rounds);
	const char *queue = kind->keyed ? "keyed" : "plain";
	uint32_t in_flight = kind->ahead ? PIPELINE : 1;

	if (json)
		printf("{\"bench\":\"rate\",\"queue\":\"%s\",\"timers\":%u,"
		       "\"batch\":%u,\"batches_in_flight\":%u,\"rounds\":%u,"
		       "\"per_second\":%.0f,\"min\":%.0f,\"max\":%.0f,"
		       "\"server_cpu_ns\":%.0f,\"client_cpu_ns\":%.0f}\n",
		       queue, timers, kind->batch, in_flight, rounds,
		       rate.median, rate.min, rate.max, server.median,
		       client.median);
	else
		printf("%-6s %5u  %5u  %11.0f  %10.0f to %-10.0f %6.0f %6.0f\n",
		       queue, kind->batch, in_flight, rate.median, rate.min,
		       rate.max, server.median, client.median);
}

static void rate(const char *address, uint32_t timers, uint32_t rounds)
{
	static struct rates rates[KINDS];
	struct subject subjects[2];
	uint32_t i, round;

	for (i = 0; i < 2; i++)
		subject_init(&subjects[i], address, i, timers + REQUESTS_MAX,
			     REQUESTS_MAX);
	describe_machine(&subjects[0]);
	if (!json)
		printf("%u live timers; half ARM, a quarter REFRESH, a quarter CANCEL;\n"
		       "median of %u rounds, and the processor time a request takes\n\n"
		       "queue  batch in-flight     a second        slowest to fastest    daemon client (ns)\n",
		       timers, rounds);
	fflush(stdout);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < KINDS; i++)
			measure(&subjects[kinds[i].keyed], &kinds[i], timers,
				&rates[i], round);
	}
	for (i = 0; i < KINDS; i++)
		report(&kinds[i], timers, &rates[i], rounds);
	for (i = 0; i < 2; i++)
		expiry_close(subjects[i].handle);
}

/* ------------------------------------------------------------------------
 * Memory
 */

static void report_memory(const struct subject *subject, const char *when,
			  uint64_t empty, double per_second)
{
	double bytes = (double)(resident(server_pid(subject)) - empty) /
		       subject->mix.nr;
	struct expiry_stat stat;
	double pages;

	engine(subject, &stat);
	pages = 4096.0 * (stat.pages_heap + stat.pages_slots +
			  stat.pages_index) / subject->mix.nr;
	if (json)
		printf("{\"bench\":\"memory\",\"queue\":\"%s\",\"timers\":%u,"
		       "\"after\":\"%s\",\"bytes\":%.1f,\"page_bytes\":%.1f,"
		       "\"per_second\":%.0f}\n",
		       subject->mix.keyed ? "keyed" : "plain", subject->mix.nr, when,
		       bytes, pages, per_second);
	else
		printf("%-6s %9u  %-20s  %6.1f resident  %6.1f in pages  %11.0f a second\n",
		       subject->mix.keyed ? "keyed" : "plain", subject->mix.nr, when,
		       bytes, pages, per_second);
	fflush(stdout);
}

/* Processes @nr timers, a part at a time; returns requests a second. */
static double work_through(struct subject *subject, mix_make_t *make, uint32_t nr)
{
	uint64_t took_ns = 0;
	uint32_t count, done;

	for (done = 0; done < nr; done += count) {
		count = nr - done < subject->nr_records ? nr - done :
							  subject->nr_records;
		took_ns += work(subject, make, count, BATCH, true).took_ns;
	}
	return nr * (double)NSEC_PER_SEC / took_ns;
}

static void memory(const char *address, uint32_t timers, bool keyed)
{
	struct subject subject;
	uint64_t empty;
	double per_second;

	subject_init(&subject, address, keyed, timers, REQUESTS_MAX);
	empty = resident(server_pid(&subject));
	if (!json && !keyed)
		printf("\nqueue     timers  after                 bytes a live timer\n");
	per_second = work_through(&subject, mix_arm, timers);
	report_memory(&subject, "all were armed", empty, per_second);
	/* Half of them move to earlier and leave a stale node each. */
	per_second = work_through(&subject, mix_refresh, timers);
	report_memory(&subject, "as many refreshes", empty, per_second);
	expiry_close(subject.handle);
}

static void usage(int status)
{
	fputs("usage: quick --socket PATH [--json] [--timers N] [--rounds N]\n"
	      "             rate | memory-plain | memory-keyed\n",
	      status ? stderr : stdout);
	exit(status);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "timers", required_argument, NULL, 't' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	char address[128] = "";
	int c, timers = 0, rounds = 9;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			snprintf(address, sizeof(address), "unix:%s", optarg);
			break;
		case 't':
			timers = atoi(optarg);
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		case 'j':
			json = true;
			break;
		default:
			usage(c == 'h' ? 0 : 2);
		}
	}
	if (optind != argc - 1 || !*address || rounds < 1 ||
	    rounds > (int)ROUNDS_MAX)
		usage(2);
	/* Fewer could run out while a round cancels. */
	timers = timers ?: strcmp(argv[optind], "rate") ? 10000000 : 1000000;
	if (timers < 500000)
		usage(2);
	if (strcmp(argv[optind], "rate") == 0)
		rate(address, timers, rounds);
	else if (strcmp(argv[optind], "memory-plain") == 0)
		memory(address, timers, false);
	else if (strcmp(argv[optind], "memory-keyed") == 0)
		memory(address, timers, true);
	else
		usage(2);
	return 0;
}
