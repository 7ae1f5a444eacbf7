// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "tools/address.h"
#include "tools/output/error.h"

int address_set(struct ctl *ctl, const char *scheme, const char *path)
{
	free(ctl->address);
	if (asprintf(&ctl->address, "%s:%s", scheme, path) < 0)
		abort();
	ctl->path = ctl->address + strlen(scheme) + 1;
	ctl->device = strcmp(scheme, "device") == 0;
	if (!*path)
		return ctl_usage("--%s wants a path",
				 ctl->device ? "device" : "socket");
	return 0;
}

int address_set_default(struct ctl *ctl)
{
	char address[EXPIRY_ADDRESS_MAX];
	int ret = expiry_default_address(address, sizeof(address));

	if (ret)
		return ctl_refused("the default socket", ret, EXPIRY_OP_HELLO);
	return address_set(ctl, "unix", address + strlen("unix:"));
}
