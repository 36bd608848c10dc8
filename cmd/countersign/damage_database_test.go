package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
)

// TestDamagedDatabase changes random values in the database of a running bot while people click and calls run. A change
// flips one bit of a value, or puts another row's value or random bytes in its place. The bot must not panic and must
// not end. No call may run twice, with other arguments than the model's, or without the approval of an approver. Nobody
// else may decide. An order that the damage does not touch must be answered. If the damage of an order's records stops
// the order, the bot must have reported damage. When the bot has ended, "store check" must name every row that is still
// damaged.
//
// Rows of timers and counters are not damaged, because they have no checksums.
//
// COUNTERSIGN_DAMAGE="1000 200" selects the long form. The changes are made in rounds, each with its own database,
// workspace and bot.
func TestDamagedDatabase(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	flips, whole, seed := testkit.Damage(t, 9, 4)
	began := time.Now()
	var all databaseDamageCount
	for round := 0; round*roundDamages < flips+whole; round++ {
		name := fmt.Sprintf("round%d", round)
		if err := server.SQL("postgres", "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		n := min(roundDamages, flips+whole-round*roundDamages)
		t.Run(name, func(t *testing.T) {
			d := newDatabaseDamager(t, server.URL(name), seed+uint64(round))
			d.round(n, func() bool { return d.random.IntN(flips+whole) >= flips })
			t.Logf("%s in %s", d.count, time.Since(began).Round(time.Second))
			all.add(d.count)
		})
	}
	if all.runs == 0 || all.reported == 0 {
		t.Errorf("too little happened: %s", all)
	}
	t.Logf("flips=%d whole=%d seed=%d: %s in %s", flips, whole, seed, all, time.Since(began).Round(time.Second))
}

// roundDamages is the number of changes in one round. It is less than the number of faults that "store check" lists.
const roundDamages = 13

type databaseDamageCount struct{ damaged, standing, reported, runs, orders, stopped, denied int }

func (c *databaseDamageCount) add(d databaseDamageCount) {
	c.damaged += d.damaged
	c.standing += d.standing
	c.reported += d.reported
	c.runs += d.runs
	c.orders += d.orders
	c.stopped += d.stopped
	c.denied += d.denied
}

func (c databaseDamageCount) String() string {
	return fmt.Sprintf("damaged=%d still_damaged=%d reported=%d runs=%d orders=%d stopped=%d denied=%d", c.damaged, c.standing, c.reported, c.runs, c.orders, c.stopped, c.denied)
}

// damagedTables maps each table with checksums or hashes to its key.
var damagedTables = map[string]string{
	"conversations": "id", "turns": "id", "calls": "id", "requests": "id", "executions": "id", "inbox": "id", "outbox_messages": "id", "settings": "id", "policies": "id",
	"messages": "conversation, seq", "renderings": "message, post", "audit_records": "chain, seq", "audit_payloads": "chain, seq", "audit_journal": "position",
}

// damagedValue is a value that was changed.
type damagedValue struct {
	table, key, column string
	now                []byte
	orders             map[string]bool // the orders whose ids are in the row; empty: the row can belong to any order
}

func (d damagedValue) String() string {
	return fmt.Sprintf("%s of %s, row %s", d.column, d.table, d.key)
}

// databaseDamager damages the database of one round.
type databaseDamager struct {
	*killHarness
	conn    *pgx.Conn
	random  *rand.Rand
	columns map[string]map[string]string // by table: the type of each column
	of      map[string]string            // the order of each stored id, by the ts of the order's message
	damages []damagedValue
	count   databaseDamageCount
}

func newDatabaseDamager(t *testing.T, url string, seed uint64) *databaseDamager {
	t.Helper()
	began := time.Now()
	c := openKillHarness(t, seed, func(ws *workspace.Config) { ws.RetryDelays = []time.Duration{} })
	c.conf.Store = url
	c.begin()
	c.conf.Lease = max(shortLease, time.Since(began))
	d := &databaseDamager{killHarness: c, random: testkit.Chance(seed, 28), columns: map[string]map[string]string{}, of: map[string]string{}}
	var err error
	if d.conn, err = pgx.Connect(t.Context(), url+"&search_path=countersign"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.conn.Close(context.Background()) })
	d.each("SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = 'countersign'", nil, func(row []any) {
		table, column, kind := row[0].(string), row[1].(string), row[2].(string)
		key, ok := damagedTables[table]
		if !ok || slices.Contains(strings.Split(key, ", "), column) || !slices.Contains([]string{"text", "json", "bytea"}, kind) {
			return
		}
		if d.columns[table] == nil {
			d.columns[table] = map[string]string{}
		}
		d.columns[table][column] = kind
	})
	return d
}

