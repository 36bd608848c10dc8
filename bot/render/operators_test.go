package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/wording"
	"countersign/store"
)

func noticeView(problems ...settings.Problem) view.Model {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message.Kind, s.Message.Ref, s.Message.TS, s.Request, s.Execution, s.Call = store.OutboxOperators, "operators", "1.2", nil, nil, nil
	p := *s.Policy
	p.Operators.Channel = "#ops"
	s.Policy, s.Notice = p.Indexed(), &settings.OperatorNotice{Message: s.Message.ID, At: bottest.Noon, Posts: s.Message.Posts, Problems: problems}
	return s
}

func problem(kind settings.ProblemKind, of string, change ...func(*settings.Problem)) settings.Problem {
	p := settings.Problem{Kind: kind, Of: of, Since: bottest.Noon}
	switch kind {
	case settings.ProblemWebhook:
		p.Why = "the receiver answered 500"
	case settings.ProblemTool:
		p.Source, p.How = "crm", string(workflow.DriftChanged)
	case settings.ProblemPeople, settings.ProblemQuorum:
		p.Tool, p.First, p.Requests = "cancel_account", "req_1", []string{"req_1"}
	case settings.ProblemCheck:
		p.Why = "the model's endpoint refuses the key"
	case settings.ProblemRecord:
		p.Why, p.First, p.Requests = "its checksum is wrong", "requests req_1", []string{"requests req_1"}
	case settings.ProblemDelivery:
		p.Why, p.First, p.Requests = "it failed too often", "event:Ev1", []string{"event:Ev1"}
	case settings.ProblemCards:
		p.Why, p.Tool, p.First, p.Requests = "conversations.open: missing_scope: im:write", "issue_refund", "req_1", []string{"req_1"}
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func problemEnded(p *settings.Problem) { p.Until, p.Requests = bottest.Noon.Add(time.Hour), nil }

func drifted(how workflow.DriftKind) func(*settings.Problem) {
	return func(p *settings.Problem) { p.How = string(how) }
}

const cardsAt = "channel:#support-approvals\nrole:finance-director\ngroup:emea"

func TestOperatorNotices(t *testing.T) {
	webhook, tool := problem(settings.ProblemWebhook, "ci"), problem(settings.ProblemTool, "crm.send")
	cards := problem(settings.ProblemCards, cardsAt)
	var many []settings.Problem
	for i := range 13 {
		many = append(many, problem(settings.ProblemTool, fmt.Sprintf("crm.tool_%d", i)))
	}
	many = append(many, problem(settings.ProblemTool, "crm.old", problemEnded), problem(settings.ProblemTool, "crm.older", problemEnded))
	for name, s := range map[string]view.Model{
		"operators_webhook":      noticeView(webhook),
		"operators_webhook_over": noticeView(problem(settings.ProblemWebhook, "ci", problemEnded)),
		"operators_tool":         noticeView(tool),
		"operators_tool_over":    noticeView(problem(settings.ProblemTool, "crm.send", problemEnded)),
		"operators_tools":        noticeView(many...),
		"operators_tools_gone":   noticeView(problem(settings.ProblemTool, "crm.send", drifted(workflow.DriftGone)), problem(settings.ProblemTool, "crm.read", drifted(workflow.DriftUnusable))),
		"operators_cards":        noticeView(cards),
		"operators_cards_over":   noticeView(problem(settings.ProblemCards, cardsAt, problemEnded)),
		"operators_people":       noticeView(problem(settings.ProblemPeople, "team-lead\nfinance-director")),
		"operators_people_over":  noticeView(problem(settings.ProblemPeople, "team-lead", problemEnded)),
		"operators_quorum":       noticeView(problem(settings.ProblemQuorum, "finance-director")),
		"operators_quorum_over":  noticeView(problem(settings.ProblemQuorum, "finance-director", problemEnded)),
		"operators_check":        noticeView(problem(settings.ProblemCheck, "model"), problem(settings.ProblemCheck, "of a later version")),
		"operators_check_over":   noticeView(problem(settings.ProblemCheck, "model", problemEnded)),
		"operators_set_aside":    noticeView(problem(settings.ProblemRecord, ""), problem(settings.ProblemDelivery, "")),
		"operators_burst":        noticeView(problem(settings.ProblemWebhook, "ci", problemEnded), tool, cards),
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
	trusting := noticeView(tool)
	trusting.Policy = trusting.Policy.With(approvers.Overlay{Distrusted: map[string]string{"crm.send": "its definition changed"}})
	bottest.Golden(t, "operators_tool_unknown", drawn(t, trusting).Messages[0])
}

// Names and reasons may come from clients, tools and Slack: they stay literal and short, and mention nobody. The
// largest notice fits in a message.
func TestNamesInOperatorNotices(t *testing.T) {
	t.Parallel()
	evil := strings.Repeat("<!channel> <@U0002> *x* \u202egpj\n", 30)
	var all []settings.Problem
	for i := range 100 {
		of := fmt.Sprint(i, evil)
		all = append(all, problem(settings.ProblemWebhook, of, func(p *settings.Problem) { p.Why = evil }),
			problem(settings.ProblemTool, of, func(p *settings.Problem) { p.Source = evil }),
			problem(settings.ProblemCards, "channel:"+of, func(p *settings.Problem) { p.Why, p.Tool = evil, evil }))
	}
	of := func(kind settings.ProblemKind) []settings.Problem {
		return slices.DeleteFunc(slices.Clone(all), func(p settings.Problem) bool { return p.Kind != kind })
	}
	for _, problems := range [][]settings.Problem{all, of(settings.ProblemWebhook), of(settings.ProblemTool), of(settings.ProblemCards)} {
		m := drawn(t, noticeView(problems...)).Messages[0]
		blocks := mentionsNobody(t, m)
		if !strings.Contains(blocks, "⟨U+202E⟩") {
			t.Errorf("the names are not shown:\n%s", blocks)
		}
		left := "more problems. The log and /readyz name them."
		if tools := problems[0].Kind == settings.ProblemTool && len(problems) == 100; strings.Contains(blocks, left) == tools {
			t.Errorf("the notice of %d problems does not say correctly that problems are left out:\n%s", len(problems), blocks)
		}
	}
}

// After a source offers a tool again, the notice says what was wrong with the tool.
func TestToolIsOfferedAgain(t *testing.T) {
	t.Parallel()
	m := drawn(t, noticeView(problem(settings.ProblemTool, "crm.send", drifted(workflow.DriftGone), problemEnded))).Messages[0]
	if !strings.HasSuffix(m.Text, ": the source crm did not offer the tool crm.send.") {
		t.Errorf("it says %s", m.Text)
	}
}

// Before a notice is posted, it expires if its problems end, or if the policy no longer names a channel. A posted
// notice stays.
func TestOperatorNoticeIsOver(t *testing.T) {
	t.Parallel()
	lasts, over := problem(settings.ProblemWebhook, "ci"), problem(settings.ProblemWebhook, "ci", problemEnded)
	for _, tt := range []struct {
		what   string
		s      view.Model
		change func(*view.Model)
		want   bool
	}{
		{"a problem lasts", noticeView(over, lasts), func(s *view.Model) { s.Message.TS = "" }, false},
		{"over", noticeView(over), func(s *view.Model) { s.Message.TS = "" }, true},
		{"over, and posted", noticeView(over), func(*view.Model) {}, false},
		{"over, and to be posted again", noticeView(over), func(s *view.Model) { s.Message.TS, s.Notice.Posts = "", s.Message.Posts-1 }, false},
		{"lost", noticeView(), func(s *view.Model) { s.Message.TS, s.Notice = "", nil }, true},
		{"lost, and posted", noticeView(), func(s *view.Model) { s.Notice = nil }, false},
		{"without the key", noticeView(lasts), func(s *view.Model) {
			p := *s.Policy
			p.Operators.Channel, s.Policy, s.Message.TS = "", &p, ""
		}, true},
	} {
		tt.change(&tt.s)
		d, _, err := Draw(wording.View{Model: tt.s})
		if err != nil {
			t.Fatal(err)
		}
		if d.Expired != tt.want {
			t.Errorf("%s: expired is %v", tt.what, d.Expired)
		}
	}
}
