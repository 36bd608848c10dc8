package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

// history makes the chain of a refund that was changed, approved and run.
func history() Story {
	s := Story{Chain: "req_1", Names: map[approvers.PersonID]string{"T1/U1": "Sam", "T1/U2": "Teo"}}
	card := func(amount string) string {
		return `{"text":"Refund","blocks":[{"type":"header","text":{"type":"plain_text","text":"Refund of $` + amount + `"}},
			{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"High risk","style":{"bold":true}},{"type":"user","user_id":"U1"}]},
			{"type":"rich_text_preformatted","elements":[{"type":"text","text":"amount: ` + amount + `"}]}]},
			{"type":"actions","elements":[{"type":"button","style":"primary","text":{"type":"plain_text","text":"Approve"},"value":"req_1 s 1"}]}]}`
	}
	s.add("proposed", "", map[string]string{"tool": "issue_refund", "risk": "high", "verdict": "ask", "stages": "team-lead", "digest": "d1", "asker": "T1/U1", "requesters": "T1/U1"}, `{"amount":90}`)
	s.show("d1", card("90"))
	s.add("decided", "T1/U2", map[string]string{"kind": "modify", "role": "team-lead", "digest": "d2", "shown": "d1", "rendering": rendering(card("90")), "took": "4200"}, `{"args":"{\"amount\":20}"}`)
	s.add("approved", "", map[string]string{"digest": "d2", "state": "approved"}, "")
	s.show("d2", card("20"))
	s.add("executing", "", map[string]string{"digest": "d2", "execution": "exec_2", "try": "1"}, "")
	s.add("executed", "", map[string]string{"digest": "d2", "state": "succeeded"}, "done <script>alert(1)</script>\u202e")
	s.Seal = Seal{Sealed: len(s.Entries), Head: 7, Size: 100, At: time.Unix(1800000000, 0), Root: "root7", Key: "key7", Note: "note7\n"}
	return s
}

