package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// trialIDs are the ids of the campaign's people, by name.
var trialIDs = map[string]approvers.PersonID{"sam": "T0001/U0100", "teo": "T0001/U0002", "ingrid": "T0001/U0003"}

// findings are the results of a campaign.
type findings struct {
	*killHarness
	seen  map[string]int // runs by "TOOL EXECUTION"
	inbox map[string][]string
	known map[string]bool // executions of the conversations
	cards map[string]bool // outbox messages in the approvers' channel
	stops map[string]int  // turns that were stopped because processes died during them, according to the log

	figures
}

type figures struct {
	kills, acknowledged, double, lost, unknown, reported, conversations, calls, stopped int
	jobsDone, lives, handed, crossed                                                    int // figures about other agents
	heads                                                                               int // signed heads of the history
}

func (f *figures) add(g figures) {
	f.kills += g.kills
	f.acknowledged += g.acknowledged
	f.double += g.double
	f.lost += g.lost
	f.unknown += g.unknown
	f.reported += g.reported
	f.conversations += g.conversations
	f.calls += g.calls
	f.stopped += g.stopped
	f.jobsDone += g.jobsDone
	f.lives += g.lives
	f.handed += g.handed
	f.crossed += g.crossed
	f.heads += g.heads
}

func (f figures) String() string {
	return fmt.Sprintf("kills=%d acknowledged=%d double=%d lost=%d unknown=%d reported=%d conversations=%d calls=%d stopped=%d jobs=%d lives=%d handed=%d crossed=%d heads=%d",
		f.kills, f.acknowledged, f.double, f.lost, f.unknown, f.reported, f.conversations, f.calls, f.stopped, f.jobsDone, f.lives, f.handed, f.crossed, f.heads)
}

// findings reads the store, the recorded effects of the tools, and the messages in Slack. findings fails the test if
// these do not agree.
func (c *killHarness) findings() figures {
	c.Helper()
	v := &findings{killHarness: c, seen: map[string]int{}, inbox: map[string][]string{}, known: map[string]bool{}, cards: map[string]bool{}, stops: map[string]int{}}
	for line := range lines(c, c.conf.Seen) {
		v.seen[line]++
	}
	for line := range lines(c, c.conf.Heard) {
		var d notedDelivery
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			c.Fatal(err)
		}
		v.inbox[d.Trigger] = append(v.inbox[d.Trigger], d.Inbox)
		v.inbox[d.View] = append(v.inbox[d.View], d.Inbox)
	}
	for line := range lines(c, filepath.Join(c.dir, "said")) {
		if _, rest, found := strings.Cut(line, "the turn was stopped\" turn="); found {
			turn, _, _ := strings.Cut(rest, " ")
			v.stops[turn]++
		}
	}
	ctx := context.Background()
	db, err := openWitnessed(ctx, c.conf.Store, false)
	if err != nil {
		c.Fatal(err)
	}
	err = db.View(ctx, func(r store.Reader) error {
		for _, a := range c.asks {
			v.conversation(r, a)
		}
		for _, d := range c.deeds {
			v.deed(r, d)
		}
		if err := v.callers(r); err != nil {
			return err
		}
		return v.nothingLeft(r)
	})
	if c.conf.Audit.Key != "" {
		v.sealed(ctx, db)
	}
	if err := errors.Join(err, db.Check(ctx), db.Close()); err != nil {
		c.Error(err)
	}
	for line := range lines(c, filepath.Join(c.dir, "said")) {
		suspected := strings.Contains(line, "worked on a turn; the turn was stopped") || strings.Contains(line, "a delivery was set aside: the process died repeatedly")
		for _, text := range c.tolerated {
			suspected = suspected || strings.Contains(line, "level=ERROR msg=\""+text)
		}
		if strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") || !c.faulty && strings.Contains(line, "level=ERROR") && !suspected {
			c.Errorf("the bot said: %s", line)
		}
	}
	for run := range v.seen {
		if _, execution, _ := strings.Cut(run, " "); !v.known[execution] {
			c.Errorf("%s ran, and nobody had asked for it", run)
		}
	}
	v.slack(ctx)
	v.conversations = len(c.asks)
	return v.figures
}

