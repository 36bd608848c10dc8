package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/store"
)

var reportWeek = func() approvers.Week {
	berlin := time.FixedZone("", 3600)
	return approvers.Week{
		Since: time.Date(2026, 11, 16, 0, 0, 0, 0, berlin), Until: time.Date(2026, 11, 23, 0, 0, 0, 0, berlin), End: time.Date(2026, 11, 25, 9, 0, 0, 0, berlin),
	}
}()

func reportView(r settings.Report) view.Model {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message.Kind, s.Message.Ref, s.Request, s.Execution, s.Call = store.OutboxReport, "report", nil, nil, nil
	p := *s.Policy
	p.Report = approvers.ReportPost{Channel: "#approvals"}
	s.Policy, s.Report, s.Now = p.Indexed(), &r, reportWeek.Until.Add(9*time.Hour)
	r.Week, r.Since, r.Until, r.End = reportWeek.Name(), reportWeek.Since, reportWeek.Until, reportWeek.End
	return s
}

// fullReport has every figure.
func fullReport() settings.Report {
	friday := reportWeek.Since.Add(4*24*time.Hour + 15*time.Hour)
	return settings.Report{
		Asked: 41, Approved: 30, Rejected: 6, Expired: 2, Open: 4, Automatic: 120, Granted: 12, Observed: 3, Unknown: 1, BreakGlass: 1,
		Decided: 36, Half: 95_000, Most: 3_900_000, Timed: 30, Quick: 2,
		Waits:     []settings.Wait{{Role: "finance-director", Open: 3, Since: friday}, {Role: "team-lead", Open: 1, Since: reportWeek.Until.Add(-20 * time.Minute)}},
		Opposed:   []settings.Count{{Tool: "issue_refund", N: 5}, {Tool: "cancel_account", N: 1}},
		Unopposed: []settings.Count{{Tool: "update_shipping_address", N: 17}, {Tool: "apply_discount", N: 1}},
		Rules:     7, Unmatched: 2, Damaged: 3,
	}
}

func TestWeeklyReport(t *testing.T) {
	few := settings.Report{Asked: 1, Approved: 1, Decided: 1, Half: 1800, Most: 1800, Timed: 1, Quick: 1, Unopposed: []settings.Count{{Tool: "issue_refund", N: 1}}}
	for name, r := range map[string]settings.Report{"report": fullReport(), "report_few": few, "report_quiet": {Quiet: true}} {
		t.Run(name, func(t *testing.T) {
			bottest.Golden(t, name, drawn(t, reportView(r)).Messages[0])
		})
	}
}

// Names of tools and roles may come from models and clients: they stay literal and short, and mention nobody. The
// largest report fits in a message.
func TestNamesInTheWeeklyReport(t *testing.T) {
	t.Parallel()
	evil := strings.Repeat("<!channel> <@U0002> *x* \u202egpj\n", 30)
	r := fullReport()
	for i := range 5 {
		r.Waits = append(r.Waits[:min(i, 2)], settings.Wait{Role: evil, Open: i + 1, Since: reportWeek.Since})
		r.Opposed = append(r.Opposed[:min(i, 2)], settings.Count{Tool: evil, N: 1_000_000})
		r.Unopposed = append(r.Unopposed[:min(i, 4)], settings.Count{Tool: evil, N: 1_000_000})
	}
	m := drawn(t, reportView(r)).Messages[0]
	mentionsNobody(t, m)
	if n := strings.Count(m.Text, "⟨U+202E⟩"); n != 3+3+5 {
		t.Errorf("%d names are shown:\n%s", n, m.Text)
	}
}

// If Slack refuses kinds of blocks, the simpler forms have the same text.
func TestSimplerWeeklyReport(t *testing.T) {
	t.Parallel()
	m := drawn(t, reportView(fullReport())).Messages[0]
	for form := block.Undecorated; form <= block.TextOnly; form++ {
		simpler, whole := block.Simplify(m, form, func(kind string) bool { return kind == "rich_text" || kind == "header" })
		if whole != (form != block.TextOnly) || simpler.Text != m.Text {
			t.Errorf("form %d: whole is %v, and the text is\n%s", form, whole, simpler.Text)
		}
		if kinds := simpler.Kinds(); slices.Contains(kinds, "rich_text") || slices.Contains(kinds, "header") {
			t.Errorf("form %d has %v", form, kinds)
		}
	}
}

// A report is not posted after its time is over, or if the policy no longer wants it. A posted report stays.
func TestWeeklyReportIsLate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what   string
		change func(*view.Model)
		want   bool
	}{
		{"in time", func(s *view.Model) {}, false},
		{"just in time", func(s *view.Model) { s.Now = reportWeek.End.Add(-time.Second) }, false},
		{"late", func(s *view.Model) { s.Now = reportWeek.End }, true},
		{"late, and posted", func(s *view.Model) { s.Now, s.Message.TS = reportWeek.End, "1.2" }, false},
		{"without the key", func(s *view.Model) { p := *s.Policy; p.Report.Channel = ""; s.Policy = &p }, true},
	} {
		s := reportView(fullReport())
		s.Message.TS = ""
		tt.change(&s)
		d, _, err := Draw(wording.View{Model: s})
		if err != nil {
			t.Fatal(err)
		}
		if d.Expired != tt.want {
			t.Errorf("%s: expired is %v", tt.what, d.Expired)
		}
	}
}

// mentionsNobody checks that names with Slack's markup for mentions mention nobody. mentionsNobody returns the blocks
// as JSON.
func mentionsNobody(t *testing.T, m block.Message) string {
	t.Helper()
	blocks, err := json.Marshal(m.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<!channel>", "<@U0002>", "\u202e"} {
		if strings.Contains(m.Text, bad) {
			t.Errorf("the text contains %q:\n%s", bad, m.Text)
		}
	}
	for _, bad := range []string{`"type":"user"`, `"type":"broadcast"`, `"type":"usergroup"`, "mrkdwn", "\u202e"} {
		if strings.Contains(string(blocks), bad) {
			t.Errorf("the blocks contain %s:\n%s", bad, blocks)
		}
	}
	return string(blocks)
}