func rendering(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func (s *Story) show(digest, body string) {
	s.add("shown", "", map[string]string{"surface": "card", "to": "user:U2", "digest": digest, "rendering": rendering(body)}, body)
}

func (s *Story) add(kind approvers.AuditKind, who approvers.PersonID, facts map[string]string, payload string) {
	var head approvers.AuditRecord
	if n := len(s.Entries); n > 0 {
		head = s.Entries[n-1].AuditRecord
	}
	rec := approvers.AuditRecord{Chain: s.Chain, At: time.Unix(1800000000+int64(len(s.Entries)), 0), Kind: kind, Actor: who, Facts: facts}
	e := Entry{State: NoPayload}
	if payload != "" {
		e.State, e.Payload = Whole, []byte(payload)
	}
	e.AuditRecord = rec.Link(head)
	s.Entries = append(s.Entries, e)
}

func write(t *testing.T, s Story) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, Page{Stories: []Story{s}, MadeBy: "ann"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageTellsTheStory(t *testing.T) {
	page := write(t, history())
	for _, want := range []string{
		"<h1>issue_refund</h1>", "The tool ended: succeeded.", "Asked by Sam (U1), the model asked for issue_refund: high risk, to be allowed by team-lead.",
		"Teo (U2) changed the arguments of it as team-lead, 4.2s after the card first showed it.",
		"<h4>Refund of $90</h4>", "<b>High risk</b>", `<span class="person">@Sam</span>`, "<pre>amount: 90</pre>", `<span class="button primary">Approve</span>`,
		"Teo (U2) decided on this one", "<h4>Refund of $20</h4>", "Signed head 7 of 2027-01-15 08:00:00 UTC covers every record, 7 in all", "root7", "the first 100 records", `<pre class="note">note7`, "What ran is what was approved",
		"done &lt;script&gt;alert(1)&lt;/script&gt;⟨U&#43;202E⟩",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, hostile := range []string{"<script", "\u202e", "javascript:", "✗"} {
		if strings.Contains(page, hostile) {
			t.Errorf("the page has %q", hostile)
		}
	}
}

// The summary has the requested call, the requester's message, and the people who approved the call.
func TestSummary(t *testing.T) {
	s := history()
	s.Words = "refund it, please"
	page := write(t, s)
	for _, want := range []string{
		"<dt>What</dt><dd>Refund of $20</dd>", "<dt>With</dt><dd>amount: 20</dd>", "<dt>Asked by</dt><dd>Sam (U1)</dd>",
		"<dt>In these words</dt><dd>refund it, please\n(as the store has it; no recorded card shows it)</dd>",
		"<dt>Allowed by</dt><dd>Teo (U2) as team-lead, 2027-01-15 08:00:02.000 UTC (changed the arguments)</dd>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the summary lacks %q:\n%s", want, page)
		}
	}
	s.Words = "Refund of $90" // as the first card has it
	if !strings.Contains(write(t, s), "<dd>Refund of $90</dd>") {
		t.Error("words on a card are marked")
	}
}

// The page about a client's call names the client, its owner, and the person for whom it provably acts. If the client
// runs the tool, the page does not say that Countersign ran it.
func TestClientsCall(t *testing.T) {
	s := Story{Chain: "req_1", Names: map[approvers.PersonID]string{"caller:ci": "CI bot", "T1/U2": "Teo", "T1/U3": "Sam"}}
	proposed := map[string]string{
		"tool": "deploy", "risk": "high", "verdict": "ask", "stages": "team-lead", "digest": "d1", "asker": "caller:ci", "requesters": "caller:ci,T1/U2,T1/U3", "runs": "ci",
	}
	s.add(approvers.AuditProposed, "", proposed, `{"service":"shop"}`)
	s.add(approvers.AuditApproved, "", map[string]string{"digest": "d1"}, "")
	s.add(approvers.AuditExecuting, "", map[string]string{"digest": "d1", "try": "1", "runs": "ci"}, "")
	s.add(approvers.AuditExecuted, "", map[string]string{"digest": "d1", "state": "succeeded"}, "deployed")
	s.add(approvers.AuditReturned, "", map[string]string{"outcome": "executed"}, "deployed")
	about := func(s Story, wants ...string) {
		t.Helper()
		page := write(t, s)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		for _, unlike := range []string{"The model", "the model", "<dd>caller:ci", "✗"} {
			if strings.Contains(page, unlike) {
				t.Errorf("the page has %q", unlike)
			}
		}
	}
	about(s,
		"<dt>Asked by</dt><dd>CI bot (client ci)</dd>", "<dt>On behalf of</dt><dd>Sam (U3)</dd>", "<dt>Owner of the client</dt><dd>Teo (U2)</dd>",
		"<dt>Tool run by</dt><dd>CI bot (client ci), not by Countersign</dd>",
		"CI bot (client ci) asked for deploy, on behalf of Sam (U3): high risk, to be allowed by team-lead.",
		"CI bot (client ci) claimed the call, to run the tool itself.", "CI bot (client ci) reported that the tool ended: succeeded.",
		"The result for CI bot (client ci) was recorded: executed.", "What the client claimed is what was approved", clientRuns,
	)

	// Countersign runs this call, which needs no approval. So the store has no request with the client's title.
	s = Story{Chain: "exec_1"}
	s.add(approvers.AuditProposed, "", map[string]string{"tool": "search", "risk": "low", "verdict": "auto", "digest": "d1", "asker": "caller:ci", "requesters": "caller:ci,T1/U2"}, "{}")
	s.add(approvers.AuditExecuting, "", map[string]string{"digest": "d1", "try": "1"}, "")
	s.add(approvers.AuditExecuted, "", map[string]string{"digest": "d1", "state": "succeeded"}, "")
	about(s,
		"<dt>Asked by</dt><dd>the client ci</dd>", "<dt>Owner of the client</dt><dd>U2</dd>", "The client ci asked for search: low risk, which the policy lets run without asking.",
		"The tool was started.", "The tool ended: succeeded.", "What ran is what was proposed",
	)
	if page := write(t, s); strings.Contains(page, "Tool run by") || strings.Contains(page, "On behalf of") {
		t.Error("the page names somebody who runs the tool, or a person for whom the client acts")
	}

	// The client withdraws a request.
	s = Story{Chain: "req_1"}
	s.add(approvers.AuditProposed, "", proposed, "{}")
	s.add(approvers.AuditClosed, "caller:ci", map[string]string{"state": "withdrawn"}, "")
	if _, words := s.Decision(); words != "client ci · withdrawn" {
		t.Errorf("the list says %q", words)
	}
	if page := write(t, s); strings.Contains(page, "Tool run by") {
		t.Error("the page names somebody who ran the tool, but nobody did")
	}

	// A token proved that the client acts for its owner. The requesters have this person only once.
	s = Story{Chain: "req_1"}
	proposed["requesters"], proposed["for"], proposed["proven"] = "caller:ci,T1/U2", "T1/U2", "true"
	s.add(approvers.AuditProposed, "", proposed, "{}")
	about(s, "<dt>On behalf of</dt><dd>U2</dd>", "<dt>Owner of the client</dt><dd>U2</dd>", "The client ci asked for deploy, on behalf of U2: high risk")

	// The client only names a person.
	delete(proposed, "proven")
	s = Story{Chain: "req_1"}
	s.add(approvers.AuditProposed, "", proposed, "{}")
	if page := write(t, s); strings.Contains(page, "On behalf of") {
		t.Error("the page names a person without a proof")
	}
}

// For a call under a grant, the chain's first record says that people must approve. The text about the decision
// nevertheless names the grant, under which nobody was asked.
func TestDecisionUnderGrant(t *testing.T) {
	record := func(kind approvers.AuditKind, facts map[string]string) Entry {
		return Entry{AuditRecord: approvers.AuditRecord{Kind: kind, Facts: facts}}
	}
	s := Story{Entries: []Entry{
		record(approvers.AuditProposed, map[string]string{"verdict": string(approvers.Ask), "stages": "buyer", "grant": "grant_1"}),
		record(approvers.AuditExecuting, nil),
		record(approvers.AuditExecuted, map[string]string{"state": "succeeded"}),
	}}
	if _, words := s.Decision(); words != "under a grant · ran" {
		t.Errorf("it says %q", words)
	}
}

// The page reports faults of a history.
func TestPageSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		spoil func(*Story)
		want  string
	}{
		"a changed record":       {func(s *Story) { s.Entries[2].Actor = "T1/U3" }, "The chain is broken"},
		"a missing record":       {func(s *Story) { s.Entries = append(s.Entries[:3:3], s.Entries[4:]...) }, "The chain is broken"},
		"a changed text":         {func(s *Story) { s.Entries[0].State = Changed }, "1 text was changed and 0 are missing"},
		"a missing text":         {func(s *Story) { s.Entries[0].State = Missing }, "0 texts were changed and 1 is missing"},
		"another run":            {func(s *Story) { s.Entries[5].Facts = map[string]string{"digest": "d3"} }, "What ran is not what was approved"},
		"another call":           {func(s *Story) { s.Entries[2].Facts["kind"] = "approve" }, "made on a card that did not show the decided call"},
		"a card of another call": {func(s *Story) { s.Entries[1].Facts["digest"] = "d3" }, "The records of a decision and of its card name different calls"},
		"another card":           {func(s *Story) { s.Entries[1].Payload = []byte(`{"text":"x"}`) }, "is not the rendering that its record names"},
		"a head that is forged":  {func(s *Story) { s.Seal.Faults = []string{"Head 7 is not signed by the key."} }, "Head 7 is not signed by the key."},
	}
	for name, tt := range tests {
		s := history()
		tt.spoil(&s)
		page := write(t, s)
		if !strings.Contains(page, "✗") || !strings.Contains(page, tt.want) {
			t.Errorf("%s: the page does not say so", name)
		}
	}
}

