// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/engine/choose.h"
#include "daemon/engine/engine.h"
#include "daemon/loop/loop.h"
#include "daemon/util/config.h"
#include "daemon/util/log.h"
#include "daemon/util/notify.h"

/* A device without access may become accessible: while the machine starts, the
 * module makes it and udev gives it to the daemon's group.
 */
#define DEVICE_TRIES	50
#define DEVICE_PAUSE_US	20000

static int open_kernel(struct engine **enginep, struct loop *loop,
		       const struct config *config)
{
	int r, tries = notify_enabled() ? DEVICE_TRIES : 1;

	while ((r = engine_kernel.open(enginep, loop, config->device, NULL)) ==
		       -EACCES &&
	       --tries)
		usleep(DEVICE_PAUSE_US);
	/* A queue may be handed to a daemon in another namespace, by whose
	 * clocks its clients would see other times.
	 */
	if (!r && loop->has_offsets) {
		(*enginep)->ops->close(*enginep);
		*enginep = NULL;
		r = -EXDEV;
	}
	return r;
}

static const char *engine_hint(int error)
{
	return error == -EXDEV ?
		       " (its queues may outlive this time namespace)" :
		       "";
}

int engine_choose(struct engine **enginep, struct loop *loop,
		  const struct config *config, struct budget *memory,
		  int nr_stored)
{
	static const struct log_about started = { .id = LOG_STARTED };
	int r = -ENOSYS;

	if (strcmp(config->engine, "embedded"))
		r = open_kernel(enginep, loop, config);
	if (!r) {
		log_at(LOG_LEVEL_INFO, &started, "engine kernel: %s",
		       config->device);
		return 0;
	}
	if (!strcmp(config->engine, "kernel")) {
		log_err("engine kernel: %s: %s%s", config->device, strerror(-r),
			r == -ENOENT || r == -ENODEV || r == -ENXIO ?
				" (is the module expiry loaded?)" :
				engine_hint(r));
		return r;
	}
	if (!strcmp(config->engine, "embedded")) {
		log_at(LOG_LEVEL_INFO, &started,
		       "engine embedded: as configured");
	} else if (nr_stored) {
		/* Do not start without these queues: clients wait for their
		 * timers.
		 */
		log_err("engine kernel: %s: %s, but %d of its queues are in the service manager's store",
			config->device, strerror(-r), nr_stored);
		return r;
	} else {
		log_at(LOG_LEVEL_INFO, &started, "engine embedded: %s: %s%s",
		       config->device, strerror(-r), engine_hint(r));
	}
	return engine_embedded.open(enginep, loop, NULL, memory);
}
