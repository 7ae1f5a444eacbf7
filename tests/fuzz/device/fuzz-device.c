// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The fuzzer of /dev/expiry, in the guest.
 *
 *	fuzz-device [OPTION...] [FILE...]
 *
 *	--time S	how long (default: only the given programs)
 *	--seed N	of the random numbers (default: the time of day)
 *	--corpus DIR	initial programs; new ones go to the first
 *	--crashes DIR	where programs with a finding go
 *	--last FILE	the last programs, should the kernel crash
 *	--places FILE	their coverage in the module
 *	--cover DIR	afterwards, the fewest programs with the same coverage
 *	--trace		print each call
 *	--split FILE DIR	(on the host) --last's programs, each to a file
 *
 * FILEs are only replayed. If EXPIRY_TEST_SETTIME=1 the machine's clock and the
 * module's parameters are changed, too. Exit status: 1 if there was a finding.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "corpus.h"
#include "cover.h"
#include "report.h"
#include "threads.h"
#include "values.h"

#define DIRS_MAX	4
#define LAST_SLOTS	16
#define PROGRESS_S	5
#define SEEDS_MOST	200

/**
 * struct slot - one of the last programs
 * @number: of the execution, from 1
 * @size: of the program
 */
struct slot {
	uint64_t number;
	uint64_t size;
	uint8_t data[PROGRAM_MAX];
};

static struct {
	unsigned int seconds;
	uint32_t seed;
	const char *dirs[DIRS_MAX];
	unsigned int nr_dirs;
	const char *crashes;
	const char *last;
	const char *places;
	const char *cover;
} args;

static int last_fd = -1;
static uint64_t executions;
static uint64_t started_ns;

/*
 * Write it before running it, into the host's file, which outlives this kernel.
 * fsync() would wait for the host's disk, too.
 */
static void log_last(const void *data, size_t size)
{
	struct slot slot = { .number = executions, .size = size };

	if (last_fd < 0)
		return;
	memcpy(slot.data, data, size);
	if (pwrite(last_fd, &slot, sizeof(slot),
		   executions % LAST_SLOTS * sizeof(slot)) != sizeof(slot))
		die(args.last);
	sync_file_range(last_fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE |
			SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

/* Runs a program; returns its number of new edges. */
static unsigned int execute(const void *data, size_t size, uint32_t *marks,
			    unsigned int *nr_marks)
{
	unsigned int before = findings(), new;

	executions++;
	log_last(data, size);
	cover_begin();
	program_run(data, size);
	new = cover_end(marks, nr_marks);
	if (findings() != before && args.crashes)
		corpus_save(args.crashes, data, size);
	return new;
}

static double elapsed(void)
{
	return (clock_ns(CLOCK_MONOTONIC) - started_ns) / 1e9;
}

static void progress(void)
{
	static double last;
	double now = elapsed();

	if (now - last < PROGRESS_S)
		return;
	last = now;
	printf("# %llu executions, %.0f a second, %u places, %u edges, %u programs kept\n",
	       (unsigned long long)executions, executions / now, cover_pcs(),
	       cover_edges(), corpus_nr);
	fflush(stdout);
}

/* Runs the programs of the directories once; they stay whatever they cover. */
static void run_corpus(void)
{
	static uint32_t marks[COVER_MARKS_MAX];
	struct input *input;
	unsigned int i;

	for (i = 0; i < corpus_nr; i++) {
		input = corpus[i];
		execute(input->data, input->size, marks, &input->nr_marks);
		input->marks = malloc(input->nr_marks * sizeof(*marks));
		if (!input->marks)
			die("malloc");
		memcpy(input->marks, marks, input->nr_marks * sizeof(*marks));
		progress();
	}
}

static void fuzz(bool guided)
{
	uint8_t data[PROGRAM_MAX];
	uint32_t prng = args.seed;
	unsigned int new;
	size_t size;

	while (elapsed() < args.seconds) {
		size = corpus_mutate(data, &prng);
		new = execute(data, size, NULL, NULL);
		if (guided && new && corpus_add(data, size) && args.nr_dirs)
			corpus_save(args.dirs[0], data, size);
		progress();
	}
}

static int by_number(const void *a, const void *b)
{
	const struct slot *one = a, *other = b;

	return (one->number > other->number) - (one->number < other->number);
}

/* The names of those that were there, the newest last. */
static int split(const char *path, const char *dir)
{
	static struct slot slots[LAST_SLOTS];
	char name[NAME_SIZE];
	struct slot *slot;
	unsigned int nr;
	ssize_t size;
	int fd;

	fd = open(path, O_RDONLY);
	size = fd < 0 ? -1 : read(fd, slots, sizeof(slots));
	if (size < 0)
		die(path);
	close(fd);
	nr = size / sizeof(*slots);
	qsort(slots, nr, sizeof(*slots), by_number);
	for (slot = slots; slot < slots + nr; slot++) {
		if (!slot->number || slot->size > PROGRAM_MAX)
			continue;
		if (!corpus_save(dir, slot->data, slot->size))
			die(dir);
		corpus_name(name, slot->data, slot->size);
		printf("%s/%s\n", dir, name);
	}
	return 0;
}

static void usage(void)
{
	fprintf(stderr, "usage: see the beginning of tests/fuzz/device/fuzz-device.c\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "time", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 's' },
		{ "corpus", required_argument, NULL, 'c' },
		{ "crashes", required_argument, NULL, 'x' },
		{ "last", required_argument, NULL, 'l' },
		{ "places", required_argument, NULL, 'p' },
		{ "cover", required_argument, NULL, 'm' },
		{ "trace", no_argument, NULL, 'v' },
		{ "split", required_argument, NULL, 'd' },
		{ 0 }
	};
	int option;

	args.seed = time(NULL);
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case 't':
			args.seconds = atoi(optarg);
			break;
		case 's':
			args.seed = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			if (args.nr_dirs < DIRS_MAX)
				args.dirs[args.nr_dirs++] = optarg;
			break;
		case 'x':
			args.crashes = optarg;
			break;
		case 'l':
			args.last = optarg;
			break;
		case 'p':
			args.places = optarg;
			break;
		case 'm':
			args.cover = optarg;
			break;
		case 'v':
			options.trace = true;
			break;
		case 'd':
			if (optind < argc)
				exit(split(optarg, argv[optind]));
			usage();
			break;
		default:
			usage();
		}
	}
}

