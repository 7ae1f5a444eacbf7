// SPDX-License-Identifier: GPL-2.0-only
/* Counts of queues by user. */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "params.h"
#include "user.h"

static DEFINE_XARRAY(users);		/* uid -> number of queues */
static DEFINE_MUTEX(users_lock);	/* changes of @users */

static unsigned long count_of(kuid_t uid)
{
	void *entry = xa_load(&users, __kuid_val(uid));

	return entry ? xa_to_value(entry) : 0;
}

/**
 * expiry_user_charge - count one more queue for a user
 * @uid: the opener
 *
 * Returns 0; -EMFILE if the user is at the limit and the caller has no
 * CAP_SYS_RESOURCE; -ENOMEM.
 */
int expiry_user_charge(kuid_t uid)
{
	unsigned long count;
	void *old;
	int err;

	mutex_lock(&users_lock);
	count = count_of(uid);
	if (count >= READ_ONCE(expiry_param_queues_per_user) &&
	    !capable(CAP_SYS_RESOURCE)) {
		err = -EMFILE;
		goto out_unlock;
	}
	old = xa_store(&users, __kuid_val(uid), xa_mk_value(count + 1),
		       GFP_KERNEL);
	err = xa_err(old);
out_unlock:
	mutex_unlock(&users_lock);
	return err;
}

/**
 * expiry_user_uncharge - count one queue less
 * @uid: as it was charged
 */
void expiry_user_uncharge(kuid_t uid)
{
	unsigned long count;

	mutex_lock(&users_lock);
	count = count_of(uid);
	if (WARN_ON_ONCE(!count))
		goto out_unlock;
	/* Overwriting an entry allocates nothing. */
	if (count > 1)
		xa_store(&users, __kuid_val(uid), xa_mk_value(count - 1),
			 GFP_KERNEL);
	else
		xa_erase(&users, __kuid_val(uid));
out_unlock:
	mutex_unlock(&users_lock);
}
