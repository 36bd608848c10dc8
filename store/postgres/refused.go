package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/store"
)

// refusal is the last statement that the server refused because somebody has changed the rights or the tables.
type refusal struct {
	mu    sync.Mutex
	err   error // nil: the server refuses nothing, as far as the store knows
	table string
	at    time.Time
}

// refusalLasts is how long a refusal of unknown cause counts if no statement is refused again, and none succeeds.
const refusalLasts = time.Minute

var refusedTable = regexp.MustCompile(`(?:table|relation) "?(?:\w+\.)?(\w+)"?`)

// note records err if the server refused a statement because of a right, a table, a column or a function.
func (f *refusal) note(err error) {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != codePrivilege && !strings.HasPrefix(e.Code, "42P") && e.Code != "42703" && e.Code != "42883" {
		return
	}
	table := ""
	if found := refusedTable.FindStringSubmatch(e.Message); found != nil {
		table = found[1]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.table, f.at = plain{e}, table, time.Now()
}

// committed ends the refusal if a transaction has written to the refused table. If the table is unknown, any committed
// write ends the refusal.
func (f *refusal) committed(written map[key]*write) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return
	}
	for k := range written {
		if f.table == "" || k.table == f.table {
			f.err = nil
			return
		}
	}
}

// Refused returns nil if the server accepts the statements of the store. If the server has refused a statement, Refused
// looks for the cause, and returns an error that says what to do. When the cause is gone, or when a write to the refused
// table succeeds, Refused returns nil again.
func (s *Store) Refused(ctx context.Context) error {
	s.refusal.mu.Lock()
	refused, at := s.refusal.err, s.refusal.at
	s.refusal.mu.Unlock()
	if refused == nil {
		return nil
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	known, err := s.config.obstacle(ctx, conn.Conn())
	switch {
	case err != nil:
		return err
	case known != nil:
		return fmt.Errorf("nothing can be stored: %w (%w)", known, refused)
	case time.Since(at) < refusalLasts && code(refused) != codePrivilege:
		return fmt.Errorf("the server refuses a statement since %s: somebody has changed the tables in %s. Undo the change (%w)", at.UTC().Format(time.RFC3339), s.config.name(), refused)
	}
	s.refusal.mu.Lock()
	defer s.refusal.mu.Unlock()
	if s.refusal.at.Equal(at) {
		s.refusal.err = nil
	}
	return nil
}

// obstacle returns an error if the role lacks a right, if a table is missing, or if row-level security hides rows.
func (c *config) obstacle(ctx context.Context, conn *pgx.Conn) (known, err error) {
	rights, err := c.readRights(ctx, conn)
	if err != nil || rights.Missing() != nil {
		return rights.Missing(), err
	}
	names, err := c.known()
	if err != nil {
		return nil, err
	}
	const changed = `
SELECT ARRAY(SELECT n FROM unnest($2::text[]) n WHERE NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = $1::regnamespace AND relname = n)
             AND NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname = n)),
       ARRAY(SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p') AND relname = ANY($2) AND row_security_active(oid))`
	var gone, hidden []string
	err = conn.QueryRow(ctx, changed, c.schema, names).Scan(&gone, &hidden)
	switch {
	case err != nil:
		return nil, c.sentence(err)
	case len(gone) > 0:
		return fmt.Errorf("%w: in %s, the schema %s lacks %s: somebody has renamed or dropped it. Undo this", ErrAccess, c.name(), c.schema, strings.Join(gone, ", ")), nil
	case len(hidden) > 0:
		var all []string
		for _, table := range hidden {
			all = append(all, fmt.Sprintf("ALTER TABLE %s.%s DISABLE ROW LEVEL SECURITY;", c.inSQL(), identifier(table)))
		}
		return fmt.Errorf("%w: row-level security hides rows in %s from the role %s. As the owner of the tables, run: %s", ErrAccess, c.name(), rights.role, strings.Join(all, " ")), nil
	}
	return nil, nil
}

// hangingFor limits the search of Hanging for a cause.
const hangingFor = 2 * time.Second

// Hanging returns an error that says why the database does not answer, as far as a new connection can show this.
func (s *Store) Hanging(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hangingFor)
	defer cancel()
	conn, err := s.config.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w. The bot continues by itself when the database answers", err)
	}
	defer hangUp(conn)
	var waits bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = current_user)").Scan(&waits)
	switch {
	case err != nil:
		return fmt.Errorf("%w. The bot continues by itself when the database answers", s.config.sentence(err))
	case waits:
		return fmt.Errorf("%w: commits in %s wait for a synchronous standby: start the standby, or change synchronous_standby_names. The bot then continues by itself",
			store.ErrUnavailable, s.config.name())
	}
	return fmt.Errorf("%w: %s answers new connections, but transactions of the bot wait: look for locks in pg_stat_activity. The bot continues by itself when they end",
		store.ErrUnavailable, s.config.name())
}
