package workflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/workflow/retention"
	"countersign/internal/testkit"
	"countersign/store"
)

const aDay = 24 * time.Hour

// The function keeping sets a policy that keeps conversations for 90 days and audit records for three years.
func keeping(h *harness) {
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Retention = approvers.Retention{Conversations: 90 * aDay, Records: 3 * 365 * aDay}
	}))
}

func (h *harness) retain(conversations, chains int) (done retention.Removed) {
	h.t.Helper()
	done, err := retention.Enforce(h.ctx(), h.Workflow)
	h.ok(err)
	if done.Conversations != conversations || done.Chains != chains {
		h.t.Fatalf("%+v were erased; want %d conversations and %d chains", done, conversations, chains)
	}
	return done
}

func (h *harness) hasConversation(id string) bool {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (bool, error) {
		_, err := r.Conversation(id)
		return err == nil, nil
	})
}

// payloadsOf counts the stored payloads of an audit chain's records.
func (h *harness) payloadsOf(chain string) (n int) {
	h.t.Helper()
	for _, a := range readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		n += readStore(h, func(r store.Reader) (int, error) {
			_, err := r.AuditPayload(chain, a.Seq)
			if errors.Is(err, store.ErrNotFound) {
				return 0, nil
			}
			return 1, err
		})
	}
	return n
}

// lastEventOf returns the time of a chain's last record that is not about an erasure.
func (h *harness) lastEventOf(chain string) (at time.Time) {
	h.t.Helper()
	for _, a := range readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		if a.Kind != approvers.AuditErased {
			at = a.At
		}
	}
	return at
}

// Home tabs show calls of old conversations. Enforce leaves no stored version of a Home tab that shows them.
func TestRetentionOfHomes(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	r := h.ask(`issue_refund {"amount":5}`)
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	h.clock.pass(91 * aDay)
	h.ok(h.Homes.Open(h.ctx(), "", "U0002", "", 0))
	home := h.messagesOf(store.SettingHomes + "/U0002")[0]
	p := h.posted(home)
	p.Body = []byte(`{"text":"You rejected: Roswell refund"}`)
	h.ok(h.Homes.Shown(h.ctx(), home, p, "looks"))
	h.retain(1, 0)
	h.turns = nil // the turn is erased, and the invariants are checked only for existing turns
	if found := h.rowsWith("Roswell refund"); len(found) > 0 {
		t.Errorf("the words are still in %v", found)
	}
	if _, scheduled := h.timers(store.TimerHomes)[store.SettingHomes]; !scheduled || h.message(home.ID).Home.ViewHash != "" {
		t.Error("the Home tab is not sent again")
	}
}

// onEachStore runs a test over a file and over a database.
func onEachStore(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	t.Run("file", func(t *testing.T) { test(t, newHarness(t)) })
	t.Run("database", func(t *testing.T) {
		server := newDatabase(t)
		h := newHarness(t)
		h.ok(h.store.Close())
		h.database = server.URL("postgres")
		h.open(nil)
		test(t, h)
	})
}

// When the retention time of conversations ends, the texts of people are erased, and the audit chain gets a record of
// the erasure. When the longer retention time of audit records ends, the chain is deleted, and the installation's chain
// gets a record of the deletion. The erasure does not extend the longer time. The store's check must find no fault
// after each of the two steps.
func TestRetention(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	onEachStore(t, testRetention)
}

