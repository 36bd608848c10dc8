package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/bot/render"
	"countersign/cmd/countersign/cli"
	"countersign/internal/visible"
)

// print lists everything that waits, in full if one item was asked for.
func (p pending) print(out io.Writer, whole bool) {
	if p.Paused != nil {
		fmt.Fprintf(out, "Everything is paused, by %s since %s: %s\n\n", visible.Line(string(p.Paused.By)), cli.Moment(p.Paused.At), visible.Line(p.Paused.Reason))
	}
	for i, r := range p.Requests {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if whole {
			p.printWhole(out, r)
		} else {
			p.printBrief(out, r)
		}
	}
	for i, u := range p.Unknown {
		if i > 0 || len(p.Requests) > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s · %s · it is unknown whether it happened\n", u.Execution, visible.Line(u.Tool))
		fmt.Fprintf(out, "  started %s for %s; the agent is told that nobody knows at %s\n", cli.Moment(u.Started), visible.Line(u.Where), cli.Moment(u.Until))
		if u.Request != "" {
			fmt.Fprintf(out, "  of request %s\n", u.Request)
		}
		if whole {
			printArguments(out, []byte(u.Args))
		}
		fmt.Fprintf(out, "  once you know: countersign report %s happened|did-not --reason …\n", u.Execution)
	}
	if len(p.Requests)+len(p.Unknown) == 0 {
		fmt.Fprintln(out, "Nothing waits.")
	}
}

func (p pending) printBrief(out io.Writer, r waitingCall) {
	fmt.Fprintf(out, "%s · %s · %s risk · %s\n", r.ID, visible.Line(r.Tool), r.Risk, r.stands())
	fmt.Fprintf(out, "  %s\n", visible.Line(r.does()))
	fmt.Fprintf(out, "  asked by %s in %s, %s\n", visible.Line(r.asker()), visible.Line(r.Where), cli.Moment(r.Since))
	fmt.Fprintf(out, "  %s\n", p.deadline(r))
	for _, t := range r.Trouble {
		fmt.Fprintf(out, "  ! %s\n", visible.Line(t))
	}
}

// stands describes the state of a request.
func (r waitingCall) stands() string {
	switch r.State {
	case approvers.Pending:
		text := "waits for " + visible.Line(r.WaitsFor)
		if len(r.Stages) > 1 {
			text += fmt.Sprintf(", stage %d of %d", r.Stage, len(r.Stages))
		}
		if r.Quorum > 1 {
			text += fmt.Sprintf(", %d of %d agreed", r.Agreed, r.Quorum)
		}
		return text
	case approvers.Approved:
		return "approved, not run yet"
	}
	return string(r.State)
}

func (r waitingCall) does() string { return cmp.Or(r.What, "runs "+r.Tool) }

func (r waitingCall) asker() string {
	return strings.TrimSpace(r.AskerName + " (" + string(r.Asker) + ")")
}

// deadline says when the request ends without a decision, and how.
func (p pending) deadline(r waitingCall) string {
	left := r.Until.Sub(p.Now)
	switch {
	case r.State == approvers.Approved && left <= 0:
		return "it was to be run by " + cli.Moment(r.Until) + ", and will not run any more"
	case r.State == approvers.Approved:
		return "to be run by " + cli.Moment(r.Until) + ", in " + cli.Duration(left)
	case left <= 0:
		return "its time ended at " + cli.Moment(r.Until) + ": nobody can decide it any more"
	}
	return "waits until " + cli.Moment(r.Until) + ", for another " + cli.Duration(left)
}

