package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3/lock"

	"countersign/store"
)

// Options says how a database is opened.
type Options struct {
	Create  bool // make the tables if the database is empty
	Migrate bool // migrate older tables
	Fill    bool // also open an incomplete copy, so that Fill can continue
}

// The server enforces the first three limits in each session. A transaction of the bot takes milliseconds.
const (
	statementTimeout = 30 * time.Second
	lockTimeout      = 10 * time.Second
	idleTimeout      = 60 * time.Second // after this time, the server ends a transaction that is idle because its client hangs
	connectTimeout   = 5 * time.Second  // time limit for connecting, unless the URL has connect_timeout
	oldest           = 14               // the oldest major version of the server that can be used
	poolSize         = 16               // connections of the pool, unless the URL has pool_max_conns
	defaultSchema    = "countersign"
)

// config is the content of the URL.
type config struct {
	pool       *pgxpool.Config
	schema     string
	server     answering
	migrations fs.FS       // the program's migrations
	oldest     int         // the oldest major version of the server that can be used
	opened     atomic.Bool // the store was opened, so the server has accepted the user
}

// answering stores which of the URL's addresses answered last. New connections try this address first. So after a
// failover, new connections do not wait for the failed machine.
type answering struct {
	mu    sync.Mutex
	hosts map[string]string // by IP address: the host of the URL
	last  string            // the host and port that answered last
}

func (a *answering) lookup(ctx context.Context, host string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ip := range ips {
		a.hosts[ip] = host
	}
	return ips, err
}

// order puts the address that answered last first.
func (a *answering) order(c *pgx.ConnConfig) {
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	slices.SortStableFunc(all, func(x, y *pgconn.FallbackConfig) int {
		switch is, other := address(x.Host, x.Port) == last, address(y.Host, y.Port) == last; {
		case is == other:
			return 0
		case is:
			return -1
		}
		return 1
	})
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// note stores the address of a new connection.
func (a *answering) note(conn *pgx.Conn) {
	ip, port, err := net.SplitHostPort(conn.PgConn().Conn().RemoteAddr().String())
	if err != nil {
		return // the connection uses a Unix socket
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = net.JoinHostPort(a.hosts[ip], port)
}

func address(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// parse reads a URL. Errors never show its password.
func parse(url string) (*config, error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	c := &config{pool: pool, schema: defaultSchema, server: answering{hosts: map[string]string{}}, migrations: migrations(), oldest: oldest}
	params := pool.ConnConfig.RuntimeParams
	if s := params["search_path"]; s != "" {
		if !schemaName.MatchString(s) || strings.HasPrefix(s, "pg_") {
			return nil, fmt.Errorf("%w: search_path is %q: give one schema, of lower-case letters, digits and _, that does not begin with pg_", ErrURL, s)
		}
		c.schema = s
	}
	if params["application_name"] == "" {
		params["application_name"] = "countersign"
	}
	session := c.settings()
	for name := range session {
		delete(params, name)
	}
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = connectTimeout
	}
	pool.ConnConfig.AfterConnect = setting(session, pool.ConnConfig.ConnectTimeout)
	if !poolConns.MatchString(url) {
		pool.MaxConns = poolSize
	}
	pool.ConnConfig.LookupFunc = c.server.lookup
	pool.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		c.server.order(conn)
		return nil
	}
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		c.server.note(conn)
		ctx, cancel := context.WithTimeout(ctx, pool.ConnConfig.ConnectTimeout) // the pool itself has no time limit for connecting
		defer cancel()
		return register(ctx, conn)
	}
	// An idle connection is not tested before its use, because the test would take a round trip: see run.query.
	pool.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return c, nil
}

// settings holds the settings of every session.
func (c *config) settings() map[string]string {
	return map[string]string{
		"search_path":                         c.schema,
		"timezone":                            "UTC",
		"statement_timeout":                   milliseconds(statementTimeout),
		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
		"enable_seqscan":                      "off", // a sequential scan takes a predicate lock on the whole table, and then conflicts with every writer
		"jit":                                 "off",
	}
}

// durable makes COMMIT wait until the commit is durable, also on a synchronous standby. The server's default may be
// different.
const durable = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';"

// unlimited switches off the time limits of newer servers for idle sessions, because the connection for notices is idle,
// and for whole transactions, because a migration may take long.
const unlimited = "SELECT set_config(name, '0', false) FROM unnest(ARRAY['idle_session_timeout', 'transaction_timeout']) AS name WHERE current_setting(name, true) <> '0';"