func lines(c *killHarness, path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		f, err := os.Open(path)
		if err != nil {
			c.Fatal(err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if !yield(s.Text()) {
				return
			}
		}
	}
}

// The method "conversation" checks that one conversation is complete.
func (v *findings) conversation(r store.Reader, a *ask) {
	conv, err := r.ConversationAt("T0001/C0001/" + a.root)
	if err != nil {
		v.Errorf("order %s: %v", a.number, err)
		return
	}
	messages, err := r.Messages(conv.ID, 0)
	if err != nil || len(messages) < 2 {
		v.Errorf("order %s: %d messages, %v", a.number, len(messages), err)
		return
	}
	asked := 0
	for _, m := range messages {
		if m.Role == store.RoleUser {
			asked++
		}
	}
	turn, err := r.Turn(messages[0].Turn)
	if err != nil || turn.State != approvers.TurnAnswered || asked != 1 {
		v.Errorf("order %s was heard %d times and ended as %s (%s), %v", a.number, asked, turn.State, turn.Problem, err)
		return
	}
	v.told(r, turn)
	calls, err := r.Calls(turn.ID)
	if err != nil {
		v.Error(err)
	}
	for _, call := range calls {
		v.calls++
		v.call(r, call)
	}
}

// The method "told" checks a turn that the bot stopped because two processes died during the turn. The bot must have
// shown a message about the turn in Slack. A person then tried the turn again, because otherwise the turn would have no
// answer.
func (v *findings) told(r store.Reader, turn approvers.Turn) {
	messages, err := r.OutboxMessagesOf(turn.ID)
	if err != nil {
		v.Error(err)
	}
	shown := false
	for _, s := range messages {
		shown = shown || s.Kind == store.OutboxProblem && s.TS != ""
	}
	stops := v.stops[turn.ID]
	if stops > 0 && !shown {
		v.Errorf("turn %s was stopped %d times, and nobody was told", turn.ID, stops)
	}
	if shown {
		v.stopped++
	}
}

// call compares a call, its request and its execution with each other, with the audit, and with the recorded effects of
// the tools.
func (v *findings) call(r store.Reader, call store.Call) {
	e, err := r.Execution(call.Execution)
	if err != nil {
		v.Errorf("call %s: %v", call.ID, err)
		return
	}
	v.known[e.ID] = true
	history, err := r.Audit(e.Chain())
	if err != nil {
		v.Error(err)
	}
	count := map[approvers.AuditKind]int{}
	for _, h := range history {
		count[h.Kind]++
	}
	if call.Outcome == "" || count[approvers.AuditReturned] != 1 {
		v.Errorf("%s has the outcome %q and was given %d results; it must be one", e, call.Outcome, count[approvers.AuditReturned])
	}
	approved := call.Request == ""
	if call.Request != "" {
		req, err := r.Request(call.Request)
		if err != nil || req.State.Open() {
			v.Errorf("%s: request %s was left %s, %v", e, call.Request, req.State, err)
		}
		approved = req.State == approvers.Consumed
	}
	v.ran(e, approved, count)
	v.asked(r, e, count[approvers.AuditUnknown] > 0)
}

