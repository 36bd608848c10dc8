package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	recordjson "countersign/store/record"
)

// olderEnv is the environment variable with the path of an older program.
const olderEnv = "COUNTERSIGN_OLDER"

// TestOlderProgram upgrades a bot from an older program to this program, and goes back, while people click. Each bot is a
// process of serve. Many of them are killed. Their tools belong to an MCP server, and the older program has pinned the
// tools. TestOlderProgram makes the same checks as TestKills. It also verifies the history with each program that can
// open the store. It expects no texts from the older program.
//
// Over PostgreSQL, the newer program migrates the tables while two replicas of the older program run, and requests are
// pending, half approved, approved and of unknown outcome. Then replicas of both programs work side by side. Each killed
// replica is replaced by one of the other program. In the end, only the older program works on the new tables. If a step
// of the migration needs the newer program, the older replicas end before the migration, and the older program must
// then refuse the new tables.
//
// In a file, the newer program takes over the work of the older one. Then the older program starts again. It either
// continues, or refuses the file and does not change it.
//
// If the older program has a gateway, other agents make calls over the gateway (kill_callers_test.go).
func TestOlderProgram(t *testing.T) {
	testkit.SkipIfShort(t)
	if os.Getenv(olderEnv) == "" {
		t.Skipf("%s is not set: no upgrade from an older program is tried", olderEnv)
	}
	older, err := filepath.Abs(os.Getenv(olderEnv))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		server := pgserver.New(t, "fsync=off")
		newVersions(t, older, server.URL("postgres")).inDatabase(server)
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		v := newVersions(t, older, "")
		v.copied = v.backup
		v.inFile()
	})
}

// versions is a campaign with two versions of the program.
type versions struct {
	*killHarness
	older, newer string // paths
	current      string // the program that starts next
	random       *rand.Rand
	paused       atomic.Bool
	upgraded     atomic.Bool
	lost         atomic.Value // the lost run whose outcome nobody reports before the upgrade
	env          []string
	kills        map[string]int      // kills of each program, by its path
	gateways     map[*process]string // addresses of the running bots' gateways
}

// versionKills is the number of kills while both programs work.
const versionKills = 20

// newVersions starts the environment of a campaign. The older program pins the tools. Without the address of a database,
// the store is a file.
func newVersions(t *testing.T, older, database string) *versions {
	t.Helper()
	seed := testkit.Seed(t)
	c := openKillHarness(t, seed, func(ws *workspace.Config) { ws.RetryDelays = []time.Duration{} })
	v := &versions{killHarness: c, older: older, newer: programPath(t), current: older, random: testkit.Chance(seed, 9), kills: map[string]int{}, gateways: map[*process]string{}}
	c.conf.Slow, c.conf.Audit.Key, c.conf.Audit.Heads = 200*time.Millisecond, filepath.Join(c.dir, "key"), filepath.Join(c.dir, "heads")
	c.program, c.spares, c.tolerated = v.start, v.spare, databaseAway
	address := "bolt:" + c.conf.Store
	if database != "" {
		c.conf.Store, address = database, database
	}
	c.offerWitnesses()
	policy := strings.Replace(killPolicy, "risk: high, confirm: true", "risk: high, confirm: true, stages: [{approver: team-lead, quorum: 2}]", 1) +
		fmt.Sprintf("servers:\n  campaign: {url: %q, prefix: false, allow: [127.0.0.1], effects: {%s: idempotent, %s: read-only}}\n", c.conf.Server, toolOnce, toolLook)
	write(t, c.conf.Policy, []byte(policy))
	v.env = append(plainEnv(),
		"SLACK_API_URL="+c.conf.Base+"/api", "SLACK_BOT_TOKEN="+workspace.DemoBotToken, "SLACK_APP_TOKEN="+workspace.DemoAppToken,
		"OPENAI_BASE_URL="+c.conf.Base+"/v1", "OPENAI_API_KEY=witness", "OPENAI_MODEL="+scriptedmodel.DefaultModel,
		"COUNTERSIGN_POLICY="+c.conf.Policy, "COUNTERSIGN_STORE="+address, "COUNTERSIGN_AUDIT_KEY="+c.conf.Audit.Key, "COUNTERSIGN_AUDIT_HEADS="+c.conf.Audit.Heads)
	v.exits(cli.ExitDone, older, "tools", "pin", "--all", "--yes")
	if database != "" {
		c.others = 2
		v.exits(cli.ExitDone, older, "store", "migrate")
	}
	v.offerOlderGateway(policy)
	write(t, c.conf.Heard, nil)
	return v
}