static void load(int argc, char **argv)
{
	uint8_t data[PROGRAM_MAX];
	unsigned int i;
	ssize_t size;
	int fd;

	for (i = 0; i < args.nr_dirs; i++)
		corpus_load(args.dirs[i]);
	for (; optind < argc; optind++) {
		fd = open(argv[optind], O_RDONLY);
		size = fd < 0 ? -1 : read(fd, data, sizeof(data));
		if (size < 0)
			die(argv[optind]);
		corpus_add(data, size);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	const char *settime = getenv("EXPIRY_TEST_SETTIME");
	bool guided;

	parse(argc, argv);
	options.settime = settime && !strcmp(settime, "1");
	if (getenv("EXPIRY_DEVICE"))
		options.device = getenv("EXPIRY_DEVICE");
	if (access(options.device, R_OK | W_OK))
		die(options.device);
	load(argc, argv);
	if (args.last) {
		last_fd = open(args.last, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (last_fd < 0)
			die(args.last);
	}
	guided = cover_init();
	printf("# seed %u, %u programs to begin with%s%s%s\n", args.seed, corpus_nr,
	       guided ? "" : "; blind: this kernel has no KCOV",
	       options.settime && machine_reclaim_init() ? ", swap" : "",
	       options.settime && machine_fail_init() ? ", failing allocations" : "");
	fflush(stdout);

	state_init();
	threads_start(cover_thread);
	started_ns = clock_ns(CLOCK_MONOTONIC);
	run_corpus();
	fuzz(guided);

	printf("# done: %llu executions in %.0f s, %.0f a second, %u places, %u edges, ",
	       (unsigned long long)executions, elapsed(),
	       executions / elapsed(), cover_pcs(), cover_edges());
	printf("%u programs kept, %u findings\n", corpus_nr, findings());
	if (args.places)
		cover_save(args.places);
	if (args.cover)
		corpus_cover(args.cover, SEEDS_MOST);
	return findings() ? 1 : 0;
}
