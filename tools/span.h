/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readable lengths of time. */
#ifndef TOOLS_SPAN_H
#define TOOLS_SPAN_H

#include <stdint.h>

#define SPAN_TEXT	16	/* bytes that hold any span */

/* Writes @ns rounded to three significant figures, in the largest unit of d, h,
 * m, s, ms, us and ns that is not greater: 3ms, 1.5s, 2h, 12.3d.
 * parse_duration() reads what this writes. Returns @text.
 */
const char *span_text(char *text, uint64_t ns);

#endif /* TOOLS_SPAN_H */
