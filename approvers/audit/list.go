package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/approvers/audit/evidence"
	"countersign/internal/visible"
	"countersign/store"
)

// ListOptions selects the records to list.
type ListOptions struct {
	Filter
	Long bool `json:"long,omitempty"` // each record with its facts
}

// List prints one line for each call that has a selected record: the time, the call, who decided, how the call ended,
// and the name of its chain. A selected record that belongs to no call has a line of its own. If Long is set, List
// prints the selected records instead.
func List(ctx context.Context, out io.Writer, s store.Store, o ListOptions) error {
	records, left, err := o.Records(ctx, s)
	if err != nil {
		return err
	}
	if o.Long {
		err = listRecords(out, records)
	} else {
		err = listRequests(ctx, out, s, records)
	}
	if err != nil {
		return err
	}
	return left.Err()
}

func listRecords(out io.Writer, records []approvers.AuditRecord) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME (UTC)\tWHAT\tWHO\tREQUEST\tFACTS")
	for _, r := range records {
		who := string(r.Actor)
		if who == "" {
			who = "the bot"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.At.UTC().Format(time.DateTime), r.Kind, who, r.Chain, facts(r.Facts))
	}
	return w.Flush()
}

// facts formats the facts of a record, ordered by name.
func facts(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for k, v := range m {
		if v != "" {
			parts = append(parts, fmt.Sprintf("%s=%q", k, v))
		}
	}
	sort.Strings(parts)
	return strings.Join(parts, " ")
}

// maxLine is the width of a line of the list.
const maxLine = 120

// line is one line of the list.
type line struct {
	at       time.Time
	what     string // shortened if the line is too long
	rest     string // who decided, and how it ended
	chain    string
	sentence bool // the field what is a whole sentence, and rest is empty
}

// listRequests prints a line for each call with at least one of the records. If a chain does not belong to a call, each
// of the records in this chain has its own line.
func listRequests(ctx context.Context, out io.Writer, s store.Store, records []approvers.AuditRecord) error {
	var lines []line
	done := map[string]bool{}
	for _, a := range records {
		if done[a.Chain] {
			continue
		}
		done[a.Chain] = true
		var of []line
		err := s.View(ctx, func(r store.Reader) (err error) {
			of, err = linesOf(r, a.Chain, records)
			return err
		})
		if err != nil {
			return fmt.Errorf("the history of %s can't be read: %w", a.Chain, err)
		}
		lines = append(lines, of...)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	w := &strings.Builder{}
	fmt.Fprintf(w, "%-16s  %-69s  %s\n", "TIME (UTC)", "WHAT · WHO DECIDED · HOW IT ENDED", "REQUEST")
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
	_, err := io.WriteString(out, w.String())
	return err
}

// String returns the line with at most maxLine characters. If the line is too long, String first shortens the field
// named what.
func (l line) String() string {
	room := maxLine - 16 - 4 - utf8.RuneCountInString(l.chain)
	text := cut(l.what, room)
	if !l.sentence {
		rest := cut(l.rest, room-min(utf8.RuneCountInString(l.what), room/3)-3)
		text = cut(l.what, room-utf8.RuneCountInString(rest)-3) + " · " + rest
	}
	return l.at.UTC().Format("2006-01-02 15:04") + "  " + text + strings.Repeat(" ", max(0, room-utf8.RuneCountInString(text))) + "  " + l.chain
}

// cut shortens a text to n characters. A text that was cut ends with "…".
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n-1)]) + "…"
}

// linesOf returns one line for the chain of a call. For any other chain, linesOf returns one line for each selected
// record.
func linesOf(r store.Reader, id string, selected []approvers.AuditRecord) ([]line, error) {
	chain, err := r.Audit(id)
	if _, damaged := damagedRows(err); err != nil && !damaged {
		return nil, err
	}
	names, err := peopleOf(r, id)
	if err != nil {
		return nil, err
	}
	told := evidence.Story{Chain: id, Names: names}
	e, err := r.Execution(id)
	if _, damaged := damagedRows(err); !damaged && store.IgnoreNotFound(err) != nil {
		return nil, err
	}
	told.Asked = e.Request != ""
	for _, a := range chain {
		told.Entries = append(told.Entries, evidence.Entry{AuditRecord: a})
	}
	if len(chain) == 0 || chain[0].Kind != approvers.AuditProposed {
		var out []line
		for _, a := range selected {
			if a.Chain == id {
				out = append(out, line{at: a.At, what: visible.Line(told.Sentence(a)), chain: id, sentence: true})
			}
		}
		return out, nil
	}
	what, err := headline(r, chain[0])
	if err != nil {
		return nil, err
	}
	at, rest := told.Decision()
	return []line{{at: at, what: visible.Line(what), rest: visible.Line(rest), chain: id}}, nil
}

// headline returns a description of a call's effect: the call's preview, or the tool and the arguments.
func headline(r store.Reader, proposed approvers.AuditRecord) (string, error) {
	tool := proposed.Facts["tool"]
	call, err := r.Call(proposed.Facts["call"])
	if _, damaged := damagedRows(err); damaged || store.IgnoreNotFound(err) == nil && err != nil {
		return tool, nil //nolint:nilerr // a call that was removed or can't be read is described by its tool's name
	}
	if err != nil {
		return "", err
	}
	if call.Preview != "" {
		return call.Preview, nil
	}
	args, err := approvers.StrictArgs([]byte(call.Args), false)
	if err != nil || len(args) == 0 {
		return tool, nil //nolint:nilerr // arguments that can't be read are left out
	}
	var parts []string
	for name, value := range approvers.MaskValues(args, call.Secrets) {
		text, ok := value.(string)
		if raw, err := json.Marshal(value); err == nil && !ok {
			text = string(raw)
		}
		parts = append(parts, name+": "+text)
	}
	sort.Strings(parts)
	return tool + ", " + strings.Join(parts, ", "), nil
}