// offerOlderGateway adds other agents that use the gateway, if the older program has a gateway. The agents make their
// calls in the ways that the older program offers. They send their requests to a load balancer, so a request may reach
// another program than the request before.
func (v *versions) offerOlderGateway(policy string) {
	v.Helper()
	write(v.T, v.conf.Policy, []byte(callersPolicy(policy)))
	if code, _ := v.command(v.older, "check"); code != cli.ExitDone {
		write(v.T, v.conf.Policy, []byte(policy))
		return
	}
	balancer := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "bots"})
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DialContext: v.dialGateway, DisableKeepAlives: true},
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	})
	v.Cleanup(balancer.Close)
	v.conf.Gateway, v.ways = balancer.Listener.Addr().String(), []string{viaDecide, viaExecute}
	bot := v.start(v.Context())
	v.awaitUp(bot)
	for _, way := range []struct{ via, path string }{{viaMCP, "/mcp"}, {viaHook, "/v1/hooks/claude-code"}} {
		answer, err := http.Post("http://"+v.conf.Gateway+way.path, "application/json", strings.NewReader("{}"))
		if err != nil {
			v.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			v.ways = append(v.ways, way.via)
		}
	}
	v.killed(bot)
	v.Logf("other agents make calls in these ways: %v", v.ways)
}

