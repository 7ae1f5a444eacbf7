// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "watch.h"

static struct {
	uintptr_t start;
	size_t size;
	unsigned int shift;
	watch_touch_t *touch;
	void *context;
} watched;

void watch(const void *start, uint32_t nr, unsigned int shift,
	   watch_touch_t *touch, void *context)
{
	watched.start = (uintptr_t)start;
	watched.size = touch ? (size_t)nr << shift : 0;
	watched.shift = shift;
	watched.touch = touch;
	watched.context = context;
}

static inline void touch_byte(const void *memory, bool write)
{
	size_t offset = (uintptr_t)memory - watched.start;

	if (offset < watched.size)
		watched.touch(watched.context, offset >> watched.shift, write);
}

static void touch_range(const void *memory, size_t size, bool write)
{
	size_t offset = (uintptr_t)memory - watched.start;
	uint32_t page, last;

	if (!size || offset >= watched.size)
		return;
	last = (offset + size - 1) >> watched.shift;
	for (page = offset >> watched.shift; page <= last; page++)
		watched.touch(watched.context, page, write);
}

/*
 * The compiler calls these: names and arguments are those of its thread
 * sanitizer. An aligned access is within a page.
 */
#define ACCESS(size)							\
	void __tsan_read##size(void *memory);				\
	void __tsan_write##size(void *memory);				\
	void __tsan_read##size(void *memory)				\
	{								\
		touch_byte(memory, false);				\
	}								\
	void __tsan_write##size(void *memory)				\
	{								\
		touch_byte(memory, true);				\
	}

#define ACCESS_UNALIGNED(size)						\
	void __tsan_unaligned_read##size(void *memory);			\
	void __tsan_unaligned_write##size(void *memory);		\
	void __tsan_unaligned_read##size(void *memory)			\
	{								\
		touch_range(memory, size, false);			\
	}								\
	void __tsan_unaligned_write##size(void *memory)			\
	{								\
		touch_range(memory, size, true);			\
	}

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
ACCESS_UNALIGNED(2)
ACCESS_UNALIGNED(4)
ACCESS_UNALIGNED(8)
ACCESS_UNALIGNED(16)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(void *memory, unsigned long size);
void __tsan_write_range(void *memory, unsigned long size);
void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int byte, size_t size);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *memory, unsigned long size)
{
	touch_range(memory, size, false);
}

void __tsan_write_range(void *memory, unsigned long size)
{
	touch_range(memory, size, true);
}

void *__tsan_memcpy(void *to, const void *from, size_t size)
{
	touch_range(from, size, false);
	touch_range(to, size, true);
	return memcpy(to, from, size);
}

void *__tsan_memmove(void *to, const void *from, size_t size)
{
	touch_range(from, size, false);
	touch_range(to, size, true);
	return memmove(to, from, size);
}

void *__tsan_memset(void *to, int byte, size_t size)
{
	touch_range(to, size, true);
	return memset(to, byte, size);
}
