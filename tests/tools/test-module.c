// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl's reports about a missing module, on machines made up of a few
 * files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tools/module.h"

static char root[] = "/tmp/expiry-module.XXXXXX";

static void put(const char *path, const char *text)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "f=%s%s; install -D /dev/null $f && echo '%s' >$f", root, path,
		 text);
	assert_int_equal(system(command), 0);
}

static enum module_state state(void)
{
	return module_state(root, "6.1.0-1");
}

static int clear(void **arg)
{
	char command[128];

	(void)arg;
	snprintf(command, sizeof(command), "rm -rf %s/*", root);
	return system(command);
}

static void test_absent(void **arg)
{
	(void)arg;
	assert_int_equal(state(), MODULE_ABSENT);
	/* For another kernel only. */
	put("/lib/modules/6.1.0-2/updates/dkms/expiry.ko", "");
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality");
	assert_int_equal(state(), MODULE_ABSENT);
}

static void test_unloaded(void **arg)
{
	(void)arg;
	put("/lib/modules/6.1.0-1/updates/dkms/expiry.ko.xz", "");
	assert_int_equal(state(), MODULE_UNLOADED);
	put("/sys/kernel/security/lockdown", "[none] integrity confidentiality");
	put("/sys/module/module/parameters/sig_enforce", "N");
	assert_int_equal(state(), MODULE_UNLOADED);
}

static void test_unsigned(void **arg)
{
	(void)arg;
	put("/lib/modules/6.1.0-1/extra/expiry.ko", "");
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality");
	assert_int_equal(state(), MODULE_UNSIGNED);
	put("/sys/kernel/security/lockdown", "none integrity [confidentiality]");
	assert_int_equal(state(), MODULE_UNSIGNED);
	put("/sys/kernel/security/lockdown", "[none] integrity confidentiality");
	put("/sys/module/module/parameters/sig_enforce", "Y");
	assert_int_equal(state(), MODULE_UNSIGNED);
}

static void test_loaded(void **arg)
{
	(void)arg;
	put("/sys/module/expiry/refcnt", "0");
	assert_int_equal(state(), MODULE_LOADED);
}

static void test_words(void **arg)
{
	int i;

	(void)arg;
	for (i = MODULE_LOADED; i <= MODULE_UNLOADED; i++) {
		assert_non_null(module_word(i));
		assert_non_null(module_advice(i));
	}
	assert_string_equal(module_word(MODULE_UNSIGNED), "unsigned");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_absent, clear),
		cmocka_unit_test_setup(test_unloaded, clear),
		cmocka_unit_test_setup(test_unsigned, clear),
		cmocka_unit_test_setup(test_loaded, clear),
		cmocka_unit_test(test_words),
	};
	char command[128];
	int ret;

	if (!mkdtemp(root))
		return 1;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command) || ret;
}
