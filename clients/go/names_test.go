// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"errors"
	"testing"
)

func testNames(t *testing.T, names Names) {
	ctx := context.Background()
	const high = uint64(1) << 63

	for _, id := range []uint64{1, high} {
		if err := names.Put(ctx, id, []byte("a name"), nil); err != nil {
			t.Fatal(err)
		}
		if err := names.Put(ctx, id, []byte("a name"), []byte{0, 255}); err != nil {
			t.Errorf("put again: %v", err)
		}
	}
	var collision *Collision
	err := names.Put(ctx, 1, []byte("another"), nil)
	if !errors.As(err, &collision) || string(collision.Kept) != "a name" {
		t.Errorf("%v", err)
	}
	name, value, err := names.Get(ctx, high)
	if string(name) != "a name" || string(value) != "\x00\xff" || err != nil {
		t.Errorf("%q %q %v", name, value, err)
	}
	seen := map[uint64]string{}
	err = names.Each(ctx, func(id uint64, name, _ []byte) bool {
		seen[id] = string(name)
		return true
	})
	if len(seen) != 2 || seen[high] != "a name" || err != nil {
		t.Errorf("%v %v", seen, err)
	}
	for i := 0; i < 2; i++ {
		if err := names.Remove(ctx, 1); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := names.Get(ctx, 1); !errors.Is(err, ErrNoName) {
		t.Errorf("%v", err)
	}
}

func TestNamesInMemory(t *testing.T) { testNames(t, &MemoryNames{}) }
