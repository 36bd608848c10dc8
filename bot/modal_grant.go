package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// allowForm approves a call and asks how many more like it may run without asking.
func allowForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	m.Digest = s.was().Digest
	terms := grantTerms(r, s.Policy)
	g, d := r.Allow(in, m, approvers.Allowance{Uses: terms.Uses, Within: terms.Within})
	if d == nil && !s.was().Whole {
		d = &approvers.Denied{Code: approvers.DeniedUnseen}
	}
	if d != nil {
		return refusal(actAllow, denied(d, &r, s.Policy))
	}
	p := new(page)
	p.para(say("You approve this now: ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)),
		say("And you let more calls of ").code(name(r.Tool)).say(" run without asking anybody, whoever in this conversation asks for them:"))
	p.blocks = append(p.blocks, usesInput(terms), withinInput(terms))
	for _, b := range g.Bounds {
		if b.AtMost != nil {
			p.blocks = append(p.blocks, atMostInput(b))
		}
	}
	p.para(fixed(g)...)
	p.small("Calls beyond this, riskier ones, and those that you ask for yourself still wait for approval. Everybody in the conversation sees this and each use; you can take it back at any time.")
	return s.sendable(p, actAllow, "Approve and allow")
}

// grantTerms are the policy's for a request's tool, as it is now.
func grantTerms(r approvers.Request, p *approvers.Policy) approvers.GrantTerms {
	t, _ := p.Tool(r.Tool, r.Agent)
	return t.Grants
}

func usesInput(terms approvers.GrantTerms) slack.Block {
	in := slack.NewNumberInputBlockElement(nil, actionValue, false).WithInitialValue(strconv.Itoa(terms.Uses)).WithMinValue("1").WithMaxValue(strconv.Itoa(terms.Uses))
	return inputBlock(fieldUses, "How many more", fmt.Sprintf("At most %d, by the policy.", terms.Uses), in, false)
}

func withinInput(terms approvers.GrantTerms) slack.Block {
	var options []*slack.OptionBlockObject
	for _, d := range spansUpTo(terms.Within) {
		options = append(options, slack.NewOptionBlockObject(d.String(), plainText(lasting(d)), nil))
	}
	in := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, actionValue, options...)
	in.InitialOption = options[len(options)-1]
	return inputBlock(fieldWithin, "For how long", "", in, false)
}

// spansUpTo are the times that can be chosen, up to the longest that the policy allows.
func spansUpTo(most time.Duration) []time.Duration {
	all := []time.Duration{
		10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour, 72 * time.Hour, 168 * time.Hour,
	}
	shorter := slices.DeleteFunc(all, func(d time.Duration) bool { return d >= most })
	return append(shorter, most)
}

// atMostInput asks for the greatest value of an argument. It begins with the value that the call has.
func atMostInput(b approvers.Bound) slack.Block {
	f := field{name: b.Arg}
	label, hint, value := Visible(clip(b.Arg, maxNameShown))+" at most", "In this call it is "+Visible(string(b.AtMost))+". It can't be less.", string(b.AtMost)
	if !plainNumber.MatchString(value) {
		return inputBlock(f.blockID(), label, hint, slack.NewPlainTextInputBlockElement(nil, actionValue).WithInitialValue(value).WithMaxLength(maxTyped), false)
	}
	in := slack.NewNumberInputBlockElement(nil, actionValue, true).WithInitialValue(value).WithMinValue(value)
	return inputBlock(f.blockID(), label, hint, in, false)
}

// fixed says which arguments have to be as they are here, and which may be anything.
func fixed(g approvers.Grant) []*prose {
	var out []*prose
	for _, b := range g.Bounds {
		switch {
		case b.AtMost != nil:
		case len(b.Equal) == 0:
			out = append(out, say("• ").strong(name(b.Arg)).say(": none, as here"))
		default:
			out = append(out, say("• ").strong(name(b.Arg)).say(": ").code(boundShown(b, g.Secrets)).say(", as here"))
		}
	}
	if len(out) > maxBoundsTold {
		out = append(out[:maxBoundsTold], say(fmt.Sprintf("• and %d more, as here", len(out)-maxBoundsTold)))
	}
	if free := g.Free(); len(free) > 0 {
		out = append(out, say("⚠️ ").strong(argumentList(free)).say(" may be anything."))
	}
	return append(out, say("Calls with other arguments than this one has are not covered."))
}

// allowanceIn reads what was filled in, and what is wrong with it.
func allowanceIn(r approvers.Request, p *approvers.Policy, i interaction) (a approvers.Allowance, faults map[string]string) {
	terms := grantTerms(r, p)
	faults = map[string]string{}
	var err error
	if a.Uses, err = strconv.Atoi(strings.TrimSpace(i.filled(fieldUses))); err != nil || a.Uses < 1 || a.Uses > terms.Uses {
		faults[fieldUses] = fmt.Sprintf("A whole number from 1 to %d.", terms.Uses)
	}
	if a.Within, err = time.ParseDuration(i.filled(fieldWithin)); err != nil || a.Within <= 0 || a.Within > terms.Within {
		faults[fieldWithin] = "Choose how long, up to " + lasting(terms.Within) + "."
	}
	_, values := membersOf(r.Args)
	a.AtMost = map[string]json.RawMessage{}
	for _, arg := range terms.AtMost {
		block := field{name: arg}.blockID()
		text := strings.TrimSpace(i.filled(block))
		least, known := new(big.Rat).SetString(string(values[arg]))
		most, ok := new(big.Rat).SetString(text)
		if !known || !ok || !simpleNumber(text) || most.Cmp(least) < 0 {
			faults[block] = "A number, " + Visible(string(values[arg])) + " or more."
			continue
		}
		a.AtMost[arg] = json.RawMessage(text)
	}
	return a, faults
}

// simpleNumber reports whether a text is a number as JSON writes it, without an exponent.
func simpleNumber(s string) bool {
	return len(s) <= maxTyped && strings.Trim(s, "0123456789.") == "" && json.Valid([]byte(s))
}

// submitAllowance approves and allows more.
func (b *Bot) submitAllowance(ctx context.Context, w whisper, s seen, i interaction, c desk.Click) error {
	a, _ := allowanceIn(*s.Request, s.Policy, i) // what is wrong with it, because the policy changed since, the desk says and records
	r, err := b.Desk.GrantMore(ctx, c, a)
	return b.answerClick(ctx, w, &r, s.Policy, err)
}
