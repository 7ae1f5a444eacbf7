/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of cmocka that the tests of core/ use, by KUnit: their files are
 * compiled into a kernel module unchanged.
 */
#ifndef TESTS_KUNIT_CMOCKA_H
#define TESTS_KUNIT_CMOCKA_H

#include <linux/kernel.h>
#include <linux/string.h>

/**
 * struct CMUnitTest - a test case
 * @name: its name in reports
 * @test_func: the case; ends its thread where an assertion fails
 * @setup_func: called before it, or NULL
 * @teardown_func: called after it, or NULL
 * @initial_state: initial value of the state of all three
 */
struct CMUnitTest {
	const char *name;
	void (*test_func)(void **state);
	int (*setup_func)(void **state);
	int (*teardown_func)(void **state);
	void *initial_state;
};

#define cmocka_unit_test(f)	{ #f, f, NULL, NULL, NULL }

/* Runs the cases as a KUnit suite named for the program. Returns 0: KUnit knows
 * the failures.
 */
int kunit_run_group(const struct CMUnitTest *tests, size_t nr);

#define cmocka_run_group_tests(tests, setup, teardown)			\
	((void)(setup), (void)(teardown),				\
	 kunit_run_group(tests, ARRAY_SIZE(tests)))

/* Fails the running case and ends its thread. */
void __noreturn __printf(3, 4)
kunit_end_case(const char *file, int line, const char *format, ...);

#define kunit_require(condition, ...)					\
	do {								\
		if (unlikely(!(condition)))				\
			kunit_end_case(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

#define kunit_compare(a, op, b)						\
	do {								\
		u64 kunit_a = (u64)(a), kunit_b = (u64)(b);		\
									\
		kunit_require(kunit_a op kunit_b,			\
			      "%s " #op " %s: %#llx, %#llx", #a, #b,	\
			      kunit_a, kunit_b);			\
	} while (0)

#define assert_true(c)			kunit_require(c, "%s", #c)
#define assert_false(c)			kunit_require(!(c), "!(%s)", #c)
#define assert_null(p)			kunit_require(!(p), "!%s", #p)
#define assert_non_null(p)		kunit_require(p, "%s", #p)
#define assert_int_equal(a, b)		kunit_compare(a, ==, b)
#define assert_int_not_equal(a, b)	kunit_compare(a, !=, b)
#define assert_ptr_equal(a, b)						\
	kunit_require((a) == (b), "%s == %s", #a, #b)
#define assert_memory_equal(a, b, size)					\
	kunit_require(!memcmp(a, b, size), "%s is %s", #a, #b)
/* Evaluates @value once, as cmocka does: it may have effects. */
#define assert_in_range(value, least, most)				\
	do {								\
		u64 kunit_v = (u64)(value);				\
									\
		kunit_require(kunit_v >= (u64)(least) &&		\
			      kunit_v <= (u64)(most),			\
			      "%s in %s to %s: %#llx", #value, #least,	\
			      #most, kunit_v);				\
	} while (0)

#define fail_msg(...)	kunit_end_case(__FILE__, __LINE__, __VA_ARGS__)
#define fail()		fail_msg("fail()")
#define print_error	pr_err
#define print_message	pr_info

/* Marks the running case as skipped and ends its thread. */
void __noreturn kunit_skip_case(void);

#define skip()		kunit_skip_case()

#endif /* TESTS_KUNIT_CMOCKA_H */