// printWhole prints everything that an approver has to see.
func (p pending) printWhole(out io.Writer, w waitingCall) {
	r := *w.Request
	row := func(name, text string) { fmt.Fprintf(out, "%-10s %s\n", name, text) }
	row("Request", w.ID+", "+w.stands())
	row("What", visible.Line(w.does()))
	if r.PreviewFault != "" {
		row("", "! the sentence that says what it does could not be made: "+visible.Line(r.PreviewFault))
	}
	switch f := r.ToolPreview; {
	case f.Making():
		row("", "! a preview is being made by "+visible.Line(f.By))
	case f != nil && f.State == approvers.ToolPreviewFailed:
		row("", "! the preview could not be made: "+visible.Line(f.Fault))
	case f != nil && f.Text != "":
		row("", visible.Line(f.By)+" says of it: "+visible.Line(f.Text))
	}
	row("Tool", fmt.Sprintf("%s, %s risk; %s", visible.Line(w.Tool), w.Risk, effectWords[r.Effect]))
	row("Asked by", visible.Line(w.asker())+" in "+visible.Line(w.Where)+", "+cli.Moment(w.Since))
	for _, who := range r.Facts.Requesters {
		if who != r.Facts.Asker {
			row("", "and "+visible.Line(string(who)))
		}
	}
	row("Words", "“"+visible.Line(r.Facts.Quote)+"”")
	row("Why", visible.Line(strings.Join(r.Plan.Why, "; ")))
	for i, s := range w.Stages {
		name := ""
		if i == 0 {
			name = "Stages"
		}
		here := ""
		if i == r.Stage && r.State == approvers.Pending {
			for _, joined := range append(slices.Clone(r.Joined), invitedNames(r)...) {
				here += " or " + visible.Line(joined)
			}
			here += " ← now"
		}
		row(name, fmt.Sprintf("%d. %s%s", i+1, visible.Line(s), here))
	}
	if r.State.Open() {
		row("Deadline", p.deadline(w))
	} else {
		row("Ended", endText(r))
	}
	printHistory(out, r)
	for _, t := range w.Trouble {
		row("Trouble", visible.Line(t))
	}
	if w.Run != nil && w.Run.State != approvers.ExecutionNone {
		row("Run", w.Run.Execution+", "+string(w.Run.State)+", started "+cli.Moment(w.Run.Started))
	}
	if r.Erased() {
		row("Arguments", "erased: \"countersign audit list --request "+w.ID+"\" says when, by whom and why")
	} else {
		printArguments(out, r.Args)
	}
	row("Digest", w.Digest)
	fmt.Fprintln(out)
	if !r.State.Open() || !p.Now.Before(w.Until) {
		return
	}
	fmt.Fprintf(out, "To stop it:     countersign decide %s reject --reason …\n", w.ID)
	if r.State == approvers.Pending && w.BreakGlass {
		fmt.Fprintf(out, "To approve it in place of everybody who is asked:\n                countersign decide %s approve --digest %s --reason …\n", w.ID, w.Digest[:shownDigest])
	} else if r.State == approvers.Pending {
		fmt.Fprintln(out, "It can't be approved here: the policy has no break_glass: true for this tool.")
	}
}

// endText says when and why a request ended, and who ended it.
func endText(r approvers.Request) string {
	text := cli.Moment(r.ClosedAt)
	if r.ClosedBy != "" {
		text += ", by " + strings.TrimSpace(r.ClosedName+" ("+string(r.ClosedBy)+")")
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return visible.Line(text)
}

// effectWords describe the effect of a second run.
var effectWords = map[approvers.Effect]string{
	approvers.ReadOnly: "it changes nothing", approvers.Idempotent: "it acts once, also when it is run again", approvers.Unprotected: "it acts each time it is run",
}

func invitedNames(r approvers.Request) []string {
	var out []string
	for _, i := range r.Invited {
		out = append(out, i.Name)
	}
	return out
}

// printHistory lists the decisions, edits and remarks in order.
func printHistory(out io.Writer, r approvers.Request) {
	type entry struct {
		at   time.Time
		text string
	}
	var all []entry
	for _, d := range r.Decisions {
		text := fmt.Sprintf("%s: %s", d.Name, d.Kind)
		if d.Role != "" {
			text = fmt.Sprintf("%s (%s): %s", d.Name, d.Role, d.Kind)
		}
		text += fmt.Sprintf(" at stage %d", d.Stage+1)
		if d.BreakGlass {
			text += ", in place of everybody who was asked"
		}
		if d.Fallen {
			text += ", counts no more"
		}
		if d.Reason != "" {
			text += ": " + d.Reason
		}
		all = append(all, entry{d.At, text})
	}
	for _, m := range r.Remarks {
		all = append(all, entry{m.At, fmt.Sprintf("%s: %s: %s", m.Name, m.Kind, m.Text)})
	}
	for _, e := range r.Edits {
		all = append(all, entry{e.At, fmt.Sprintf("%s (%s) changed the arguments, which were %s", e.Name, e.Role, e.Before)})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.at.Compare(b.at) })
	for i, e := range all {
		name := ""
		if i == 0 {
			name = "So far"
		}
		fmt.Fprintf(out, "%-10s %s  %s\n", name, cli.Moment(e.at), visible.Line(e.text))
	}
}

// printArguments prints the exact arguments in full.
func printArguments(out io.Writer, args []byte) {
	fmt.Fprintln(out, "Arguments, whole, as they are sent to the tool:")
	for line := range strings.Lines(render.ArgumentText(args) + "\n") {
		fmt.Fprint(out, "  ", line)
	}
}

// plainJSON escapes characters that a terminal could interpret or hide.
func plainJSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for _, r := range string(raw) {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
