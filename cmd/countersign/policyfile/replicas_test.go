package policyfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/metrics"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/postgres"
)

// replicaPolicy returns a policy under which one person may approve refunds.
func replicaPolicy(approver string) string {
	return `version: 1
tools: {issue_refund: {risk: high, confirm: true}}
approvers: {boss: {title: Boss, members: [` + approver + `], max_risk: critical, can_approve: ["*"], cards: "#approvals"}}
agents: {support: {channels: ["#support"], prompt: You help., tools: ["*"]}}
`
}

// byTeo and byIngrid are policies, named after the person who may approve.
var (
	byTeo    = replicaPolicy("U0002")
	byIngrid = replicaPolicy("U0003")
)

// These are the people who may approve under byTeo and byIngrid.
var teo, ingrid = approvers.Identity{ID: "T0001/U0002", Name: "Teo"}, approvers.Identity{ID: "T0001/U0003", Name: "Ingrid"}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T, path string) store.Store {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func emptyStore(t *testing.T) store.Store {
	t.Helper()
	db := openStore(t, filepath.Join(t.TempDir(), "countersign.db"))
	t.Cleanup(func() { db.Close() })
	return db
}

func refunds(t *testing.T) *catalog.Catalog {
	t.Helper()
	tools := &agent.Registry{}
	err := tools.Register(agent.Tool{
		Name: "issue_refund", Description: "Pays money back.", Effect: approvers.Unprotected,
		Schema: json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string"}}}`),
		Run:    func(context.Context, agent.Invocation) (string, error) { return "done", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(catalog.Config{Registry: tools})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// onStores runs a test twice. The first time, all replicas of the test share a store in a file. The second time, each
// replica opens the same database itself.
func onStores(t *testing.T, test func(t *testing.T, open func() store.Store)) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		db := emptyStore(t)
		test(t, func() store.Store { return db })
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		server := pgserver.New(t, "fsync=off")
		test(t, func() store.Store {
			db, err := postgres.Open(t.Context(), server.URL("postgres"), postgres.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		})
	})
}

// policyReplica is one of several processes on a store. Each process has its own files.
type policyReplica struct {
	*testing.T
	*Source
	db   store.Store
	wf   *workflow.Workflow
	path string
	said *lineBuffer
}

// lineBuffer collects the lines of a log.
type lineBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lineBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lineBuffer) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), words)
}

// startReplica starts a process with a policy file. The functions in change can modify the process before it joins the
// store.
func startReplica(t *testing.T, db store.Store, name, policy string, change ...func(*policyReplica)) *policyReplica {
	t.Helper()
	r := openReplica(t, db, name, policy, change...)
	if err := r.Join(t.Context(), r.wf); err != nil {
		t.Fatalf("%s does not start: %v", name, err)
	}
	return r
}

func openReplica(t *testing.T, db store.Store, name, policy string, change ...func(*policyReplica)) *policyReplica {
	t.Helper()
	r := &policyReplica{T: t, db: db, path: filepath.Join(t.TempDir(), "countersign.yaml"), said: new(lineBuffer)}
	write(t, r.path, []byte(policy))
	for _, change := range change {
		change(r)
	}
	log := slog.New(slog.NewTextHandler(r.said, nil))
	s, err := Open(r.path, refunds(t), log)
	if err != nil {
		t.Fatal(err)
	}
	s.Shared, s.process, r.Source = true, name, s
	r.wf = workflow.New(workflow.Config{Store: db, Policy: s.Tools.Policy, Tools: s.Tools.Registry, Log: log, PolicySource: s})
	return r
}

// The method "gets" changes the policy file, and makes the replica read the file twice. After the second read, the file
// counts as complete.
func (r *policyReplica) gets(policy string) {
	r.Helper()
	write(r.T, r.path, []byte(policy))
	r.looks(false)
	r.looks(false)
}

func (r *policyReplica) looks(whole bool) {
	r.Helper()
	if _, err := r.readFiles(r.Context(), whole); err != nil {
		r.Fatalf("%s can't look at its files: %v", r.process, err)
	}
}