// dialGateway connects to the gateway of a random bot that listens.
func (v *versions) dialGateway(ctx context.Context, network, _ string) (net.Conn, error) {
	v.mu.Lock()
	gateways := slices.Collect(maps.Values(v.gateways))
	v.mu.Unlock()
	err := errors.New("no bot runs")
	for _, i := range rand.Perm(len(gateways)) {
		var c net.Conn
		if c, err = new(net.Dialer).DialContext(ctx, network, gateways[i]); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// command runs a command of a program, and returns its exit code and its output.
func (v *versions) command(program string, args ...string) (int, string) {
	cmd := exec.CommandContext(v.Context(), program, args...)
	cmd.Dir, cmd.Env = v.dir, v.env
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		v.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (v *versions) exits(want int, program string, args ...string) {
	v.Helper()
	if code, out := v.command(program, args...); code != want {
		v.Fatalf("%s %s ended with %d:\n%s", program, strings.Join(args, " "), code, out)
	}
}

// start starts a bot of the current program. Each replica has its own directory and its own file of signed heads.
func (v *versions) start(ctx context.Context) *process {
	v.Helper()
	n, admin := v.started.Add(1), v.freeAddress()
	said, err := os.OpenFile(filepath.Join(v.dir, "said"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		v.Fatal(err)
	}
	defer said.Close()
	cmd := exec.CommandContext(ctx, v.current, "serve")
	cmd.Dir, cmd.Stderr, cmd.Env = v.dir, said, append(slices.Clone(v.env), "COUNTERSIGN_ADMIN_ADDR="+admin)
	if v.others > 0 {
		cmd.Dir = v.TempDir()
		cmd.Env = append(cmd.Env, fmt.Sprintf("COUNTERSIGN_AUDIT_HEADS=%s-%d", v.conf.Audit.Heads, n))
	}
	gateway := ""
	if v.conf.Gateway != "" {
		gateway = v.freeAddress()
		cmd.Env = append(cmd.Env, "COUNTERSIGN_GATEWAY_ADDR="+gateway)
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		v.Fatal(err)
	}
	p := &process{cmd: cmd, in: in, up: make(chan struct{}), gone: make(chan struct{}), admin: admin}
	v.mu.Lock()
	v.gateways[p] = gateway
	v.mu.Unlock()
	go func() {
		defer close(p.gone)
		p.err = cmd.Wait()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.gateways, p)
	}()
	go func() {
		for {
			select {
			case <-p.gone:
				return
			case <-time.After(glance):
			}
			answer, err := http.Get("http://" + p.admin + "/readyz")
			if err != nil {
				continue
			}
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				close(p.up)
				return
			}
		}
	}()
	return p
}

// refused reports whether the current program refuses the store.
func (v *versions) refused(ctx context.Context) bool {
	v.Helper()
	bot := v.start(ctx)
	select {
	case <-bot.up:
		v.killed(bot)
		return false
	case <-bot.gone:
	case <-time.After(startTime):
		bot.end(syscall.SIGKILL)
		v.Fatalf("%s neither works nor ends\n%s", v.current, v.tail())
	}
	if code := bot.cmd.ProcessState.ExitCode(); code != cli.ExitUsage {
		v.Fatalf("%s ended with %d\n%s", v.current, code, v.tail())
	}
	return true
}

// disturb waits for a moment at which people or the bot act, and kills a bot.
func (v *versions) disturb(bot *process, moments ...string) {
	v.Helper()
	v.awaitUp(bot)
	wakeup := v.wakeups[moments[v.random.IntN(len(moments))]]
	select { // earlier wake-ups don't count
	case <-wakeup:
	default:
	}
	select {
	case <-wakeup:
	case <-time.After(2 * time.Second):
	}
	<-time.After(time.Duration(v.random.Int64N(int64(v.conf.Slow))))
	v.killed(bot)
	v.kills[bot.cmd.Path]++
}

var anyMoment = []string{"click", "acknowledged", "model", "tool"}

func (v *versions) other() string {
	if v.current == v.older {
		return v.newer
	}
	return v.older
}

// spare keeps work open until the upgrade: nobody decides the first request, only Teo approves the fourth, and nobody
// reports the outcome of one lost run. Nobody withdraws a request. The second request is decided during the pause, so
// that it stays approved.
func (v *versions) spare(person string, t clickable) bool {
	if v.upgraded.Load() {
		return false
	}
	switch t.ActionID {
	case "happened", "did_not", "leave":
		run, _, _ := strings.Cut(t.Value, " ")
		return v.lost.CompareAndSwap(nil, run) || v.lost.Load() == run
	case "withdraw":
		return true
	}
	return slices.ContainsFunc(callNumber.FindAllString(string(t.Blocks), -1), func(number string) bool {
		switch order, _, _ := strings.Cut(number, "."); order {
		case "1000":
			return true
		case "1001":
			return !v.paused.Load()
		case "1003":
			return person != "teo" || t.ActionID != "approve" && t.ActionID != "approve_all"
		}
		return false
	})
}

// pause pauses the older program, so that approved calls do not run.
func (v *versions) pause() {
	v.exits(cli.ExitDone, v.older, "pause", "--reason", "an upgrade")
	v.paused.Store(true)
}

// resume ends the pause with the newer program. People then complete all requests.
func (v *versions) resume() {
	v.upgraded.Store(true)
	v.exits(cli.ExitDone, v.newer, "resume", "--reason", "an upgrade")
}

// recordDeliveries makes the database keep each delivery in the table heard.
const recordDeliveries = `CREATE TABLE public.heard (record text);
CREATE FUNCTION public.hear() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.heard VALUES (NEW.record::text); RETURN NULL; END';
CREATE TRIGGER hear AFTER INSERT ON countersign.inbox FOR EACH ROW EXECUTE FUNCTION public.hear();`

// inEveryState is true if open requests are pending, half approved and approved, and a run is of unknown outcome.
const inEveryState = `SELECT count(DISTINCT state || (state = 'pending' AND record::text LIKE '%"decisions":[%')) = 3
AND EXISTS (SELECT FROM countersign.executions WHERE state = 'unknown') FROM countersign.requests WHERE open`

func (v *versions) inDatabase(server *pgserver.Server) {
	if err := server.SQL("postgres", recordDeliveries); err != nil {
		v.Fatal(err)
	}
	db, err := pgx.Connect(v.Context(), v.conf.Store)
	if err != nil {
		v.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(v.Context()))
	is := func(query string) (is bool) {
		if err := db.QueryRow(v.Context(), query).Scan(&is); err != nil {
			v.Fatal(err)
		}
		return is
	}
	programs := []string{v.older, v.newer}
	v.run(func(ctx context.Context) {
		replicas := []*process{v.start(ctx)}
		v.awaitUp(replicas[0]) // in 0.1.0, two replicas that start at the same moment can both try to make the key
		replicas = append(replicas, v.start(ctx))
		for !is("SELECT EXISTS (SELECT FROM countersign.executions WHERE state = 'unknown')") {
			v.disturb(replicas[0], "tool")
			replicas = append(replicas[1:], v.start(ctx))
		}
		v.pause()
		v.await("requests in every state", func() bool { return is(inEveryState) })
		code, out := v.command(v.newer, "store", "migrate")
		beside := code == cli.ExitDone
		v.Logf("the migration beside the older program: %d\n%s", code, out)
		v.current = v.newer
		if !beside {
			programs = []string{v.newer}
			for i := range replicas {
				v.awaitUp(replicas[i])
				v.killed(replicas[i])
			}
			v.await("the migration", func() bool { code, out = v.command(v.newer, "store", "migrate"); return code == cli.ExitDone })
			if v.current = v.older; !v.refused(ctx) {
				v.Error("the older program works on tables that need a newer program")
			}
			v.current = v.newer
			replicas = []*process{v.start(ctx), v.start(ctx)}
		}
		replicas = append(replicas, v.start(ctx))
		v.resume()
		for range versionKills {
			at := v.random.IntN(len(replicas))
			v.current = replicas[at].cmd.Path
			if beside {
				v.current = v.other()
			}
			v.disturb(replicas[at], anyMoment...)
			replicas[at] = v.start(ctx)
		}
		v.current = programs[0]
		for i, p := range replicas {
			if v.awaitUp(p); p.cmd.Path == v.current {
				continue
			}
			if err := p.end(syscall.SIGTERM); err != nil {
				v.Errorf("%s, asked to stop, ended with: %v\n%s", p.cmd.Path, err, v.tail())
			}
			replicas[i] = v.start(ctx)
			v.awaitUp(replicas[i])
		}
		clicked := v.clicks()
		v.await("people to click", func() bool { return v.clicks() > clicked+10 })
		v.await("a signed head", func() bool { n, _ := v.sealedHeads(); return n > 0 })
		for _, p := range replicas {
			v.killed(p)
		}
		v.hadHeads, _ = v.sealedHeads()
	})
	rows, err := db.Query(v.Context(), "SELECT record FROM public.heard")
	if err != nil {
		v.Fatal(err)
	}
	heard, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		v.Fatal(err)
	}
	notes, err := os.Create(v.conf.Heard)
	if err != nil {
		v.Fatal(err)
	}
	defer notes.Close()
	for _, text := range heard {
		var row store.Inbox
		err := recordjson.Decode([]byte(text), &row)
		if err == nil {
			err = note(notes, row)
		}
		if err != nil {
			v.Fatal(err)
		}
	}
	v.report(v.findings())
	v.verified(programs)
}

// report prints the figures of the campaign.
func (v *versions) report(f figures) {
	f.kills = v.kills[v.older] + v.kills[v.newer]
	v.Logf("%s; %d of the kills hit the older program", f, v.kills[v.older])
}

// verified verifies the history with each of the programs. Both programs have the same policy, so no policy may have
// changed.
func (v *versions) verified(programs []string) {
	v.Helper()
	count := map[approvers.AuditKind]int{}
	db, err := openWitnessed(v.Context(), v.conf.Store, false)
	if err != nil {
		v.Fatal(err)
	}
	err = db.View(v.Context(), func(r store.Reader) error {
		return r.EachAuditRow(func(x approvers.AuditRow) error {
			a, err := approvers.ParseAuditRecord(x.Record)
			count[a.Kind]++
			return err
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		v.Fatal(err)
	}
	if count[approvers.AuditPolicy] != 1 || count[approvers.AuditReplanned] > 0 {
		v.Errorf("the policy came into force %d times, and changed %d plans", count[approvers.AuditPolicy], count[approvers.AuditReplanned])
	}
	for _, program := range programs {
		v.exits(cli.ExitDone, program, "audit", "verify")
	}
}

func (v *versions) inFile() {
	programs := []string{v.older, v.newer}
	v.run(func(ctx context.Context) {
		bot := v.start(ctx)
		v.awaitUp(bot)
		for v.states()["unknown"] == 0 {
			v.disturb(bot, "tool")
			bot = v.start(ctx)
			v.awaitUp(bot)
		}
		v.pause()
		v.await("requests in every state", func() bool { return len(v.states()) == 4 })
		v.killed(bot)
		v.current = v.newer
		bot = v.start(ctx)
		v.awaitUp(bot)
		v.resume()
		for range versionKills / 4 {
			v.disturb(bot, anyMoment...)
			bot = v.start(ctx)
		}
		v.awaitUp(bot)
		v.killed(bot)
		newest, err := os.ReadFile(v.conf.Store)
		if err != nil {
			v.Fatal(err)
		}
		v.current = v.older
		if v.refused(ctx) {
			v.Log("the older program refuses the store")
			if after, err := os.ReadFile(v.conf.Store); err != nil || !bytes.Equal(after, newest) {
				v.Errorf("the older program refuses the store, and has changed it (%v)", err)
			}
			v.current, programs = v.newer, programs[1:]
		}
		bot = v.start(ctx)
		for range versionKills / 4 {
			v.disturb(bot, anyMoment...)
			bot = v.start(ctx)
		}
		v.awaitUp(bot)
		v.killed(bot)
	})
	clicks := v.deeds
	v.deeds = nil // nothing recorded which row of the inbox holds each click
	f := v.findings()
	f.acknowledged = len(clicks)
	v.report(f)
	v.counts(clicks)
	v.verified(programs)
}

// backup returns the path of a copy of the running bot's store.
func (v *versions) backup() string {
	path := filepath.Join(v.dir, "copy.db")
	v.exits(cli.ExitDone, v.current, "backup", "--force", path)
	return path
}

// states counts the open requests by state, and the runs of unknown outcome.
func (v *versions) states() map[string]int {
	v.Helper()
	count := map[string]int{}
	v.beside(func(db store.Store) error {
		return db.(store.Contents).EachRow(v.Context(), func(row store.Row) error {
			switch row.Part {
			case store.PartRequests:
				var r approvers.Request
				if err := recordjson.Decode(row.Record, &r); err != nil {
					return err
				}
				if r.State.Open() {
					count[fmt.Sprint(r.State, " ", r.State == approvers.Pending && len(r.Decisions) > 0)]++
				}
			case store.PartExecutions:
				var e approvers.Execution
				if err := recordjson.Decode(row.Record, &e); err != nil {
					return err
				}
				if e.State == approvers.ExecutionUnknown {
					count["unknown"]++
				}
			}
			return nil
		})
	})
	return count
}

// counts checks acknowledged clicks without a record of their rows in the inbox. Each click must have a row. Clicks
// without a trace in a history must have been refused.
func (v *versions) counts(clicks []deed) {
	v.Helper()
	db, err := openWitnessed(v.Context(), v.conf.Store, false)
	if err != nil {
		v.Fatal(err)
	}
	handled, refused, traceless := 0, 0, 0
	err = db.(store.Contents).EachRow(v.Context(), func(row store.Row) error {
		if row.Part != store.PartInbox {
			return nil
		}
		var in store.Inbox
		err := recordjson.Decode(row.Record, &in)
		if in.Kind == store.InboxInteraction && !in.HandledAt.IsZero() {
			handled++
			if in.Note != "" {
				refused++
			}
		}
		return err
	})
	looked := db.View(v.Context(), func(r store.Reader) error {
		for _, d := range clicks {
			if d.does == "open" || d.does == "try_again" {
				continue
			}
			counted, err := (&findings{killHarness: v.killHarness}).counted(r, d)
			if err != nil {
				return err
			}
			if !counted {
				traceless++
			}
		}
		return nil
	})
	if err := errors.Join(err, looked, db.Close()); err != nil {
		v.Fatal(err)
	}
	if handled < len(clicks) || traceless > refused {
		v.Errorf("of %d acknowledged clicks, %d are stored; %d left no trace, and %d were refused", len(clicks), handled, traceless, refused)
	}
}
