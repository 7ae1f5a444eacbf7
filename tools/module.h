/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why there is no kernel module for queues. */
#ifndef TOOLS_MODULE_H
#define TOOLS_MODULE_H

enum module_state {
	MODULE_LOADED,
	MODULE_ABSENT,		/* not installed for this kernel */
	MODULE_UNSIGNED,	/* installed, but this kernel takes signed ones only */
	MODULE_UNLOADED,	/* installed, but not loaded */
};

/* How it is with the module on the machine below @root ("" or a directory that
 * looks like it) whose kernel is @release.
 */
enum module_state module_state(const char *root, const char *release);

/* A state as one word, and what to do about it, constant phrases. */
const char *module_word(enum module_state state);
const char *module_advice(enum module_state state);

#endif /* TOOLS_MODULE_H */
