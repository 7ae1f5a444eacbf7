// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/boot-id.h"

void boot_id_read(uint8_t boot_id[16])
{
	char text[64] = "";
	int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
	int i, nibbles = 0;

	memset(boot_id, 0, 16);
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0)
		for (i = 0; text[i] && nibbles < 32; i++) {
			int digit = isdigit((unsigned char)text[i]) ?
					    text[i] - '0' :
				    text[i] >= 'a' && text[i] <= 'f' ?
					    text[i] - 'a' + 10 : -1;

			if (digit < 0)
				continue;
			boot_id[nibbles / 2] |= digit << (nibbles % 2 ? 0 : 4);
			nibbles++;
		}
	close(fd);
}
