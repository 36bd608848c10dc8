package form

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
)

// allowsMore reports whether an approver of this request may allow more calls of the same kind.
func allowsMore(r approvers.Request, p *approvers.Policy, now time.Time) bool {
	return r.Grantable(approvers.DecisionContext{Policy: p, Now: now})
}

// allowForm returns the form that approves a call and allows more calls of the same kind without approval.
func allowForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	m.Digest, m.Stage = s.ShownRequest().Digest, s.ShownRequest().Stage
	terms := grantTerms(r, s.Policy)
	g, d := r.Allow(in, m, approvers.Allowance{Uses: terms.Uses, Within: terms.Within})
	if d == nil && !s.ShownRequest().Whole {
		d = &approvers.Denied{Code: approvers.DeniedUnseen}
	}
	if d != nil {
		return TextModal(control.ActAllow, DeniedText(d, &r, s.Policy))
	}
	p := new(block.Builder)
	p.Para(block.Say("You approve this now: ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)),
		block.Say("You also let more calls to ").Code(block.Name(r.Tool)).Say(" run without asking, for everybody in this conversation:"))
	p.Blocks = append(p.Blocks, usesInput(terms), withinInput(terms))
	for _, b := range g.Bounds {
		if b.AtMost != nil {
			p.Blocks = append(p.Blocks, atMostInput(b))
		}
	}
	p.Para(fixedArguments(g)...)
	p.Small("All other calls still wait for approval, and so do calls that you ask for. Everybody in the conversation sees each use. You can revoke this grant at any time.")
	return s.sendable(p, control.ActAllow, "Approve and allow")
}

// grantTerms returns the current policy's terms for grants of the request's tool.
func grantTerms(r approvers.Request, p *approvers.Policy) approvers.GrantTerms {
	t, _ := p.Tool(r.Tool, r.Agent)
	return t.Grants
}

func usesInput(terms approvers.GrantTerms) slack.Block {
	in := slack.NewNumberInputBlockElement(nil, actionValue, false).WithInitialValue(strconv.Itoa(terms.Uses)).WithMinValue("1").WithMaxValue(strconv.Itoa(terms.Uses))
	return inputBlock(control.FieldUses, "How many more", fmt.Sprintf("At most %d, by the policy.", terms.Uses), in, false)
}

func withinInput(terms approvers.GrantTerms) slack.Block {
	var options []*slack.OptionBlockObject
	for _, d := range spansUpTo(terms.Within) {
		options = append(options, slack.NewOptionBlockObject(d.String(), block.PlainText(block.Period(d)), nil))
	}
	in := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, actionValue, options...)
	in.InitialOption = options[len(options)-1]
	return inputBlock(control.FieldWithin, "For how long", "", in, false)
}

// spansUpTo returns the durations to choose from, up to the policy's maximum.
func spansUpTo(most time.Duration) []time.Duration {
	all := []time.Duration{
		10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour, 72 * time.Hour, 168 * time.Hour,
	}
	shorter := slices.DeleteFunc(all, func(d time.Duration) bool { return d >= most })
	return append(shorter, most)
}

// atMostInput asks for the maximum of an argument. The initial value is the value in the call.
func atMostInput(b approvers.Bound) slack.Block {
	f := field{name: b.Arg}
	label, hint, value := block.Visible(block.Clip(b.Arg, block.MaxNameShown))+" at most", "In this call it is "+block.Visible(string(b.AtMost))+".", string(b.AtMost)
	if !argument.PlainNumber.MatchString(value) {
		return inputBlock(f.blockID(), label, hint, slack.NewPlainTextInputBlockElement(nil, actionValue).WithInitialValue(value).WithMaxLength(maxNumber), false)
	}
	in := slack.NewNumberInputBlockElement(nil, actionValue, true).WithInitialValue(value).WithMinValue(value)
	return inputBlock(f.blockID(), label, hint, in, false)
}

