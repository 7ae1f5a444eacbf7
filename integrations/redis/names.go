// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import "hash/maphash"

// names knows the keys by the ids of their timers. An id is a hash with a seed of this
// process, so that nobody can choose keys with the same one. The asker alone uses it.
type names struct {
	seed maphash.Seed
	keys map[uint64]name
}

type name struct {
	key string
	at  int64 // milliseconds since 1970
}

func newNames() *names {
	return &names{maphash.MakeSeed(), make(map[uint64]name)}
}

func (n *names) len() int { return len(n.keys) }

// id returns the id of a key: one that no other key has. After a removal a key may have
// two timers. Both ask, which does no harm.
func (n *names) id(key string) uint64 {
	for id := maphash.String(n.seed, key); ; id++ {
		if other, isTaken := n.keys[id]; id != 0 && (!isTaken || other.key == key) {
			return id
		}
	}
}

func (n *names) name(id uint64) (string, bool) {
	found, ok := n.keys[id]
	return found.key, ok
}

func (n *names) put(id uint64, key string, at int64) {
	n.keys[id] = name{key, at}
}

// remove returns when the key's time was, and whether it was known.
func (n *names) remove(id uint64) (int64, bool) {
	found, ok := n.keys[id]
	delete(n.keys, id)
	return found.at, ok
}
