package auditcmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/cmd/countersign/openstore"
	"countersign/store"
)

// aDecision is one decision of a test history.
type aDecision struct {
	who, role string
	kind      approvers.DecisionKind
	took      string // empty: the time is not known
}

var paceDay = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func emptyStore(t *testing.T) store.Store {
	t.Helper()
	db, err := openstore.File(filepath.Join(t.TempDir(), "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// The function "recorded" writes a history with the decisions. Each decision belongs to its own request. Consecutive
// decisions are one day apart.
func recorded(t *testing.T, s store.Store, decisions ...aDecision) {
	t.Helper()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for i, d := range decisions {
			id := approvers.Who("T0001", d.who)
			at := paceDay.Add(time.Duration(i) * 24 * time.Hour)
			r := approvers.Request{
				ID: fmt.Sprintf("req_%03d", i), State: approvers.Consumed, CreatedAt: at, ExpiresAt: at,
				Decisions: []approvers.Decision{{By: id, Name: map[string]string{"U0002": "Teo", "U0003": "In\x1bgrid\t", "U0004": "Kenji"}[d.who]}},
			}
			if d.who != "U0004" { // the requests that this person decided were erased
				if err := tx.PutRequest(r); err != nil {
					return err
				}
			}
			facts := map[string]string{"kind": string(d.kind), "role": d.role}
			if took, err := time.ParseDuration(d.took); err == nil {
				facts["took"] = fmt.Sprint(took.Milliseconds())
			}
			first := approvers.AuditRecord{Chain: r.ID, At: at, Kind: approvers.AuditProposed}.Link(approvers.AuditRecord{})
			second := approvers.AuditRecord{Chain: r.ID, At: at, Kind: approvers.AuditDecided, Actor: id, Facts: facts}.Link(first)
			for _, a := range []approvers.AuditRecord{first, second} {
				if err := tx.AppendAudit(a, nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const yes, no, other = approvers.Approve, approvers.Reject, approvers.Modify

var someDecisions = []aDecision{
	{"U0003", "finance-director", yes, "2m"},
	{"U0004", "finance-director", no, "1h30m"},
	{"U0004", "finance-director", no, ""},
	{"U0002", "team-lead", yes, "1s"},
	{"U0002", "team-lead", yes, "2.999s"},
	{"U0002", "team-lead", yes, "2s"},
	{"U0002", "team-lead", yes, "3s"}, // too slow to count as quick
	{"U0002", "team-lead", yes, ""},   // the time is unknown, so the share of quick approvals does not include this approval
	{"U0002", "team-lead", no, "1s"},  // a quick rejection does not count as quick, because a rejected call does not run
	{"U0002", "team-lead", other, "48s"},
	{"U0003", "team-lead", yes, "40s"}, // this person decided as a stand-in
}

// The report has exactly the figures in the table of docs/metrics.md.
func TestPace(t *testing.T) {
	db := emptyStore(t)
	recorded(t, db, someDecisions...)
	var out bytes.Buffer
	if err := printDecisionReport(t.Context(), &out, db, time.Time{}); err != nil {
		t.Fatal(err)
	}
	const want = `ROLE              DECISIONS  APPROVALS  QUICK  MEDIAN  90 %   CHANGED  REJECTED
team-lead         8          6          60 %   3s      48s    12 %     12 %
finance-director  3          1          0 %    2m0s    1h30m  0 %      67 %

PERSON              DECISIONS  APPROVALS  QUICK  MEDIAN  90 %   CHANGED  REJECTED
Teo T0001/U0002     7          5          75 %   2s      48s    14 %     14 %
Ingrid T0001/U0003  2          2          0 %    40s     2m0s   0 %      0 %
T0001/U0004         2          0          –      1h30m   1h30m  0 %      100 %
`
	table, words, _ := strings.Cut(out.String(), "\nQUICK is")
	if table != want || !strings.Contains(words, "approved unread") {
		t.Errorf("the table is\n%s\nwant\n%s", out.String(), want)
	}
	doc, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "$ countersign audit pace --since 720h\n"+out.String()+"```") {
		t.Errorf("docs/metrics.md does not show\n%s", out.String())
	}
}

// Only decisions in the period count.
func TestPaceSince(t *testing.T) {
	db := emptyStore(t)
	recorded(t, db, someDecisions...)
	var out bytes.Buffer
	if err := printDecisionReport(t.Context(), &out, db, paceDay.Add(9*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "ROLE       DECISIONS  APPROVALS  QUICK  MEDIAN  90 %  CHANGED  REJECTED\nteam-lead  2          1          0 %    40s     48s   50 %     0 %\n\n") {
		t.Errorf("the last two decisions are summed up as\n%s", out.String())
	}
	out.Reset()
	if err := printDecisionReport(t.Context(), &out, db, paceDay.Add(1000*24*time.Hour)); err != nil || out.String() != "Nobody has decided anything in this time.\n" {
		t.Errorf("%v: %s", err, out.String())
	}
}
