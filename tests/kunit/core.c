// SPDX-License-Identifier: GPL-2.0-only
/*
 * The unit tests of core/ in the kernel. Every program of tests/core/ becomes a
 * KUnit suite: its main() is an ordinary function (see Kbuild) that is called
 * when the module is loaded.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/stdarg.h>
#include <kunit/test.h>

#include <cmocka.h>

#include "core.h"

/* Arguments of each program: the usual seed, and fewer rounds than usual. The
 * kernel's checks make the model's rounds much longer, those of small pages most.
 */
#define SEED	"1"
#define ROUNDS	(CORE_PAGE_SHIFT < 12 ? "15" : "60")

struct program {
	const char *name;
	int (*main)(int argc, char **argv);
};

/* PROGRAMS: X(name) for each. */
#define X(name) int name##_main(int argc, char **argv);
PROGRAMS
#undef X

#define X(name) { #name, name##_main },
static const struct program programs[] = { PROGRAMS };
#undef X

/* A suite and its cases; KUnit needs them until the module is unloaded. */
struct group {
	struct list_head list;
	struct kunit_suite suite;
	const struct CMUnitTest *tests;
	struct kunit_case cases[];
};

static LIST_HEAD(groups);
static const char *running;		/* the program */

void kunit_end_case(const char *file, int line, const char *format, ...)
{
	struct kunit *test = current->kunit_test;
	struct va_format what;
	va_list args;

	va_start(args, format);
	what.fmt = format;
	what.va = &args;
	kunit_err(test, "%s:%d: %pV\n", kbasename(file), line, &what);
	va_end(args);
	kunit_set_failure(test);
	kunit_try_catch_throw(&test->try_catch);
}

void kunit_skip_case(void)
{
	struct kunit *test = current->kunit_test;

	kunit_mark_skipped(test, "not with pages of %u bytes", (u32)CORE_PAGE_SIZE);
	kunit_try_catch_throw(&test->try_catch);
}

/* Runs a case. KUnit calls cases by function: finds the group's case by name.
 */
static void run_case(struct kunit *test)
{
	struct group *group = list_last_entry(&groups, struct group, list);
	const struct CMUnitTest *unit = group->tests;
	void *state;

	while (unit->name != test->name)
		unit++;
	state = unit->initial_state;
	if (unit->setup_func)
		KUNIT_ASSERT_EQ(test, unit->setup_func(&state), 0);
	unit->test_func(&state);
	if (unit->teardown_func)
		KUNIT_ASSERT_EQ(test, unit->teardown_func(&state), 0);
}

int kunit_run_group(const struct CMUnitTest *tests, size_t nr)
{
	struct kunit_suite *suites[1];
	struct group *group;
	size_t i;

	/* KUnit's list of cases ends with one that is all zero. */
	group = kzalloc(struct_size(group, cases, nr + 1), GFP_KERNEL);
	if (!group)
		return -ENOMEM;
	/* The name is const for suites defined at compile time. */
	strscpy((char *)group->suite.name, running, sizeof(group->suite.name));
	group->suite.test_cases = group->cases;
	group->tests = tests;
	for (i = 0; i < nr; i++) {
		group->cases[i].name = tests[i].name;
		group->cases[i].run_case = run_case;
	}
	list_add_tail(&group->list, &groups);
	suites[0] = &group->suite;
	return __kunit_test_suites_init(suites, 1);
}

static int __init core_init(void)
{
	char *argv[] = { NULL, SEED, ROUNDS, NULL };
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(programs); i++) {
		running = programs[i].name;
		argv[0] = (char *)running;
		err = programs[i].main(ARRAY_SIZE(argv) - 1, argv);
		if (err)
			return err;
	}
	return 0;
}

static void __exit core_exit(void)
{
	struct group *group, *next;
	struct kunit_suite *suites[1];

	list_for_each_entry_safe(group, next, &groups, list) {
		suites[0] = &group->suite;
		__kunit_test_suites_exit(suites, 1);
		kfree(group);
	}
}

module_init(core_init);
module_exit(core_exit);
MODULE_DESCRIPTION("Unit tests of expiry's core");
MODULE_LICENSE("GPL");