// each calls fn with the values of each row that a query finds.
func (d *databaseDamager) each(sql string, args []any, fn func(row []any)) {
	d.Helper()
	rows, err := d.conn.Query(d.Context(), sql, args...)
	if err != nil {
		d.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			d.Fatal(err)
		}
		fn(values)
	}
	if err := rows.Err(); err != nil {
		d.Fatal(err)
	}
}

// round makes n changes while people work. When the orders that the changes do not touch are answered, and the others
// are answered or reported, round changes rows that belong to no order, and stops the bot.
func (d *databaseDamager) round(n int, whole func() bool) {
	d.Helper()
	bot := d.start(d.Context(), killPoint{})
	d.awaitUp(bot)
	ctx, cancel := context.WithCancel(d.Context())
	defer cancel()
	people, busy := errgroup.WithContext(ctx)
	for i, who := range []string{"sam", "teo", "ingrid", "ada"} { // ada may not approve, and tries to
		people.Go(func() error { return d.live(busy, who, testkit.Chance(d.seed, uint64(i))) })
	}
	general := n / 5
	for range n - general {
		d.awaitWork()
		d.damage(whole(), true)
	}
	d.await("people to work after the damage", d.acknowledgesLater())
	d.mu.Lock()
	d.last = true
	d.mu.Unlock()
	for stuck := isStuck(func() int { return d.unsettled() + len(d.unexplained()) }); d.unsettled() > 0 || len(d.unexplained()) > 0; <-time.After(glance) {
		if stuck() {
			d.Errorf("these orders are not touched by damage, and are not answered: %s\nthe damage of these orders is not reported, and they are not answered: %v\nall damage: %v\n%s",
				d.open(), d.unexplained(), d.damages, d.tail())
			break
		}
	}
	d.mu.Lock()
	d.last = false
	d.mu.Unlock()
	for range general {
		d.damage(whole(), false)
		d.awaitWork()
	}
	cancel()
	_ = people.Wait() // they stop in the middle of their work
	if err := bot.end(syscall.SIGTERM); err != nil {
		d.Errorf("the bot, asked to stop, ended with: %v\n%s", err, d.tail())
	}
	d.judge()
}

// acknowledgesLater returns a function that reports whether three more clicks were acknowledged.
func (d *databaseDamager) acknowledgesLater() func() bool {
	before := d.clicks()
	return func() bool { return d.clicks() >= before+3 }
}

// awaitWork waits until the bot does something, or until it has done nothing for a while.
func (d *databaseDamager) awaitWork() {
	select {
	case <-d.wakeups["acknowledged"]:
	case <-d.wakeups["tool"]:
	case <-d.wakeups["model"]:
	case <-time.After(longestPause):
	}
	work(glance)
}

