package main

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"countersign/agent"
	"countersign/approvers"
	"countersign/internal/demo/scriptedmodel"
	"countersign/store"
)

// account is the simulation's independent record of the facts that must be true. account uses only the operations that
// passed through the gate, and no reports of the product itself.
type account struct {
	turns    []string                    // turns that were begun
	rows     map[string]string           // inbox rows, by the name of the delivery: a message's channel and ts, an event's id, or a trigger
	heard    map[string]int              // how often a message was stored, by ts
	heardIn  map[string]int              // in which step a message was stored first, by ts
	storedIn map[string]int              // in which step an inbox row was stored first, by the name of the delivery
	taken    map[string]bool             // messages that their author changed or deleted, by ts
	acks     []acked                     // acknowledged deliveries
	authors  map[string]string           // the author of each message, by the number in it
	asked    map[string]authors          // the people whose words led to a call, by the call's number
	shown    map[string]string           // the text that was shown with a button, by the button's value
	agreed   map[string][]consent        // the approvals of a call, by the call's number
	policyOf map[string]simulationPolicy // each policy, by the hash of its file
	claims   map[string]simulationPolicy // the policy under which an execution was started
	ran      map[string]int              // how often a tool acted, by execution
	ranBy    map[string]string           // the execution that acted, by the call's number
	results  map[string]string           // the result of a call that the model was given, by the call's number
	answered int
	called   int
	said     int
}

type authors struct{ all, since []string }

// consent is a person's approval of the content that the person was shown.
type consent struct {
	user   string
	amount string
	more   bool // the approval is also for more calls like this one
}

// acked is an acknowledged delivery.
type acked struct {
	name string // the key in account.rows
	step int
	said *words
	act  *clicked
}

func newAccount() account {
	return account{
		rows: map[string]string{}, heard: map[string]int{}, heardIn: map[string]int{}, storedIn: map[string]int{}, taken: map[string]bool{}, authors: map[string]string{}, asked: map[string]authors{}, shown: map[string]string{},
		agreed: map[string][]consent{}, policyOf: map[string]simulationPolicy{}, claims: map[string]simulationPolicy{}, ran: map[string]int{}, ranBy: map[string]string{}, results: map[string]string{},
	}
}

// witness reads the writes of a committed transaction.
func (s *simulation) witness(p *life, w witnessed) {
	s.commits++
	for _, id := range w.turns {
		if !slices.Contains(s.turns, id) {
			s.turns = append(s.turns, id)
		}
	}
	for _, row := range w.inbox {
		var p slackPayload
		if row.HandledAt.IsZero() && (json.Unmarshal(row.Payload, &p) == nil || row.Kind != store.InboxEvent) {
			name := p.name()
			if s.rows[name] = row.ID; s.storedIn[name] == 0 {
				s.storedIn[name] = s.steps
			}
		}
	}
	for _, ts := range w.messages {
		if s.heard[ts]++; s.heard[ts] == 1 {
			s.heardIn[ts] = s.steps
		}
	}
	for _, id := range w.started {
		if _, again := s.claims[id]; !again { // a retry of a started execution needs no further permission
			s.claims[id] = s.policyOf[p.policies.Tools.Policy().Hash]
		}
	}
}

// The method "acknowledged" records that the bot acknowledges a delivery to Slack. At that time, the delivery must be
// in the store.
func (s *simulation) acknowledged(d *parcel, answer any) {
	if said, ok := answer.(map[string]any); ok && (said["response_action"] != nil || said["response_type"] == "ephemeral") {
		return // the delivery was refused, and its sender is told so
	}
	a, counts := s.read(d)
	if !counts {
		return
	}
	id, stored := s.rows[a.name]
	if stored {
		stored = s.db.View(context.Background(), func(r store.Reader) error {
			_, err := r.Inbox(id)
			return err
		}) == nil
	}
	if !stored {
		s.violate("delivery %d was acknowledged, and is not in the store", d.n)
	}
	a.step = s.steps
	if !slices.ContainsFunc(s.acks, func(o acked) bool { return o.name == a.name }) { // the content of the delivery at the first acknowledgement counts
		s.acks = append(s.acks, a)
	}
}

// The method "acted" records that a tool acts, and compares the action with people's approvals.
func (s *simulation) acted(p *life, tool string, in agent.Invocation) {
	s.runs++
	a, err := readArgs(in.Args)
	if err != nil {
		s.violate("%s acts with arguments that can't be read: %s", tool, in.Args)
		return
	}
	s.ran[in.Key]++
	effect := simulationEffects[tool]
	if n := s.ran[in.Key]; n > 1 && effect == approvers.Unprotected {
		s.violate("%s %s acts %d times", tool, a.N, n)
	}
	if before := s.ranBy[a.N]; before != "" && before != in.Key && !s.askedAgain(in.Request) {
		s.violate("%s %s acts as execution %s, and acted before as %s", tool, a.N, in.Key, before)
	}
	s.ranBy[a.N] = in.Key
	if told := s.results[a.N]; told != "" && !mayRun(told) {
		s.violate("%s %s acts after the model was told %s", tool, a.N, told)
	}
	e, err := s.execution(in.Key)
	if s.ran[in.Key] > 1 && err == nil && e.State == approvers.ExecutionSucceeded {
		return // an attempt that ignored its cancellation acts after a later attempt succeeded; the tool recognises the key
	}
	if err != nil || string(e.Args) != string(in.Args) || !p.dead.Load() && e.State != approvers.ExecutionExecuting && e.State != approvers.ExecutionUnknown && e.ReportedBy == "" {
		s.violate("%s %s acts, and in the store it is %s with %s: %v", tool, a.N, e.State, e.Args, err)
		return
	}
	s.allowed(tool, a, e, in.Request)
}

