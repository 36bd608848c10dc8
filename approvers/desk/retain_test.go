package desk_test

import (
	"errors"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

const aDay = 24 * time.Hour

// keeping has the policy keep conversations for 90 days and records for three years.
func keeping(o *office) {
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Retention = approvers.Retention{Conversations: 90 * aDay, Records: 3 * 365 * aDay}
	}))
}

func (o *office) retain(conversations, chains int) (done desk.Retained) {
	o.t.Helper()
	done, err := o.Retain(o.ctx())
	o.ok(err)
	if done.Conversations != conversations || done.Chains != chains {
		o.t.Fatalf("%+v were erased; want %d conversations and %d chains", done, conversations, chains)
	}
	return done
}

func (o *office) hasConversation(id string) bool {
	o.t.Helper()
	return view(o, func(r store.Reader) (bool, error) {
		_, err := r.Conversation(id)
		return err == nil, nil
	})
}

// payloadsOf counts the texts beside a chain's records.
func (o *office) payloadsOf(chain string) (n int) {
	o.t.Helper()
	for _, a := range view(o, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		n += view(o, func(r store.Reader) (int, error) {
			_, err := r.AuditPayload(chain, a.Seq)
			if errors.Is(err, store.ErrNotFound) {
				return 0, nil
			}
			return 1, err
		})
	}
	return n
}

// What people wrote goes after its time, and says so in its chain; the records go later, and the installation's chain says which they were. All of
// that verifies.
func TestRetention(t *testing.T) {
	o := newOffice(t)
	keeping(o)
	r := o.ask(`issue_refund {"amount":5}`)
	o.approve(lead, r.ID)
	o.run(r.Execution, "refunded")
	o.answer(r.Turn)
	if o.payloadsOf(r.ID) == 0 {
		t.Fatal("there is nothing to erase")
	}
	o.clock.pass(89 * aDay)
	o.retain(0, 0)
	o.clock.pass(2 * aDay)
	o.retain(1, 0)
	o.retain(0, 0)
	if o.hasConversation(r.Conversation) || o.payloadsOf(r.ID) != 0 {
		t.Error("what was written is still there")
	}
	o.wantKinds(r.ID, "proposed decided approved executing executed returned erased")
	o.ok(o.store.Check(o.ctx()))

	o.clock.pass(3*365*aDay + time.Hour)
	if done := o.retain(0, 1); done.Records != 7 {
		t.Errorf("%d records are said to be removed, and there were 7", done.Records)
	}
	o.retain(0, 0)
	if kinds := o.kinds(r.ID); kinds != "" {
		t.Errorf("the records are still there: %s", kinds)
	}
	o.wantKinds(approvers.InstallationChain, "pruned")
	o.ok(o.store.Check(o.ctx()))
	o.turns = nil // the books look for turns that are there
}

// What waits for somebody is kept, however old it is: a turn under way, an outcome that nobody knows, a grant in force.
func TestRetentionKeepsWhatWaits(t *testing.T) {
	o := newOffice(t)
	keeping(o)
	waits := o.ask(`issue_refund {"amount":5}`)
	o.clock.pass(91 * aDay)
	o.retain(0, 0)
	if !o.hasConversation(waits.Conversation) {
		t.Error("a conversation in which somebody is asked is gone")
	}

	other := newOffice(t)
	keeping(other)
	r := other.ask(`issue_refund {"amount":5}`)
	other.approve(lead, r.ID)
	_, run, err := other.Claim(other.ctx(), r.Execution)
	other.ok(err)
	if !run {
		t.Fatal("it was not to be run")
	}
	other.ok(other.Lose(other.ctx(), r.Execution))
	other.clock.pass(expiresAfter)
	other.due() // the model is told that nobody knows
	other.answer(r.Turn)
	other.clock.pass(91 * aDay)
	other.retain(0, 0)
	if !other.hasConversation(r.Conversation) {
		t.Error("a conversation with an outcome that nobody knows is gone")
	}
}

// Without a word in the policy everything is kept.
func TestNoRetention(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":5}`)
	o.reject(lead, r.ID)
	o.answer(r.Turn)
	o.clock.pass(20 * 365 * aDay)
	o.retain(0, 0)
	if !o.hasConversation(r.Conversation) {
		t.Error("the conversation is gone")
	}
}
