package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

var activityDay = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// chainOf makes a chain. Each line has the minutes since activityDay, the kind, the actor or -, and the facts as
// NAME=VALUE, with _ for a space.
func chainOf(id string, lines ...string) (chain []approvers.AuditRecord) {
	var last approvers.AuditRecord
	for _, line := range lines {
		f := strings.Fields(line)
		var minutes float64
		if _, err := fmt.Sscan(f[0], &minutes); err != nil {
			panic(err)
		}
		a := approvers.AuditRecord{Chain: id, At: activityDay.Add(time.Duration(minutes * float64(time.Minute))), Kind: approvers.AuditKind(f[1]), Facts: map[string]string{}}
		if f[2] != "-" {
			a.Actor = approvers.PersonID(f[2])
		}
		for _, fact := range f[3:] {
			name, value, _ := strings.Cut(fact, "=")
			a.Facts[name] = strings.ReplaceAll(value, "_", " ")
		}
		last = a.Link(last)
		chain = append(chain, last)
	}
	return chain
}

// rule returns a rule with a condition.
func rule(when string) approvers.Rule {
	return approvers.Rule{When: approvers.Condition{Text: when}}
}

// someActivity returns chains of calls with different courses, and a chain of the installation.
func someActivity() [][]approvers.AuditRecord {
	large, odd := rule("args.amount > 500").ID(), rule("a rule of an older policy").ID()
	return [][]approvers.AuditRecord{
		chainOf("req_two_stages", // two stages; a lead decides the second stage
			"0 proposed - tool=refund verdict=ask stages=team,2_x_finance_or_legal_in_@eu rules="+large+","+odd,
			"1 shown - surface=card to=user:U1 digest=d",
			"1 shown - surface=card to=user:U2 digest=d",
			"10 shown T/U1 surface=home to=user:U1 digest=d",
			"10 decided T/U1 kind=approve role=team took=2000",
			"10 advanced - stage=2 stages=team,2_x_finance_or_legal_in_@eu",
			"11 replanned - stages=team,2_x_finance_or_legal_in_@eu rules="+large, // the rule still matches
			"11 shown - surface=card to=user:U2 digest=d",                         // the old card, rendered once more
			"20 escalated - role=board",
			"30 escalated - role=board again=1",
			"40 decided T/U3 kind=approve role=board took=60000",
			"40 approved -",
			"41 executing -",
			"42 executed - state=failed"),
		chainOf("req_changed", // an edit restarts the stage; people who have the card keep their earlier waiting time
			"0 proposed - tool=refund verdict=ask stages=team rules=",
			"1 shown - surface=bundle to=user:U1 digest=d",
			"1 shown - surface=card to=user:U2 digest=d",
			"5 decided T/U1 kind=modify role=team",
			"5 advanced - stage=1 stages=team rules="+large),
		chainOf("req_rejected",
			"0 proposed - tool=cancel verdict=ask stages=team",
			"3 decided T/U1 kind=reject role=team took=1000",
			"3 closed T/U1 state=rejected"),
		chainOf("req_expired",
			"0 proposed - tool=cancel verdict=ask stages=team",
			"2 invited T/U1 person=T/U4 role=team by=T/U1",
			"60 closed - state=expired"),
		chainOf("req_not_run", // approved, but not run in time: people decided in time, so the stage does not count as unanswered
			"0 proposed - tool=mail verdict=ask stages=team",
			"2 decided T/U1 kind=approve role=team took=2999",
			"2 approved -",
			"62 closed - state=expired"),
		chainOf("req_glass",
			"0 proposed - tool=mail verdict=ask stages=team",
			"2 decided operator:ann kind=approve break_glass=true stages=team",
			"2 approved -",
			"3 executing -",
			"4 unknown - why=stopped"),
		chainOf("req_refused", "0 proposed - tool=wipe verdict=refuse", "0 closed - state=refused"),
		chainOf("exec_auto", "0 proposed - tool=lookup verdict=auto", "0 executing - try=1", "1 executing - try=2", "2 executed - state=succeeded"),
		chainOf("exec_limited", "0 proposed - tool=lookup verdict=auto"), // the limit of automatic runs is reached, so the call becomes a request
		chainOf("exec_granted", "0 proposed - tool=refund verdict=ask grant=g stages=team rules=", "0 executing - grant=g"),
		chainOf("exec_observed", "0 proposed - tool=wipe verdict=observed would=ask stages=team"),
		chainOf("call_invalid", "0 proposed - tool=nonsense verdict=error"),
		chainOf(approvers.InstallationChain, "0 pruned - chain=req_0 records=3 head=h", "0 policy -"),
	}
}

