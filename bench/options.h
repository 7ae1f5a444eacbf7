/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options of the benchmarks' programs, as a table: what a program knows is what
 * its --help prints.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OPTIONS_MAX	12

/**
 * struct option_row - one option; the table ends without a name
 * @metavar: names the value in --help; NULL = none
 * @flag: set to true
 * @number: set to a number from @least to @most; @most 0 = UINT32_MAX
 * @real: set to a number
 * @text: set to the value
 * @call: called with the value
 *
 * Exactly one of the pointers is not NULL.
 */
struct option_row {
	const char *name;
	const char *metavar;
	bool *flag;
	uint32_t *number;
	uint32_t least;
	uint32_t most;
	double *real;
	const char **text;
	void (*call)(const char *value);
};

/* Prints the table's usage and ends the program with @status. */
__attribute__((noreturn))
static inline void options_usage(const struct option_row *row,
				 const char *operands, int status)
{
	FILE *file = status ? stderr : stdout;

	fprintf(file, "usage: %s", program_invocation_short_name);
	for (; row->name; row++)
		fprintf(file, row->metavar ? " [--%s %s]" : " [--%s]",
			row->name, row->metavar);
	fprintf(file, "%s%s\n", *operands ? " " : "", operands);
	exit(status);
}

static inline uint32_t options_number(const struct option_row *table,
				      const char *operands, const char *text,
				      uint32_t least, uint32_t most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value < least ||
	    value > (most ? most : UINT32_MAX))
		options_usage(table, operands, 2);
	return value;
}

static inline void options_set(const struct option_row *table,
			       const char *operands,
			       const struct option_row *row, const char *value)
{
	if (row->flag)
		*row->flag = true;
	else if (row->number)
		*row->number = options_number(table, operands, value,
					      row->least, row->most);
	else if (row->real)
		*row->real = strtod(value, NULL);
	else if (row->text)
		*row->text = value;
	else
		row->call(value);
}

/* Parses the options. Returns the index of the first operand; @operands names
 * them in --help. Ends the program on a mistake.
 */
static inline int options_parse(int argc, char **argv,
				const struct option_row *table,
				const char *operands)
{
	struct option known[OPTIONS_MAX + 2] = { { 0 } };
	int nr, c;

	for (nr = 0; table[nr].name && nr < OPTIONS_MAX; nr++)
		known[nr] = (struct option) {
			.name = table[nr].name,
			.has_arg = table[nr].metavar ? required_argument :
						       no_argument,
			.val = nr + 1,
		};
	known[nr] = (struct option) { .name = "help", .val = nr + 1 };
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c < 1 || c > nr)
			options_usage(table, operands, c == nr + 1 ? 0 : 2);
		options_set(table, operands, &table[c - 1], optarg);
	}
	if (!*operands && optind < argc)
		options_usage(table, operands, 2);
	return optind;
}

#endif /* BENCH_OPTIONS_H */