func testRetention(t *testing.T, h *harness) {
	keeping(h)
	r := h.ask(`issue_refund {"amount":5}`)
	h.approve(lead, r.ID)
	h.run(r.Execution, "refunded")
	h.answer(r.Turn)
	if h.payloadsOf(r.ID) == 0 {
		t.Fatal("there is nothing to erase")
	}
	h.clock.pass(89 * aDay)
	h.retain(0, 0)
	h.clock.pass(2 * aDay)
	h.retain(1, 0)
	h.retain(0, 0)
	if h.hasConversation(r.Conversation) || h.payloadsOf(r.ID) != 0 {
		t.Error("the text is still there")
	}
	h.wantKinds(r.ID, "proposed decided approved executing executed returned erased")
	h.ok(h.store.Check(h.ctx()))

	h.clock.pass(h.lastEventOf(r.ID).Add(3 * 365 * aDay).Sub(h.clock.Now()))
	h.retain(0, 0)
	h.clock.pass(time.Microsecond)
	if done := h.retain(0, 1); done.Records != 7 {
		t.Errorf("%d records are said to be removed, and there were 7", done.Records)
	}
	h.retain(0, 0)
	if kinds := h.kinds(r.ID); kinds != "" {
		t.Errorf("the records are still there: %s", kinds)
	}
	h.wantKinds(approvers.InstallationChain, "pruned")
	h.ok(h.store.Check(h.ctx()))
	h.turns = nil // the turn is erased, and the invariants are checked only for existing turns
}

// Enforce keeps and reports a conversation and an audit chain with damaged records. All other old conversations and
// chains are erased.
func TestRetentionPassesDamage(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	var rs []approvers.Request
	for i := range 3 {
		r := h.requestIn(h.sayIn(fmt.Sprintf("%d00.1", i+1), alice, "please").Turn, `issue_refund {"amount":5}`)
		h.approve(lead, r.ID)
		h.run(r.Execution, "refunded")
		h.answer(r.Turn)
		rs = append(rs, r)
	}
	h.Store = &tornStore{Store: h.store, bad: map[string]bool{"conversations " + rs[0].Conversation: true, "audit " + rs[1].ID: true}}
	retain := func(conversations, chains int, damaged ...string) {
		t.Helper()
		h.clock.pass(4 * 365 * aDay)
		done, err := retention.Enforce(h.ctx(), h.Workflow)
		if done.Conversations != conversations || done.Chains != chains || !errors.Is(err, store.ErrDamaged) {
			t.Errorf("erased %+v, %v; want %d conversations and %d chains", done, err, conversations, chains)
		}
		for _, what := range damaged {
			if !strings.Contains(fmt.Sprint(err), what) {
				t.Errorf("the damage is reported as %v; want %s", err, what)
			}
		}
	}
	retain(2, 1, rs[0].Conversation, rs[1].ID)
	retain(0, 0, rs[0].Conversation, rs[1].ID)
	for i, r := range rs {
		if conversation, chain := h.hasConversation(r.Conversation), h.kinds(r.ID) != ""; conversation != (i == 0) || chain != (i < 2) {
			t.Errorf("request %d: its conversation is there: %v, its chain: %v", i, conversation, chain)
		}
	}
	h.Store = h.store
	h.turns = nil // two turns are erased, and the invariants are checked only for existing turns
}

// Enforce keeps unfinished work of any age, for example a waiting request or an unknown outcome.
func TestRetentionKeepsWhatWaits(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	waits := h.ask(`issue_refund {"amount":5}`)
	h.clock.pass(91 * aDay)
	h.retain(0, 0)
	if !h.hasConversation(waits.Conversation) {
		t.Error("a conversation in which somebody is asked is gone")
	}

	other := newHarness(t)
	keeping(other)
	r := other.ask(`issue_refund {"amount":5}`)
	other.approve(lead, r.ID)
	_, run, err := other.Runs.Claim(other.ctx(), r.Execution)
	other.ok(err)
	if !run {
		t.Fatal("the approved call was not claimed")
	}
	other.ok(other.Runs.MarkUnknown(other.ctx(), r.Execution))
	other.clock.pass(expiresAfter)
	other.due() // the model is told that it is unknown
	other.answer(r.Turn)
	other.clock.pass(91 * aDay)
	other.retain(0, 0)
	if !other.hasConversation(r.Conversation) {
		t.Error("a conversation with an unknown outcome is gone")
	}
}

// If the policy has no retention, the bot keeps everything.
func TestNoRetention(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":5}`)
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	h.clock.pass(20 * 365 * aDay)
	h.retain(0, 0)
	if !h.hasConversation(r.Conversation) {
		t.Error("the conversation is gone")
	}
}

