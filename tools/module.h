/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reasons why the kernel module is not available.
 */
#ifndef TOOLS_MODULE_H
#define TOOLS_MODULE_H

enum module_state {
	MODULE_LOADED,
	MODULE_ABSENT,		/* not installed for this kernel */
	MODULE_UNSIGNED,	/* installed, but the kernel requires a signature */
	MODULE_UNLOADED,	/* installed, not loaded */
};

/* Returns the module's state for the kernel @release. @root: "" or a directory with
 * the same layout.
 */
enum module_state module_state(const char *root, const char *release);

/* Return a state as one word, and its remedy, as constant phrases. */
const char *module_word(enum module_state state);
const char *module_advice(enum module_state state);

#endif /* TOOLS_MODULE_H */
