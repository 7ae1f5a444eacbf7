// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/journal/runner.h"
#include "daemon/util/util.h"

void journal_write_run(struct journal_job *job)
{
	struct journal_write *write =
		container_of(job, struct journal_write, job);
	const struct disk_ops *ops = write->disk->ops;

	write->result = 0;
	if (write->len)
		write->result = ops->write(write->disk, write->fd, write->data,
					   write->len, write->offset);
	if (!write->result && write->sync)
		write->result = ops->sync(write->disk, write->fd);
}
