package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// A command that works on a database uses the policy in force in the database, and not its own file. If replicas run,
// the command never uses its own file, even before the first replica has put its policy into force.
func TestPolicyOfACommand(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		db := emptyStore(t)
		testPolicyOfACommand(t, db, db, nil)
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		server := pgserver.New(t, "fsync=off")
		open := func() *postgres.Store {
			db, err := postgres.Open(t.Context(), server.URL("postgres"), postgres.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		}
		bot, command := open(), open()
		testPolicyOfACommand(t, bot, command, command.Visit())
	})
}

// testPolicyOfACommand runs the test on the store of a bot. The parameter command is the store as the command opens it.
// The parameter beside is nil if the command finds no replicas on the store.
func testPolicyOfACommand(t *testing.T, bot, command store.Store, beside store.Replica) {
	const inForce = `version: 1
approvers: {boss: {title: Boss, members: [U0002], max_risk: critical, can_approve: ["*"], cards: "#approvals"}}
agents: {support: {channels: ["#support"], prompt: You help., tools: ["*"]}}
`
	env := config.Env{Policy: filepath.Join(t.TempDir(), "countersign.yaml"), Store: config.Store{Backend: config.Postgres}}
	write(t, env.Policy, []byte(strings.Replace(inForce, "U0002", "U0003", 1)))
	if beside != nil {
		if _, err := task.LocalWorkflow(t.Context(), env, command, beside); cli.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), "no policy is in force") {
			t.Errorf("before the first replica is up: got error %v (code %d)", err, cli.Code(err))
		}
	}
	path, log := filepath.Join(t.TempDir(), "countersign.yaml"), slog.New(slog.DiscardHandler)
	write(t, path, []byte(inForce))
	policies, err := policyfile.Open(path, catalogOf(new(agent.Registry)), log)
	if err != nil {
		t.Fatal(err)
	}
	policies.Shared = true
	replica := workflow.New(workflow.Config{Store: bot, Policy: policies.Tools.Policy, Tools: policies.Tools.Registry, Log: log, PolicySource: policies})
	if err := policies.Join(t.Context(), replica); err != nil {
		t.Fatal(err)
	}
	row, err := replica.Policies.InForce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wf, err := task.LocalWorkflow(t.Context(), env, command, beside)
	if err != nil {
		t.Fatal(err)
	}
	if p := wf.Policy(); p.Approvers[0].Members[0].Value != "U0002" || p.Load != row.Load {
		t.Errorf("the command uses %+v, loaded as %q; want the policy loaded as %q", p.Approvers, p.Load, row.Load)
	}
	write(t, path, []byte(inForce+"# newer\n"))
	if err := policies.Become(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := wf.Requests.Reevaluate(t.Context()); !errors.Is(err, store.ErrPolicyChanged) {
		t.Errorf("after a change: got error %v, want ErrPolicyChanged", err)
	}
	env.Store.Backend = "bolt"
	if wf, err = task.LocalWorkflow(t.Context(), env, bot, nil); err != nil || wf.Policy().Approvers[0].Members[0].Value != "U0003" {
		t.Errorf("with a store in a file, its own file does not count: %v", err)
	}
}

// replicaOf returns a harness with its own directory and a copy of the files. The harness's bot works on a database.
func (p *processHarness) replicaOf(database, key string) *processHarness {
	p.Helper()
	r := *p
	r.dir = p.TempDir()
	r.env = append(slices.Clone(p.env), "COUNTERSIGN_STORE="+database, "COUNTERSIGN_AUDIT_KEY="+key)
	for _, path := range []string{p.policy(), pins.Beside(p.policy())} {
		data, err := os.ReadFile(path)
		if err != nil {
			p.Fatal(err)
		}
		write(p.T, filepath.Join(r.dir, filepath.Base(path)), data)
	}
	return &r
}

// saysOfPolicy waits until a line of /readyz about the policy file has the words. The bot must then be ready.
func (p *processHarness) saysOfPolicy(admin, words string) {
	p.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		status, body := get(p.T, admin+"/readyz?wait=5")
		_, line, _ := strings.Cut(body, "\npolicy: ")
		line, _, _ = strings.Cut(line, "\n")
		switch {
		case strings.Contains(line, words) && strings.Contains(body, "\npolicy in force: ok\n"):
			if status != 200 {
				p.Errorf("/readyz answers %d: %s", status, body)
			}
			return
		case time.Now().After(end):
			p.Fatalf("/readyz has no line about the policy with %q: %s", words, body)
		}
	}
}

// awaitCards waits until Slack shows the current state of every card. Slack's limits may delay messages of lower ranks.
func (p *processHarness) awaitCards(db store.Store) {
	p.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var waiting []string
		err := db.View(p.Context(), func(r store.Reader) error {
			waiting = nil
			for _, rank := range []store.Rank{store.RankFirst, store.RankPlain} {
				timers, err := r.Timers(rank.Timer(), 100)
				if err != nil {
					return err
				}
				for _, t := range timers {
					s, err := r.OutboxMessage(t.Ref)
					if err != nil {
						return err
					}
					waiting = append(waiting, fmt.Sprintf("%s to %s, due %s, tries %d", s.Kind, s.To, t.Due, t.Tries))
				}
			}
			return nil
		})
		switch {
		case err != nil:
			p.Fatal(err)
		case len(waiting) == 0:
			return
		case time.Now().After(end):
			p.Fatalf("not shown as they are wanted: %q", waiting)
		}
	}
}

