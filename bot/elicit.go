package bot

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// defaultsOf is an object of what the fields of a form hold at first.
func defaultsOf(schema json.RawMessage) []byte {
	var s objectSchema
	if json.Unmarshal(schema, &s) != nil {
		return []byte("{}")
	}
	names, properties := membersOf(s.Properties)
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
		out, _ = jsontext.AppendQuote(out, n) // its error only says that something was replaced
		out = append(append(out, ':'), p.Default...)
	}
	return append(out, '}')
}

// examineElicitation says at once, beside the fields, what is wrong with a form that a tool asked for.
func (b *Bot) examineElicitation(ctx context.Context, i interaction, f formMark) (map[string]string, error) {
	q, err := b.Desk.Elicitation(ctx, f.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && q.State != approvers.ElicitationOpen {
		return nil, nil // told when it is handled
	}
	if err != nil {
		return nil, err
	}
	_, faults := b.filledIn(q, i.View)
	return faults, nil
}

// submitElicitation hands the values of a form to the run that waits for them.
func (b *Bot) submitElicitation(ctx context.Context, w whisper, s seen, i interaction, c desk.Click) error {
	c.Request, c.Elicitation = "", s.Elicitation.ID
	values, faults := b.filledIn(*s.Elicitation, i.View)
	if len(faults) > 0 { // the form was held against the same schema when it was sent: this is not one of the bot's own
		values = []byte("{}")
	}
	return b.answerClick(ctx, w, nil, s.Policy, b.Desk.Respond(ctx, c, values))
}
