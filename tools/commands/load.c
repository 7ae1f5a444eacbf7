// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl load: arm a timer for every line of a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/input/lines.h"
#include "tools/input/parse-line.h"
#include "tools/input/parse-time.h"
#include "tools/output/error.h"
#include "tools/output/json.h"
#include "tools/output/print.h"
#include "tools/output/progress.h"
#include "tools/session.h"

#define BATCH	512

/**
 * struct load - a file that is being loaded
 * @name: name of the file, as printed
 * @keyed: the queue is keyed
 * @broken: the connection is broken; loading stops
 * @loaded: number of loaded lines
 * @failed: number of refused lines
 * @count: number of records in the batch
 * @numbers: line numbers of these records
 */
struct load {
	struct ctl *ctl;
	const char *name;
	bool keyed;
	bool broken;
	uint64_t loaded;
	uint64_t failed;
	uint32_t count;
	struct expiry_record records[BATCH];
	uint64_t numbers[BATCH];
	struct progress progress;
	struct lines lines;
};

static void complain(struct load *load, uint64_t number, const char *why)
{
	load->failed++;
	progress_clear(&load->progress);
	ctl_error("%s:%" PRIu64 ": %s", load->name, number, why);
}

static void print_id(const struct load *load,
		     const struct expiry_record *record)
{
	struct json json;

	if (!load->ctl->json) {
		printf("%" PRIu64 "\n", (uint64_t)record->id);
		return;
	}
	json_begin(&json);
	json_timer(&json, load->ctl, record);
	json_end(&json);
}

/* Sends the batch. */
static void load_submit(struct load *load)
{
	int i, done = 0, ret = 0;

	while (done < (int)load->count) {
		ret = expiry_submit(load->ctl->handle, load->records + done,
				    load->count - done);
		if (ret < 0)
			break;
		done += ret;
	}
	for (i = 0; i < done; i++) {
		if (load->records[i].status) {
			complain(load, load->numbers[i],
				 expiry_explain(load->records[i].status,
						EXPIRY_OP_ARM));
			continue;
		}
		load->loaded++;
		if (load->ctl->given & CTL_IDS)
			print_id(load, &load->records[i]);
	}
	if (ret < 0) {
		progress_clear(&load->progress);
		ctl_error("%s:%" PRIu64 ": from here on nothing is known to be armed: %s",
			  load->name, load->numbers[done],
			  expiry_explain(ret, EXPIRY_OP_ARM));
		load->broken = true;
	}
	load->count = 0;
}

/* Appends the record of a line to the batch. */
static void load_line(struct load *load, const char *text, size_t len)
{
	struct expiry_record *record = &load->records[load->count];
	struct load_line line;
	const char *why;
	int flags, ret;

	ret = parse_load_line(text, len, &line, &why);
	if (!ret)
		return;
	if (ret > 0) {
		flags = ctl_deadline(load->ctl, &line.deadline, &why);
		if (flags < 0) {
			ret = flags;
		} else if (load->keyed && !line.has_id) {
			why = "the queue is keyed: expected an id behind the cookie";
			ret = -EINVAL;
		} else if (!load->keyed && line.has_id) {
			why = "an id needs a queue made with --keyed: expected nothing behind the cookie";
			ret = -EINVAL;
		}
	}
	if (ret < 0) {
		complain(load, load->lines.number, why);
		return;
	}
	*record = (struct expiry_record){
		.op = EXPIRY_OP_ARM,
		.flags = flags,
		.id = line.has_id ? line.id : 0,
		.deadline_ns = line.deadline.ns,
		.cookie = line.cookie,
	};
	load->numbers[load->count++] = load->lines.number;
}

static void print_result(const struct load *load)
{
	struct json json;

	if (load->ctl->json) {
		json_begin(&json);
		json_u64(&json, "loaded", load->loaded);
		json_u64(&json, "failed", load->failed);
		json_end(&json);
	} else if (!(load->ctl->given & CTL_IDS)) {
		printf("%" PRIu64 " loaded, %" PRIu64 " failed\n",
		       load->loaded, load->failed);
	}
}

static int load_file(struct load *load)
{
	const char *text;
	size_t len;
	int ret;

	while (!load->broken) {
		ret = lines_next(&load->lines, &text, &len);
		if (ret < 0)
			complain(load, load->lines.number + 1, strerror(-ret));
		if (ret <= 0)
			break;
		load_line(load, text, len);
		if (load->count == BATCH) {
			load_submit(load);
			progress_draw(&load->progress, load->lines.offset,
				      load->loaded, "loaded");
		}
	}
	if (!load->broken)
		load_submit(load);
	progress_clear(&load->progress);
	print_result(load);
	return load->failed || load->broken ? EXIT_REFUSED : 0;
}

static int run_load(struct ctl *ctl, char **args)
{
	const bool from_stdin = !args[0] || strcmp(args[0], "-") == 0;
	static struct load load;	/* some 100 KiB */
	struct stat st;
	int fd, ret;

	fd = from_stdin ? STDIN_FILENO : open(args[0], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ctl_error("%s: %s", args[0], strerror(errno));
	ret = ctl_open(ctl, ctl_queue(ctl), CTL_OPEN_CREATE, 0);
	if (!ret) {
		load.ctl = ctl;
		load.name = from_stdin ? "stdin" : args[0];
		load.keyed = ctl_is_keyed(ctl);
		lines_init(&load.lines, fd);
		progress_init(&load.progress,
			      !fstat(fd, &st) && S_ISREG(st.st_mode) ?
			      st.st_size : 0);
		ret = load_file(&load);
	}
	if (!from_stdin)
		close(fd);
	return ret;
}

const struct command cmd_load = {
	.name = "load",
	.args = "[FILE|-]",
	.summary = "arm a timer for every line: DEADLINE COOKIE [ID]",
	.examples =
		"  expiryctl load leases.txt --queue leases --keyed\n"
		"  printf '+5s 1\\n2027-01-31T12:00:00Z 2\\n' | expiryctl load\n",
	.max = 1,
	.options = CTL_IDS | CTL_DURABLE,
	.run = run_load,
};
