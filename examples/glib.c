// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GLib: a presence list. Reads names, one a line. A name is present from its first
 * line until it is missing for MILLISECONDS. Ends when the input has ended and no
 * name is present. The GSource works in any program with GLib's main loop.
 *
 *	./glib MILLISECONDS
 */
#include <expiry/expiry.h>
#include <glib-unix.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct guest {
	uint64_t deadline_ns;
	char name[];
};

static GHashTable *guests;	/* by name; a timer's id is the guest's address */
static GMainLoop *loop;
static gpointer tag;		/* identifies the descriptor in the source */
static struct expiry *h;
static gboolean input = TRUE;
static uint64_t stay_ns;

static int check(int ret, unsigned int op)
{
	if (ret < 0) {
		g_printerr("expiryd: %s\n", expiry_explain(ret, op));
		exit(1);
	}
	return ret;
}

/* Sets the events to wait for. Returns whether a record is ready. */
static gboolean prepare(GSource *source, gint *timeout)
{
	if (timeout)
		*timeout = -1;
	/* G_IO_IN and G_IO_OUT have the values of POLLIN and POLLOUT. */
	g_source_modify_unix_fd(source, tag, expiry_events(h));
	return expiry_pending(h) > 0;
}

static gboolean is_ready(GSource *source)
{
	return g_source_query_unix_fd(source, tag) || prepare(source, NULL);
}

static gboolean take(GSource *source, GSourceFunc call, gpointer data)
{
	struct expiry_record records[16], *r;
	int nr = check(expiry_next(h, records, 16), EXPIRY_OP_EXPIRED);

	(void)source, (void)call, (void)data;
	for (r = records; r < records + nr; r++) {
		struct guest *guest = GSIZE_TO_POINTER(r->id);

		/* An expiration that crossed an ARM has an old deadline. */
		if (r->deadline_ns != guest->deadline_ns)
			continue;
		g_print("%s has left\n", guest->name);
		g_hash_table_remove(guests, guest->name);
	}
	if (!input && !g_hash_table_size(guests))
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

/* Reads one name and arms its timer, or moves an armed one. */
static gboolean read_name(GIOChannel *channel, GIOCondition condition,
			  gpointer data)
{
	struct guest *guest;
	uint64_t id;
	char *name;

	(void)condition;
	(void)data;
	if (g_io_channel_read_line(channel, &name, NULL, NULL, NULL) !=
	    G_IO_STATUS_NORMAL) {
		input = FALSE;
		if (!g_hash_table_size(guests))
			g_main_loop_quit(loop);
		return G_SOURCE_REMOVE;
	}
	g_strchomp(name);
	guest = g_hash_table_lookup(guests, name);
	if (!guest) {
		guest = g_malloc(sizeof(*guest) + strlen(name) + 1);
		strcpy(guest->name, name);
		g_hash_table_insert(guests, guest->name, guest);
		g_print("%s is here\n", name);
	}
	g_free(name);
	id = GPOINTER_TO_SIZE(guest);
	guest->deadline_ns = expiry_now(h) + stay_ns;
	check(expiry_arm(h, &id, guest->deadline_ns, 0, 0, 0), EXPIRY_OP_ARM);
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	static GSourceFuncs functions = {
		.prepare = prepare, .check = is_ready, .dispatch = take,
	};
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_KEYED,
		.clock_id = CLOCK_MONOTONIC,
	};
	GIOChannel *channel = g_io_channel_unix_new(0);
	GSource *source;

	stay_ns = argc == 2 ? strtoull(argv[1], NULL, 10) * 1000000 : 0;
	if (!stay_ns) {
		g_printerr("usage: glib MILLISECONDS\n");
		return 2;
	}
	check(expiry_open(&h, NULL, &options), EXPIRY_OP_HELLO);
	guests = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
	loop = g_main_loop_new(NULL, FALSE);
	source = g_source_new(&functions, sizeof(*source));
	tag = g_source_add_unix_fd(source, expiry_fd(h), G_IO_IN);
	g_source_attach(source, NULL);
	g_io_add_watch(channel, G_IO_IN | G_IO_HUP, read_name, NULL);
	g_main_loop_run(loop);
	g_source_destroy(source);
	expiry_close(h);
	g_source_unref(source);
	g_main_loop_unref(loop);
	g_io_channel_unref(channel);
	g_hash_table_destroy(guests);
	return 0;
}
