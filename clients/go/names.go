// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// Names tells what an id of IDOf stands for: the name, and a value of the program's.
// The program puts a name before it arms the timer. When the timer is due it acts,
// removes the name, and acknowledges. At its start it compares Each with All or Scan.
type Names interface {
	// Put keeps or replaces the value of a name. Another name with this id is a
	// *Collision, and the other one stays.
	Put(ctx context.Context, id uint64, name, value []byte) error
	// Get returns what Put kept; ErrNoName if there is none.
	Get(ctx context.Context, id uint64) (name, value []byte, err error)
	// Remove forgets an id. One that is not kept is no error.
	Remove(ctx context.Context, id uint64) error
	// Each calls f for every id, in no order, until it returns false.
	Each(ctx context.Context, f func(id uint64, name, value []byte) bool) error
}

// ErrNoName is an id without a name.
var ErrNoName = errors.New("expiry: no name is kept for this id")

// Collision is two names with the same id. The program uses another name or another
// key: no expiration is given to the wrong one.
type Collision struct {
	ID          uint64
	Kept, Other []byte
}

func (e *Collision) Error() string {
	return fmt.Sprintf("expiry: %q and %q have the same id %d", e.Kept, e.Other, e.ID)
}

// MemoryNames are Names that end with the program. The zero value is ready.
type MemoryNames struct {
	mu  sync.RWMutex
	ids map[uint64][2]string
}

// Put implements Names.
func (m *MemoryNames) Put(_ context.Context, id uint64, name, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.ids[id]; ok && kept[0] != string(name) {
		return &Collision{id, []byte(kept[0]), append([]byte{}, name...)}
	}
	if m.ids == nil {
		m.ids = map[uint64][2]string{}
	}
	m.ids[id] = [2]string{string(name), string(value)}
	return nil
}

// Get implements Names.
func (m *MemoryNames) Get(_ context.Context, id uint64) (name, value []byte, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	kept, ok := m.ids[id]
	if !ok {
		return nil, nil, ErrNoName
	}
	return []byte(kept[0]), []byte(kept[1]), nil
}

// Remove implements Names.
func (m *MemoryNames) Remove(_ context.Context, id uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ids, id)
	return nil
}

// Each implements Names. f may change the names.
func (m *MemoryNames) Each(ctx context.Context,
	f func(id uint64, name, value []byte) bool) error {
	m.mu.RLock()
	ids := make([]uint64, 0, len(m.ids))
	for id := range m.ids {
		ids = append(ids, id)
	}
	m.mu.RUnlock()
	for _, id := range ids {
		name, value, err := m.Get(ctx, id)
		if err == nil && !f(id, name, value) {
			break
		}
	}
	return ctx.Err()
}

// SQLNames are Names in a table of a database, which the program opens with a driver of
// its choice.
type SQLNames struct{ db *sql.DB }

// NewSQLNames makes the table expiry_names in an SQLite database if it is not there.
func NewSQLNames(ctx context.Context, db *sql.DB) (*SQLNames, error) {
	// SQLite has signed numbers: the id is its bits.
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS expiry_names
		(id INTEGER PRIMARY KEY, name BLOB NOT NULL, value BLOB NOT NULL)`)
	return &SQLNames{db}, err
}

// Put implements Names.
func (s *SQLNames) Put(ctx context.Context, id uint64, name, value []byte) error {
	// nil would be NULL.
	name, value = append([]byte{}, name...), append([]byte{}, value...)
	done, err := s.db.ExecContext(ctx, `INSERT INTO expiry_names VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET value = excluded.value
		WHERE name = excluded.name`, int64(id), name, value)
	if err != nil {
		return err
	}
	if nr, err := done.RowsAffected(); err != nil || nr == 1 {
		return err
	}
	kept, _, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	return &Collision{id, kept, name}
}

// Get implements Names.
func (s *SQLNames) Get(ctx context.Context, id uint64) (name, value []byte, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT name, value FROM expiry_names WHERE id = ?`,
		int64(id)).Scan(&name, &value)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoName
	}
	return name, value, err
}

// Remove implements Names.
func (s *SQLNames) Remove(ctx context.Context, id uint64) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM expiry_names WHERE id = ?`, int64(id))
	return err
}

// Each implements Names. f must not change the names.
func (s *SQLNames) Each(ctx context.Context,
	f func(id uint64, name, value []byte) bool) error {
	rows, err := s.db.QueryContext(ctx, `SELECT id, name, value FROM expiry_names`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var name, value []byte
		if err := rows.Scan(&id, &name, &value); err != nil {
			return err
		}
		if !f(uint64(id), name, value) {
			break
		}
	}
	return rows.Err()
}
