package form

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
)

// Elicitation returns the form that a tool asks for. If the person was not asked, or the question has ended,
// ElicitationForm returns a modal with the reason instead.
func Elicitation(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	q := *s.Elicitation
	if d := q.Answerable(who, s.Now); d != nil {
		return TextModal(control.ActFillIn, DeniedText(d, nil, s.Policy))
	}
	p := new(block.Builder)
	p.Para(new(block.RichText).Strong(block.Name(q.Tool)).Say(" asks. Its own words, not verified:"))
	p.Quote(block.Clip(block.Visible(argument.MaskSecrets(q.Text, []byte(s.Call.Args), s.Call.Secrets)), block.MaxElicited))
	defaults := defaultsOf(q.Schema)
	fields := fieldsOf(q.Schema, defaults, nil)
	if fields == nil {
		p.Para(block.Say("⚠️ ").Strong("This form can't be shown in Slack.").Say(" Close this and press Decline."))
		return Modal(Titles[control.ActFillIn], p)
	}
	for _, one := range fields {
		p.Blocks = append(p.Blocks, one.block())
	}
	p.Small("Your answer goes to the tool. It is not an approval. Never enter passwords or keys.")
	return submittable(Modal(Titles[control.ActFillIn], p), control.ActFillIn, "Send", control.FormToken{ButtonToken: s.Token, Execution: q.Execution})
}

// ElicitationValues returns the values of a submitted form that a tool asked for, or the errors by block.
func ElicitationValues(q approvers.Elicitation, v answers, admits func(schema, values json.RawMessage) error) (values []byte, faults map[string]string) {
	faults = map[string]string{}
	defaults := defaultsOf(q.Schema)
	fields := fieldsOf(q.Schema, defaults, nil)
	if fields == nil {
		return nil, map[string]string{control.FieldRaw: "This form can't be shown in Slack."}
	}
	values = editFields(fields, defaults, v, faults)
	if len(faults) > 0 {
		return nil, faults
	}
	if err := admits(q.Schema, values); err != nil {
		place(faults, fields, err)
		return nil, faults
	}
	return values, nil
}

// defaultsOf returns an object with the initial values of a form's fields.
func defaultsOf(schema json.RawMessage) []byte {
	var s objectSchema
	if json.Unmarshal(schema, &s) != nil {
		return []byte("{}")
	}
	names, properties := argument.Members(s.Properties)
	out := []byte("{")
	for _, n := range names {
		var p struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(properties[n], &p) != nil || len(p.Default) == 0 || string(p.Default) == "null" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, n) // the error only reports that invalid characters were replaced
		out = append(append(out, ':'), p.Default...)
	}
	return append(out, '}')
}
