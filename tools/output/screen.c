// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <unistd.h>

#include "tools/output/screen.h"

#define CURSOR_HIDE	"\033[?25l"
#define CURSOR_SHOW	"\033[?25h"
#define CORNER		"\033[H"
#define CLEAR_LINE	"\033[K"
#define CLEAR_BELOW	"\033[J"
#define ESCAPE		0x1b

#define ROWS		24	/* for a terminal of unknown size */
#define COLUMNS		80

static const int fatal_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

/* State for signal handlers. */
static struct {
	bool has_keys;
	struct termios before;
	struct termios drawing;
	volatile sig_atomic_t redraw;
} terminal;

static void tell(const char *text)
{
	/* An error of write() to the terminal is ignored: there is no remedy. */
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		return;
}

static void take_terminal(void)
{
	if (terminal.has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.drawing);
	tell(CURSOR_HIDE);
}

static void restore_terminal(void)
{
	if (terminal.has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.before);
	tell(CURSOR_SHOW);
}

/* Restores the terminal, and ends the process by the signal's default action, which
 * SA_RESETHAND has restored.
 */
static void handle_fatal(int number)
{
	restore_terminal();
	raise(number);
}

static void set_handler(int number, void (*handler)(int number), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	struct sigaction before;

	sigaction(number, NULL, &before);
	if (before.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

/* Stops the process in the handler, and returns when the process continues. */
static void handle_stop(int number)
{
	const int error = errno;

	restore_terminal();
	raise(number);
	set_handler(number, handle_stop, SA_RESETHAND | SA_NODEFER);
	take_terminal();
	terminal.redraw = 1;
	errno = error;
}

static void handle_continue(int number)
{
	const int error = errno;

	(void)number;
	take_terminal();
	terminal.redraw = 1;
	errno = error;
}

static void handle_resize(int number)
{
	(void)number;
	terminal.redraw = 1;
}

bool screen_usable(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
}

static void set_handlers(struct screen *screen)
{
	sigset_t blocked;
	size_t i;

	/* Block these two, or they could get lost between a read of redraw and ppoll(). */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGWINCH);
	sigaddset(&blocked, SIGCONT);
	sigprocmask(SIG_BLOCK, &blocked, &screen->waiting);
	set_handler(SIGWINCH, handle_resize, 0);
	set_handler(SIGCONT, handle_continue, 0);
	set_handler(SIGTSTP, handle_stop, SA_RESETHAND | SA_NODEFER);
	for (i = 0; i < sizeof(fatal_signals) / sizeof(*fatal_signals); i++)
		set_handler(fatal_signals[i], handle_fatal,
			    SA_RESETHAND | SA_NODEFER);
}

int screen_open(struct screen *screen)
{
	static const struct itimerspec second = {
		.it_value.tv_sec = 1, .it_interval.tv_sec = 1
	};

	*screen = (struct screen) { .key_fd = -1 };
	screen->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (screen->timer_fd < 0)
		return -errno;
	timerfd_settime(screen->timer_fd, 0, &second, NULL);

	terminal.has_keys = !tcgetattr(STDIN_FILENO, &terminal.before);
	if (terminal.has_keys) {
		screen->key_fd = STDIN_FILENO;
		terminal.drawing = terminal.before;
		/* No line buffer and no echo; Ctrl-C and Ctrl-Z remain signals. */
		terminal.drawing.c_lflag &= ~(ICANON | ECHO);
		terminal.drawing.c_cc[VMIN] = 1;
		terminal.drawing.c_cc[VTIME] = 0;
	}
	set_handlers(screen);
	take_terminal();
	tell(CORNER CLEAR_BELOW);
	return 0;
}

void screen_close(struct screen *screen)
{
	size_t i;

	restore_terminal();
	set_handler(SIGWINCH, SIG_DFL, 0);
	set_handler(SIGCONT, SIG_DFL, 0);
	set_handler(SIGTSTP, SIG_DFL, 0);
	for (i = 0; i < sizeof(fatal_signals) / sizeof(*fatal_signals); i++)
		set_handler(fatal_signals[i], SIG_DFL, 0);
	sigprocmask(SIG_SETMASK, &screen->waiting, NULL);
	close(screen->timer_fd);
}

/* Discards the first @nr bytes. */
static void drop_bytes(struct screen *screen, size_t nr)
{
	screen->nr -= nr;
	memmove(screen->bytes, screen->bytes + nr, screen->nr);
}

/* Returns the key for an escape sequence's last byte and number, or 0. */
static int sequence_key(unsigned char last, int number)
{
	switch (last) {
	case 'A':
		return SCREEN_UP;
	case 'B':
		return SCREEN_DOWN;
	case 'H':
		return SCREEN_HOME;
	case 'F':
		return SCREEN_LAST;
	case '~':
		break;
	default:
		return 0;
	}
	switch (number) {
	case 1:
	case 7:
		return SCREEN_HOME;
	case 4:
	case 8:
		return SCREEN_LAST;
	case 5:
		return SCREEN_PAGE_UP;
	case 6:
		return SCREEN_PAGE_DOWN;
	}
	return 0;
}

/* Takes one key out of the buffer. Returns the key, 0 for an unknown key, or -1 if
 * its sequence is incomplete.
 */
static int take_key(struct screen *screen)
{
	const unsigned char *bytes = screen->bytes;
	int number = 0, key;
	size_t i;

	if (!screen->nr)
		return -1;
	key = bytes[0];
	if (key != ESCAPE) {
		drop_bytes(screen, 1);
		return key;
	}
	if (screen->nr < 2)
		return -1;
	if (bytes[1] != '[' && bytes[1] != 'O') {
		drop_bytes(screen, 2);
		return 0;
	}
	/* A sequence is parameters, then one byte not below '@'. */
	for (i = 2; i < screen->nr && bytes[i] < '@'; i++) {
		if (bytes[i] >= '0' && bytes[i] <= '9' && number < 100)
			number = 10 * number + bytes[i] - '0';
	}
	if (i < screen->nr) {
		key = sequence_key(bytes[i], number);
		drop_bytes(screen, i + 1);
		return key;
	}
	if (screen->nr < sizeof(screen->bytes))
		return -1;
	screen->nr = 0;
	return 0;
}

/* Reads bytes of keys. Returns false at the end of the input. */
static bool read_keys(struct screen *screen)
{
	ssize_t nr;

	nr = read(screen->key_fd, screen->bytes + screen->nr,
		  sizeof(screen->bytes) - screen->nr);
	if (nr > 0)
		screen->nr += nr;
	return nr > 0 || (nr < 0 && errno == EINTR);
}

int screen_wait(struct screen *screen)
{
	struct pollfd fds[] = {
		{ .fd = screen->timer_fd, .events = POLLIN },
		{ .fd = screen->key_fd, .events = POLLIN },
	};
	uint64_t ticks;
	int key;

	for (;;) {
		key = take_key(screen);
		if (key > 0)
			return key;
		if (!key)
			continue;
		if (terminal.redraw) {
			terminal.redraw = 0;
			return SCREEN_REDRAW;
		}
		if (ppoll(fds, 2, NULL, &screen->waiting) < 0) {
			if (errno == EINTR)
				continue;
			return SCREEN_END;
		}
		if (fds[1].revents && !read_keys(screen))
			return SCREEN_END;
		if (fds[0].revents &&
		    read(screen->timer_fd, &ticks, sizeof(ticks)) > 0) {
			/* An incomplete sequence was the escape key alone. */
			if (!fds[1].revents)
				screen->nr = 0;
			return SCREEN_TICK;
		}
	}
}

void frame_begin(struct frame *frame, bool on_screen)
{
	struct winsize window;

	*frame = (struct frame) { .lines = INT_MAX, .on_screen = on_screen };
	if (!on_screen)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) || !window.ws_row ||
	    !window.ws_col)
		window = (struct winsize) { .ws_row = ROWS, .ws_col = COLUMNS };
	/* Reserve the last line for the cursor and for messages. */
	frame->lines = window.ws_row - 1;
	frame->width = window.ws_col;
	fputs(CORNER, stdout);
}

void frame_line(struct frame *frame, const char *before, const char *text,
		const char *after)
{
	int len = strlen(text);

	if (frame->lines <= 0)
		return;
	frame->lines--;
	if (frame->width && len > frame->width)
		len = frame->width;
	/* Clear before printing: after a full line it would clear the last character. */
	if (frame->on_screen)
		fputs(CLEAR_LINE, stdout);
	printf("%s%.*s%s\n", before, len, text, after);
}

int frame_end(struct frame *frame)
{
	if (frame->on_screen)
		fputs(CLEAR_BELOW, stdout);
	return fflush(stdout) ? -errno : 0;
}
