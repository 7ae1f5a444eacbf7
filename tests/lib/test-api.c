// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The library's interface: its exports, its refusals before any connection, and
 * its explanations. Linked against libexpiry.so.0 alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <expiry/expiry.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

static void exports_its_calls_and_no_more(void **state)
{
	static const char *const calls[] = {
		"expiry_ack", "expiry_arm", "expiry_cancel", "expiry_clear",
		"expiry_close", "expiry_credit",
		"expiry_default_address", "expiry_drop",
		"expiry_events", "expiry_explain", "expiry_fd", "expiry_flush",
		"expiry_info", "expiry_next", "expiry_now", "expiry_open",
		"expiry_pending", "expiry_post", "expiry_query",
		"expiry_queues", "expiry_receive", "expiry_refresh",
		"expiry_rewind", "expiry_scan", "expiry_stat", "expiry_submit",
		"expiry_version", "expiry_wait",
	};
	static const char *const internal[] = {
		"stream_open", "ring_init", "link_step", "transport_unix",
		"credit_top_up",
	};
	void *lib = dlopen("libexpiry.so.0", RTLD_NOW | RTLD_NOLOAD);
	size_t i;

	(void)state;
	assert_non_null(lib);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (!dlvsym(lib, calls[i], "EXPIRY_0.1"))
			fail_msg("%s is not exported", calls[i]);
	}
	for (i = 0; i < ARRAY_SIZE(internal); i++)
		assert_null(dlsym(lib, internal[i]));
	dlclose(lib);
}

/* No server is at this address: a request refused with another errno was
 * refused before any connection.
 */
#define NOBODY	"unix:/nonexistent/socket"

static int open_with(const char *address, const struct expiry_options *options)
{
	struct expiry *const before = (void *)&before;
	struct expiry *h = before;
	int ret = expiry_open(&h, address, options);

	assert_true(ret < 0);
	assert_ptr_equal(h, before);
	return ret;
}

static void refuses_addresses(void **state)
{
	char path[300] = "unix:/";

	(void)state;
	memset(path + 6, 'x', sizeof(path) - 7);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(open_with(NOBODY, NULL), -ENOENT);
	assert_int_equal(open_with("device:/nonexistent", NULL), -ENOENT);
	assert_int_equal(open_with(path, NULL), -ENAMETOOLONG);
	assert_int_equal(open_with("", NULL), -EINVAL);
	assert_int_equal(open_with("unix:", NULL), -EINVAL);
	assert_int_equal(open_with("device:", NULL), -EINVAL);
	assert_int_equal(open_with("/run/expiryd/socket", NULL), -EINVAL);
	assert_int_equal(open_with("tcp:localhost", NULL), -EINVAL);
	assert_int_equal(open_with("uni:/x", NULL), -EINVAL);
	assert_int_equal(open_with("unixx:/x", NULL), -EINVAL);
	/* Something is there, but it is neither socket nor queue. */
	assert_int_equal(open_with("unix:/dev/null", NULL), -ECONNREFUSED);
	assert_int_equal(open_with("device:/dev/null", NULL), -EPROTO);
}

static void refuses_options(void **state)
{
	const struct expiry_options good = { .size = sizeof(good) };
	struct {
		struct expiry_options options;
		uint64_t later;
	} newer = { .options.size = sizeof(newer) };
	struct expiry_options o;

	(void)state;
	assert_int_equal(open_with(NOBODY, &good), -ENOENT);
	assert_int_equal(open_with(NOBODY, &newer.options), -ENOENT);
	newer.later = 1;
	assert_int_equal(open_with(NOBODY, &newer.options), -E2BIG);

#define REFUSED(member, value) do {					\
		o = good;						\
		o.member = (value);					\
		assert_int_equal(open_with(NOBODY, &o), -EINVAL);	\
	} while (0)
	REFUSED(size, 0);
	REFUSED(size, 8);
	REFUSED(flags, 0x04);		/* DURABLE: not yet */
	REFUSED(flags, 0x20);
	REFUSED(flags, EXPIRY_OPEN_OBSERVE);
	REFUSED(flags, EXPIRY_OPEN_MANUAL);
	REFUSED(flags, UINT32_MAX);
	REFUSED(clock_id, CLOCK_PROCESS_CPUTIME_ID);
	REFUSED(clock_id, UINT32_MAX);
	REFUSED(credit, EXPIRY_CREDIT_MAX + 1);
	REFUSED(window, EXPIRY_WINDOW_MAX + 1);
	REFUSED(timeout_ms, UINT32_MAX);
	REFUSED(queue, "a b");
	REFUSED(queue, "a/b");
	REFUSED(queue, "caf\xc3\xa9");
	REFUSED(queue, "a-name-of-25-bytes-is-too");
#undef REFUSED
	o = good;
	o.queue = "a-name-of-24-bytes-is-ok";
	assert_int_equal(strlen(o.queue), EXPIRY_NAME_MAX);
	assert_int_equal(open_with(NOBODY, &o), -ENOENT);
	o = good;
	o.queue = "name";
	assert_int_equal(open_with("device:/dev/null", &o), -EOPNOTSUPP);
	o = good;
	o.slack_ns = 1;
	assert_int_equal(open_with(NOBODY, &o), -EOPNOTSUPP);
	o = good;
	o.limit = 1;
	assert_int_equal(open_with(NOBODY, &o), -EOPNOTSUPP);
}

static void explains_everything(void **state)
{
	unsigned int op;
	const char *text;
	int error;

	(void)state;
	for (error = -4100; error <= 4100; error++) {
		for (op = 0; op < 256; op++) {
			text = expiry_explain(error, op);
			assert_non_null(text);
			assert_true(*text);
			assert_null(strchr(text, '\n'));
		}
	}
	assert_non_null(strstr(expiry_explain(-EBUSY, EXPIRY_OP_HELLO),
			       "consumer"));
	assert_string_equal(expiry_explain(-ENOENT, EXPIRY_OP_CANCEL),
			    expiry_explain(ENOENT, EXPIRY_OP_QUERY));
}

static void says_its_version(void **state)
{
	(void)state;
	assert_string_equal(expiry_version(), EXPIRY_VERSION);
}

static void close_takes_null(void **state)
{
	(void)state;
	expiry_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exports_its_calls_and_no_more),
		cmocka_unit_test(refuses_addresses),
		cmocka_unit_test(refuses_options),
		cmocka_unit_test(explains_everything),
		cmocka_unit_test(says_its_version),
		cmocka_unit_test(close_takes_null),
	};

	return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