// The method "uses" checks which policy the replica uses, and the number of the policy's change.
func (r *policyReplica) uses(policy string, number uint64) {
	r.Helper()
	approver := "U0002"
	if policy == byIngrid {
		approver = "U0003"
	}
	p := r.Tools.Policy()
	if got := p.Approvers[0].Members[0].Value; got != approver || r.number.Load() != number {
		r.Errorf("%s uses a policy by which %s approves, change %d; want %s and %d", r.process, got, r.number.Load(), approver, number)
	}
}

// metric returns the value of a metric of the policy.
func (r *policyReplica) metric(name string) string {
	r.Helper()
	m := metrics.New(r.db, r.Tools.Policy)
	m.WatchPolicies(r.Source)
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(r.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range strings.Split(rec.Body.String(), "\n") {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return rest
		}
	}
	r.Fatalf("there is no metric %s", name)
	return ""
}

// differsFrom checks that the replica's file differs from the policy in force. differsFrom also checks that the replica
// names the process that loaded this policy. If the parameter process is empty, differsFrom checks that the file is in
// force.
func (r *policyReplica) differsFrom(process string) {
	r.Helper()
	why, metric := r.State(r.Context()), r.metric(`countersign_policy_file_differs{file="policy"}`)
	switch {
	case process == "" && (why != nil || metric != "0"):
		r.Errorf("%s says that its file differs: %v (metric %s)", r.process, why, metric)
	case process != "" && (why == nil || !strings.Contains(why.Error(), "loaded by "+process+" at ") || metric != "1"):
		r.Errorf("%s does not say that %s loaded another file: %v (metric %s)", r.process, process, why, metric)
	}
}

// ask makes the replica create a request.
func (r *policyReplica) ask(n int) approvers.Request {
	r.Helper()
	ctx, ts := r.Context(), fmt.Sprintf("1780000000.%06d", n)
	inbox := "Ev" + ts
	_, err := r.wf.Intake.Receive(ctx, store.Inbox{ID: inbox, Kind: store.InboxEvent, ReceivedAt: time.Now(), Payload: []byte("{}")}, ts)
	r.ok(err)
	heard, err := r.wf.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{
		Inbox: inbox, At: time.Now(), Team: "T0001", Thread: ts, TS: ts, Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
		Who: approvers.Identity{ID: "T0001/U0009", Name: "Robin"}, Text: "Please refund order ORD-123.", Start: true,
	})
	r.ok(err)
	_, err = r.wf.Turns.Begin(ctx, heard.Turn)
	r.ok(err)
	r.ok(r.wf.Turns.Propose(ctx, workflow.Proposal{
		Turn: heard.Turn, Calls: []workflow.ModelCall{{ID: "call_1", Tool: "issue_refund", Args: `{"order_id":"ORD-123"}`}}, Authors: []approvers.PersonID{"T0001/U0009"},
	}))
	var out approvers.Request
	r.ok(r.db.View(ctx, func(x store.Reader) error {
		calls, err := x.Calls(heard.Turn)
		if err == nil {
			out, err = x.Request(calls[0].Request)
		}
		return err
	}))
	return out
}

func (r *policyReplica) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// approve makes a person approve a request through the replica.
func (r *policyReplica) approve(who approvers.Identity, q approvers.Request) error {
	r.Helper()
	click := fmt.Sprint("click-", q.ID, who.ID, time.Now().UnixNano())
	_, err := r.wf.Intake.Receive(r.Context(), store.Inbox{ID: click, Kind: store.InboxInteraction, ReceivedAt: time.Now(), Payload: []byte("{}")}, "")
	r.ok(err)
	_, err = r.wf.Requests.Decide(r.Context(), workflow.Click{
		Inbox: click, At: time.Now(), Who: who, Request: q.ID, Kind: approvers.Approve, Digest: q.Digest, Whole: true, Rendering: q.Digest,
		Channel: "C0002", MessageTS: "1780000000.000100",
	})
	return err
}

