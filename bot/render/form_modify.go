package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/slackapi"
)

// ModifyForm returns a form with one field for each argument. If the schema is too complex for that, the arguments are
// edited as JSON.
func ModifyForm(r approvers.Request, f FormToken, tool workflow.Tool) slack.ModalViewRequest {
	p := new(BlockBuilder)
	p.Para(Say("You change what will run: ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)),
		Say("The changed call counts as a new one. Approvals so far fall, its risk is computed again, and yours counts if your role may approve the result."))
	counts := "Change and approve"
	fields := fieldsOf(tool.Schema, r.Args, r.Secrets)
	if fields == nil && len(SecretsIn(r.Args, r.Secrets)) > 0 {
		p.Para(Say("🔒 ").Strong("These arguments can't be changed in Slack, because some of them are masked.").
			Say(" Reject the call and say in the reason what should be different; the agent can then ask for it anew."))
		return Modal("Modify", p)
	}
	if fields == nil {
		text := escapedJSON(r.Args)
		if Width(text) > slackapi.MaxInput {
			p.Para(Say("⚠️ ").Strong("These arguments are too long to be changed in Slack.").
				Say(" Reject the call and say in the reason what should be different; the agent can then ask for it anew."))
			return Modal("Modify", p)
		}
		p.Blocks = append(p.Blocks, textInput(FieldRaw, "Arguments, as JSON", "", text, true, false))
	}
	for _, one := range fields {
		if one.kind == fieldMasked {
			p.Para(Say("🔒 ").Strong(Name(one.name)).Say(" is masked, and stays as it is."))
			continue
		}
		if one.kind == fieldLocked {
			p.Para(new(RichText).Strong(Name(one.name)).Say(" is too long to be changed or shown here, and stays as it is. Your change does not approve the call: the new card leads to all of its arguments."))
			counts = "Change"
			continue
		}
		p.Blocks = append(p.Blocks, one.block())
	}
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", "The agent and the other approvers are told this.", "", false, true))
	if r.WantsTyping() {
		p.Blocks = append(p.Blocks, textInput(FieldTyped, "To approve it too, type the tool's name: "+Name(r.Tool),
			whyTyped(r)+" Left empty, the changed call goes back to its approvers.", "", false, true))
		counts = "Change"
	}
	return submittable(Modal("Modify", p), ActModify, counts, f)
}

// HasLockedFields reports whether the form omits an argument because it is too long for an input.
func HasLockedFields(schema json.RawMessage, r approvers.Request) bool {
	return slices.ContainsFunc(fieldsOf(schema, r.Args, r.Secrets), func(f field) bool { return f.kind == fieldLocked })
}

// block returns the field's input.
func (f field) block() *slack.InputBlock {
	hint := Visible(f.hint)
	if f.kind == fieldJSON {
		hint = joinHints(hint, "Written as JSON.")
	}
	if f.present {
		words := wordsIn(fmt.Appendf(nil, "[%s]", f.stored))
		if countHidden(words) > 0 {
			hint = joinHints(hint, `Characters that are hidden or special here are written as \u….`)
		}
		if mixed := mixedWords(words); len(mixed) > 0 {
			hint = joinHints(hint, "Letters that can look like others: "+strings.Join(mixed, ", ")+".")
		}
	}
	label := Visible(f.name)
	if f.title != "" && OneLine(f.title) != label {
		label = OneLine(f.title) + " (" + label + ")"
	}
	return inputBlock(f.blockID(), label, hint, f.input(), !f.required || f.present && f.initial == "")
}

func joinHints(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

const actionValue = "value"

func (f field) input() slack.BlockElement {
	switch f.kind {
	case fieldNumber, fieldInteger:
		return slack.NewNumberInputBlockElement(nil, actionValue, f.kind == fieldNumber).WithInitialValue(f.initial).WithMinValue(f.min).WithMaxValue(f.max)
	case fieldBool:
		return f.yesNo()
	case fieldChoice:
		return f.menu()
	case fieldMany:
		return f.menuOfMany()
	case fieldMoment:
		return slack.NewDateTimePickerBlockElement(actionValue)
	case fieldDate:
		in := slack.NewDatePickerBlockElement(actionValue)
		in.InitialDate = f.initial
		return in
	case fieldEmail:
		in := slack.NewEmailTextInputBlockElement(nil, actionValue)
		in.InitialValue = f.initial
		return in
	case fieldURL:
		in := slack.NewURLTextInputBlockElement(nil, actionValue)
		in.InitialValue = f.initial
		return in
	}
	return slack.NewPlainTextInputBlockElement(nil, actionValue).WithMultiline(f.kind != fieldText).WithInitialValue(f.initial).WithMaxLength(slackapi.MaxInput)
}

func (f field) yesNo() slack.BlockElement {
	in := slack.NewRadioButtonsBlockElement(actionValue,
		slack.NewOptionBlockObject("true", plainText("Yes"), nil), slack.NewOptionBlockObject("false", plainText("No"), nil))
	for _, o := range in.Options {
		if o.Value == f.initial {
			in.InitialOption = o
		}
	}
	return in
}

// options returns the options of a menu. The value of each is its number.
func (f field) options() (options []*slack.OptionBlockObject) {
	for i := range f.choices {
		options = append(options, slack.NewOptionBlockObject(strconv.Itoa(i), plainText(f.choice(i)), nil))
	}
	return options
}

func (f field) menuOfMany() slack.BlockElement {
	options := f.options()
	in := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, nil, actionValue, options...)
	for _, o := range options {
		if slices.Contains(strings.Split(f.initial, ","), o.Value) {
			in.InitialOptions = append(in.InitialOptions, o)
		}
	}
	return in
}

func (f field) menu() slack.BlockElement {
	options := f.options()
	in := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, actionValue, options...)
	for _, o := range options {
		if o.Value == f.initial {
			in.InitialOption = o
		}
	}
	return in
}

// Width returns the number of characters in s.
func Width(s string) int { return utf8.RuneCountInString(s) }
