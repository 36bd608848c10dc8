package postgres

import "context"

// Freeze ends the heartbeats, as if the process were stopped.
func (r *Replica) Freeze() {
	r.stop()
	<-r.done
}

// Thaw starts the heartbeats again.
func (r *Replica) Thaw() {
	r.done = make(chan struct{})
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go r.keep(ctx)
}

// CopiedTables are the tables that a copy of a store has.
func CopiedTables() (tables []string) {
	for _, p := range parts {
		tables = append(tables, p.tables...)
	}
	return tables
}