// If a check can't be made, the page shows the check as open. Such a check does not count as a fault, and is not left
// out.
func TestPageSaysWhatIsOpen(t *testing.T) {
	s := history()
	s.Seal = Seal{}
	s.Entries[0].State, s.Entries[0].Payload = Erased, nil
	page := write(t, s)
	for _, want := range []string{"○", "This store has no signed heads", "Its text was erased.", "1 text was erased, as the records say"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "✗") {
		t.Error("the page reports a fault")
	}
}

// A run may have begun, and the record of its start is lost. The page does not say that nothing was run.
func TestPageWithoutStart(t *testing.T) {
	s := Story{Chain: "exec_1"}
	s.add(approvers.AuditProposed, "", map[string]string{"tool": "search", "risk": "low", "verdict": "auto", "digest": "d1"}, "{}")
	s.add(approvers.AuditUnknown, "", map[string]string{"digest": "d1", "why": string(approvers.LossDamaged)}, "")
	c := s.runCheck()
	if c.OK || !c.Open || c.Text != "It is not known whether the call ran: the record of its start is lost." {
		t.Errorf("the check is %+v", c)
	}
}

// A text that was erased can't be compared, and a card that was erased can't be drawn. The page does not say that it
// checked them.
func TestPageAfterErasure(t *testing.T) {
	for name, tt := range map[string]struct {
		erased       []int
		want, unlike []string
	}{
		"everything": {
			[]int{0, 1, 2, 4, 6},
			[]string{
				"5 texts were erased, as the records say. An erased text can&#39;t be compared", "The one decision on a card was made on a version whose text the store no longer has.",
				"What the person saw can&#39;t be checked.",
			},
			[]string{"drawn below", "texts below", "text below", "no texts"},
		},
		"everything but one": {[]int{0, 1, 2, 4}, []string{"4 texts were erased", "The one text below (arguments, a card, a reason or a result) matches its hash"}, []string{"drawn below", "All "}},
		"the other card":     {[]int{4}, []string{"1 text was erased", "All 4 texts below", "made on a version that is drawn below"}, []string{"no longer has"}},
	} {
		s := history()
		for _, n := range tt.erased {
			s.Entries[n].State, s.Entries[n].Payload = Erased, nil
		}
		page := write(t, s)
		for _, want := range tt.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
		for _, unlike := range append(tt.unlike, "✗") {
			if strings.Contains(page, unlike) {
				t.Errorf("%s: the page has %q", name, unlike)
			}
		}
	}
	two := history()
	two.add("decided", "T1/U3", map[string]string{"kind": "approve", "digest": "d2", "shown": "d2", "rendering": two.Entries[4].Facts["rendering"]}, "")
	two.Entries[4].State, two.Entries[4].Payload = Erased, nil
	if page := write(t, two); !strings.Contains(page, "Of the 2 decisions on a card, 1 was made on a version whose text the store no longer has.") {
		t.Error("the page does not say that one of two decisions can't be checked")
	}
}