// setting returns a function that sets the settings in the session of a new connection. The settings can't be
// parameters of the connection, because PgBouncer refuses or ignores most parameters.
func setting(settings map[string]string, within time.Duration) pgconn.AfterConnectFunc {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&all, "SET %s = '%s';", name, settings[name])
	}
	all.WriteString(durable)
	all.WriteString(unlimited)
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, within) // the time limit for connecting does not cover this statement
		defer cancel()
		_, err := conn.Exec(ctx, all.String()).ReadAll()
		return err
	}
}

var poolConns = regexp.MustCompile(`\bpool_max_conns=`)

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// ErrURL says that the address can't be used.
var ErrURL = errors.New("store: the database's address can't be used")

// ErrOlder says that the tables have an older version, and that the options do not allow migrations.
var ErrOlder = errors.New("store: the database's tables are of an older version")

// ErrEmpty says that there are no tables, and that the options do not allow the creation of tables.
var ErrEmpty = errors.New("store: the database has no tables of Countersign")

// ID returns an identifier of a database. The identifier is the same for every user. If the URL can't be used, ID
// returns "".
func ID(url string) string {
	c, err := parse(url)
	if err != nil {
		return ""
	}
	return c.id()
}

func (c *config) id() string {
	to := c.pool.ConnConfig
	return fmt.Sprintf("postgres:%s/%s/%s", address(to.Host, to.Port), to.Database, c.schema)
}

