/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Full-screen output on the terminal, and its keys.
 *
 * screen_close() restores the terminal's settings. So does a signal that ends or stops
 * the process, such as Ctrl-C or Ctrl-Z. A process has one screen.
 */
#ifndef TOOLS_SCREEN_H
#define TOOLS_SCREEN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Events of screen_wait() besides characters. */
enum screen_event {
	SCREEN_TICK = 256,	/* a second has passed */
	SCREEN_REDRAW,		/* new size, or the process was stopped */
	SCREEN_END,		/* end of the keys' input */
	SCREEN_UP,
	SCREEN_DOWN,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_LAST,
};

/**
 * struct screen - an open screen
 * @key_fd: descriptor of the keys, -1: no terminal
 * @timer_fd: timerfd of the ticks
 * @bytes: bytes of keys, not yet decoded
 * @nr: number of these bytes
 * @waiting: signal mask of screen_wait()
 */
struct screen {
	int key_fd;
	int timer_fd;
	unsigned char bytes[32];
	size_t nr;
	sigset_t waiting;
};

/**
 * struct frame - output of one update, line by line
 * @width: longest line, 0: no limit
 * @lines: remaining lines
 * @on_screen: replaces the screen's contents
 */
struct frame {
	int width;
	int lines;
	bool on_screen;
};

/* Returns whether the standard output is a terminal with a movable cursor. */
bool screen_usable(void);

/* Returns 0 or -errno. */
int screen_open(struct screen *screen);
void screen_close(struct screen *screen);

/* Waits for the next key or event. */
int screen_wait(struct screen *screen);

/* Begins a frame, of the terminal's current size or without limits. */
void frame_begin(struct frame *frame, bool on_screen);
/* Writes a line between @before and @after, which have no width on the terminal.
 * Leaves out lines after the last one.
 */
void frame_line(struct frame *frame, const char *before, const char *text,
		const char *after);
/* Ends a frame. Returns 0 or -errno of the standard output. */
int frame_end(struct frame *frame);

#endif /* TOOLS_SCREEN_H */