// ran compares the number of an execution's runs with the permitted and the required number.
func (v *findings) ran(e approvers.Execution, approved bool, count map[approvers.AuditKind]int) {
	runs, most := v.seen[e.Tool+" "+e.ID], 1
	if e.Effect == approvers.ReadOnly {
		most = count[approvers.AuditExecuting]
	}
	if runs > most {
		v.double++
		v.Errorf("%s ran %d times, at most %d was allowed", e, runs, most)
	}
	if e.Effect == approvers.Unprotected && count[approvers.AuditExecuting] > 1 {
		v.Errorf("%s was started %d times although it can't be run twice safely", e, count[approvers.AuditExecuting])
	}
	switch {
	case !approved && (runs > 0 || e.State != approvers.ExecutionNone):
		v.Errorf("%s is %s and ran %d times, and nobody had allowed it", e, e.State, runs)
	case approved && e.State == approvers.ExecutionSucceeded && runs < 1:
		v.Errorf("%s is said to have happened, and it did not", e)
	case approved && e.State == approvers.ExecutionFailed && (runs > 0 || e.ReportedBy == "" && e.Caller == ""):
		v.Errorf("%s is said not to have happened, and ran %d times (%s)", e, runs, e.Result)
	case approved && e.State != approvers.ExecutionSucceeded && e.State != approvers.ExecutionFailed:
		v.Errorf("%s was left %s", e, e.State)
	}
	byCaller := e.Caller != "" && e.ReportedBy == "" // the caller may report an outcome about which people were asked
	if (count[approvers.AuditUnknown] > 0) != (e.ReportedBy != "") && !byCaller {
		v.Errorf("%s became unknown %d times, and %q reported on it", e, count[approvers.AuditUnknown], e.ReportedBy)
	}
}

// The method "asked" checks that the bot asked people about a run if, and only if, the outcome of the run was lost. The
// method also checks that each message about the run or its request was shown.
func (v *findings) asked(r store.Reader, e approvers.Execution, lost bool) {
	places := 0
	messages, err := r.OutboxMessagesOf(e.ID)
	if err != nil {
		v.Error(err)
	}
	if e.Request != "" {
		cards, err := r.OutboxMessagesOf(e.Request)
		if err != nil {
			v.Error(err)
		}
		messages = append(messages, cards...)
	}
	for _, s := range messages {
		if s.TS == "" {
			v.Errorf("%s: the %s for %s was never shown: %s %s", e, s.Kind, s.To, s.State, s.LastError)
		}
		if s.Kind == store.OutboxUnknown {
			places++
		}
		if s.Channel == "C0002" {
			v.cards[s.ID] = true
		}
	}
	bundles, err := r.OutboxMessagesOf(e.Turn)
	if err != nil {
		v.Error(err)
	}
	for _, s := range bundles {
		if s.Channel == "C0002" {
			v.cards[s.ID] = true
		}
	}
	want := 0
	if lost {
		v.unknown++
		want = 1 // one question in the requester's thread
		if e.Request != "" {
			want = 2 // one question in the thread, and one in the approvers' channel
		}
	}
	if places != want {
		v.Errorf("%s: people were asked in %d places what happened, want %d", e, places, want)
	}
}

// deed finds an acknowledged click in the store. Such a click must have counted, or must have been refused with a
// recorded reason. For clicks that open a form or try a turn again, it is enough that they were handled.
func (v *findings) deed(r store.Reader, d deed) {
	v.acknowledged++
	name := d.trigger
	if d.view != "" {
		name = d.view
	}
	var row store.Inbox
	err := store.ErrNotFound
	for _, id := range v.inbox[name] {
		if row, err = r.Inbox(id); err == nil {
			break
		}
	}
	if err != nil || row.HandledAt.IsZero() {
		v.lost++
		v.Errorf("%s's acknowledged %q about %s is lost: handled at %s, %v", d.user, d.does, d.ref, row.HandledAt, err)
		return
	}
	if d.does == "open" || d.does == "try_again" || row.Note != "" { // try_again: the answer shows that the turn was tried again
		return
	}
	counted, err := v.counted(r, d)
	if err != nil || !counted {
		v.lost++
		v.Errorf("%s's acknowledged %q about %s left no trace: %v", d.user, d.does, d.ref, err)
	}
}

// The method "counted" reports whether the history of the request records a person's click or form. The record is an
// action, a denial, or a lost race.
func (v *findings) counted(r store.Reader, d deed) (bool, error) {
	chain, who := d.ref, trialIDs[d.user]
	if e, err := r.Execution(d.ref); err == nil {
		chain = e.Chain()
		if e.ReportedBy != "" && (d.does != "leave" || e.ReportedBy != who) {
			v.reported++
			return true, nil // decided by this person, or by a faster person
		}
	}
	history, err := v.history(r, chain)
	for _, h := range history {
		decided := h.Kind == approvers.AuditDecided && h.Facts["kind"] == d.does
		withdrawn := h.Kind == approvers.AuditClosed && d.does == "withdraw"
		all := h.Kind == approvers.AuditDecided && d.does == h.Facts["kind"]+"_all"
		said := h.Kind == approvers.AuditRemarked && h.Facts["kind"] == d.does
		if h.Actor == who && (decided || all || said || withdrawn || h.Kind == approvers.AuditReported || h.Kind == approvers.AuditDenied) {
			return true, err
		}
	}
	return false, err
}