// The method "changes" lists the policy changes in the history, with the number, the cause and the process of each
// change.
func (r *policyReplica) changes() string {
	r.Helper()
	var out []string
	r.ok(r.db.View(r.Context(), func(x store.Reader) error {
		out = nil
		chain, err := x.Audit(approvers.InstallationChain)
		for _, a := range chain {
			if a.Kind == approvers.AuditPolicy {
				out = append(out, fmt.Sprintf("%s %s by %s", a.Facts["number"], a.Facts["why"], a.Facts["process"]))
			}
		}
		return err
	}))
	return strings.Join(out, ", ")
}

// Replicas get a policy file one after the other. The file comes into force as soon as the first replica has it. The
// other replicas use that policy in their next decision, and report that their files differ until they also get the
// file. If a file is changed back to an earlier policy, this policy comes into force.
func TestPolicyRollsOut(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store.Store) {
		a, b := startReplica(t, open(), "a", byTeo), startReplica(t, open(), "b", byTeo)
		a.uses(byTeo, 1)
		b.uses(byTeo, 1)
		b.differsFrom("")
		first, second, third := a.ask(1), a.ask(2), b.ask(3)
		b.ok(b.approve(teo, first))

		a.gets(byIngrid)
		a.uses(byIngrid, 2)
		b.uses(byTeo, 1) // b was not notified of a change
		var denied *approvers.Denied
		if err := b.approve(teo, second); !errors.As(err, &denied) {
			t.Errorf("by the earlier policy: got error %v, want a denial", err)
		}
		b.uses(byIngrid, 2)
		b.ok(b.approve(ingrid, second))
		b.differsFrom("a")
		a.differsFrom("")
		if n := b.said.count("another process changed the policy or the pins in force") + b.said.count("the policy file of this process is not the one in force"); n != 2 {
			t.Errorf("b logged %d lines about the change, want 2:\n%s", n, b.said.b.String())
		}
		b.looks(false)
		b.differsFrom("a")
		b.gets(byIngrid)
		b.differsFrom("")
		b.uses(byIngrid, 2)

		b.gets(byTeo) // the operator takes the change back
		b.uses(byTeo, 3)
		if err := a.CatchUp(t.Context()); err != nil {
			t.Error(err)
		}
		a.uses(byTeo, 3)
		a.differsFrom("b")
		a.ok(a.approve(teo, third))
		if got, want := a.changes(), "1 start by a, 2 changed by a, 3 changed by b"; got != want {
			t.Errorf("the history has %s, want %s", got, want)
		}
		if got := a.metric("countersign_policy_change"); got != "3" {
			t.Errorf("the metric has change %s", got)
		}
	})
}

// A replica starts with a file that was in force earlier. The replica uses the policy in force, until the operator
// requests the use of the file. A file that was never in force comes into force when a replica starts with it.
func TestPolicyFileStaleAtStart(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store.Store) {
		a := startReplica(t, open(), "a", byTeo)
		a.gets(byIngrid)
		b := startReplica(t, open(), "b", byTeo)
		b.uses(byIngrid, 2)
		b.differsFrom("a")
		b.looks(false)
		b.looks(false)
		b.uses(byIngrid, 2)
		b.looks(true)
		b.uses(byTeo, 3)
		b.differsFrom("")
		c := startReplica(t, open(), "c", byTeo+"# commented\n")
		c.uses(byTeo, 4)
		if got, want := a.changes(), "1 start by a, 2 changed by a, 3 asked by b, 4 start by c"; got != want {
			t.Errorf("the history has %s, want %s", got, want)
		}
	})
}