// fixedArguments lists which arguments must stay the same, and which may vary.
func fixedArguments(g approvers.Grant) []*block.RichText {
	var out []*block.RichText
	for _, b := range g.Bounds {
		switch {
		case b.AtMost != nil:
		case len(b.Equal) == 0:
			out = append(out, block.Say("• ").Strong(block.Name(b.Arg)).Say(": none, as here"))
		default:
			out = append(out, block.Say("• ").Strong(block.Name(b.Arg)).Say(": ").Code(wording.BoundShown(b, g.Secrets)).Say(", as here"))
		}
	}
	if len(out) > block.MaxBoundsTold {
		out = append(out[:block.MaxBoundsTold], block.Say(fmt.Sprintf("• and %d more, as here", len(out)-block.MaxBoundsTold)))
	}
	if free := g.Free(); len(free) > 0 {
		out = append(out, block.Say("⚠️ ").Strong(argument.List(free)).Say(" may have any value."))
	}
	return append(out, block.Say("Calls with further arguments still wait for approval."))
}

// ParseAllowance reads the submitted form for a grant, and returns the errors of the form.
func ParseAllowance(r approvers.Request, p *approvers.Policy, filled answers) (a approvers.Allowance, faults map[string]string) {
	terms := grantTerms(r, p)
	faults = map[string]string{}
	var err error
	if a.Uses, err = strconv.Atoi(strings.TrimSpace(filled.text(control.FieldUses))); err != nil || a.Uses < 1 || a.Uses > terms.Uses {
		faults[control.FieldUses] = fmt.Sprintf("Write a whole number from 1 to %d.", terms.Uses)
	}
	if a.Within, err = time.ParseDuration(filled.text(control.FieldWithin)); err != nil || a.Within <= 0 || a.Within > terms.Within {
		faults[control.FieldWithin] = "Choose how long, up to " + block.Period(terms.Within) + "."
	}
	_, values := argument.Members(r.Args)
	t, _ := p.Tool(r.Tool, r.Agent)
	a.AtMost = map[string]json.RawMessage{}
	for _, arg := range terms.AtMost {
		id := field{name: arg}.blockID()
		text := strings.TrimSpace(filled.text(id))
		least, known := new(big.Rat).SetString(string(values[arg]))
		most, ok := new(big.Rat).SetString(text)
		if !known || !ok || !simpleNumber(text) || most.Cmp(least) < 0 {
			faults[id] = "Write a number: " + block.Visible(string(values[arg])) + " or more."
			continue
		}
		if _, err := approvers.StrictArgs([]byte(`{"n":`+text+`}`), t.ReadsNumbers()); err != nil {
			faults[id] = "No call can have this number. Write it with fewer digits."
			continue
		}
		a.AtMost[arg] = json.RawMessage(text)
	}
	return a, faults
}

// AllowanceFaults returns the error of the form if the person may not grant calls with the entered numbers. The error
// is at the first number that is too large by itself, or else at the first number. AllowanceFaults returns no error
// that is not about the numbers.
func AllowanceFaults(r approvers.Request, in approvers.DecisionContext, who approvers.Identity, a approvers.Allowance) map[string]string {
	denied := func(atMost map[string]json.RawMessage) *approvers.Denied {
		one := a
		one.AtMost = atMost
		_, d := r.Allow(in, approvers.Action{Who: who, At: in.Now, Digest: r.Digest}, one)
		if d == nil || d.Code != approvers.DeniedNoGrants || d.Detail == "" {
			return nil
		}
		return d
	}
	numbers := grantTerms(r, in.Policy).AtMost
	why := denied(a.AtMost)
	if why == nil || len(numbers) == 0 {
		return nil
	}
	at := numbers[0]
	for _, arg := range numbers {
		if d := denied(map[string]json.RawMessage{arg: a.AtMost[arg]}); d != nil {
			at, why = arg, d
			break
		}
	}
	return map[string]string{field{name: at}.blockID(): block.Clip(block.PlainWords(DeniedText(why, &r, in.Policy)), MaxErrorText)}
}

// maxNumber is the maximum length of a number in the form for a grant.
const maxNumber = 40

// simpleNumber reports whether s is a JSON number without sign and exponent.
func simpleNumber(s string) bool {
	return len(s) <= maxNumber && strings.Trim(s, "0123456789.") == "" && json.Valid([]byte(s))
}
