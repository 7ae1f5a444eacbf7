/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The choice of the engine, once, in the first thread. */
#ifndef DAEMON_ENGINE_CHOOSE_H
#define DAEMON_ENGINE_CHOOSE_H

struct budget;
struct config;
struct engine;
struct loop;

/* Opens the configured engine. auto: the kernel's if the device opens. Logs the
 * choice and its reason. @nr_stored: queues of the kernel engine that wait in
 * the service manager's store. Returns 0 or -errno.
 */
int engine_choose(struct engine **enginep, struct loop *loop,
		  const struct config *config, struct budget *memory,
		  int nr_stored);

#endif /* DAEMON_ENGINE_CHOOSE_H */
