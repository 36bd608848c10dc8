package render

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/store"
)

// aHead is a head signed by the first key.
const (
	aHead    = "countersign-3f9a61\n345\nr0sBQQ0ZQ1Z1mZ5pWQ2m2l0wqv0yqv0m2yqvJ0m2l0w=\nnumber 12\ntime 2026-03-02T11:59:58Z\nbefore 3b5d5c3712955042212316173ccf37be800dd9e1b8f8b53e2f6e0d4b7e5a2c11\n\n— countersign-3f9a61 M+rQ9dQ3bq0mF8o1L9pQm2l0wqv0yqv0m2yqvJ0m2l0wM+rQ9dQ3bq0mF8o1L9pQm2l0wqv0yqv0m2yqvJ0m2l0wr0sBQQ==\n"
	keyLines = "key countersign-3f9a61+52d1a3c0+AYJm9m2yqvJ0m2l0wM+rQ9dQ3bq0mF8o1L9pQm2l0wqv\nafter countersign-3f9a61+9e0b77aa+AYJm9m2yqvJ0m2l0wM+rQ9dQ3bq0mF8o1L9pQm2l0wqw\n"
)

func headView(note string, records uint64) view.Model {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message.Kind, s.Message.Ref, s.Request, s.Execution, s.Call = store.OutboxHead, "heads", nil, nil, nil
	s.Head = &store.Head{Number: 12, Size: records, Note: note}
	return s
}

// A posted head is complete in its blocks and in its text, even when one key replaces another.
func TestHeadMessage(t *testing.T) {
	signature := strings.LastIndex(aHead, "\n— ")
	takeover := aHead[:signature] + keyLines + aHead[signature:] + aHead[signature+1:]
	for name, s := range map[string]view.Model{"head": headView(aHead, 345), "head_first": headView(aHead, 1), "head_takeover": headView(takeover, 345)} {
		t.Run(name, func(t *testing.T) {
			m := drawn(t, s).Messages[0]
			bottest.Golden(t, name, m)
			blocks, err := json.Marshal(m.Blocks)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{m.Text, string(blocks)} {
				kept, faults := approvers.KeptHeads(text)
				if len(kept) != 1 || len(faults) > 0 || kept[0].Note != s.Head.Note {
					t.Errorf("%d heads are read (%v) from\n%s", len(kept), faults, text)
				}
			}
		})
	}
}
