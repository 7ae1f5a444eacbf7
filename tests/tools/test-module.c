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

#include "tests/fake-root.h"
#include "tools/module.h"

static enum module_state state(void)
{
	return module_state(fake_root, "6.1.0-1");
}

static void test_absent(void **arg)
{
	(void)arg;
	assert_int_equal(state(), MODULE_ABSENT);
	/* For another kernel only. */
	fake_root_put("/lib/modules/6.1.0-2/updates/dkms/expiry.ko", "");
	fake_root_put("/sys/kernel/security/lockdown", "none [integrity] confidentiality");
	assert_int_equal(state(), MODULE_ABSENT);
}

static void test_unloaded(void **arg)
{
	(void)arg;
	fake_root_put("/lib/modules/6.1.0-1/updates/dkms/expiry.ko.xz", "");
	assert_int_equal(state(), MODULE_UNLOADED);
	fake_root_put("/sys/kernel/security/lockdown", "[none] integrity confidentiality");
	fake_root_put("/sys/module/module/parameters/sig_enforce", "N");
	assert_int_equal(state(), MODULE_UNLOADED);
}

static void test_unsigned(void **arg)
{
	(void)arg;
	fake_root_put("/lib/modules/6.1.0-1/extra/expiry.ko", "");
	fake_root_put("/sys/kernel/security/lockdown", "none [integrity] confidentiality");
	assert_int_equal(state(), MODULE_UNSIGNED);
	fake_root_put("/sys/kernel/security/lockdown", "none integrity [confidentiality]");
	assert_int_equal(state(), MODULE_UNSIGNED);
	fake_root_put("/sys/kernel/security/lockdown", "[none] integrity confidentiality");
	fake_root_put("/sys/module/module/parameters/sig_enforce", "Y");
	assert_int_equal(state(), MODULE_UNSIGNED);
}

static void test_loaded(void **arg)
{
	(void)arg;
	fake_root_put("/sys/module/expiry/refcnt", "0");
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
		cmocka_unit_test_setup(test_absent, fake_root_clear),
		cmocka_unit_test_setup(test_unloaded, fake_root_clear),
		cmocka_unit_test_setup(test_unsigned, fake_root_clear),
		cmocka_unit_test_setup(test_loaded, fake_root_clear),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, fake_root_make, fake_root_remove);
}
