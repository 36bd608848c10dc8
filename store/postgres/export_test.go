package postgres

import "context"

// Freeze ends the heartbeats, as if the process were stopped.
func (r *Replica) Freeze() {
	r.stop()
	r.work.Wait()
}

// Thaw starts the heartbeats again.
func (r *Replica) Thaw() { r.start() }

// Exec executes a statement outside of the store's transactions.
func (s *Store) Exec(ctx context.Context, sql string) error {
	_, err := s.pool.Exec(ctx, sql)
	return err
}

// CopiedTables are the tables that a copy of a store has.
func CopiedTables() (tables []string) {
	for _, p := range parts {
		tables = append(tables, p.tables...)
	}
	return tables
}
