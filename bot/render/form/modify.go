package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/internal/visible"
)

// Modify returns a form with one field for each argument of a request's call. If the schema is too complex for such a
// form, the arguments are edited as JSON. The button of the form names the effect of the change. If the form can't change
// any argument, it has no button, and says why. If the form was filled in before, the new form keeps the input and warns
// of invisible characters in it.
func Modify(r approvers.Request, f control.FormToken, tool workflow.Tool, effect EditEffect, filled answers) slack.ModalViewRequest {
	p := new(block.Builder)
	fields := fieldsOf(tool.Schema, r.Args, r.Secrets)
	raw := escapedJSON(r.Args)
	p.Para(block.Say("You change what will run: ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)))
	fixed := len(fields) > 0 && !slices.ContainsFunc(fields, func(f field) bool { return !f.stays() })
	switch {
	case fields == nil && len(argument.SecretsIn(r.Args, r.Secrets)) > 0, fixed && slices.ContainsFunc(fields, func(f field) bool { return f.kind == fieldMasked }):
		p.Para(block.Say("🔒 ").Strong("Some of these arguments are hidden, so they can't be changed in Slack.").Say(" Reject the call and say what should be different. The agent can then ask again."))
		return Modal(Titles[control.ActModify], p)
	case fields == nil && block.Width(raw) > slackapi.MaxInput, fixed:
		p.Para(block.Say("⚠️ ").Strong("These arguments are too long to change in Slack.").Say(" Reject the call and say what should be different. The agent can then ask again."))
		return Modal(Titles[control.ActModify], p)
	}
	args := r.Args
	if filled != nil {
		args, _ = EditArgs(r, tool, filled) // no faults: the caller has checked the input
		raw = filled.text(control.FieldRaw)
	}
	if len(r.ValidApprovals()) > 0 {
		p.Para(block.Say("Earlier approvals are discarded."))
	}
	p.Para(effect.Lines...)
	p.ParaWithID(control.WarningID(approvers.Digest(r.Execution, r.Tool, r.ToolHash, args)), unseenWarnings(fields, r.Args, filled)...)
	if fields == nil {
		p.Blocks = append(p.Blocks, textInput(control.FieldRaw, "Arguments, as JSON", "", raw, true, false))
	}
	for _, one := range fields {
		switch text, given := filled.text(one.blockID()), filled != nil; {
		case one.kind == fieldMasked:
			p.Para(block.Say("🔒 ").Strong(block.Name(one.name)).Say(" is hidden, and stays as it is."))
			continue
		case one.kind == fieldLocked:
			p.Para(new(block.RichText).Strong(block.Name(one.name)).Say(" is too long to show or change here, and stays as it is."))
			continue
		case given:
			one.initial = text
		}
		p.Blocks = append(p.Blocks, one.block())
	}
	p.Blocks = append(p.Blocks, textInput(control.FieldReason, "Why?", "The agent and the other approvers read this.", filled.text(control.FieldReason), false, true))
	if effect.typed {
		p.Blocks = append(p.Blocks, textInput(control.FieldTyped, "To approve it too, type "+block.Name(r.Tool), wording.WhyTyped(r), filled.text(control.FieldTyped), false, true))
	}
	return submittable(Modal(Titles[control.ActModify], p), control.ActModify, effect.Submit, f)
}

// hasLockedFields reports whether the form omits an argument because it is too long for an input.
func hasLockedFields(schema json.RawMessage, r approvers.Request) bool {
	return slices.ContainsFunc(fieldsOf(schema, r.Args, r.Secrets), func(f field) bool { return f.kind == fieldLocked })
}

// block returns the input block of the field.
func (f field) block() *slack.InputBlock {
	hint := block.Visible(f.hint)
	if f.kind == fieldJSON {
		hint = joinHints(hint, "Written as JSON.")
	}
	if f.present {
		words := argument.WordsIn(fmt.Appendf(nil, "[%s]", f.stored))
		if block.CountHidden(words) > 0 {
			hint = joinHints(hint, `Characters that are hidden or special here are written as \u….`)
		}
		if mixed := block.MixedWords(words); len(mixed) > 0 {
			hint = joinHints(hint, "Letters that can look like others: "+strings.Join(mixed, ", ")+".")
		}
	}
	label := block.Visible(f.name)
	if f.title != "" && block.OneLine(f.title) != label {
		label = block.OneLine(f.title) + " (" + label + ")"
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
		slack.NewOptionBlockObject("true", block.PlainText("Yes"), nil), slack.NewOptionBlockObject("false", block.PlainText("No"), nil))
	for _, o := range in.Options {
		if o.Value == f.initial {
			in.InitialOption = o
		}
	}
	return in
}

// options returns the options of a menu. The value of each option is the number of the option.
func (f field) options() (options []*slack.OptionBlockObject) {
	for i := range f.choices {
		options = append(options, slack.NewOptionBlockObject(strconv.Itoa(i), block.PlainText(f.choice(i)), nil))
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

// EditArgs returns new arguments from a submitted form. Unchanged arguments keep their stored bytes. The result faults
// maps the IDs of blocks to errors. If there are errors, the result args is nil.
func EditArgs(r approvers.Request, tool workflow.Tool, v answers) (args []byte, faults map[string]string) {
	fields := fieldsOf(tool.Schema, r.Args, r.Secrets)
	faults = map[string]string{}
	if fields == nil {
		args = editWhole(r.Args, v, faults)
	} else {
		args = editFields(fields, r.Args, v, faults)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if approvers.EqualArgs(args, r.Args) {
		faults[firstBlock(fields)] = "Nothing was changed. Change a value, or close this and use Approve."
		return nil, faults
	}
	_, err := approvers.StrictArgs(args, false)
	if err == nil && tool.Check != nil {
		err = tool.Check(args)
	}
	if err != nil {
		place(faults, fields, err)
		return nil, faults
	}
	return args, nil
}

// firstBlock returns the block for an error that is about no single field.
func firstBlock(fields []field) string {
	for _, f := range fields {
		if !f.stays() {
			return f.blockID()
		}
	}
	if fields != nil { // no field can be changed
		return control.FieldReason
	}
	return control.FieldRaw
}

// editWhole reads the arguments as one JSON text.
func editWhole(stored []byte, v answers, faults map[string]string) []byte {
	text, there := v(control.FieldRaw)
	if !there || sameText(text, escapedJSON(stored)) {
		return stored
	}
	text = strings.TrimSpace(text)
	if err := validJSON(text); err != nil {
		faults[control.FieldRaw] = "This is not valid JSON: " + err.Error()
	}
	return []byte(text)
}

// editFields inserts the changed arguments into the stored bytes.
func editFields(fields []field, stored []byte, v answers, faults map[string]string) []byte {
	change := map[string][]byte{}
	var added []string
	for _, f := range fields {
		text, there := v(f.blockID())
		if !there || f.unchanged(text) {
			continue
		}
		value, fault := f.value(text)
		if fault != "" {
			faults[f.blockID()] = fault
			continue
		}
		if value == nil && !f.present {
			continue
		}
		change[f.name] = value
		if !f.present {
			added = append(added, f.name)
		}
	}
	return argument.Splice(stored, change, added)
}

// unseenWarnings returns a warning for each changed value with invisible characters. A person who pasted the value can't
// see these characters in the form.
func unseenWarnings(fields []field, stored []byte, v answers) (lines []*block.RichText) {
	warn := func(name, text string) {
		if unseen := visible.Unseen(strings.ReplaceAll(text, "\r\n", "\n")); len(unseen) > 0 {
			lines = append(lines, block.Say("⚠️ ").Strong(name).Say(" has characters that can't be seen: "+
				block.Clip(strings.Join(unseen, " "), block.MaxQuote)+". Remove them, or send this again to keep them."))
		}
	}
	if raw := v.text(control.FieldRaw); fields == nil && !sameText(raw, escapedJSON(stored)) {
		warn("This text", raw)
	}
	for _, f := range fields {
		if text := v.text(f.blockID()); !f.unchanged(text) {
			warn(block.Name(f.name), text)
		}
	}
	return lines
}

// WarnsOfUnseen reports whether the form warns of invisible characters in the input.
func WarnsOfUnseen(r approvers.Request, tool workflow.Tool, v answers) bool {
	return len(unseenWarnings(fieldsOf(tool.Schema, r.Args, r.Secrets), r.Args, v)) > 0
}

// answers returns the text that was entered in a block of a form. The second result is false if the form has no such
// block.
type answers func(block string) (text string, present bool)

func (a answers) text(block string) string {
	if a == nil {
		return ""
	}
	text, _ := a(block)
	return text
}

// sameText compares texts but ignores differences in line endings, because Slack's inputs may change line endings.
func sameText(a, b string) bool {
	return strings.ReplaceAll(a, "\r\n", "\n") == strings.ReplaceAll(b, "\r\n", "\n")
}

// stays reports whether the form can't change the argument.
func (f field) stays() bool { return f.kind == fieldLocked || f.kind == fieldMasked }

func (f field) unchanged(text string) bool {
	if f.stays() || sameText(text, f.initial) {
		return true
	}
	if f.kind == fieldNumber || f.kind == fieldInteger {
		a, ok := new(big.Rat).SetString(strings.TrimSpace(text))
		b, ok2 := new(big.Rat).SetString(f.initial)
		return ok && ok2 && a.Cmp(b) == 0
	}
	return false
}

// value returns the entered text as JSON. A nil value removes the argument.
func (f field) value(text string) (value []byte, fault string) {
	if text == "" {
		switch {
		case !f.required:
			return nil, ""
		case f.kind == fieldText || f.kind == fieldLong:
			return []byte(`""`), ""
		}
		return nil, "This is needed."
	}
	switch f.kind {
	case fieldNumber, fieldInteger:
		text = strings.TrimSpace(text)
		if !argument.PlainNumber.MatchString(text) || f.kind == fieldInteger && strings.Contains(text, ".") {
			if f.kind == fieldInteger {
				return nil, "Write a whole number, for example 3."
			}
			return nil, "Write a number with a point, for example 49.99."
		}
		return []byte(text), ""
	case fieldBool:
		if text != "true" && text != "false" {
			return nil, "Choose Yes or No."
		}
		return []byte(text), ""
	case fieldChoice:
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(f.choices) {
			return nil, "Choose one of the values."
		}
		return bytes.Clone(f.choices[i]), ""
	case fieldMany:
		return f.selectedOptions(text)
	case fieldMoment:
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, "Choose a day and a time."
		}
		return argument.MustQuote(time.Unix(seconds, 0).UTC().Format(time.RFC3339)), ""
	case fieldJSON:
		text = strings.TrimSpace(text)
		if err := validJSON(text); err != nil {
			return nil, "This is not valid JSON (write text in \"quotes\"): " + err.Error()
		}
		return []byte(text), ""
	}
	return argument.MustQuote(text), ""
}

// selectedOptions returns the selected options of a multi-select menu as JSON.
func (f field) selectedOptions(text string) (value []byte, fault string) {
	value = []byte{'['}
	for n := range strings.SplitSeq(text, ",") {
		i, err := strconv.Atoi(n)
		if err != nil || i < 0 || i >= len(f.choices) {
			return nil, "Choose some of the values."
		}
		if len(value) > 1 {
			value = append(value, ',')
		}
		value = append(value, f.choices[i]...)
	}
	return append(value, ']'), ""
}

func validJSON(text string) error {
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadValue(); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	if dec.PeekKind() != 0 || len(bytes.TrimSpace(dec.UnreadBuffer())) > 0 {
		return errors.New("there is more after the value")
	}
	return nil
}

// place assigns each part of a schema error to the field that the part names. A schema error reads like "amount: must
// be ≥ 0.01; items[2].note: is not known; the fields are name, price". A part that names no field, such as the last one
// here, belongs to the part before it. The words about a value inside of a field keep the path of this value.
func place(faults map[string]string, fields []field, err error) {
	text := strings.TrimPrefix(err.Error(), approvers.ErrArgs.Error()+": ")
	id := firstBlock(fields)
	for part := range strings.SplitSeq(text, "; ") {
		words := part
		if path, rest, ok := strings.Cut(part, ": "); ok {
			name := path
			if i := strings.IndexAny(path, "[./"); i > 0 {
				name = path[:i]
			}
			for _, candidate := range []string{path, name, strings.TrimPrefix(path, "/")} {
				if i := slices.IndexFunc(fields, func(f field) bool { return f.name == candidate && !f.stays() }); i >= 0 {
					id = fields[i].blockID()
					if name == path || candidate != name {
						words = rest
					}
					break
				}
			}
		}
		if faults[id] != "" {
			words = faults[id] + "; " + words
		}
		faults[id] = block.Clip(block.Visible(words), MaxErrorText)
	}
}