// name returns the name of a database, for people.
func name(c *pgx.ConnConfig) string {
	at := []string{address(c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if other := address(f.Host, f.Port); !slices.Contains(at, other) {
			at = append(at, other)
		}
	}
	return fmt.Sprintf("the database %s at %s", c.Database, strings.Join(at, " or "))
}

// Open opens a database. The errors of Open tell the operator what to do.
func Open(ctx context.Context, url string, opts Options) (*Store, error) {
	c, err := parse(url)
	if err != nil {
		return nil, err
	}
	return c.open(ctx, opts)
}

func (c *config) open(ctx context.Context, opts Options) (*Store, error) {
	first, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	rights, err := c.prepare(ctx, first, opts)
	if err != nil {
		hangUp(first)
		return nil, err
	}
	s := &Store{config: c, first: first, rights: rights, closing: make(chan struct{}), updates: map[*time.Time]bool{}, broken: make(chan struct{})}
	pool := c.pool.Copy()
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := c.pool.AfterConnect(ctx, conn); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, pool.ConnConfig.ConnectTimeout)
		defer cancel()
		return s.mustHaveNewest(ctx, conn)
	}
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), pool); err != nil {
		hangUp(first)
		return nil, c.sentence(err)
	}
	conn, err := s.acquire(ctx) // opens the first connection of the pool, so that missing rights of the user are found now
	if err == nil {
		conn.Release()
		if !opts.Fill {
			err = s.mustBeComplete(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	c.opened.Store(true)
	return s, nil
}

// connect makes a connection outside of the pool. connect tries each address for at most connect_timeout.
func (c *config) connect(ctx context.Context) (*pgx.Conn, error) {
	to := c.pool.ConnConfig.Copy()
	c.server.order(to)
	conn, err := pgx.ConnectConfig(ctx, to)
	if err != nil {
		return nil, c.sentence(err)
	}
	c.server.note(conn)
	return conn, nil
}

// hangUp closes a connection. If the close fails, hangUp ignores the error.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	defer cancel()
	_ = conn.Close(ctx)
}

// prepare checks the server and the tables. prepare creates or migrates the tables if the options allow this. prepare
// returns the rights of the role.
func (c *config) prepare(ctx context.Context, conn *pgx.Conn, opts Options) (Rights, error) {
	found, err := c.look(ctx, conn)
	if err != nil {
		return Rights{}, err
	}
	target, err := c.newest()
	if err != nil {
		return Rights{}, err
	}
	err = c.usable(found, target, opts)
	for opts.Create && errors.Is(err, ErrOlder) && found.migrating { // another process is making the tables
		select {
		case <-ctx.Done():
			return Rights{}, ctx.Err()
		case <-time.After(migrationPoll):
		}
		if found, err = c.look(ctx, conn); err == nil {
			err = c.usable(found, target, opts)
		}
	}
	if err != nil {
		return Rights{}, err
	}
	if found.version >= target {
		return found.rights, found.rights.Missing()
	}
	if _, err := c.migrate(ctx, conn, false); err != nil {
		return Rights{}, err
	}
	found, err = c.look(ctx, conn)
	return found.rights, err
}

// migrationPoll is the time between two checks whether another process has made the tables.
const migrationPoll = 100 * time.Millisecond

// usable returns nil if the tables can be used as they are, or if the options allow prepare to create or migrate the
// tables.
func (c *config) usable(found looked, target int64, opts Options) error {
	switch {
	case found.foreign:
		return fmt.Errorf("%w: the schema %s of %s has tables, and they are not Countersign's. Name another database, or another schema with search_path in the address",
			store.ErrForeign, c.schema, c.name())
	case !found.worksWith(target):
		return c.newer(found, target)
	case found.version == 0 && !opts.Create && !opts.Migrate:
		return fmt.Errorf("%w: %s, schema %s. Set COUNTERSIGN_STORE to the address that serve uses; serve creates the tables when it starts", ErrEmpty, c.name(), c.schema)
	case found.version > 0 && found.version < target && !opts.Migrate:
		return fmt.Errorf("%w: the tables in %s have version %d, and this program needs %d. Run countersign store migrate, or start serve with COUNTERSIGN_MIGRATE=auto",
			ErrOlder, c.name(), found.version, target)
	}
	return nil
}

func (c *config) name() string { return name(c.pool.ConnConfig) }

// inSQL returns the name of the schema as SQL. The name may be a reserved word, so any name except the default is in
// quotes.
func (c *config) inSQL() string {
	if c.schema == defaultSchema {
		return c.schema
	}
	return pgx.Identifier{c.schema}.Sanitize()
}

// newer returns the error for tables that are too new for this program.
func (c *config) newer(found looked, target int64) error {
	return fmt.Errorf("%w: the tables in %s have version %d, and this program knows versions up to %d. Start the newer program again", store.ErrNewer, c.name(), found.version, target)
}

// looked is the result of look.
type looked struct {
	version int64 // the version of the tables; 0: there are no tables
	oldest  int64 // the oldest program version that can use the tables; 0: unknown
	foreign bool  // the schema has tables that are not Countersign's
	rights  Rights

	migrating bool // another process is migrating the tables, so the version may change
}

// worksWith reports whether a program can use the found tables as they are, or after the program has migrated them. The
// parameter program is the newest version of the tables that the program makes.
func (l looked) worksWith(program int64) bool {
	return l.version <= program || l.oldest > 0 && l.oldest <= program
}

// look reads the state of the server and of the tables. look changes nothing.
func (c *config) look(ctx context.Context, conn *pgx.Conn) (found looked, err error) {
	if err := c.sameSession(ctx, conn); err != nil {
		return found, err
	}
	var server int
	var encoding string
	var standby, ours, complete, theirs bool
	err = conn.QueryRow(ctx, `
SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding'), pg_is_in_recovery(),
       EXISTS (SELECT FROM pg_class c WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p') AND relname = $2
               AND 2 = (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname IN ('version_id', 'is_applied'))),
       EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p') AND relname = 'audit_records'),
       EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p'))`, c.schema, versionTable).
		Scan(&server, &encoding, &standby, &ours, &complete, &theirs)
	switch {
	case err != nil:
		return found, c.sentence(err)
	case server < c.oldest:
		return found, fmt.Errorf("%w: %s is on PostgreSQL %d: version %d or newer is needed", ErrServer, c.name(), server, c.oldest)
	case encoding != "UTF8":
		return found, fmt.Errorf("%w: %s has the encoding %s: create a database with the encoding UTF8", ErrServer, c.name(), encoding)
	case standby:
		return found, fmt.Errorf("%w: %s is a standby, which is read-only: connect to the primary, for example with target_session_attrs=read-write in the address", store.ErrUnavailable, c.name())
	case !ours:
		return looked{foreign: theirs}, nil
	}
	if found.rights, err = c.readRights(ctx, conn); err != nil {
		return found, err
	}
	if found.rights.blind {
		return found, found.rights.Missing()
	}
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32) + objid::bigint = $1 AND granted)", lock.DefaultLockID).
		Scan(&found.migrating)
	if err != nil {
		return found, c.sentence(err)
	}
	// Tables of version 6 have no column oldest_program.
	err = conn.QueryRow(ctx, "SELECT coalesce(max(version_id), 0), coalesce(max((to_jsonb(m) ->> 'oldest_program')::bigint), 0) FROM "+c.inSQL()+"."+versionTable+" m WHERE is_applied").
		Scan(&found.version, &found.oldest)
	if err != nil {
		return found, c.sentence(err)
	}
	if found.version > 0 && !complete { // another program has a table with this name
		return looked{foreign: true}, nil
	}
	target, err := c.newest()
	if found.version > target {
		found.rights.excess = nil // a newer program may need these rights
	}
	return found, err
}