// askedAgain reports whether a request repeats a call whose outcome is unknown. People were told that such a call may
// run twice.
func (s *simulation) askedAgain(request string) (again bool) {
	_ = s.db.View(context.Background(), func(r store.Reader) error {
		req, err := r.Request(request)
		again = err == nil && req.Retry != nil
		return nil
	})
	return again
}

// The method "allowed" checks a run against the approvals of people.
func (s *simulation) allowed(tool string, a callArgs, e approvers.Execution, request string) {
	policy, claimed := s.claims[e.ID]
	if !claimed {
		s.violate("%s %s acts, and nothing says that it was claimed", tool, a.N)
		return
	}
	amount, _ := a.Amount.Float64()
	n := policy.need(tool, amount)
	if request == "" && e.Grant != "" {
		s.granted(tool, a, e)
		return
	}
	if request != "" {
		n.people = max(n.people, 1)
	}
	if n.people == 0 {
		return
	}
	var people []string
	most := approvers.Risk(0)
	for _, c := range s.agreed[a.N] {
		ceiling := policy.ceiling(c.user, tool)
		if c.amount != a.Amount.String() || ceiling == 0 || slices.Contains(s.asked[a.N].since, c.user) ||
			n.risk >= approvers.High && slices.Contains(s.asked[a.N].all, c.user) || slices.Contains(people, c.user) {
			continue
		}
		people = append(people, c.user)
		most = max(most, ceiling)
	}
	if len(people) < n.people || most < n.risk {
		s.violate("%s %s acts with %s: it takes %d people up to %s; %v agreed, up to %s, of %v; asked by %v (%s, request %s, execution %s)",
			tool, a.N, a.Amount, n.people, n.risk, people, most, s.agreed[a.N], s.asked[a.N], e.Chain(), request, e.ID)
	}
}

// The method "granted" checks a run under a grant against the tool, the giver and the number of uses of the grant.
func (s *simulation) granted(tool string, a callArgs, e approvers.Execution) {
	var g approvers.Grant
	err := s.db.View(context.Background(), func(r store.Reader) (err error) {
		g, err = r.Grant(e.Grant)
		return err
	})
	if err != nil || g.Tool != tool || g.Uses > 3 {
		s.violate("%s %s acts under grant %s for %s with %d uses: %v", tool, a.N, e.Grant, g.Tool, g.Uses, err)
	}
	uses := 0
	for id := range s.ran {
		if other, err := s.execution(id); err == nil && other.Grant == e.Grant {
			uses++
		}
	}
	if uses > 3 {
		s.violate("%s %s is run %d under grant %s", tool, a.N, uses, e.Grant)
	}
	if s.claims[e.ID].ceiling(g.By.User(), tool) == 0 {
		s.violate("%s %s acts under a grant of %s, who has no authority", tool, a.N, g.By)
	}
}

func (s *simulation) execution(id string) (e approvers.Execution, err error) {
	err = s.db.View(context.Background(), func(r store.Reader) (err error) {
		e, err = r.Execution(id)
		return err
	})
	return e, err
}

// mayRun reports whether a call with a given result for the model may have run.
func mayRun(result string) bool {
	var r approvers.Result
	if json.Unmarshal([]byte(result), &r) != nil {
		return true
	}
	switch r.Status {
	case approvers.OutcomeRejected, approvers.OutcomeExpired, approvers.OutcomeWithdrawn, approvers.OutcomeRevoked, approvers.OutcomeVoided, approvers.OutcomeRefused:
		return strings.Contains(r.Guidance, "it may have happened besides") // an earlier run of the same call may have acted
	}
	return true
}

// modelGiven checks the input of the model. Each call must have one true result. This result must never change.
func (s *simulation) modelGiven(r scriptedmodel.Request) {
	byID := map[string]string{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			byID[c.ID] = nonceIn(c.Arguments)
		}
		n := byID[m.ToolCallID]
		if m.Role != "tool" || n == "" {
			continue
		}
		if before, told := s.results[n]; told && before != m.Content {
			s.violate("the model was told of call %s first %s and then %s", n, before, m.Content)
		}
		s.results[n] = m.Content
		acted := s.ranBy[n] != ""
		if acted && !mayRun(m.Content) {
			s.violate("the model is told of call %s %s, and it ran", n, m.Content)
		}
		if !acted && strings.Contains(m.Content, `"done":"`+n+`"`) {
			s.violate("the model is told of call %s %s, and it did not run", n, m.Content)
		}
	}
}

// The method "proposed" records the authors of the messages that led to the model's calls.
func (s *simulation) proposed(r scriptedmodel.Request, calls []string) {
	var by authors
	for _, m := range r.Messages {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 {
			by.since = nil
		}
		if m.Role != "user" {
			continue
		}
		for _, n := range messageNonce.FindAllString(m.Content, -1) {
			by.all, by.since = append(by.all, s.authors[n]), append(by.since, s.authors[n])
		}
	}
	for _, n := range calls {
		s.asked[n] = by
	}
}

// shownArg matches the number or the amount of a call on a card or in a form. The argument is on its own line, or on
// one line with all arguments.
var shownArg = regexp.MustCompile(`(?m)(?:^|, )(n|amount): +(?:\S+ → )?([^\s,]+)`) // the new value is after the arrow

// The method "agree" records the approvals of a person. The person approved every call that was shown to them, with its
// amount.
func (s *simulation) agree(user, text string, more bool) {
	call := map[string]string{}
	for _, line := range shownArg.FindAllStringSubmatch(text, -1) {
		if call[line[1]] = line[2]; len(call) < 2 {
			continue
		}
		s.agreed[call["n"]] = append(s.agreed[call["n"]], consent{user: user, amount: call["amount"], more: more})
		clear(call)
	}
}