// If a person writes in a conversation during its erasure, the bot keeps the conversation, and erases only its old
// turns.
func TestRetentionStopsWhereSomebodyWrites(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	r := h.ask(`issue_refund {"amount":5}`)
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	h.clock.pass(91 * aDay)
	wrote := false
	h.Store = &between{Store: h.store, before: func() {
		if !wrote {
			wrote = true
			h.say(alice, "one more thing")
		}
	}}
	done := h.retain(0, 0)
	if !wrote || !h.hasConversation(r.Conversation) || done.Turns != 1 {
		t.Errorf("erased %+v", done)
	}
	h.ok(h.store.Check(h.ctx()))
	h.turns = h.turns[1:]
}

// between is a store that runs a function before each transaction.
type between struct {
	store.Store
	before func()
}

func (b *between) Update(ctx context.Context, fn func(store.Tx) error) error {
	b.before()
	return b.Store.Update(ctx, fn)
}

// Damaged records that were moved out of the way are deleted after the time in the policy. In a file, this time begins
// when retention first finds such a record. Each store also has its own test of EraseSetAside.
func TestRetentionOfSetAside(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	r := h.ask(`issue_refund {"amount":5}`)
	h.spoil("requests", r.ID)
	h.ok(h.Requests.Expire(h.ctx(), h.timers(store.TimerExpire)[r.ID])) // reads the record, and sets it aside
	aside := func() (n int) {
		t.Helper()
		h.ok(h.store.Close())
		// Not ReadOnly: bbolt would not unlock the file, and a process that another test starts could then keep the lock.
		db, err := bbolt.Open(h.path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoFreelistSync: true})
		h.ok(err)
		h.ok(errors.Join(db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("set_aside")).ForEach(func(_, value []byte) error {
				if bytes.Contains(value, []byte(r.Digest)) {
					n++
				}
				return nil
			})
		}), db.Close()))
		h.open(nil)
		return n
	}
	if aside() != 1 {
		t.Fatal("the damaged record was not set aside")
	}
	for _, x := range []struct {
		after         time.Duration
		erased, stays int
	}{{0, 0, 1}, {89 * aDay, 0, 1}, {2 * aDay, 1, 0}, {aDay, 0, 0}} {
		h.clock.pass(x.after)
		done, err := retention.Enforce(h.ctx(), h.Workflow)
		h.ok(err)
		if n := aside(); done.SetAside != x.erased || n != x.stays {
			t.Errorf("after another %s, %+v were erased, and %d rows are set aside; want %d erased, and %d left", x.after, done, n, x.erased, x.stays)
		}
	}
	h.ok(h.store.Check(h.ctx()))
	h.turns = nil
}

// The messages of a conversation were lost in a salvage. A refused call has neither a request nor an execution. If
// people were asked about another call of the same turn, the erasure finds both calls.
func TestRetentionOfLostMessages(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	calls := h.propose(h.say(alice, "please").Turn, `issue_refund {"amount":5}`, `no_such_tool {"why":"Roswell"}`)
	asked, refused := calls[0], calls[1]
	h.reject(lead, asked.Request)
	h.answer(asked.Turn)
	if h.payloadsOf(refused.ID) == 0 || refused.Request != "" || refused.Execution != "" {
		t.Fatalf("there is nothing to erase: %+v", refused)
	}
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		messages, err := tx.Messages(asked.Conversation, 0)
		for _, m := range messages {
			err = errors.Join(err, tx.PutMessage(store.Message{Conversation: m.Conversation, Seq: m.Seq, Role: store.RoleUser, State: store.MessageGone, At: m.At}))
		}
		return err
	}))
	h.clock.pass(91 * aDay)
	h.retain(1, 0)
	if n, m := h.payloadsOf(asked.Request), h.payloadsOf(refused.ID); n+m != 0 {
		t.Errorf("payloads are still there: %d of the request, %d of the refused call", n, m)
	}
	h.turns = nil // the turn is erased, and the invariants are checked only for existing turns
}
