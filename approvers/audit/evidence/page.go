package evidence

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/internal/visible"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// step is a record on the page.
type step struct {
	Seq      uint64
	At, Kind string
	Sentence string
	Facts    [][2]string
	Text     string // the payload, if it is not a card
	Note     string // shown instead of a payload that is missing
	Card     *card
	Key      bool // the record is central to the story; the page shows other records smaller
}

// card is a posted version of a card.
type card struct {
	Number  int
	HTML    template.HTML
	Same    int    // the number of an earlier card that looks the same, so the page does not show this card in full; 0: there is no such card
	Decided string // the people who decided on this version
}

type story struct {
	Title, Chain, Outcome string
	Lines                 [][2]string
	Checks                []check
	Head                  [][2]string // the signed head
	Note                  string
	Steps                 []step
}

// Write writes the page.
func Write(w io.Writer, p Page) error {
	data := struct {
		Title, MadeAt, MadeBy string
		Stories               []story
	}{MadeAt: moment(p.MadeAt), MadeBy: p.MadeBy}
	for _, s := range p.Stories {
		told, err := s.tell()
		if err != nil {
			return fmt.Errorf("%s: %w", s.Chain, err)
		}
		data.Stories = append(data.Stories, told)
	}
	data.Title = fmt.Sprintf("Evidence on %d requests", len(p.Stories))
	if len(p.Stories) == 1 {
		data.Title = "Evidence on " + data.Stories[0].Title
	}
	if err := pageTemplate.Execute(w, data); err != nil {
		return fmt.Errorf("the page can't be written: %w", err)
	}
	return nil
}

// tell converts a story for the page.
func (s Story) tell() (story, error) {
	out := story{Title: s.Chain, Chain: s.Chain, Checks: s.checks(), Head: s.Seal.lines(), Note: s.Seal.Note}
	proposed, _ := s.first(approvers.AuditProposed)
	if tool := proposed.Facts["tool"]; tool != "" {
		out.Title = tool
	}
	var ended string
	out.Outcome, ended = s.outcome()
	out.Lines = s.summary(proposed, ended)
	looks := map[string]int{}
	for _, e := range s.Entries {
		st := step{Seq: e.Seq, At: moment(e.At), Kind: spaced(string(e.Kind)), Sentence: visible.Text(s.sentence(e)), Facts: facts(e), Key: e.Kind != approvers.AuditShown}
		switch {
		case e.State == Erased:
			st.Note = "Its text was erased."
		case e.State == Missing:
			st.Note = "Its text is missing, and no record says why."
		case e.State == Changed:
			st.Note = "Its text was changed since, and is not shown."
		case e.Kind == approvers.AuditShown && e.State == Whole:
			messages, err := readMessages(e.Payload)
			if err != nil {
				return out, fmt.Errorf("record %d: %w", e.Seq, err)
			}
			st.Card = &card{Number: len(looks) + 1, Decided: visible.Text(s.decidedOn(e))}
			if n, drawn := looks[look(messages)]; drawn && st.Card.Decided == "" {
				st.Card.Same = n
			} else {
				looks[look(messages)] = st.Card.Number
				st.Card.HTML = draw(messages, s.user)
			}
		case e.State == Whole:
			if st.Text = readable(e.Payload); st.Text == "{}" { // a decision without a reason
				st.Text = ""
			}
		}
		out.Steps = append(out.Steps, st)
	}
	return out, nil
}

