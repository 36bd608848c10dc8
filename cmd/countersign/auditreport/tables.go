package auditreport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/internal/visible"
)

// Report is the input of the writers.
type Report struct {
	Figures *audit.Activity
	Reasons bool // true: the figures include the reasons of rejections
	MadeAt  time.Time
	MadeBy  string // login of the person who made the report
	Damaged int    // rows of the history that were left out
}

// table is one part of a report. The first columns name the subject of a row, for example a tool or a person. The field
// keys is the number of these columns.
type table struct {
	id, title string
	note      string // explains the columns
	none      string // the text in place of a table without rows
	keys      int
	columns   []column
	rows      [][]cell
	unsaid    []string // for CSV, one text for each row: the reason why the row's last value is missing; empty: the value is there
}

// column has a heading for people, and a name for the CSV form.
type column struct {
	head, name string
	number     bool
}

// cell has a text for people, and a value for the CSV form.
type cell struct{ text, value string }

func words(s string) cell { s = visible.Line(s); return cell{s, s} }

func number(n int) cell { s := strconv.Itoa(n); return cell{s, s} }

func share(part, of int) cell {
	if of == 0 {
		return cell{"–", ""}
	}
	return cell{cli.Percent(part, of), strconv.FormatFloat(float64(part)/float64(of), 'f', 4, 64)}
}

