package bot

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// typedForm asks whoever approves something critical to type one of its values, so that it is not approved by habit.
func typedForm(r approvers.Request, f formMark) slack.ModalViewRequest {
	p := new(page)
	_, risk := riskWords(r.Plan.Risk, r.Effect)
	p.para(new(prose).strong(clip(whatHappens(r.Preview, r.Tool), maxHeadline)), say("🔴 "+risk))
	p.exact(argumentText(r.Args))
	p.blocks = append(p.blocks, typedInput(r))
	return submittable(modal(formTitles[actTyped], p), actTyped, "Approve", f)
}

func typedInput(r approvers.Request) slack.Block {
	what, value := typedValue(r)
	return textInput(fieldTyped, fmt.Sprintf("To approve, type %s: %s", what, value), "It is asked for because this is critical.", "", false, false)
}

// maxTyped is the longest value that somebody is asked to type.
const maxTyped = 40

// typedValue picks what is to be typed: the call's first number, or else its first short word, or else the tool's name.
func typedValue(r approvers.Request) (what, value string) {
	names, values := membersOf(r.Args)
	for _, n := range names {
		if v := string(values[n]); plainNumber.MatchString(v) {
			return "the value of " + name(n), v
		}
	}
	for _, n := range names {
		if v := values[n]; len(v) > 2 && v[0] == '"' && len(v) <= maxTyped && !strings.ContainsAny(string(v), " \\") && countHidden(string(v)) == 0 {
			return "the value of " + name(n), string(v[1 : len(v)-1])
		}
	}
	return "the tool's name", r.Tool
}

// mistyped is what is wrong with a typed value, or "".
func mistyped(r approvers.Request, typed string) string {
	if _, want := typedValue(r); strings.TrimSpace(typed) != want {
		return "This must be exactly " + visible(want) + "."
	}
	return ""
}
