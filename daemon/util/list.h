/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists: intrusive and circular. */
#ifndef DAEMON_LIST_H
#define DAEMON_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A list, or an entry of one; an entry that is on none points at itself. */
struct list {
	struct list *next;
	struct list *prev;
};

static inline void list_init(struct list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list *list)
{
	return list->next == list;
}

/* Appends @entry, which must be on no list. */
static inline void list_add(struct list *list, struct list *entry)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

/* Removes @entry from its list, if it is on one. */
static inline void list_del(struct list *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	list_init(entry);
}

/* Removes and returns the first entry; NULL if there is none. */
static inline struct list *list_pop(struct list *list)
{
	struct list *entry = list->next;

	if (entry == list)
		return NULL;
	list_del(entry);
	return entry;
}

/* Moves all entries of @from, which is left empty, to the end of @list. */
static inline void list_splice(struct list *list, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = list->prev;
	list->prev->next = from->next;
	from->prev->next = list;
	list->prev = from->prev;
	list_init(from);
}

#endif /* DAEMON_LIST_H */
