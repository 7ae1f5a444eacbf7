// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Linked into all builds that record which lines a test reaches. Marks each basic
 * block at its entry, in a file that outlives a killed process.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REACH_SIZE	(32UL << 20)

extern const Elf64_Ehdr start __asm__("__ehdr_start")
	__attribute__((visibility("hidden")));

void __sanitizer_cov_trace_pc(void) __attribute__((visibility("hidden")));

static volatile uint8_t *marks;

/* Returns the linker's build id of this program or library, NULL without one. */
static const uint8_t *build_id(void)
{
	const uint8_t *base = (const uint8_t *)&start;
	const Elf64_Phdr *part = (const Elf64_Phdr *)(base + start.e_phoff);
	const Elf64_Nhdr *note;
	int i;

	for (i = 0; i < start.e_phnum; i++) {
		if (part[i].p_type != PT_NOTE)
			continue;
		note = (const Elf64_Nhdr *)(base + part[i].p_vaddr);
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4)
			return (const uint8_t *)(note + 1) + 4;
	}
	return NULL;
}

/*
 * Maps the marks, in a folder that a program with a clean environment shares. It makes
 * the system calls directly, since tests count the library's.
 */
__attribute__((constructor(101))) static void reach_init(void)
{
	const uint8_t *id = build_id();
	const char *folder = getenv("EXPIRY_REACH");
	char path[256];
	void *map;
	int fd;

	if (!id)
		return;
	snprintf(path, sizeof(path), "%s/%02x%02x%02x%02x%02x%02x%02x%02x",
		 folder ? folder : REACH_FOLDER, id[0], id[1], id[2], id[3], id[4], id[5], id[6],
		 id[7]);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	/* The next process may be another user's. */
	syscall(SYS_fchmod, fd, 0666);
	syscall(SYS_ftruncate, fd, REACH_SIZE);
	map = (void *)syscall(SYS_mmap, NULL, REACH_SIZE, PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (map != MAP_FAILED)
		marks = map;
}

/* Marks its return address. The compiler inserts a call at the start of each block. */
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t pc = (uintptr_t)__builtin_return_address(0) - (uintptr_t)&start;

	if (marks && pc < REACH_SIZE)
		marks[pc] = 1;
}