// poolTries is the number of checks that sameSession makes. One check is not enough, because between two statements
// another client of the pooler may use the server process.
const poolTries = 10

// sameSession returns an error if a pooler may serve one connection with different server processes. PgBouncer does
// this unless its pool_mode is session.
func (c *config) sameSession(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.PgConn().Exec(ctx, "SET countersign.session = 'kept'").ReadAll(); err != nil {
		return c.sentence(err)
	}
	own, err := processOf(ctx, conn)
	if err != nil {
		return c.sentence(err)
	}
	if own.pid == strconv.FormatUint(uint64(conn.PgConn().PID()), 10) {
		return nil // there is no pooler: PgBouncer would have announced a process id that no server process has
	}
	other, err := c.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w. There is a connection pooler: see whether it has connections left (docs/postgres.md, \"PgBouncer\")", err)
	}
	defer other.Close(context.WithoutCancel(ctx)) //nolint:errcheck // an error of Close has no effect
	for range poolTries {
		// The transaction of the second connection occupies an idle server process. sameSession then checks whether
		// another client has used the first connection's process.
		theirs, seen, err := own.fromOutside(ctx, other)
		switch {
		case code(err) == codeProtocol: // PgBouncer refuses BEGIN with this code if pool_mode is statement
			return c.pooled()
		case err != nil:
			return c.sentence(err)
		case theirs == own.pid || seen != own.used:
			return c.pooled()
		}
		now, err := processOf(ctx, conn)
		switch {
		case err != nil:
			return c.sentence(err)
		case now.pid != own.pid || !now.kept:
			return c.pooled()
		}
		own = now
		if _, err := other.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
			return c.sentence(err)
		}
	}
	return nil
}

// process is the server process of a connection.
type process struct {
	pid  string
	used string // when the last statement of the process began; empty: unknown
	kept bool   // the session has the value that sameSession has set
}

// processOf returns the server process of a connection. processOf uses no prepared statements.
func processOf(ctx context.Context, conn *pgx.Conn) (p process, err error) {
	row, err := onlyRow(ctx, conn, "SELECT pid, query_start, current_setting('countersign.session', true) FROM pg_stat_get_activity(pg_backend_pid())")
	if err == nil {
		p = process{pid: string(row[0]), used: string(row[1]), kept: string(row[2]) == "kept"}
	}
	return p, err
}

// fromOutside begins a transaction over another connection. The result pid is the id of the server process of the other
// connection. The result used is the time at which the last statement of p began.
func (p process) fromOutside(ctx context.Context, other *pgx.Conn) (pid, used string, err error) {
	row, err := onlyRow(ctx, other, "BEGIN; SELECT pg_backend_pid(), (SELECT query_start FROM pg_stat_get_activity("+p.pid+"))")
	if err != nil {
		return "", "", err
	}
	return string(row[0]), string(row[1]), nil
}

// onlyRow runs statements without preparing them. onlyRow returns the row of the last statement.
func onlyRow(ctx context.Context, conn *pgx.Conn, sql string) ([][]byte, error) {
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if rows := results[len(results)-1].Rows; len(rows) == 1 {
		return rows[0], nil
	}
	return nil, errors.New("the server does not list the connection")
}

// pooled returns the error for a pooler whose mode can't be used.
func (c *config) pooled() error {
	return fmt.Errorf("%w: %s is behind a connection pooler that gives one connection different sessions of the server, as PgBouncer does with pool_mode = transaction or statement. "+
		"Set pool_mode = session there for this database, or name the address of the server itself (docs/postgres.md, \"PgBouncer\")", ErrServer, c.name())
}

// ErrServer says that the server or the database can't be used.
var ErrServer = errors.New("store: this database server can't be used")