func within(d interface {
	Within(percent int) (time.Duration, bool)
}, percent int) cell {
	took, ok := d.Within(percent)
	if !ok {
		return cell{"–", ""}
	}
	return cell{cli.Duration(took), seconds(took)}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func moment(t time.Time) cell {
	if t.IsZero() {
		return cell{"–", ""}
	}
	return cell{t.UTC().Format("2006-01-02 15:04"), t.UTC().Format(time.RFC3339)}
}

// The method "oldest" returns how long the oldest request has waited.
func (r Report) oldest(w audit.Waiting) cell {
	if w.N == 0 {
		return cell{"–", ""}
	}
	d := r.Figures.Until.Sub(w.Since)
	return cell{cli.Duration(d), seconds(d)}
}

// title returns the heading of the report. The method "about" returns the lines below the heading.
func (r Report) title() string {
	from := "the beginning"
	if !r.Figures.Since.IsZero() {
		from = cli.Moment(r.Figures.Since)
	}
	return "Approvals from " + from + " to " + cli.Moment(r.Figures.Until)
}

func (r Report) about() []string {
	made := "Made " + cli.Moment(r.MadeAt)
	if r.MadeBy != "" {
		made += " by " + visible.Line(r.MadeBy)
	}
	lines := []string{made + " from the history. Times are in UTC."}
	if r.Figures.Policy == "" {
		lines = append(lines, "The policy can't be read. Risks and rules are missing.")
	} else {
		lines = append(lines, "Risks and rules are those of the policy "+r.Figures.Policy[:min(12, len(r.Figures.Policy))]+".")
	}
	if n := r.Figures.Pruned; n > 0 {
		lines = append(lines, "In this time, retention removed the records of "+cli.Count(n, "old call")+". Removed records are not counted.")
	}
	if r.Damaged > 0 {
		lines = append(lines, "The history is damaged: "+cli.Count(r.Damaged, "row")+" can't be read and are not counted.")
	}
	return lines
}

func (r Report) tables() []table {
	return []table{r.summary(), r.roles(), r.people(), r.waits(), r.waitingPeople(), r.rejections(), r.tools(), r.unopposed(), r.rules(), r.automatic()}
}

// basis returns the last table of the CSV form. It has the data that the other forms show below the heading.
func (r Report) basis() table {
	out := table{id: "basis", keys: 1, columns: []column{{name: "figure"}, {name: "value"}}}
	row := func(what string, value cell) { out.rows = append(out.rows, []cell{words(what), value}) }
	row("since", moment(r.Figures.Since))
	row("until", moment(r.Figures.Until))
	row("policy", words(r.Figures.Policy))
	row("calls that retention removed", number(r.Figures.Pruned))
	row("damaged rows that are not counted", number(r.Damaged))
	return out
}

func (r Report) summary() table {
	var sum audit.ToolFigures
	for _, t := range r.Figures.Tools {
		sum.Asked += t.Asked
		sum.Approved += t.Approved
		sum.Rejected += t.Rejected
		sum.Expired += t.Expired
		sum.Open += t.Open
		sum.Automatic += t.Automatic
		sum.Granted += t.Granted
		sum.Observed += t.Observed
		sum.Unknown += t.Unknown
	}
	quick, timed := 0, 0
	for _, p := range r.Figures.People {
		quick, timed = quick+p.Quick, timed+p.Timed
	}
	out := table{id: "summary", title: "In short", keys: 1, columns: []column{{head: "FIGURE", name: "figure"}, {head: "VALUE", name: "value", number: true}}}
	row := func(what string, value cell) { out.rows = append(out.rows, []cell{words(what), value}) }
	row("requests to people", number(sum.Asked))
	row("approved", number(sum.Approved))
	row("rejected", number(sum.Rejected))
	row("expired", number(sum.Expired))
	row("waiting at the end", number(sum.Open))
	row("share of approvals within 3 s", share(quick, timed))
	row("approved by an operator in place of the approvers", number(r.Figures.BreakGlass))
	row("automatic runs", number(sum.Automatic))
	row("automatic runs under a grant", number(sum.Granted))
	row("calls that observe mode held back", number(sum.Observed))
	row("runs with an unknown outcome", number(sum.Unknown))
	return out
}

// decisionColumns are the columns about decisions. The command "audit pace" prints the same columns.
var decisionColumns = []column{
	{"ASKED", "asked", true}, {"DECISIONS", "decisions", true}, {"APPROVALS", "approvals", true}, {"QUICK", "quick_share", true},
	{"MEDIAN", "median_seconds", true}, {"90 %", "p90_seconds", true}, {"CHANGED", "changed", true}, {"REJECTED", "rejected", true},
}

func decisionCells(asked int, d *audit.DecisionStats) []cell {
	return []cell{
		number(asked), number(d.Decisions), number(d.Approvals), share(d.Quick, d.Timed), within(d, 50), within(d, 90), number(d.Changed), number(d.Rejected),
	}
}

func (r Report) roles() table {
	out := table{
		id: "roles", title: "Who was asked, by role", none: "No role was asked.", keys: 1,
		columns: append([]column{{head: "ROLE", name: "role"}}, decisionColumns...),
		note: "ASKED counts stages. QUICK is the share of the approvals that came less than 3 s after the card was shown: too soon to have read it. " +
			"Half of the decisions were made within MEDIAN, nine tenths within 90 %.",
	}
	for _, x := range byDecisions(r.Figures.Roles, func(x *audit.RoleFigures) *audit.DecisionStats { return &x.DecisionStats }) {
		out.rows = append(out.rows, append([]cell{words(x.Name)}, decisionCells(x.Asked, &x.DecisionStats)...))
	}
	return out
}

// byDecisions sorts by the number of decisions.
func byDecisions[T any](all []T, of func(T) *audit.DecisionStats) []T {
	return slices.SortedStableFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(of(b).Decisions, of(a).Decisions) })
}

func (r Report) people() table {
	out := table{
		id: "people", title: "Who was asked, by person", none: "Nobody was asked.", keys: 1,
		columns: append([]column{{head: "PERSON", name: "person"}}, decisionColumns...),
		note: "ASKED counts the requests that the person was sent alone. Requests on a card in a channel are not among them, " +
			"so a person can have more decisions than that.",
	}
	for _, x := range r.Figures.People {
		out.rows = append(out.rows, append([]cell{words(x.Name)}, decisionCells(x.Asked, &x.DecisionStats)...))
	}
	return out
}

