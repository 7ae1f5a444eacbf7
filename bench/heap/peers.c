// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stddef.h>

#include "peer.h"

const struct peer *const peers[] = {
	&peer_sorted_plain,
	&peer_sorted_keyed,
	&peer_radix_plain,
	&peer_radix_keyed,
	&peer_subtree_plain,
	&peer_subtree_keyed,
	&peer_libev,
	&peer_libevent,
	&peer_libevent_common,
	&peer_rbtree,
	&peer_binary,
	&peer_queue,
	&peer_wheel,
	&peer_wheel_ids,
	NULL
};