// activityOf returns the figures of chains for the period between two times. Times are in minutes after activityDay.
func activityOf(chains [][]approvers.AuditRecord, from, to float64) *Activity {
	minutes := func(n float64) time.Time { return activityDay.Add(time.Duration(n * float64(time.Minute))) }
	f := newActivityReader(minutes(from), minutes(to))
	for _, chain := range chains {
		f.add(chain, false, map[approvers.PersonID]string{"T/U1": "Teo"})
	}
	return f.activity(&approvers.Policy{Hash: "p", Tools: []approvers.ToolPolicy{
		{Name: "refund", Risk: approvers.High, Rules: []approvers.Rule{rule("args.amount > 500"), rule("args.amount > 9000")}},
		{Name: "never_called", Risk: approvers.Low, Rules: []approvers.Rule{rule("true")}},
	}})
}

func wantFigures[T any](t *testing.T, what string, got []T, text func(T) string, want ...string) {
	t.Helper()
	var lines []string
	for _, g := range got {
		lines = append(lines, text(g))
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func roleText(r *RoleFigures) string {
	half, _ := r.Waited.Within(50)
	return fmt.Sprintf("%s asked=%d open=%d unanswered=%d escalated=%d ended=%d half=%s decided=%d quick=%d", r.Name, r.Asked, r.Open.N, r.Unanswered, r.Escalated, r.Waited.N, half, r.Decisions, r.Quick)
}

func personText(p *PersonFigures) string {
	return fmt.Sprintf("%s %s asked=%d open=%d decided=%d quick=%d/%d", p.ID, p.Name, p.Asked, p.Open.N, p.Decisions, p.Quick, p.Timed)
}

func toolText(f *ToolFigures) string {
	return strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%+v", *f), "{Name:", ""), "Grants:false ", ""), "}")
}

// Each figure counts what the comment of its field describes.
func TestActivity(t *testing.T) {
	got := activityOf(someActivity(), 0, 1000)
	wantFigures(t, "roles", got.Roles, roleText,
		"team asked=7 open=1 unanswered=1 escalated=0 ended=6 half=3m0s decided=4 quick=2",
		"board asked=1 open=0 unanswered=0 escalated=0 ended=1 half=20m0s decided=1 quick=0",
		"finance asked=1 open=0 unanswered=0 escalated=1 ended=1 half=30m0s decided=0 quick=0",
		"legal asked=1 open=0 unanswered=0 escalated=1 ended=1 half=30m0s decided=0 quick=0",
		"(operator) asked=0 open=0 unanswered=0 escalated=0 ended=0 half=0s decided=1 quick=0")
	wantFigures(t, "people", got.People, personText,
		"T/U1 Teo T/U1 asked=2 open=0 decided=4 quick=2/2", "T/U3 T/U3 asked=0 open=0 decided=1 quick=0/1",
		"operator:ann operator:ann asked=0 open=0 decided=1 quick=0/0", "U2 U2 asked=2 open=1 decided=0 quick=0/0", "U4 U4 asked=1 open=0 decided=0 quick=0/0")
	wantFigures(t, "tools", got.Tools, toolText,
		"refund Risk:high Asked:2 Approved:1 Timed:2 Quick:1 Changed:1 Opposed:0 Rejected:0 Expired:0 Withdrawn:0 Revoked:0 Voided:0 Refused:0 Open:1 Observed:0 Automatic:1 Granted:1 Failed:1 Unknown:0",
		"cancel Risk: Asked:2 Approved:0 Timed:0 Quick:0 Changed:0 Opposed:1 Rejected:1 Expired:1 Withdrawn:0 Revoked:0 Voided:0 Refused:0 Open:0 Observed:0 Automatic:0 Granted:0 Failed:0 Unknown:0",
		"mail Risk: Asked:2 Approved:2 Timed:1 Quick:1 Changed:0 Opposed:0 Rejected:0 Expired:1 Withdrawn:0 Revoked:0 Voided:0 Refused:0 Open:0 Observed:0 Automatic:0 Granted:0 Failed:0 Unknown:1",
		"lookup Risk: Asked:0 Approved:0 Timed:0 Quick:0 Changed:0 Opposed:0 Rejected:0 Expired:0 Withdrawn:0 Revoked:0 Voided:0 Refused:0 Open:0 Observed:0 Automatic:1 Granted:0 Failed:0 Unknown:0",
		"wipe Risk: Asked:0 Approved:0 Timed:0 Quick:0 Changed:0 Opposed:0 Rejected:0 Expired:0 Withdrawn:0 Revoked:0 Voided:0 Refused:1 Open:0 Observed:1 Automatic:0 Granted:0 Failed:0 Unknown:0")
	wantFigures(t, "rules", got.Rules, func(r RuleFigures) string {
		return fmt.Sprintf("%s %d %s: %d of %d", r.Tool, r.Number, r.When, r.Matched, r.Calls)
	}, "refund 1 args.amount > 500: 2 of 3", "refund 2 args.amount > 9000: 0 of 3", "never_called 1 true: 0 of 0")
	wantFigures(t, "rejections", got.Rejections, func(r Rejection) string { return r.Request + " " + r.By + " " + r.Role }, "req_rejected Teo team")
	if got.Rejected != 1 || got.BreakGlass != 1 || got.Pruned != 1 {
		t.Errorf("%d rejections, %d by breaking glass, %d chains removed", got.Rejected, got.BreakGlass, got.Pruned)
	}
	var unopposed []string
	for _, f := range got.Tools {
		if f.Unopposed() {
			unopposed = append(unopposed, f.Name)
		}
	}
	if !slices.Equal(unopposed, []string{"mail"}) { // refund is not in the list, because an approver changed a refund
		t.Errorf("nobody opposed %v", unopposed)
	}
}

// Only records in the period count. Waiting requests are counted as they were at the end of the period.
func TestActivityInATime(t *testing.T) {
	got := activityOf(someActivity()[:1], 5, 15)
	wantFigures(t, "roles", got.Roles, roleText,
		"finance asked=1 open=1 unanswered=0 escalated=0 ended=0 half=0s decided=0 quick=0",
		"legal asked=1 open=1 unanswered=0 escalated=0 ended=0 half=0s decided=0 quick=0",
		"team asked=0 open=0 unanswered=0 escalated=0 ended=1 half=10m0s decided=1 quick=1")
	wantFigures(t, "people", got.People, personText, "T/U1 Teo T/U1 asked=0 open=0 decided=1 quick=1/1") // the second stage does not wait for U2
	got = activityOf([][]approvers.AuditRecord{chainOf("req_quorum",
		"0 proposed - tool=refund verdict=ask stages=2_x_team",
		"1 shown - surface=card to=user:U1", "1 shown - surface=card to=user:U2",
		"5 decided T/U1 kind=approve role=team")}, 0, 10)
	wantFigures(t, "people of a quorum", got.People, personText, "T/U1 Teo T/U1 asked=1 open=0 decided=1 quick=0/0", "U2 U2 asked=1 open=1 decided=0 quick=0/0")
	if n := len(activityOf(someActivity(), 2000, 3000).Tools); n != 1 {
		t.Errorf("%d tools, want 1: the refund still waits", n)
	}
}

// A request that lacks a record is not reported as open, because the lost record may have ended the request.
func TestActivityOfADamagedChain(t *testing.T) {
	chain := someActivity()[1]
	for name, tt := range map[string]struct {
		records []approvers.AuditRecord
		open    int
	}{"whole": {chain, 1}, "without one record": {slices.Delete(slices.Clone(chain), 1, 2), 0}} {
		if got := activityOf([][]approvers.AuditRecord{tt.records}, 0, 1000).Tools[0].Open; got != tt.open {
			t.Errorf("%s: %d open, want %d", name, got, tt.open)
		}
	}
}

// A clock ran ahead while the stage ended. The report counts the later records of the request, and does not report the
// request as open. The record with the wrong time is not counted.
func TestActivityWithAWrongClock(t *testing.T) {
	got := activityOf([][]approvers.AuditRecord{chainOf("req_1",
		"0 proposed - tool=mail verdict=ask stages=team,board",
		"1 decided T/U1 kind=approve role=team took=5000",
		"5000 advanced - stage=2 stages=team,board",
		"4 decided T/U3 kind=approve role=board took=5000",
		"4 approved -",
		"5 executing -",
		"6 executed - state=failed",
		"2000 unknown - why=stopped")}, 0, 1000)
	wantFigures(t, "roles", got.Roles, roleText,
		"team asked=1 open=0 unanswered=0 escalated=0 ended=0 half=0s decided=1 quick=0",
		"board asked=0 open=0 unanswered=0 escalated=0 ended=1 half=0s decided=1 quick=0")
	if f := got.Tools[0]; f.Asked != 1 || f.Approved != 1 || f.Failed != 1 || f.Open != 0 || f.Unknown != 0 {
		t.Errorf("the figures are %s", toolText(f))
	}
}

// The memory use does not grow with the history. The numbers of listed rejections and names are limited, and
// durations are stored as counts.
func TestActivityIsBounded(t *testing.T) {
	f := newActivityReader(activityDay, activityDay.Add(1000*time.Hour))
	const n = 5000
	for i := range n {
		f.add(chainOf(fmt.Sprintf("req_%d", i), fmt.Sprintf("%d proposed - tool=invented%d verdict=ask stages=team", i, i),
			fmt.Sprintf("%d decided T/U1 kind=reject role=team took=%d", i+1, 1000+i*7)), false, nil)
	}
	got := f.activity(nil)
	if len(got.Tools) != MostTools+1 || got.Tools[0].Name != OtherTools || got.Tools[0].Opposed != n-MostTools {
		t.Errorf("%d tools, of which the first is %s", len(got.Tools), toolText(got.Tools[0]))
	}
	if len(got.Rejections) != MostRejections || got.Rejected != n || got.Rejections[0].Request != "req_4999" || got.Rejections[99].Request != "req_4900" {
		t.Errorf("%d of %d rejections, from %s", len(got.Rejections), got.Rejected, got.Rejections[0].Request)
	}
	if times := len(got.Roles[0].times.at); times > 1900 {
		t.Errorf("%d times are kept", times)
	}
}

// A call counts once for its rules, even if it was about to run without approval, and people were asked instead. The
// record of the proposal is then in two chains.
func TestRulesOfACallCountOnce(t *testing.T) {
	id := rule("args.amount > 500").ID()
	a := activityOf([][]approvers.AuditRecord{
		chainOf("exec_limited", "0 proposed - tool=refund verdict=auto rules="+id, "9 erased - records=1"),
		chainOf("req_limited", "1 proposed - tool=refund verdict=ask stages=team rules="+id),
		chainOf("exec_lapsed", "0 proposed - tool=refund verdict=ask grant=g stages=team rules="+id),
		chainOf("req_lapsed", "1 proposed - tool=refund verdict=ask stages=team rules="+id),
		chainOf("exec_ran", "0 proposed - tool=refund verdict=auto rules="+id, "1 executing -"),
		chainOf("exec_voided", "0 proposed - tool=refund verdict=auto rules="+id, "1 returned - outcome=voided"),
		chainOf("exec_observed", "0 proposed - tool=refund verdict=observed rules="+id),
		chainOf("exec_before", "-9 proposed - tool=refund verdict=auto rules="+id, "1 executing -"), // proposed before the period
	}, 0, 60)
	if got := a.Rules[0]; got.Calls != 5 || got.Matched != 5 {
		t.Errorf("%d calls, and %d matched; want 5", got.Calls, got.Matched)
	}
}

// The report says how many old calls retention removed. Grants and absences are no calls.
func TestPrunedCalls(t *testing.T) {
	a := activityOf([][]approvers.AuditRecord{chainOf(approvers.InstallationChain,
		"0 pruned - chain=grant:g records=3 head=h", "0 pruned - chain=absence:T/U1 records=1 head=h", "0 pruned - chain=req_0 records=3 head=h",
		"0 pruned - chain=exec_0 records=3 head=h")}, 0, 60)
	if a.Pruned != 2 {
		t.Errorf("%d calls were removed, want 2", a.Pruned)
	}
}
