/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent of libexpiry: a command's words, and its answer. */
#ifndef TESTS_CLIENTS_AGENT_H
#define TESTS_CLIENTS_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/expiry.h>

/**
 * struct command - a line of the driver's
 * @name: its first word; likewise @tag, for those that have one
 * @rest: the words after these, changed by strtok_r()
 */
struct command {
	const char *name;
	const char *tag;
	char *rest;
};

/* Returns the value of @key, or NULL. "-" is "". */
const char *word_get(const struct command *command, const char *key);

/* Returns a number, or @preset if there is none. */
uint64_t word_number(const struct command *command, const char *key,
		     uint64_t preset);

/* Returns whether a list of words with commas contains @word. */
bool word_lists(const char *list, const char *word);

/* Reads hexadecimal digits; returns the number of bytes. */
size_t hex_read(const char *text, void *bytes, size_t max);
void hex_print(const void *bytes, size_t size);

/* Prints "error NAME" without the end of the line. */
void print_error(int error);
void print_error_name(int error);

/* Prints a timer or an expiration as a line. */
void print_timer(const char *word, const struct expiry_record *record);

#endif