// learn finds the orders of the stored ids. It keeps what it has learned earlier, because the rows may be damaged now.
func (d *databaseDamager) learn() {
	d.Helper()
	refs := map[string]string{}
	d.each(`
WITH o AS (SELECT id, split_part(place, '/', 3) AS of FROM conversations),
     t AS (SELECT turns.id, of FROM turns JOIN o ON o.id = conversation)
SELECT id, of, '' FROM o UNION ALL SELECT id, of, '' FROM t
UNION ALL SELECT r.id, of, '' FROM requests r JOIN o ON o.id = conversation
UNION ALL SELECT e.id, of, '' FROM executions e JOIN o ON o.id = conversation
UNION ALL SELECT c.id, of, '' FROM calls c JOIN t ON t.id = turn
UNION ALL SELECT id, '', ref FROM outbox_messages`, nil, func(row []any) {
		id, of, ref := row[0].(string), row[1].(string), row[2].(string)
		if ref != "" {
			refs[id] = ref
		} else if d.of[id] == "" && d.ask(of) != nil {
			d.of[id] = of
		}
	})
	for id, ref := range refs {
		if d.of[id] == "" && d.of[ref] != "" {
			d.of[id] = d.of[ref]
		}
	}
}

// The method "ask" returns the order that began with a message.
func (d *databaseDamager) ask(root string) *ask {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.asks, func(a *ask) bool { return a.root == root })
	if i < 0 {
		return nil
	}
	return d.asks[i]
}

// isOpen reports whether an order is not answered yet, and is not touched by damage.
func (d *databaseDamager) isOpen(of string) bool {
	a := d.ask(of)
	d.mu.Lock()
	defer d.mu.Unlock()
	return !a.closed
}

