package scenario

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// verb is an action of people with a button.
type verb struct {
	words  string // the words in a scenario. TOOL, NAME and LABEL are placeholders; the text after a colon goes into the form that opens
	button string // the button's label, without the dots of a button that opens a form; empty: LABEL
	needs  string // an example of the text after the colon; set if that text is required
	named  bool   // the text after the colon names fields (field=value, field=value); otherwise it goes into the form's text field
}

// verbs lists all verbs. If a line matches several verbs, the first of them counts.
var verbs = []verb{
	{words: "approves all", button: "Approve all"},
	{words: "rejects all", button: "Reject all", needs: "too much"},
	{words: "puts TOOL on its own card", button: "Open separately"},
	{words: "approves TOOL", button: "Approve"},
	{words: "reads and approves TOOL", button: "Details"},
	{words: "rejects TOOL", button: "Reject", needs: "too much"},
	{words: "modifies TOOL", button: "Modify", needs: "amount=20", named: true},
	{words: "withdraws all", button: "Withdraw and continue with this"},
	{words: "withdraws TOOL", button: "Withdraw"},
	{words: "tries again", button: "Try again"},
	{words: "asks about TOOL", button: "Ask", needs: "is it the blue one?"},
	{words: "answers", button: "Answer", needs: "yes, it is"},
	{words: "comments on TOOL", button: "Comment", needs: "the third this week"},
	{words: "hands TOOL on to NAME", button: "Hand on"},
	{words: "takes back TOOL", button: "Take back", needs: "the wrong order"},
	{words: "allows more TOOL", button: "Allow more", named: true},
	{words: "revokes the grant", button: "Revoke"},
	{words: "accepts the grant", button: "Accept"},
	{words: "declines the grant", button: "Decline"},
	{words: "chooses LABEL", button: ""},
	{words: "reports that TOOL happened", button: "It happened", needs: "refund RF-9"},
	{words: "reports that TOOL did not happen", button: "It did not"},
	{words: "leaves TOOL unknown", button: "Leave it"},
	{words: "asks again for TOOL", button: "Ask again"},
	{words: "resumes", button: "Resume"},
}

// click is a verb with its values from a scenario.
type click struct {
	verb
	who    string
	tool   string
	like   string // words that distinguish the call from other calls to the same tool
	person string // the person in place of NAME
	label  string // the button's label
	text   string // the text after the colon
	tries  bool   // the action may be impossible
}

// clickForm matches a verb in a line.
type clickForm struct {
	verb
	match *regexp.Regexp
}

var clickForms = func() (forms []clickForm) {
	for _, v := range verbs {
		first, rest, _ := strings.Cut(v.words, " ")
		words := "(?:" + first + "|tries to " + infinitive(first) + ")"
		if rest != "" {
			words += " " + rest
		}
		words = strings.NewReplacer(
			"TOOL", `(?P<tool>[\w.-]+)(?: \((?P<like>[^)]+)\))?`, "NAME", `(?P<person>\w+)`, "LABEL", `(?P<label>[^:]+)`,
		).Replace(words)
		forms = append(forms, clickForm{v, regexp.MustCompile(`^(?P<who>\w+) ` + words + `(?:: (?P<text>.+))?$`)})
	}
	return forms
}()

// infinitive turns a verb in the third person into the form that follows "tries to".
func infinitive(third string) string {
	if stem, ok := strings.CutSuffix(third, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(third, "s")
}

// read reads the values of a line that matches the form.
func (f clickForm) read(text string) (click, error) {
	m := f.match.FindStringSubmatch(text)
	part := func(name string) string {
		if i := f.match.SubexpIndex(name); i >= 0 {
			return m[i]
		}
		return ""
	}
	do := click{
		verb: f.verb, who: part("who"), tool: part("tool"), like: part("like"), person: part("person"), label: f.button, text: part("text"),
		tries: strings.HasPrefix(text, part("who")+" tries to "),
	}
	if f.button == "" {
		do.label = part("label")
	}
	if f.needs != "" && do.text == "" {
		return do, fmt.Errorf("incomplete line; write \"%s: %s\"", text, f.needs)
	}
	if f.named && do.text != "" && !strings.Contains(do.text, "=") {
		return do, fmt.Errorf("name the field: \"%s: %s\"", strings.TrimSuffix(text, ": "+do.text), "amount=20")
	}
	return do, nil
}

// verbLines has the lines for actions with buttons.
var verbLines = func() (lines []line) {
	for _, f := range clickForms {
		form := "NAME " + f.words
		if f.needs != "" {
			form += ": " + f.needs
		}
		lines = append(lines, line{form, f.match, func(m []string) (action, error) {
			do, err := f.read(m[0])
			return action{where: nowhere, play: func(ctx context.Context, p *player) error { return p.click(ctx, do) }}, err
		}})
	}
	return lines
}()