// history returns the records of a chain. If the name is a turn, history returns the records of all requests of the
// turn.
func (v *findings) history(r store.Reader, chain string) ([]approvers.AuditRecord, error) {
	history, err := r.Audit(chain)
	if err != nil || len(history) > 0 {
		return history, err
	}
	calls, err := r.Calls(chain)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		if c.Request == "" {
			continue
		}
		records, err := r.Audit(c.Request)
		if err != nil {
			return nil, err
		}
		history = append(history, records...)
	}
	return history, nil
}

// nothingLeft checks that the store has no open request, and no timer for work that is due.
func (v *findings) nothingLeft(r store.Reader) error {
	for _, kind := range []store.TimerKind{store.TimerInbox, store.TimerThink, store.TimerRun, store.TimerExpire, store.TimerEscalate, store.TimerLeave} {
		timers, err := r.Timers(kind, 10)
		if err != nil {
			return err
		}
		for _, t := range timers {
			v.Errorf("a timer is left: %s of %s, due %s, tried %d times", t.Kind, t.Ref, t.Due, t.Tries)
		}
	}
	open, err := r.OpenRequests(store.RequestCursor{}, 10)
	if len(open) > 0 {
		v.Errorf("%d requests are open that no conversation knows of", len(open))
	}
	return err
}

// sealed verifies the history with the key and with the heads files of all replicas. The heads must cover every record.
func (v *findings) sealed(ctx context.Context, db store.Store) {
	keys, err := audit.ReadKeyFile(v.conf.Audit.Key)
	if err != nil {
		v.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(v.dir, "heads*"))
	if err != nil || len(files) == 0 {
		v.Fatalf("no replica has a file of signed heads: %v", err)
	}
	var kept audit.KeptHeads
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err == nil && len(text) > 0 { // the file of a replica that never sealed is empty
			err = kept.Add(path, string(text))
		}
		if err != nil {
			v.Error(err)
		}
	}
	var says strings.Builder
	err = auditcmd.Verify(ctx, &says, db, audit.VerifyOptions{Keys: keys.Public, Own: true, Kept: kept})
	if err != nil || !strings.Contains(says.String(), "the history is whole") {
		v.Errorf("the history: %v\n%s", err, says.String())
	}
	n, left, err := unsealed(ctx, db)
	if err != nil || n == 0 || left {
		v.Errorf("the history has %d heads, and has records without a head: %t, %v", n, left, err)
	}
	v.heads = int(n)
}

// slack checks that Slack shows every answer exactly once, and as many cards and questions to approvers as the store
// has.
func (v *findings) slack(ctx context.Context) {
	sam, teo := workspaceclient.Client{Base: v.conf.Base, User: "sam"}, workspaceclient.Client{Base: v.conf.Base, User: "teo"}
	for _, a := range v.asks {
		messages, err := sam.Messages(ctx, "#support", a.root)
		if err != nil {
			v.Error(err)
		}
		answers := 0
		for _, m := range messages {
			if m.BotID != "" && strings.Contains(m.Text, finished(a.number)) {
				answers++
			}
		}
		if answers != 1 {
			v.Errorf("order %s was answered %d times in Slack", a.number, answers)
		}
	}
	messages, err := teo.Messages(ctx, "#support-approvals", "")
	if err != nil {
		v.Error(err)
	}
	cards := 0
	for _, m := range messages {
		if m.BotID != "" && !m.Ephemeral {
			cards++
		}
	}
	if cards != len(v.cards) {
		v.Errorf("the approvers' channel has %d messages of the bot for %d cards and questions", cards, len(v.cards))
	}
}