// touched returns the orders whose ids are in a row.
func (d *databaseDamager) touched(row string) map[string]bool {
	orders := map[string]bool{}
	for id, of := range d.of {
		if strings.Contains(row, id) {
			orders[of] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asks {
		if strings.Contains(row, a.root) {
			orders[a.root] = true
		}
	}
	return orders
}

// damage changes a value of a random row. If ofOrder is true, the row belongs to an order, if possible to an order that
// is not answered yet. Otherwise, the row belongs to no order.
func (d *databaseDamager) damage(whole, ofOrder bool) {
	d.Helper()
	tables := slices.Sorted(maps.Keys(d.columns))
	for range 200 {
		table := tables[d.random.IntN(len(tables))]
		columns := slices.Sorted(maps.Keys(d.columns[table]))
		column := columns[d.random.IntN(len(columns))]
		d.learn()
		var found *damagedValue
		live := false
		key, value, cast := damagedTables[table], `convert_to("`+column+`"::text, 'UTF8')`, "convert_from($1, 'UTF8')::"+d.columns[table][column]
		if d.columns[table][column] == "bytea" {
			value, cast = column, "$1::bytea"
		}
		var was []byte
		var others [][]byte
		d.each(fmt.Sprintf("SELECT concat_ws(' ', %s), row_to_json(x)::text, %s FROM %s x WHERE %q IS NOT NULL ORDER BY random() LIMIT 40", key, value, table, column), nil, func(row []any) {
			bytes := row[2].([]byte)
			others = append(others, bytes)
			v := damagedValue{table: table, key: row[0].(string), column: column, orders: d.touched(row[1].(string))}
			if len(bytes) == 0 || live || ofOrder != (len(v.orders) > 0) || slices.ContainsFunc(d.damages, func(x damagedValue) bool { return x.table == table && x.key == v.key }) {
				return
			}
			for of := range v.orders {
				live = live || d.isOpen(of)
			}
			if live || found == nil {
				found, was = &v, bytes
			}
		})
		if found == nil {
			continue
		}
		found.now = d.wrong(was, others, d.columns[table][column], whole)
		if found.now == nil {
			continue
		}
		done, err := d.conn.Exec(d.Context(), fmt.Sprintf("UPDATE %s SET %q = %s WHERE concat_ws(' ', %s) = $2 AND %s = $3", table, column, cast, key, value), found.now, found.key, was)
		if err != nil {
			d.Fatalf("%v can't be changed to %q: %v", found, found.now, err)
		}
		if done.RowsAffected() == 0 { // the bot has changed it meanwhile
			continue
		}
		d.damages = append(d.damages, *found)
		for of := range found.orders {
			a := d.ask(of)
			d.mu.Lock()
			a.closed = true // nobody waits for its answer
			d.mu.Unlock()
		}
		return
	}
	if ofOrder {
		d.Fatal("there is no row to damage")
	}
}

// wrong returns a wrong value for a column: the value with one changed bit, or another value. If it finds none that the
// column can hold, wrong returns nil.
func (d *databaseDamager) wrong(was []byte, others [][]byte, kind string, whole bool) []byte {
	for range 100 {
		now := slices.Clone(was)
		switch {
		case !whole:
			now[d.random.IntN(len(now))] ^= 1 << d.random.IntN(8)
		case d.random.IntN(2) == 0 || kind == "json":
			now = others[d.random.IntN(len(others))]
		default:
			for i := len(now) / 2; i < len(now); i++ {
				now[i] = byte(d.random.Uint32())
			}
		}
		text := kind == "bytea" || utf8.Valid(now) && !slices.Contains(now, 0)
		if text && (kind != "json" || json.Valid(now)) && !slices.Equal(now, was) {
			return now
		}
	}
	return nil
}

// checked reports whether a checksum or a hash covers the value, so that each read of the row finds the damage.
func (v damagedValue) checked() bool {
	return slices.Contains([]string{"record", "checksum", "sum", "payload"}, v.column) && v.table != "audit_journal"
}

// reports returns the rows that the bot has reported as damaged, as BUCKET KEY.
func (d *databaseDamager) reports() map[string]bool {
	d.Helper()
	all := map[string]bool{}
	for line := range lines(d.killHarness, filepath.Join(d.dir, "said")) {
		if _, about, found := strings.Cut(line, `msg="the store is damaged`); found {
			_, about, _ = strings.Cut(about, " bucket=")
			about, _, _ = strings.Cut(about, " why=")
			bucket, key, _ := strings.Cut(about, " key=")
			all[bucket+" "+strings.Trim(key, `"`)] = true
		}
	}
	return all
}

// row returns the name of the row in reports.
func (v damagedValue) row() string {
	if v.table == "audit_records" {
		return "audit " + v.key
	}
	return v.table + " " + v.key
}

// The method "answered" reports whether Slack shows the answer to an order.
func (d *databaseDamager) answered(of string) bool {
	d.Helper()
	messages, err := workspaceclient.Client{Base: d.conf.Base, User: "sam"}.Messages(d.Context(), "#support", of)
	if err != nil {
		d.Fatal(err)
	}
	a := d.ask(of)
	return slices.ContainsFunc(messages, func(m workspaceclient.Message) bool {
		return m.BotID != "" && strings.Contains(m.Text, finished(a.number))
	})
}

// unexplained lists the orders that are not answered, although no damage of their rows was reported and each damaged
// value of their rows is covered by a checksum or a hash.
func (d *databaseDamager) unexplained() (orders []string) {
	d.Helper()
	reports := d.reports()
	explained := map[string]bool{}
	for _, v := range d.damages {
		for of := range v.orders {
			explained[of] = explained[of] || !v.checked() || reports[v.row()]
		}
	}
	for of, ok := range explained {
		if !ok && !d.answered(of) {
			orders = append(orders, of)
		}
	}
	return orders
}

// judge compares the runs with the orders and the approvals, and the damage with the reports and with "store check".
func (d *databaseDamager) judge() {
	d.Helper()
	for line := range lines(d.killHarness, filepath.Join(d.dir, "said")) {
		if strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") {
			d.Errorf("the bot said: %s", line)
		}
	}
	seen := map[string]int{}
	for line := range lines(d.killHarness, d.conf.Seen) {
		if seen[line]++; seen[line] > 1 && !strings.HasPrefix(line, toolLook+" ") {
			d.Errorf("%s ran %d times", line, seen[line])
		}
	}
	for _, run := range d.runs {
		d.ran(run)
	}
	d.each("SELECT record FROM audit_records WHERE kind IN ('decided', 'denied')", nil, func(row []any) {
		a, err := approvers.ParseAuditRecord(row[0].([]byte))
		switch {
		case err != nil: // it is damaged
		case a.Kind == approvers.AuditDecided && a.Actor != trialIDs["teo"] && a.Actor != trialIDs["ingrid"]:
			d.Errorf("%s decided request %s, and is no approver", a.Actor, a.Chain)
		case a.Kind == approvers.AuditDenied:
			d.count.denied++
		}
	})
	reports := d.reports()
	found := d.checks()
	for _, v := range d.damages {
		if reports[v.row()] {
			d.count.reported++
		}
		if !d.standing(v) {
			continue
		}
		d.count.standing++
		words := strings.Fields(v.key)
		named := slices.ContainsFunc(found, func(line string) bool {
			return !slices.ContainsFunc(words, func(word string) bool {
				is, _ := regexp.MatchString(`(^|\W)`+regexp.QuoteMeta(word)+`(\W|$)`, line) // the expression is valid
				return !is
			})
		})
		if v.table == "audit_journal" {
			named = strings.Contains(strings.Join(found, "\n"), v.table)
		}
		if !named {
			d.Errorf("%v is %q, and store check does not name it:\n%s", v, v.now, strings.Join(found, "\n"))
		}
	}
	d.count.damaged, d.count.runs, d.count.orders = len(d.damages), len(d.runs), len(d.asks)
	for _, a := range d.asks {
		if !d.answered(a.root) {
			d.count.stopped++
		}
	}
}

// ran checks that the model asked for a run with these arguments, and that an approver saw the call and approved it, if
// the call needs an approval.
func (d *databaseDamager) ran(run string) {
	d.Helper()
	tool, rest, _ := strings.Cut(run, " ")
	_, args, _ := strings.Cut(rest, " ")
	var in struct{ N string }
	var order, step, place int
	err := json.Unmarshal([]byte(args), &in)
	if err == nil {
		_, err = fmt.Sscanf(in.N, "%d.%d.%d", &order, &step, &place)
	}
	word := ""
	if err == nil {
		steps := strings.Split(orders[(order-1000)%len(orders)], " then ")
		word = strings.Fields(steps[step])[place]
	}
	want := scriptedmodel.NewCall(word, map[string]any{"n": in.N, "gated": word == "ask"})
	if word == "ask" {
		want.Name = toolAct
	}
	if err != nil || tool != want.Name || args != want.Arguments {
		d.Errorf("%q ran, and the model called %s with %s (%v)", run, want.Name, want.Arguments, err)
	}
	if (word == "ask" || word == toolOnce) && !d.cards[in.N] {
		d.Errorf("%q ran, and no approver has approved it", run)
	}
}

// standing reports whether a value is still as the test changed it.
func (d *databaseDamager) standing(v damagedValue) (is bool) {
	value := `convert_to("` + v.column + `"::text, 'UTF8')`
	if d.columns[v.table][v.column] == "bytea" {
		value = v.column
	}
	d.each(fmt.Sprintf("SELECT %s FROM %s WHERE concat_ws(' ', %s) = $1", value, v.table, damagedTables[v.table]), []any{v.key}, func(row []any) {
		now, _ := row[0].([]byte)
		is = slices.Equal(now, v.now)
	})
	return is
}

// checks returns the lines that "store check" prints.
func (d *databaseDamager) checks() []string {
	d.Helper()
	db, err := openWitnessed(d.Context(), d.conf.Store, false)
	if err != nil {
		d.Fatal(err)
	}
	var out strings.Builder
	checked := runTask(d.Context(), "store check", task.Env{Store: db, Out: &out, Idle: true}, task.None{})
	if err := db.Close(); err != nil {
		d.Error(err)
	}
	if len(d.damages) > 0 && cli.Code(checked) != cli.ExitNo {
		d.Errorf("store check: %v", checked)
	}
	return strings.Split(out.String(), "\n")
}
