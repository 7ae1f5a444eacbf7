// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/module.h"

#define PATH	512

/* Reads the beginning of a file, "" for an unreadable file. */
static void read_start(const char *root, const char *path, char *text,
		       size_t size)
{
	char name[PATH];
	FILE *file;

	*text = '\0';
	snprintf(name, sizeof(name), "%s%s", root, path);
	file = fopen(name, "re");
	if (!file)
		return;
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

static bool exists(const char *root, const char *path)
{
	char name[PATH];

	snprintf(name, sizeof(name), "%s%s", root, path);
	return !access(name, F_OK);
}

/* Returns whether the module is installed, by dkms or by hand. */
static bool installed(const char *root, const char *release)
{
	static const char *const dirs[] = { "updates/dkms", "updates", "extra" };
	static const char *const ends[] = { "", ".xz", ".zst", ".gz" };
	char path[PATH / 2];
	size_t d, e;

	for (d = 0; d < sizeof(dirs) / sizeof(*dirs); d++) {
		for (e = 0; e < sizeof(ends) / sizeof(*ends); e++) {
			snprintf(path, sizeof(path),
				 "/lib/modules/%s/%s/expiry.ko%s", release,
				 dirs[d], ends[e]);
			if (exists(root, path))
				return true;
		}
	}
	return false;
}

/* Returns whether the kernel enforces signatures: by lockdown, as Debian's does under
 * Secure Boot, or by a parameter.
 */
static bool signed_only(const char *root)
{
	char text[128];

	read_start(root, "/sys/kernel/security/lockdown", text, sizeof(text));
	if (strstr(text, "[integrity]") || strstr(text, "[confidentiality]"))
		return true;
	read_start(root, "/sys/module/module/parameters/sig_enforce", text,
		   sizeof(text));
	return text[0] == 'Y';
}

enum module_state module_state(const char *root, const char *release)
{
	if (exists(root, "/sys/module/expiry"))
		return MODULE_LOADED;
	if (!installed(root, release))
		return MODULE_ABSENT;
	return signed_only(root) ? MODULE_UNSIGNED : MODULE_UNLOADED;
}

const char *module_word(enum module_state state)
{
	static const char *const words[] = {
		[MODULE_LOADED] = "loaded",
		[MODULE_ABSENT] = "absent",
		[MODULE_UNSIGNED] = "unsigned",
		[MODULE_UNLOADED] = "unloaded",
	};

	return words[state];
}

const char *module_advice(enum module_state state)
{
	static const char *const advice[] = {
		[MODULE_LOADED] = "loaded: a daemon that is restarted can use it",
		[MODULE_ABSENT] = "not installed for this kernel: see expiry(4)",
		[MODULE_UNSIGNED] = "not loaded: this kernel (Secure Boot) takes signed modules only, see expiry(4)",
		[MODULE_UNLOADED] = "not loaded: modprobe expiry, then restart the daemon",
	};

	return advice[state];
}