// decidedOn returns the names of the people who decided on a shown rendering. A rendering that was shown to one person
// is a rendering on which only this person decided.
func (s Story) decidedOn(shown Entry) string {
	var names []string
	for _, e := range s.Entries {
		if e.Kind != approvers.AuditDecided || e.Facts["rendering"] != shown.Facts["rendering"] || shown.Actor != "" && shown.Actor != e.Actor {
			continue
		}
		if name := s.who(e.Actor); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// outcome returns a sentence about how the request ended, and the time of the end. A call without a run and without a
// request, such as a question from the model, ends when its result is returned.
func (s Story) outcome() (words, at string) {
	words = "It has not ended yet."
	ended := false
	for _, e := range s.Entries {
		switch e.Kind {
		case approvers.AuditExecuted, approvers.AuditClosed, approvers.AuditUnknown, approvers.AuditReported:
			ended = true
		case approvers.AuditReturned:
			if ended {
				continue
			}
		default:
			continue
		}
		words, at = s.sentence(e), moment(e.At)
	}
	return visible.Text(words), at
}

// summary returns rows about the request, the requester, the approvers, and the times.
func (s Story) summary(proposed Entry, ended string) [][2]string {
	votes := s.tallied()
	people := func(list []vote) string {
		lines := make([]string, len(list))
		for i, v := range list {
			lines[i] = s.voter(v)
		}
		return strings.Join(lines, "\n")
	}
	lines := append([][2]string{{"What", s.headline()}, {"With", s.arguments()}}, s.askers(proposed.Facts)...)
	lines = append(lines, [][2]string{
		{"In these words", s.words()},
		{"Request", s.Chain}, {"Proposed", moment(proposed.At)}, {"Risk", votes.risk}, {"Policy", proposed.Facts["policy"]},
		{"Changed by", people(votes.edited())}, {"Allowed by", people(votes.allowed())}, {"Against", people(votes.against())},
		{"No longer counts", people(votes.lapsed())}, {"Ended", ended},
	}...)
	kept := lines[:0]
	for _, l := range lines {
		if l[1] != "" {
			kept = append(kept, [2]string{l[0], visible.Text(l[1])})
		}
	}
	return kept
}

// voter returns a person, with the role and the time of a decision. If the row does not say what the person decided,
// voter adds it.
func (s Story) voter(v vote) string {
	who := s.who(v.Actor)
	if role := v.Facts["role"]; role != "" {
		who += " as " + role
	}
	who += ", " + moment(v.At)
	switch {
	case v.is(approvers.Modify):
		who += " (changed the arguments)"
	case !v.counts && v.is(approvers.Reject):
		who += " (rejected it)"
	case !v.counts:
		who += " (approved it)"
	}
	return who
}

// cards returns the posted versions of the request's own card, in order.
func (s Story) cards() (out []ownCard) {
	for _, e := range s.Entries {
		if own := e.Facts[approvers.FactShownAs] == "card" || e.Facts[approvers.FactShownAs] == "escalation"; e.Kind != approvers.AuditShown || e.State != Whole || !own {
			continue
		}
		if messages, err := readMessages(e.Payload); err == nil {
			out = append(out, ownCard{e.Facts["digest"], messages})
		}
	}
	return out
}

// ownCard is a posted version of a request's own card, with the digest of the arguments that it shows.
type ownCard struct {
	digest   string
	messages []message
}

// heading returns the card's heading, which describes the call's effect.
func (c ownCard) heading() string {
	for _, m := range c.messages {
		for _, b := range m.Blocks {
			if b.Type == "header" {
				return b.words()
			}
		}
	}
	return ""
}

// headline returns the heading of the first card that shows the current arguments. If no card shows them, headline
// returns the heading of the first card.
func (s Story) headline() string {
	digest := ""
	for _, e := range s.Entries {
		if e.Kind == approvers.AuditProposed || e.Kind == approvers.AuditDecided && e.Facts["kind"] == string(approvers.Modify) {
			digest = e.Facts["digest"]
		}
	}
	words := ""
	for _, c := range s.cards() {
		heading := c.heading()
		if c.digest == digest && heading != "" {
			return heading
		}
		words = cmp.Or(words, heading)
	}
	return words
}

// arguments returns the arguments as proposed, or as an approver last changed them, one on each line.
func (s Story) arguments() string {
	var args json.RawMessage
	for _, e := range s.Entries {
		switch {
		case e.State != Whole:
		case e.Kind == approvers.AuditProposed:
			args = e.Payload
		case e.Kind == approvers.AuditDecided && e.Facts["kind"] == string(approvers.Modify):
			var body struct {
				Args string `json:"args"`
			}
			if json.Unmarshal(e.Payload, &body) == nil && body.Args != "" {
				args = json.RawMessage(body.Args)
			}
		}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return ""
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		lines = append(lines, name+": "+string(members[name]))
	}
	return strings.Join(lines, "\n")
}

// words returns the message of the requester. The chain contains this message only as a part of the cards. If no card
// shows the message, words adds a line that says so.
func (s Story) words() string {
	if s.Words == "" {
		return ""
	}
	begins, _, _ := strings.Cut(visible.Text(s.Words), "\n")
	if r := []rune(begins); len(r) > 60 {
		begins = string(r[:60])
	}
	for _, c := range s.cards() {
		if raw, err := json.Marshal(begins); err == nil && strings.Contains(look(c.messages), strings.Trim(string(raw), `"`)) {
			return s.Words
		}
	}
	return s.Words + "\n(as the store has it; no recorded card shows it)"
}

// everybody returns the names of the people whose ids are in a list with commas.
func (s Story) everybody(ids string) string {
	var names []string
	for id := range strings.SplitSeq(ids, ",") {
		if id != "" {
			names = append(names, s.who(approvers.PersonID(id)))
		}
	}
	return strings.Join(names, ", ")
}

// facts returns a record's facts, ordered by name, and the record's hash.
func facts(e Entry) [][2]string {
	var out [][2]string
	for _, name := range slices.Sorted(maps.Keys(e.Facts)) {
		if e.Facts[name] != "" {
			out = append(out, [2]string{name, visible.Text(e.Facts[name])})
		}
	}
	return append(out, [2]string{"hash", e.Hash})
}

// readable returns a payload as text, with JSON indented and hidden characters made visible.
func readable(payload []byte) string {
	var indented bytes.Buffer
	if json.Valid(payload) && json.Indent(&indented, payload, "", "  ") == nil {
		return visibleLines(indented.String())
	}
	if !utf8.Valid(payload) {
		return fmt.Sprintf("%x", payload)
	}
	return visibleLines(string(payload))
}

// visibleLines makes hidden characters visible, and keeps line breaks and indentation.
func visibleLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		text := strings.TrimLeft(line, " ")
		lines[i] = line[:len(line)-len(text)] + visible.Text(text)
	}
	return strings.Join(lines, "\n")
}

// moment formats a time for the page, to the millisecond.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000 UTC")
}