// Three bots work on one database. One after the other, the bots get a new policy file. As soon as the first bot has
// the file, the file is in force for all bots. After that, nobody can decide under the earlier policy, even if the
// click arrives at another bot. A bot without the new file reports that its own file differs, even after a crash. The
// history records the change once.
func TestPolicyRollsOutOverReplicas(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	p := openProcessHarness(t)
	example, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	const lead, cards = "members: [U0002], ", `cards: "#support-approvals", `
	earlier := bytes.Replace(example, []byte(lead), []byte(lead+cards), 1)
	later := bytes.Replace(earlier, []byte(lead+cards), []byte("members: [U0001], "+cards), 1)
	if bytes.Equal(earlier, later) {
		t.Fatal("the example has no team lead")
	}
	write(t, p.policy(), earlier)
	p.env = append(p.env, "COUNTERSIGN_LOG=debug") // says why a message waits
	var replicas [3]*processHarness
	var bots [3]*program
	var admins [3]string
	for i := range replicas {
		replicas[i] = p.replicaOf(server.URL("postgres"), filepath.Join(p.dir, "key"))
		bots[i], admins[i] = replicas[i].serve()
	}
	sam, teo, ada := p.watcher("sam"), p.watcher("teo"), p.watcher("ada")
	root := sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	teo.clicks("#support-approvals", "", "Approve", "Refund of $49.99 for order ORD-123")
	sam.sees("#support", root, "I refunded $49.99")
	// The maps have the card and the thread of each waiting refund, by its amount.
	waiting, threads := map[string]workspaceclient.Message{}, map[string]string{}
	for amount, text := range map[string]string{"20.00": "20 USD of order ORD-131", "30.00": "30 USD of order ORD-129", "40.00": "40 USD of order ORD-131"} {
		threads[amount] = sam.says("#support", "", "@Countersign refund "+text+", the box was damaged")
		waiting[amount] = teo.sees("#support-approvals", "", "Refund of $"+amount)
	}

	write(t, replicas[0].policy(), later)
	bots[0].says(`(the policy changed and is in force)`)
	for amount, card := range waiting { // the cards as the team lead saw them
		button, ok := workspaceclient.Button(card.Blocks, "Approve")
		if !ok {
			t.Fatalf("the card of $%s has no button: %s", amount, card.Text)
		}
		if err := teo.Press(t.Context(), card, button); err != nil {
			t.Fatal(err)
		}
	}
	replicas[0].saysOfPolicy(admins[0], "ok")
	by := fmt.Sprintf("change 2, loaded by %s at ", strings.Replace(cli.ProcessName(), fmt.Sprint(os.Getpid()), fmt.Sprint(bots[0].cmd.Process.Pid), 1))
	for i := 1; i < len(bots); i++ {
		bots[i].says(`(another process changed the policy or the pins in force)`)
		replicas[i].saysOfPolicy(admins[i], "the policy file of this process is not the one in force ("+by)
	}
	// A replica is killed after it has changed a card and before it has recorded the change. The next click on that
	// card does not count.
	db, err := postgres.Open(t.Context(), server.URL("postgres"), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p.awaitCards(db)
	if err := bots[2].end(syscall.SIGKILL); err == nil {
		t.Error("the third bot was not killed")
	}
	bots[2], admins[2] = replicas[2].serve() // started again, with its old file
	replicas[2].saysOfPolicy(admins[2], "is not the one in force ("+by)
	for i := 1; i < len(bots); i++ {
		write(t, replicas[i].policy(), later)
		replicas[i].saysOfPolicy(admins[i], "ok")
	}
	for amount := range waiting {
		ada.clicks("#support-approvals", "", "Approve", "Refund of $"+amount)
		sam.sees("#support", threads[amount], "I refunded $"+amount)
	}

	history := map[string]int{}
	err = db.View(t.Context(), func(r store.Reader) error {
		return r.EachAuditRow(func(x approvers.AuditRow) error {
			a, err := approvers.ParseAuditRecord(x.Record)
			switch a.Kind {
			case approvers.AuditPolicy:
				history[a.Facts["number"]+" "+a.Facts["why"]]++
			case approvers.AuditDecided, approvers.AuditDenied:
				history[fmt.Sprint(a.Kind, " ", a.Actor)]++
			}
			return err
		})
	})
	want := map[string]int{"1 start": 1, "2 changed": 1, "decided T0001/U0002": 1, "denied T0001/U0002": 3, "decided T0001/U0001": 3}
	if err != nil || !maps.Equal(history, want) {
		t.Errorf("the history has %v, want %v (error %v)", history, want, err)
	}
}