func (r Report) waits() table {
	out := table{
		id: "waits", title: "Where calls wait, by role", none: "Nothing waited.", keys: 1,
		columns: []column{
			{"ROLE", "role", false}, {"OPEN", "open", true}, {"OLDEST", "oldest_seconds", true}, {"ENDED", "ended", true}, {"MEDIAN WAIT", "wait_median_seconds", true},
			{"90 %", "wait_p90_seconds", true}, {"UNANSWERED", "unanswered", true}, {"ESCALATED", "escalated", true},
		},
		note: "OPEN counts the requests that waited for the role at the end of the time, and OLDEST how long the oldest of them had waited. ENDED counts the stages that ended, and UNANSWERED those of them that nobody decided in time. " +
			"ESCALATED counts how often a lead was added to a stage, even if the stage has not ended.",
	}
	for _, x := range r.Figures.Roles {
		if x.Open.N+x.Waited.N+x.Escalated > 0 {
			out.rows = append(out.rows, []cell{
				words(x.Name), number(x.Open.N), r.oldest(x.Open), number(x.Waited.N), within(&x.Waited, 50), within(&x.Waited, 90), number(x.Unanswered), number(x.Escalated),
			})
		}
	}
	return out
}

func (r Report) waitingPeople() table {
	out := table{
		id: "waiting_people", title: "Where calls wait, by person", none: "No request waited for a person whom the bot had asked alone.", keys: 1,
		columns: []column{{"PERSON", "person", false}, {"OPEN", "open", true}, {"OLDEST", "oldest_seconds", true}},
		note:    "OPEN counts the requests that the person was sent alone and had not decided. Others may be able to decide them, too.",
	}
	for _, x := range slices.SortedStableFunc(slices.Values(r.Figures.People), func(a, b *audit.PersonFigures) int { return cmp.Compare(b.Open.N, a.Open.N) }) {
		if x.Open.N > 0 {
			out.rows = append(out.rows, []cell{words(x.Name), number(x.Open.N), r.oldest(x.Open)})
		}
	}
	return out
}

func (r Report) rejections() table {
	out := table{
		id: "rejections", title: "What was rejected, and why", none: "Nothing was rejected.", keys: 2,
		columns: []column{
			{"REQUEST", "request", false}, {"TOOL", "tool", false}, {"TIME", "time", false}, {"WHO", "person", false}, {"ROLE", "role", false}, {"REASON", "reason", false},
		},
	}
	if n := len(r.Figures.Rejections); n < r.Figures.Rejected {
		out.note = fmt.Sprintf("These are the newest %d of %d rejections.", n, r.Figures.Rejected)
	}
	for _, x := range r.Figures.Rejections {
		reason, unsaid := words(x.Reason), ""
		switch {
		case x.Lost != "":
			reason, unsaid = cell{"(" + x.Lost + ")", ""}, x.Lost
		case !r.Reasons:
			reason, unsaid = cell{"(left out)", ""}, "left out"
		case x.Reason == "":
			reason, unsaid = cell{"–", ""}, "not given"
		}
		out.unsaid = append(out.unsaid, unsaid)
		out.rows = append(out.rows, []cell{words(x.Request), words(x.Tool), moment(x.At), words(x.By), words(cmp.Or(x.Role, "(operator)")), reason})
	}
	return out
}

func (r Report) tools() table {
	out := table{
		id: "tools", title: "How calls ended, by tool", none: "People were asked about no call.", keys: 1,
		columns: []column{
			{"TOOL", "tool", false}, {"RISK", "risk", false}, {"ASKED", "asked", true}, {"APPROVED", "approved", true}, {"CHANGED", "changed", true}, {"REJECTED", "rejected", true},
			{"EXPIRED", "expired", true}, {"WITHDRAWN", "withdrawn", true}, {"REVOKED", "revoked", true}, {"VOIDED", "voided", true}, {"REFUSED", "refused", true},
			{"OPEN", "open", true}, {"FAILED", "failed", true}, {"UNKNOWN", "unknown", true},
		},
		note: "Nobody could have approved the REFUSED calls. FAILED and UNKNOWN count runs, with or without approval.",
	}
	for _, x := range r.Figures.Tools {
		if x.Asked+x.Approved+x.Rejected+x.Expired+x.Withdrawn+x.Revoked+x.Voided+x.Refused+x.Open+x.Failed+x.Unknown > 0 {
			out.rows = append(out.rows, []cell{
				words(x.Name), words(cmp.Or(x.Risk, "–")), number(x.Asked), number(x.Approved), number(x.Changed), number(x.Rejected), number(x.Expired), number(x.Withdrawn),
				number(x.Revoked), number(x.Voided), number(x.Refused), number(x.Open), number(x.Failed), number(x.Unknown),
			})
		}
	}
	return out
}