// If a version of a card looks like an earlier version, the page shows the later version in full only if somebody
// decided on the later version.
func TestVersionsThatLookAlike(t *testing.T) {
	s := Story{Chain: "req_1"}
	body := func(n int) string {
		return fmt.Sprintf(`{"text":"x","blocks":[{"type":"header","text":{"type":"plain_text","text":"Same"}},{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"Approve"},"value":"%d"}]}]}`, n)
	}
	for n := range 3 {
		s.show("d", body(n))
	}
	s.add("decided", "T1/U2", map[string]string{"kind": "approve", "digest": "d", "shown": "d", "rendering": rendering(body(2))}, "")
	page := write(t, s)
	if n := strings.Count(page, "<h4>Same</h4>"); n != 2 {
		t.Errorf("drawn %d times, want 2: the first, and the one that was decided on", n)
	}
	if !strings.Contains(page, "It looked like version 1 above") {
		t.Error("the page does not say which version it looked like")
	}
}

// All text in blocks is escaped, so text of other people can't change the page.
func TestDrawEscapes(t *testing.T) {
	hostile := `</div><img src=x onerror=alert(1)>`
	for _, b := range []string{
		`{"type":"header","text":{"type":"plain_text","text":%q}}`,
		`{"type":"section","text":{"type":"mrkdwn","text":%q}}`,
		`{"type":"context","elements":[{"type":"plain_text","text":%q}]}`,
		`{"type":"rich_text","elements":[{"type":"rich_text_quote","elements":[{"type":"link","url":%q}]}]}`,
		`{"type":"rich_text","elements":[{"type":"rich_text_list","style":"ordered","elements":[{"type":"rich_text_section","elements":[{"type":"usergroup","usergroup_id":%q}]}]}]}`,
		`{"type":%q}`,
	} {
		messages, err := readMessages([]byte(`{"text":"x","blocks":[` + fmt.Sprintf(b, hostile) + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		if out := string(draw(messages, func(id string) string { return id })); strings.Contains(out, "<img") || !strings.Contains(out, "&lt;img") {
			t.Errorf("%s was drawn as %s", b, out)
		}
	}
}

// A record about the policy in force says which policy or pins came into force, and who loaded them.
func TestPolicySentence(t *testing.T) {
	for want, facts := range map[string]map[string]string{
		"The policy 542bcc991713 came into force, loaded by vm:7.": {"policy": "542bcc991713eb33", "before_policy": "e092325aa4f1b992", "pins": "9", "before_pins": "9", "process": "vm:7"},
		"Other pins came into force, loaded by vm:7.":              {"policy": "542bcc991713eb33", "before_policy": "542bcc991713eb33", "pins": "9", "before_pins": "8", "process": "vm:7"},
		"The policy 542b came into force.":                         {"policy": "542b"},
	} {
		if got := (Story{}).Sentence(approvers.AuditRecord{Kind: approvers.AuditPolicy, Facts: facts}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The page's sentence about an unknown outcome says why the outcome was unknown.
func TestUnknownSentence(t *testing.T) {
	for why, want := range whyUnknown {
		got := (Story{}).Sentence(approvers.AuditRecord{Kind: approvers.AuditUnknown, Facts: map[string]string{"why": string(why)}})
		if want += " Whether it acted was not known; people were asked."; got != want {
			t.Errorf("%s: got %q, want %q", why, got, want)
		}
	}
	if len(whyUnknown) != 7 {
		t.Errorf("the page has sentences for %d reasons", len(whyUnknown))
	}
}

// If a request escalated, the text about the decision names the lead, until the stage ends.
func TestDecisionAfterEscalation(t *testing.T) {
	record := func(kind approvers.AuditKind, facts map[string]string) Entry {
		return Entry{AuditRecord: approvers.AuditRecord{Kind: kind, Facts: facts}}
	}
	s := Story{Entries: []Entry{
		record(approvers.AuditProposed, map[string]string{"verdict": string(approvers.Ask), "stages": "buyer"}),
		record(approvers.AuditEscalated, map[string]string{"role": "head"}),
		record(approvers.AuditEscalated, map[string]string{"again": "1"}),
	}}
	if _, words := s.Decision(); words != "nobody yet · waits for buyer; head was asked, too" {
		t.Errorf("it says %q", words)
	}
	s.Entries = append(s.Entries, record(approvers.AuditClosed, map[string]string{"state": "expired"}))
	if _, words := s.Decision(); words != "nobody decided · expired" {
		t.Errorf("it says %q", words)
	}
}

// The page's sentence about a denied attempt names the attempted action.
func TestDeniedSentence(t *testing.T) {
	for kind, want := range map[string]string{
		"approve": "approve it", "report": "report on it", "hand on": "hand it on", "ask again": "ask for it again",
		"allow more": "allow more such calls", "accepted": "accept it", "declined": "decline it", "revoked": "revoke it",
		"answer elicitation": "answer the tool's question", "decline elicitation": "decline the tool's question",
		"break glass": "approve it at the command line", "overrule": "reject it at the command line",
	} {
		got := (Story{}).Sentence(approvers.AuditRecord{Kind: approvers.AuditDenied, Actor: "T0001/U0001", Facts: map[string]string{"kind": kind, "code": "not_member"}})
		if want := "U0001 tried to " + want + " and was refused: not in a role that may decide it."; got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

// If a store was restored, the words about a request that was open in the backup do not say that nobody decided it.
func TestLostSentence(t *testing.T) {
	closed := approvers.AuditRecord{Kind: approvers.AuditClosed, Facts: map[string]string{"state": "voided", "why": "restored"}}
	if got := (Story{}).Sentence(closed); !strings.Contains(got, "It is not known whether it was decided and ran") {
		t.Errorf("the words are %q", got)
	}
	s := Story{Entries: []Entry{{AuditRecord: approvers.AuditRecord{Kind: approvers.AuditProposed, Facts: map[string]string{"verdict": string(approvers.Ask)}}}, {AuditRecord: closed}}}
	if _, words := s.Decision(); words != "decision unknown · voided, may have run" {
		t.Errorf("the words are %q", words)
	}
	if c := s.runCheck(); c.OK || !c.Open {
		t.Errorf("the page says of the run: %+v", c)
	}
}

// The record of a restored store names the backup or the accepted loss, and says whether faults were accepted.
func TestRestoredStore(t *testing.T) {
	for want, facts := range map[string]map[string]string{
		"The store was restored from monday.db, by the operator ann.":             {"backup": "monday.db"},
		"The store was restored with faults from monday.db, by the operator ann.": {"backup": "monday.db", "faults": "accepted"},
		"The loss of head 7 was accepted, by the operator ann.":                   {"head": "7"},
		"The loss of head 7 was accepted with faults, by the operator ann.":       {"head": "7", "faults": "accepted"},
	} {
		record := approvers.AuditRecord{Kind: approvers.AuditRestored, Actor: approvers.Operator("ann"), Facts: facts}
		if got := (Story{}).Sentence(record); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// decide adds a decision.
func (s *Story) decide(user, kind, role string) {
	facts := map[string]string{"kind": kind, "role": role, "digest": "d"}
	if kind == "modify" {
		facts["digest"] = "d2"
	}
	s.add(approvers.AuditDecided, approvers.PersonID("T1/"+user), facts, "{}")
}

// replan adds a record about a new plan, as the current version writes it.
func (s *Story) replan(stages, restarted string) {
	s.add(approvers.AuditReplanned, "", map[string]string{"risk": "high", "stages": stages, approvers.FactRestarted: restarted}, "")
}

// The list and the page name the people whose decisions count. These are not the people who changed their minds, and not
// the people whose approvals ended with an edit, a stricter policy or an earlier plan.
func TestDecisionsThatCount(t *testing.T) {
	const director = "director"
	ask := func(stages string) Story {
		s := Story{Chain: "req_1", Names: map[approvers.PersonID]string{"T1/U2": "Teo", "T1/U3": "Ingrid", "T1/U4": "Ann", "T1/U5": "Bo"}}
		s.add(approvers.AuditProposed, "", map[string]string{"tool": "pay", "verdict": "ask", "risk": "high", "stages": stages, "digest": "d"}, "{}")
		return s
	}
	run := func(s *Story, standing string) {
		s.add(approvers.AuditApproved, "", map[string]string{"digest": "d", "standing": standing}, "")
		s.add(approvers.AuditExecuting, "", map[string]string{"digest": "d"}, "")
		s.add(approvers.AuditExecuted, "", map[string]string{"digest": "d", "state": "succeeded"}, "done")
	}
	plan := func(s *Story, kind approvers.AuditKind, risk, stages, stage string) {
		s.add(kind, "", map[string]string{"risk": risk, "stages": stages, "stage": stage}, "")
	}
	for what, c := range map[string]struct {
		happens               func() Story
		list                  string
		allowed, lapsed, also string // on the page; names without ids and times
	}{
		"somebody changed to a rejection": {func() Story {
			s := ask("2 x director")
			s.decide("U2", "approve", director)
			s.decide("U2", "reject", director)
			s.decide("U3", "approve", director)
			s.decide("U4", "approve", director)
			run(&s, "T1/U3,T1/U4")
			return s
		}, "Ingrid (director), Ann (director) · ran", "Ingrid, Ann", "Teo", "Against: Teo"},
		"a rejection became an approval": {func() Story {
			s := ask("2 x director")
			s.decide("U2", "reject", director)
			s.decide("U2", "approve", director)
			s.decide("U3", "approve", director)
			run(&s, "T1/U2,T1/U3")
			return s
		}, "Teo (director), Ingrid (director) · ran", "Teo, Ingrid", "Teo", ""},
		"not decided yet, and somebody changed to a rejection": {func() Story {
			s := ask("2 x director")
			s.decide("U2", "approve", director)
			s.decide("U2", "reject", director)
			s.decide("U3", "approve", director)
			return s
		}, "Ingrid (director) · waits for 2 x director", "Ingrid", "Teo", "Against: Teo"},
		"the policy became stricter during the approval": {func() Story {
			s := ask("lead")
			s.decide("U2", "approve", "lead")
			run(&s, "T1/U2")
			s.Entries = s.Entries[:len(s.Entries)-2]
			plan(&s, approvers.AuditReopened, "high", director, "")
			s.decide("U3", "approve", director)
			run(&s, "T1/U3")
			return s
		}, "Ingrid (director) · ran", "Ingrid", "Teo", ""},
		"the policy became stricter with a later approval": {func() Story {
			s := ask("2 x director")
			s.decide("U2", "approve", director)
			s.decide("U3", "approve", director)
			plan(&s, approvers.AuditReplanned, "critical", "3 x director", "")
			s.same()
			return s
		}, "Ingrid (director) · waits for 3 x director", "Ingrid", "Teo", ""},
		"the policy accepts an approval no longer": {func() Story {
			s := ask("2 x director")
			s.decide("U2", "approve", director)
			plan(&s, approvers.AuditReplanned, "high", "2 x director", "")
			return s
		}, "nobody yet · waits for 2 x director", "", "Teo", ""},
		"the policy got another stage": {func() Story {
			s := ask("2 x lead")
			s.decide("U2", "approve", "lead")
			plan(&s, approvers.AuditReplanned, "high", "2 x lead,director", "")
			return s
		}, "Teo (lead) · waits for 2 x lead, then director", "Teo", "", ""},
		"the policy changed only the times of a stage": {func() Story {
			s := ask("2 x director")
			s.decide("U2", "approve", director)
			s.replan("2 x director", "false")
			return s
		}, "Teo (director) · waits for 2 x director", "Teo", "", ""},
		"the policy got another stage, and accepts an approval no longer": {func() Story {
			s := ask("2 x lead")
			s.decide("U2", "approve", "lead")
			s.replan("2 x lead,director", "true")
			return s
		}, "nobody yet · waits for 2 x lead, then director", "", "Teo", ""},
		"the policy sent it back to the first stage": {func() Story {
			s := ask("lead,2 x director")
			s.decide("U2", "approve", "lead")
			plan(&s, approvers.AuditAdvanced, "high", "lead,2 x director", "2")
			s.decide("U3", "approve", director)
			plan(&s, approvers.AuditReplanned, "high", "boss,2 x director", "")
			plan(&s, approvers.AuditAdvanced, "high", "boss,2 x director", "1")
			s.add(approvers.AuditClosed, "", map[string]string{"state": "expired"}, "")
			return s
		}, "nobody decided · expired", "", "Teo, Ingrid", ""},
		"two stages": {func() Story {
			s := ask("lead,director")
			s.decide("U2", "approve", "lead")
			plan(&s, approvers.AuditAdvanced, "high", "lead,director", "2")
			s.decide("U3", "approve", director)
			run(&s, "T1/U2,T1/U3")
			return s
		}, "Teo (lead), Ingrid (director) · ran", "Teo, Ingrid", "", ""},
		"two stages, and the second rejected it": {func() Story {
			s := ask("lead,director")
			s.decide("U2", "approve", "lead")
			plan(&s, approvers.AuditAdvanced, "high", "lead,director", "2")
			s.decide("U3", "reject", director)
			s.add(approvers.AuditClosed, "T1/U3", map[string]string{"state": "rejected"}, "")
			return s
		}, "Ingrid (director) · rejected", "Teo", "", "Against: Ingrid"},
		"an editor without the authority": {func() Story {
			s := ask("lead")
			s.decide("U4", "approve", "lead")
			s.decide("U2", "modify", "lead")
			plan(&s, approvers.AuditAdvanced, "critical", director, "1")
			s.decide("U3", "approve", director)
			run(&s, "T1/U3")
			return s
		}, "Teo (lead, changed it), Ingrid (director) · ran", "Ingrid", "Ann", "Changed by: Teo"},
		"an editor whose edit is also an approval": {func() Story {
			s := ask("lead")
			s.decide("U2", "modify", "lead")
			plan(&s, approvers.AuditAdvanced, "high", "lead", "1")
			s.same()
			run(&s, "T1/U2")
			return s
		}, "Teo (lead, changed it) · ran", "Teo", "", ""},
		"an old record of the approval": {func() Story {
			s := ask("lead")
			s.decide("U2", "approve", "lead")
			s.add(approvers.AuditApproved, "", map[string]string{"digest": "d"}, "")
			return s
		}, "Teo (lead) · approved, not run yet", "Teo", "", ""},
	} {
		s := c.happens()
		if _, words := s.Decision(); words != c.list {
			t.Errorf("%s: the list says %q, want %q", what, words, c.list)
		}
		told, err := s.tell()
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]string{}
		for _, row := range told.Lines {
			var names []string
			for line := range strings.Lines(row[1]) {
				name, _, _ := strings.Cut(line, " (")
				names = append(names, name)
			}
			rows[row[0]] = strings.Join(names, ", ")
		}
		also := ""
		for _, row := range []string{"Against", "Changed by"} {
			if rows[row] != "" {
				also += row + ": " + rows[row]
			}
		}
		if rows["Allowed by"] != c.allowed || rows["No longer counts"] != c.lapsed || also != c.also {
			t.Errorf("%s: the page has %v", what, rows)
		}
	}
}

// same gives the last record the time of the record before it, as if one transaction had written both.
func (s *Story) same() {
	n := len(s.Entries)
	s.Entries[n-1].At = s.Entries[n-2].At
}

// Several people may decide on one version of a card. A version that one person saw in a form was decided only by this
// person.
func TestCaptionNamesAllDeciders(t *testing.T) {
	s := Story{Chain: "req_1", Names: map[approvers.PersonID]string{"T1/U2": "Teo", "T1/U3": "Ingrid"}}
	card, form := `{"text":"card"}`, `{"text":"form"}`
	s.show("d", card)
	for _, who := range []approvers.PersonID{"T1/U2", "T1/U4"} {
		s.add(approvers.AuditShown, who, map[string]string{"surface": "view", "digest": "d", "rendering": rendering(form)}, form)
	}
	for who, body := range map[approvers.PersonID]string{"T1/U2": card, "T1/U3": card, "T1/U4": form} {
		s.add(approvers.AuditDecided, who, map[string]string{"kind": "approve", "digest": "d", "shown": "d", "rendering": rendering(body)}, "")
	}
	told, err := s.tell()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range told.Steps {
		if step.Card != nil {
			names := strings.Split(step.Card.Decided, ", ")
			slices.Sort(names)
			got = append(got, strings.Join(names, ", "))
		}
	}
	if want := []string{"Ingrid (U3), Teo (U2)", "", "U4"}; !slices.Equal(got, want) {
		t.Errorf("the captions name %q, want %q", got, want)
	}
}

// A call without a run and without a request ends with its result. The page and the list know the model's questions.
func TestCallsWithoutRun(t *testing.T) {
	for verdict, want := range map[string][2]string{
		"observed": {"The model was given the result: observed.", "nobody was asked · not run"},
		"error":    {"The model was given the result: error.", "nobody was asked · could not be accepted"},
		"auto":     {"The model was given the result: voided.", "nobody was asked · not run"},
		"inquiry":  {"The model was given the result: executed.", "U1 · answered"},
	} {
		s := Story{Chain: "exec_1"}
		s.add(approvers.AuditProposed, "", map[string]string{"tool": "pay", "verdict": verdict}, "{}")
		outcome := map[string]string{"auto": "voided", "inquiry": "executed"}[verdict]
		if outcome == "" {
			outcome = verdict
		}
		if words, _ := s.outcome(); words != "It has not ended yet." {
			t.Errorf("%s, before the end: %q", verdict, words)
		}
		if verdict == "inquiry" {
			if _, words := s.Decision(); words != "nobody yet · waits for an answer" {
				t.Errorf("the list says about an open question: %q", words)
			}
			s.add(approvers.AuditAnswered, "T1/U1", map[string]string{"tool": "pay"}, "yes")
			if got := s.sentence(s.Entries[1]); got != "U1 answered the question." {
				t.Errorf("the page says %q", got)
			}
		}
		s.add(approvers.AuditReturned, "", map[string]string{"outcome": outcome}, "x")
		words, at := s.outcome()
		if words != want[0] || at == "" {
			t.Errorf("%s: the page says %q at %q", verdict, words, at)
		}
		if _, words := s.Decision(); words != want[1] {
			t.Errorf("%s: the list says %q", verdict, words)
		}
	}
	asked := Story{Entries: []Entry{{AuditRecord: approvers.AuditRecord{Kind: approvers.AuditProposed, Facts: map[string]string{"tool": "ask_people", "verdict": "inquiry"}}}}}
	if got := asked.sentence(asked.Entries[0]); got != "The model asked for ask_people, to put a question to the requesters." {
		t.Errorf("the page says %q", got)
	}
	s := history() // the result is not the end of a call that ran
	s.add(approvers.AuditReturned, "", map[string]string{"outcome": "executed"}, "done")
	if words, _ := s.outcome(); words != "The tool ended: succeeded." {
		t.Errorf("the page says %q", words)
	}
}

// The summary has the risk of the last plan, and the sentence about an escalation has its reason.
func TestLatestRisk(t *testing.T) {
	s := history()
	s.add(approvers.AuditAdvanced, "", map[string]string{"stage": "2", "stages": "team-lead,director", "risk": "critical"}, "")
	if page := write(t, s); !strings.Contains(page, "<dt>Risk</dt><dd>critical</dd>") {
		t.Error("the page has an earlier risk")
	}
	got := s.Sentence(approvers.AuditRecord{Kind: approvers.AuditEscalated, Facts: map[string]string{"role": "director", "why": "too_few"}})
	if got != "Fewer people could decide it than the stage needs: the role director was asked." {
		t.Errorf("the page says %q", got)
	}
}
