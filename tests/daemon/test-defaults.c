// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The sample of the settings has the daemon's defaults. test-man.sh compares it
 * with expiryd.conf(5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/util/config.h"
#include "daemon/util/group.h"
#include "daemon/util/log.h"

#define SAMPLE	"packaging/expiryd.conf"

/* config.c needs these only to read files. */
_Atomic enum log_level log_max = LOG_LEVEL_ERR;

void log_write(enum log_level level, const struct log_about *about,
	       const char *format, ...)
{
	(void)level;
	(void)about;
	fail_msg("%s", format);
}

bool group_find(const char *value, gid_t *gid)
{
	(void)gid;
	fail_msg("%s", value);
	return false;
}

/* A setting of the sample, without its comment sign, changes nothing. */
static void the_sample_has_the_defaults(void **state)
{
	static struct config defaults, config;
	char line[512], key[64], value[256];
	FILE *sample = fopen(SAMPLE, "r");
	int nr = 0;

	(void)state;
	assert_non_null(sample);
	/* The sample's socket is root's. */
	unsetenv("XDG_RUNTIME_DIR");
	config_init(&defaults);
	config_init(&config);
	while (fgets(line, sizeof(line), sample)) {
		if (sscanf(line, "#%63[a-z_] = %255s", key, value) != 2)
			continue;
		assert_null(config_set(&config, key, value));
		if (memcmp(&defaults, &config, sizeof(config)))
			fail_msg("%s = %s is not the default", key, value);
		nr++;
	}
	fclose(sample);
	assert_true(nr > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_has_the_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