// The only process on a store puts its file into force at each start, as its operator expects.
func TestPolicyFileOfTheOnlyProcess(t *testing.T) {
	t.Parallel()
	db := emptyStore(t)
	start := func(name, policy string) *policyReplica {
		r := openReplica(t, db, name, policy)
		r.Shared = false
		r.ok(r.Join(t.Context(), r.wf))
		return r
	}
	start("a", byTeo).uses(byTeo, 1)
	start("b", byTeo).uses(byTeo, 1)
	start("c", byIngrid).uses(byIngrid, 2)
	d := start("d", byTeo)
	d.uses(byTeo, 3)
	d.differsFrom("")
	if got, want := d.changes(), "1 start by a, 2 start by c, 3 start by d"; got != want {
		t.Errorf("the history has %s, want %s", got, want)
	}
	// A damaged or forged record does not prevent the start.
	d.ok(db.Update(t.Context(), func(tx store.Tx) error {
		return tx.PutPolicy(store.Policy{Load: "forged", Version: 3, Policy: store.PolicyPart{Digest: "x"}}, []byte("{"))
	}))
	e := start("e", byTeo)
	e.uses(byTeo, 5)
	e.ok(e.approve(teo, e.ask(1)))
}

// A replica that can't use the policy in force decides no request. The replica reports this state. The replica still
// receives messages and clicks, and records the events that have happened. When a policy that the replica can use comes
// into force, the replica continues its work. This policy may come from the replica's own file.
func TestPolicyThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store.Store) {
		a, b := startReplica(t, open(), "a", byTeo), startReplica(t, open(), "b", byTeo)
		one, two := a.ask(1), a.ask(2)
		a.ok(a.approve(teo, two))
		run, may, err := a.wf.Runs.Claim(t.Context(), two.Execution)
		if err != nil || !may {
			t.Fatalf("the run may not begin: %v", err)
		}
		newer := openReplica(t, open(), "newer", byTeo)
		put := func(text string) {
			t.Helper()
			newer.ok(newer.Join(t.Context(), newer.wf))
			content := storedContent{EarlierPolicies: append(newer.used.content.EarlierPolicies, newer.row.Policy.Digest)}
			content.Policy.File = []byte(text)
			data, err := json.Marshal(content)
			newer.ok(err)
			_, err = newer.wf.Policies.PutIntoForce(t.Context(), newer.row, workflow.PolicyChange{
				Load: newer.wf.Policies.NewLoad(), Policy: content.Policy.Digest(), Content: data, By: "newer", Why: whyChanged,
			})
			newer.ok(err)
		}
		put(byTeo + "a_later_key: true\n")
		for range 2 {
			if err := a.approve(teo, one); !errors.Is(err, store.ErrPolicyChanged) || !store.Refused(err) {
				t.Errorf("a decision by a policy that can't be used: got error %v, want ErrPolicyChanged", err)
			}
		}
		why := a.InForce(t.Context())
		if why == nil || !strings.Contains(why.Error(), "change 2, loaded by newer at ") || !strings.Contains(why.Error(), "a_later_key") {
			t.Errorf("/readyz says %v", why)
		}
		if a.Usable() || a.metric("countersign_policy_usable") != "0" || a.said.count("this process can't use it") != 1 {
			t.Errorf("usable %t; the log:\n%s", a.Usable(), a.said.b.String())
		}
		a.ok(a.wf.Runs.Finish(t.Context(), run.ID, true, "paid"))
		a.ok(a.wf.Pauses.Pause(t.Context(), "operator:anna", "wait"))
		a.ok(a.wf.Pauses.Resume(t.Context(), "operator:anna", "go on"))
		if err := openReplica(t, open(), "c", byTeo).Join(t.Context(), a.wf); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "a_later_key") {
			t.Errorf("another one starts: got error %v (code %d)", err, cli.Code(err))
		}
		startReplica(t, open(), "d", byTeo+"# new\n").uses(byTeo, 3)
		a.ok(a.approve(teo, a.ask(4)))
		put(byTeo + "a_later_key: true\n")
		a.looks(false) // a's file did not change
		if a.CatchUp(t.Context()) == nil {
			t.Error("a uses what it can't use")
		}
		if a.Usable() {
			t.Error("a file that did not change came into force")
		}
		a.looks(true)
		a.uses(byTeo, 5)
		if a.InForce(t.Context()) != nil || a.metric("countersign_policy_usable") != "1" {
			t.Errorf("its own file is in force: %v", a.InForce(t.Context()))
		}
		a.ok(a.approve(teo, one))
		b.ok(b.approve(teo, b.ask(3)))
		if got, want := a.changes(), "1 start by a, 2 changed by newer, 3 start by d, 4 changed by newer, 5 asked by a"; got != want {
			t.Errorf("the history has %s, want %s", got, want)
		}
	})
}

