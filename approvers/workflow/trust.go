package workflow

import (
	"encoding/json"
	"strconv"

	"countersign/approvers"
	"countersign/store"
)

// extendStreak adds a successful run to the row of approved calls of its tool, or ends the row. When the row is
// complete, a grant is offered; it takes effect only when somebody accepts it.
func (t grantsTx) extendStreak(e approvers.Execution) error {
	if e.State != approvers.ExecutionSucceeded {
		return t.resetStreakOfTool(e)
	}
	if e.Request == "" {
		return nil // nobody was asked
	}
	r, err := t.Request(e.Request)
	if err != nil {
		return err
	}
	trust, s, err := t.trust(r.Agent, r.Tool)
	if err != nil {
		return err
	}
	grown, offer, offered := trust.Grow(t.deciding(), r)
	if grown.Row == 0 && trust.Row == 0 && !offered {
		return nil
	}
	if err := t.putTrust(s, grown); err != nil || !offered {
		return err
	}
	return t.offer(offer)
}

// resetStreakOfTool ends the row of a tool's calls after an unsuccessful run.
func (t grantsTx) resetStreakOfTool(e approvers.Execution) error {
	turn, err := t.Turn(e.Turn)
	if err != nil {
		return err
	}
	return t.resetStreak(turn.Agent, e.Tool)
}

// resetStreak ends the row of a tool's calls that were approved unchanged.
func (t grantsTx) resetStreak(agent, tool string) error {
	trust, s, err := t.trust(agent, tool)
	if err != nil || trust.Row == 0 {
		return err
	}
	return t.putTrust(s, approvers.Trust{})
}

// trust reads the row of an agent's calls of a tool.
func (t grantsTx) trust(agent, tool string) (trust approvers.Trust, s store.Setting, err error) {
	s, err = t.Setting(store.SettingTrust + agent + "/" + tool)
	s.Key = store.SettingTrust + agent + "/" + tool
	if err != nil {
		return trust, s, store.IgnoreNotFound(err)
	}
	return trust, s, json.Unmarshal(s.Value, &trust)
}

func (t grantsTx) putTrust(s store.Setting, trust approvers.Trust) error {
	raw, err := json.Marshal(trust)
	if err != nil {
		return err
	}
	s.Value = raw
	return t.PutSetting(s)
}

// offer offers a grant to the people of the role that may accept it, unless such a grant exists already.
func (t grantsTx) offer(g approvers.Grant) error {
	open, err := t.OpenGrants(g.Tool)
	if err != nil {
		return err
	}
	for _, o := range open {
		if o.Agent == g.Agent && o.Conversation == "" {
			return nil
		}
	}
	g.ID = t.newID("grant")
	if err := t.applyGrant(g, "offered", "", map[string]string{"row": strconv.Itoa(g.Row)}); err != nil {
		return err
	}
	return t.outbox.add(store.OutboxMessage{Kind: store.OutboxGrant, Ref: g.ID, To: store.ToRole + g.OfferedTo})
}
