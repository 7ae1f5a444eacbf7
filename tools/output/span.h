/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Printing of time spans.
 */
#ifndef TOOLS_SPAN_H
#define TOOLS_SPAN_H

#include <stdint.h>

#define NSEC_PER_SEC	1000000000ULL

#define SPAN_TEXT	16	/* bytes for any span */

/* Writes @ns rounded to three significant figures: 3ms, 1.5s, 2h, 12.3d. The unit is
 * the largest of d, h, m, s, ms, us and ns that is not above the span.
 * parse_duration() reads this format. Returns @text.
 */
const char *span_text(char *text, uint64_t ns);

#endif /* TOOLS_SPAN_H */