// If somebody writes a policy directly into the store, the replicas do not use this policy.
func TestPolicyForged(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store.Store) {
		a := startReplica(t, open(), "a", byTeo)
		q := a.ask(1)
		content := storedContent{}
		content.Policy.File = []byte(byIngrid)
		data, err := json.Marshal(content)
		a.ok(err)
		forge := func(row store.Policy) {
			t.Helper()
			a.ok(a.db.Update(t.Context(), func(tx store.Tx) error { return tx.PutPolicy(row, data) }))
			if err := a.approve(ingrid, q); !errors.Is(err, store.ErrPolicyChanged) || !strings.Contains(err.Error(), "history") && !strings.Contains(err.Error(), "stored content") {
				t.Errorf("by a forged policy: got error %v", err)
			}
		}
		first := a.row
		row := first
		row.Load, row.Policy.Digest = "other", content.Policy.Digest()
		forge(row)
		row = a.row
		row.Version = 2
		forge(row)
		row.Version, row.Load, row.Policy = 3, "load of none", store.PolicyPart{Digest: a.used.content.Policy.Digest()}
		forge(row)
		row = first // the number of a known change, but another digest
		row.Version, row.Policy.Digest = 4, content.Policy.Digest()
		a.ok(a.db.Update(t.Context(), func(tx store.Tx) error { return tx.PutPolicy(row, data) }))
		pinned := func(r *policyReplica) { write(t, pins.Beside(r.path), pins.Lock{}.Format()) }
		for name, b := range map[string]*policyReplica{"b": openReplica(t, open(), "b", byTeo), "c": openReplica(t, open(), "c", byTeo, pinned)} {
			if err := b.Join(t.Context(), b.wf); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "history") {
				t.Errorf("%s starts: got error %v", name, err)
			}
		}
	})
}