func (r Report) unopposed() table {
	out := table{
		id: "unopposed", title: "Tools that nobody rejected", none: "Of each approved tool, a call was also rejected, changed or revoked; or nothing was approved.", keys: 1,
		columns: []column{{"TOOL", "tool", false}, {"RISK", "risk", false}, {"APPROVED", "approved", true}, {"QUICK", "quick_share", true}, {"GRANTS", "grants", false}},
		note: "Nobody rejected, changed or revoked a call to these tools. If a tool has many approvals, consider a grant or a lower risk. " +
			"But if most of them are QUICK, perhaps nobody reads the cards. " +
			"GRANTS says whether the policy allows grants for the tool.",
	}
	for _, x := range slices.SortedStableFunc(slices.Values(r.Figures.Tools), func(a, b *audit.ToolFigures) int { return cmp.Compare(b.Approved, a.Approved) }) {
		if x.Unopposed() {
			grants := cell{"no", "false"}
			if x.Grants {
				grants = cell{"yes", "true"}
			}
			out.rows = append(out.rows, []cell{words(x.Name), words(cmp.Or(x.Risk, "–")), number(x.Approved), share(x.Quick, x.Timed), grants})
		}
	}
	return out
}

func (r Report) rules() table {
	out := table{
		id: "rules", title: "Rules, and how often they matched", none: "The policy has no rules.", keys: 2,
		columns: []column{{"TOOL", "tool", false}, {"RULE", "rule", false}, {"CALLS", "calls", true}, {"MATCHED", "matched", true}, {"LAST", "last", false}},
		note: "Rules that never matched come first. CALLS counts the tool's calls whose records name the rules that matched. " +
			"Records that an older program wrote do not name them.",
	}
	if r.Figures.Policy == "" {
		out.none = "The policy can't be read."
	}
	for _, x := range slices.SortedStableFunc(slices.Values(r.Figures.Rules), func(a, b audit.RuleFigures) int { return cmp.Compare(a.Matched, b.Matched) }) {
		matched := number(x.Matched)
		if x.Calls == 0 {
			matched = cell{"–", ""}
		}
		out.rows = append(out.rows, []cell{words(x.Tool), words(fmt.Sprintf("%d: %s", x.Number, x.When)), number(x.Calls), matched, moment(x.Last)})
	}
	return out
}

func (r Report) automatic() table {
	out := table{
		id: "automatic", title: "Automatic runs", none: "Nothing ran without a request.", keys: 1,
		columns: []column{{"TOOL", "tool", false}, {"RISK", "risk", false}, {"RUNS", "runs", true}, {"UNDER A GRANT", "granted", true}, {"OBSERVED", "observed", true}},
		note:    "Nobody was asked about these runs. OBSERVED counts calls that did not run because of observe mode.",
	}
	for _, x := range slices.SortedStableFunc(slices.Values(r.Figures.Tools), func(a, b *audit.ToolFigures) int { return cmp.Compare(b.Automatic, a.Automatic) }) {
		if x.Automatic+x.Observed > 0 {
			out.rows = append(out.rows, []cell{words(x.Name), words(cmp.Or(x.Risk, "–")), number(x.Automatic), number(x.Granted), number(x.Observed)})
		}
	}
	return out
}
