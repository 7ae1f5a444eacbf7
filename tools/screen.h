/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The terminal while a command draws on the whole of it, and its keys.
 *
 * The terminal gets its settings back at screen_close(), when a signal ends or
 * stops the process, and so also at Ctrl-C and Ctrl-Z. One screen a process.
 */
#ifndef TOOLS_SCREEN_H
#define TOOLS_SCREEN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* The results of screen_wait() beside characters. */
enum screen_event {
	SCREEN_TICK = 256,	/* a second has passed */
	SCREEN_REDRAW,		/* another size, or the process was stopped */
	SCREEN_END,		/* no more keys will come */
	SCREEN_UP,
	SCREEN_DOWN,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_LAST,
};

/**
 * struct screen - an open screen
 * @key_fd: where keys come from; -1: standard input is no terminal
 * @timer_fd: ticks
 * @bytes: of keys, @nr of them, not yet decoded
 * @waiting: the signals that are blocked outside screen_wait(), let in
 */
struct screen {
	int key_fd;
	int timer_fd;
	unsigned char bytes[32];
	size_t nr;
	sigset_t waiting;
};

/**
 * struct frame - one picture, line by line
 * @width: lines are cut there; 0: they are not
 * @lines: that there is still room for
 * @on_screen: it begins in the corner and replaces what was there
 */
struct frame {
	int width;
	int lines;
	bool on_screen;
};

/* Tells whether the standard output is a terminal that can be drawn on. */
bool screen_usable(void);

/* Returns 0 or -errno. */
int screen_open(struct screen *screen);
void screen_close(struct screen *screen);

/* Waits for the next key or event. */
int screen_wait(struct screen *screen);

/* Begins a picture: of the terminal's size now, or without an end. */
void frame_begin(struct frame *frame, bool on_screen);
/* Writes a line between @before and @after, which take no room on the terminal.
 * Lines beyond the last are left out.
 */
void frame_line(struct frame *frame, const char *before, const char *text,
		const char *after);
/* Ends a picture. Returns 0 or -errno of the standard output. */
int frame_end(struct frame *frame);

#endif /* TOOLS_SCREEN_H */