// The files that the policy names are also in force for all replicas. The test uses the pins, and an OpenAPI file that
// not every replica has. A replica without a lock file does not remove the pins.
func TestPolicyFilesInForce(t *testing.T) {
	t.Parallel()
	const api = "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: https://api.example.com}]\npaths:\n  /a: {get: {operationId: NAME, responses: {'200': {description: ok}}}}\n"
	const text = "openapi: {shop: {file: api.yaml}}\n"
	onStores(t, func(t *testing.T, open func() store.Store) {
		has := func(operation string) func(*policyReplica) {
			return func(r *policyReplica) {
				write(t, filepath.Join(filepath.Dir(r.path), "api.yaml"), []byte(strings.Replace(api, "NAME", operation, 1)))
			}
		}
		tools := func(r *policyReplica, want string) {
			t.Helper()
			var names []string
			all, _ := r.Tools.Status()
			for _, tool := range all {
				if tool.Tool.Source != "" {
					names = append(names, tool.Tool.Name+" "+string(tool.State))
				}
			}
			if got := strings.Join(names, ", "); got != want {
				t.Errorf("%s has the tools %s, want %s", r.process, got, want)
			}
		}
		a := startReplica(t, open(), "a", byTeo)
		b := startReplica(t, open(), "b", byTeo)
		has("look")(a)
		a.gets(byTeo + text)
		b.ok(b.CatchUp(t.Context()))
		tools(b, "shop.look new")

		var lock pins.Lock
		all, _ := a.Tools.Status()
		for _, tool := range all {
			if tool.Tool.Source == "" {
				continue
			}
			p, err := pins.Make(tool.Tool.Name, tool.Tool.Source, tool.Definition, "anna", time.Unix(0, 0))
			a.ok(err)
			lock = lock.With(p)
		}
		a.ok(lock.Write(pins.Beside(a.path)))
		a.looks(false)
		a.looks(false)
		tools(a, "shop.look same")
		b.ok(b.CatchUp(t.Context()))
		tools(b, "shop.look same")
		if why := b.Pinned(t.Context()); why == nil || !strings.Contains(why.Error(), "the lock file of this process is not the one in force") {
			t.Errorf("/readyz of b: %v", why)
		}
		c := startReplica(t, open(), "c", byTeo+text, has("look")) // c has no lock file
		tools(c, "shop.look same")

		has("seek")(a) // only the file that the policy names changes
		a.looks(false)
		a.looks(false)
		b.ok(b.CatchUp(t.Context()))
		tools(b, "shop.look gone, shop.seek new")
		c.differsFrom("")
		c.ok(c.CatchUp(t.Context()))
		c.differsFrom("a")

		write(t, pins.Beside(a.path), []byte("{"))
		a.looks(false)
		a.looks(false)
		if why := a.Pinned(t.Context()); why == nil || !strings.Contains(why.Error(), "the lock file was refused at ") || a.said.count("the lock file changed and was refused") != 1 {
			t.Errorf("/readyz of a: %v", why)
		}
		a.ok(os.Remove(pins.Beside(a.path)))
		a.looks(true)
		tools(a, "shop.seek new")
		if got, want := a.changes(), "1 start by a, 2 changed by a, 3 changed by a, 4 changed by a, 5 asked by a"; got != want {
			t.Errorf("the history has %s, want %s", got, want)
		}
	})
}

// Replicas start at the same time, and then get another file at the same time. The file comes into force once. While
// the file changes, the replicas decide requests.
func TestPolicyRace(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store.Store) {
		const n = 4
		var all [n]*policyReplica
		for i := range all {
			all[i] = openReplica(t, open(), fmt.Sprint("r", i), byTeo)
		}
		each := func(do func(i int, r *policyReplica) error) {
			t.Helper()
			var failed [n]error
			var wg sync.WaitGroup
			for i, r := range all {
				wg.Go(func() { failed[i] = do(i, r) })
			}
			wg.Wait()
			if err := errors.Join(failed[:]...); err != nil {
				t.Fatal(err)
			}
		}
		each(func(_ int, r *policyReplica) error { return r.Join(t.Context(), r.wf) })
		var requests [n]approvers.Request
		for i, r := range all {
			r.uses(byTeo, 1)
			requests[i] = r.ask(i + 1)
			write(t, r.path, []byte(byIngrid))
		}
		each(func(i int, r *policyReplica) error {
			if i%2 == 0 {
				_, err := r.readFiles(t.Context(), true)
				return err
			}
			var denied *approvers.Denied
			if err := r.approve(teo, requests[i]); err != nil && !errors.As(err, &denied) {
				return err
			}
			return nil
		})
		for _, r := range all {
			r.ok(r.CatchUp(t.Context()))
			r.uses(byIngrid, 2)
			if _, err := r.readFiles(t.Context(), true); err != nil {
				t.Error(err)
			}
			r.differsFrom("")
		}
		if got := all[0].changes(); strings.Count(got, ",") != 1 || !strings.HasPrefix(got, "1 start by r") {
			t.Errorf("the history has %s, want two changes", got)
		}
	})
}

