// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * New programs from old ones. Most changes are of a whole call or one field of
 * one, so that the rest keeps its meaning.
 */
#include <string.h>

#include "corpus.h"
#include "values.h"

#define CHANGES_MAX	6
#define FRESH		32	/* one in this many is completely random */

static const uint8_t interesting[] = { 0, 1, 2, 4, 15, 16, 31, 32, 127, 128, 240, 255 };

static void bytes_by_chance(void *data, size_t size, uint32_t *prng)
{
	uint8_t *byte = data;

	while (size--)
		*byte++ = draw(prng) >> 11;
}

static unsigned int fresh(struct program *program, uint32_t *prng)
{
	unsigned int nr = 1 + draw(prng) % CALLS_MAX;

	bytes_by_chance(program, sizeof(program->head) +
			nr * sizeof(program->calls[0]), prng);
	return nr;
}

static void change_field(struct call *call, uint32_t *prng)
{
	uint8_t *byte = (uint8_t *)call + draw(prng) % sizeof(*call);

	switch (draw(prng) % 4) {
	case 0:
		*byte ^= 1U << draw(prng) % 8;
		break;
	case 1:
		*byte = draw(prng) >> 9;
		break;
	case 2:
		*byte += draw(prng) % 9 - 4;
		break;
	default:
		*byte = interesting[draw(prng) % ARRAY_SIZE(interesting)];
	}
}

/* Some calls replace others, or are inserted. */
static unsigned int insert(struct program *program, unsigned int nr,
			   unsigned int at, const struct call *from,
			   unsigned int count)
{
	if (count > CALLS_MAX - nr)
		count = CALLS_MAX - nr;
	memmove(&program->calls[at + count], &program->calls[at],
		(nr - at) * sizeof(*from));
	memmove(&program->calls[at], from, count * sizeof(*from));
	return nr + count;
}

static unsigned int change(struct program *program, unsigned int nr,
			   uint32_t *prng)
{
	const struct input *other = corpus[draw(prng) % corpus_nr];
	unsigned int at = draw(prng) % nr, from, count;
	struct program donor;
	struct call call;

	switch (draw(prng) % 12) {
	case 0:
		bytes_by_chance(&call, sizeof(call), prng);
		return insert(program, nr, at, &call, 1);
	case 1:
		call = program->calls[draw(prng) % nr];
		return insert(program, nr, at, &call, 1);
	case 2:
		if (nr == 1)
			break;
		memmove(&program->calls[at], &program->calls[at + 1],
			(nr - at - 1) * sizeof(call));
		return nr - 1;
	case 3:
		from = draw(prng) % nr;
		call = program->calls[at];
		program->calls[at] = program->calls[from];
		program->calls[from] = call;
		break;
	case 4:
	case 5:
		memset(&donor, 0, sizeof(donor));
		memcpy(&donor, other->data, other->size);
		count = program_calls(other->size);
		if (!count)
			break;
		from = draw(prng) % count;
		count = 1 + draw(prng) % (count - from);
		/* Between, or from there on. */
		return insert(program, draw(prng) & 1 ? nr : at, at,
			      &donor.calls[from], count);
	case 6:
		bytes_by_chance((uint8_t *)&program->head +
				draw(prng) % sizeof(program->head), 1, prng);
		break;
	case 7:
		program->calls[at].kind = draw(prng) >> 7;
		break;
	case 8:
		program->calls[at].where = draw(prng) >> 7;
		break;
	default:
		change_field(&program->calls[at], prng);
	}
	return nr;
}

size_t corpus_mutate(void *data, uint32_t *prng)
{
	struct program program = { 0 };
	const struct input *input;
	unsigned int nr, changes;

	if (!corpus_nr || draw(prng) % FRESH == 0) {
		nr = fresh(&program, prng);
	} else {
		/* The later half needed the most steps. */
		input = corpus[draw(prng) & 1 ? draw(prng) % corpus_nr :
			       corpus_nr - 1 - draw(prng) % (corpus_nr / 2 + 1)];
		memcpy(&program, input->data, input->size);
		nr = program_calls(input->size);
		changes = 1 + draw(prng) % CHANGES_MAX;
		if (!nr)
			nr = fresh(&program, prng);
		while (changes--)
			nr = change(&program, nr, prng);
	}
	memcpy(data, &program, sizeof(program.head) +
	       nr * sizeof(program.calls[0]));
	return sizeof(program.head) + nr * sizeof(program.calls[0]);
}