// sentence turns an error of a connection attempt into an error that tells the operator what to do. After the store was
// opened, a refusal of the user counts as store.ErrUnavailable, because the bot then waits for the database.
func (c *config) sentence(err error) error {
	at, user := c.name(), c.pool.ConnConfig.User
	err = plain{err}
	access := ErrAccess
	if c.opened.Load() { // the server has accepted the user before, so the refusal is treated as an outage
		access = store.ErrUnavailable
	}
	switch code(err) {
	case "28P01", "28000":
		return fmt.Errorf("%w: %s refuses the user %s: %s (%w)", access, at, user, refusedLogin(err, user), err)
	case codeProtocol: // PgBouncer sends this code with every error
		if refused := refusedByPooler(err); refused != "" {
			return fmt.Errorf("%w: the connection pooler before %s refuses the connection of the user %s: %s (%w)", access, at, user, refused, err)
		}
	case codeNoDatabase:
		return fmt.Errorf("%w: %s does not exist: create it first, with createdb (%w)", access, at, err)
	case codePrivilege:
		return fmt.Errorf("%w: the user %s lacks a right in %s: see docs/postgres.md, \"Roles and grants\" (%w)", access, user, at, err)
	case "53300":
		return fmt.Errorf("%w: %s has no connection left: %s, or lower pool_max_conns in the address (%w)", store.ErrUnavailable, at, moreConnections(err, user), err)
	case codeNoStatement: // the statement was prepared in another session
		return c.pooled()
	case codeDiskFull:
		return fullError{fmt.Errorf("%w. It is the disk of the server of %s: free some space there (%w)", store.ErrFull, at, err)}
	case codeReadOnly:
		return fmt.Errorf("%w: %s is read-only: %s (%w)", store.ErrUnavailable, at, writable, err)
	case "":
		var dns *net.DNSError
		switch {
		case errors.As(err, &dns):
			return fmt.Errorf("%w: there is no host %s: check the address (%w)", store.ErrUnavailable, c.pool.ConnConfig.Host, err)
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("%w: %s does not answer: check the address and the network (%w)", store.ErrUnavailable, at, err)
		}
		if strings.Contains(err.Error(), "ValidateConnect failed") {
			return fmt.Errorf("%w: no server of %s is in the state that target_session_attrs in the address demands; after a failover, wait until a standby is promoted (%w)", store.ErrUnavailable, at, err)
		}
		if refused := refusedTLS(err); refused != "" {
			return fmt.Errorf("%w: %s %s (%w)", store.ErrUnavailable, at, refused, err)
		}
		var pg *pgconn.ConnectError
		if errors.As(err, &pg) {
			return fmt.Errorf("%w: %s can't be reached: check the address, and that the server runs (%w)", store.ErrUnavailable, at, err)
		}
	}
	return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, at, err)
}

// writable says what to do if the server is read-only.
const writable = "connect to the primary, for example with target_session_attrs=read-write in the address; if it is the primary, reset its default_transaction_read_only"

// refusedLogin says what to do if the server does not let the user connect.
func refusedLogin(err error, user string) string {
	switch routine := routineOf(err); {
	case routine == "ClientAuthentication" && strings.Contains(err.Error(), "pg_hba.conf"):
		return "add a line for the user and this machine to pg_hba.conf there, and reload the server"
	case routine == "InitializeSessionUserId":
		return "create the user, or allow it to connect with ALTER ROLE " + identifier(user) + " LOGIN"
	}
	return "check the user and the password"
}

// moreConnections says how to allow more connections, if a limit is reached.
func moreConnections(err error, user string) string {
	switch routineOf(err) {
	case "InitializeSessionUserId":
		return "raise the user's limit with ALTER ROLE " + identifier(user) + " CONNECTION LIMIT"
	case "CheckMyDatabase":
		return "raise the database's limit with ALTER DATABASE … CONNECTION LIMIT"
	}
	return "raise max_connections there"
}

// routineOf returns the name of the function in the server that reported an error. Unlike the text, the name does not
// depend on the server's language.
func routineOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Routine
	}
	return ""
}

// refusedTLS says what to do if the program and the server can't agree on TLS. For other errors, the text is empty.
func refusedTLS(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "has an unknown certificate: sslrootcert in the address must name a file with the authority that signed the server's certificate"
	case errors.As(err, &host):
		return "has a certificate for another host: use a host name of the certificate in the address"
	case errors.As(err, &invalid):
		return "has a certificate that is not valid: renew it"
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return "does not offer TLS: set ssl = on there, or, if the server is on this machine, sslmode=disable in the address"
	}
	return ""
}

// refusedByPooler says what to do if PgBouncer refuses the user or the database. For other errors, the text is empty.
func refusedByPooler(err error) string {
	for text, act := range map[string]string{
		"password":         "check the user and the password",
		"SASL":             "check the user and the password",
		"no such user":     "add the user to the pooler's auth_file",
		"no such database": "add the database to the pooler's section [databases]",
		"does not exist":   "make the database first, with createdb",
	} {
		if strings.Contains(err.Error(), text) {
			return act
		}
	}
	return ""
}

// plain is an error with its text on one line.
type plain struct{ error }

func (p plain) Error() string { return strings.Join(strings.Fields(p.error.Error()), " ") }

func (p plain) Unwrap() error { return p.error }

// ErrAccess says that the server does not allow the user to connect, or that the user lacks a right.
var ErrAccess = errors.New("store: the database refuses access")