// The record of the policy in force is damaged. A running process replaces the record with the policy that it uses. A
// process that starts replaces the record with the policy from its own files.
func TestPolicyRecordDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "countersign.db")
	var db store.Store
	reopen := func() {
		t.Helper()
		if db != nil {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			raw, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = raw.Update(func(tx *bbolt.Tx) error {
				bucket, key := tx.Bucket([]byte("settings")), []byte("policy_in_force")
				v := bytes.Clone(bucket.Get(key))
				v[len(v)/2] ^= 1
				return bucket.Put(key, v)
			})
			if err := errors.Join(err, raw.Close()); err != nil {
				t.Fatal(err)
			}
		}
		db = openStore(t, path)
	}
	reopen()
	t.Cleanup(func() { db.Close() })
	a := startReplica(t, db, "a", byTeo)
	q := a.ask(1)
	reopen()
	a.db, a.wf.Store = db, db
	a.ok(a.approve(teo, q))
	a.uses(byTeo, 1)
	reopen()
	b := startReplica(t, db, "b", byIngrid)
	b.uses(byIngrid, 1)
	if got, want := b.changes(), "1 start by a, 1 lost by a, 1 start by b"; got != want {
		t.Errorf("the history has %s, want %s", got, want)
	}
}

// The policy in force changes just before the transaction of a decision, and the deciding process has not noticed the
// change. The process does not decide under the earlier policy.
func TestPolicyChangesDuringADecision(t *testing.T) {
	t.Parallel()
	a := startReplica(t, emptyStore(t), "a", byTeo)
	q := a.ask(1)
	b := openReplica(t, &meanwhile{Store: a.db, do: func() { a.gets(byIngrid) }}, "b", byTeo)
	b.ok(b.Join(t.Context(), b.wf))
	b.db.(*meanwhile).armed = true
	var denied *approvers.Denied
	if err := b.approve(teo, q); !errors.As(err, &denied) {
		t.Errorf("got error %v, want a denial", err)
	}
	b.uses(byIngrid, 2)
}

// If a process adopts another policy during the transaction of a decision, the transaction fails with ErrPolicyChanged.
func TestPolicyAdoptedDuringADecision(t *testing.T) {
	t.Parallel()
	db := &meanwhile{Store: emptyStore(t)}
	a := startReplica(t, db, "a", byTeo)
	q := a.ask(1)
	db.do = func() { a.Tools.Stored("in between") }
	db.inside = true
	if err := a.approve(teo, q); !errors.Is(err, store.ErrPolicyChanged) {
		t.Errorf("got error %v, want ErrPolicyChanged", err)
	}
	a.Tools.Stored(a.row.Load)
	a.ok(a.approve(teo, q))
}

// meanwhile is a store that runs a function once, just before the next decision or inside the decision's transaction.
type meanwhile struct {
	store.Store
	do            func()
	armed, inside bool
	seen          int
}

func (m *meanwhile) Update(ctx context.Context, fn func(store.Tx) error) error {
	if !m.armed && !m.inside {
		return m.Store.Update(ctx, fn)
	}
	if m.seen++; m.seen != 2 { // the first transaction receives the click, the second decides
		return m.Store.Update(ctx, fn)
	}
	if m.armed {
		m.do()
		return m.Store.Update(ctx, fn)
	}
	return m.Store.Update(ctx, func(tx store.Tx) error { return fn(doing{tx, m.do}) })
}

// doing is a transaction that runs a function when a request is read.
type doing struct {
	store.Tx
	do func()
}

func (d doing) Request(id string) (approvers.Request, error) {
	d.do()
	return d.Tx.Request(id)
}

// A replica that watches the store notices a change when it is notified. Without a notification, it notices the change
// by polling.
func TestPolicyIsWatched(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func() store.Store) {
		a, b := startReplica(t, open(), "a", byTeo), startReplica(t, open(), "b", byTeo)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Watch(ctx, b.wf) }()
		changed := func(number uint64) {
			t.Helper()
			for end := time.Now().Add(time.Minute); b.number.Load() != number; {
				if time.Now().After(end) {
					t.Fatalf("b still uses change %d", b.number.Load())
				}
				time.Sleep(time.Millisecond)
			}
		}
		a.gets(byIngrid)
		b.Wake()
		changed(2)
		a.gets(byTeo)
		changed(3)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
