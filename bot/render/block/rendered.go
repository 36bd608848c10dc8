package block

import (
	"encoding/json"
	"fmt"
	"slices"

	"countersign/store"
)

// Rendered is a drawn outbox message: one Slack message, or several for a very long answer.
type Rendered struct {
	Messages []Message
	Expired  bool          // the message has expired and must be removed
	Shows    []store.Shown // the shown requests; each entry says whether all arguments are shown
}

// Body returns the messages in the form in which they are stored.
func (d Rendered) Body() (body []byte, err error) {
	if len(d.Messages) == 1 {
		return d.Messages[0].Body()
	}
	if body, err = json.Marshal(d.Messages); err != nil {
		return nil, fmt.Errorf("encode messages: %w", err)
	}
	return body, nil
}

// With replaces one Slack message of the outbox message by m, and returns the new outbox message. The parameter whole
// says whether m shows everything. If whole is false, people can't approve a request on the outbox message.
func (d Rendered) With(part int, m Message, whole bool) Rendered {
	d.Messages = slices.Clone(d.Messages)
	d.Messages[part] = m
	if !whole {
		d.Shows = slices.Clone(d.Shows)
		for i := range d.Shows {
			d.Shows[i].Whole = false
		}
	}
	return d
}

// Single returns an outbox message of one Slack message.
func Single(p *Builder) Rendered { return Rendered{Messages: []Message{p.Message()}} }
