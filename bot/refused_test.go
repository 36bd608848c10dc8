package bot

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow/settings"
	"countersign/bot/render/block"
)

// noViews and noOutbox simulate a store without recorded refusals.
type (
	noViews  struct{ Views }
	noOutbox struct{ Outbox }
)

func (noViews) Refusals(context.Context) ([]settings.Refusal, error) { return nil, nil }
func (noOutbox) Refused(context.Context, settings.Refusal) error     { return nil }

// Slack refuses a message in every form with blocks, and gives no reason. Other messages are not affected and keep
// their buttons. A Home tab is never sent without blocks.
func TestOneRefusedMessage(t *testing.T) {
	r := newRefusedBySlack(Config{Workflow: Workflow{Views: noViews{}, Outbox: noOutbox{}}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	m := block.Message{Text: "a card", Blocks: []slack.Block{
		slack.NewHeaderBlock(slack.NewTextBlockObject("plain_text", "a card", false, false)),
		slack.NewActionBlock("", slack.NewButtonBlockElement("approve", "1", slack.NewTextBlockObject("plain_text", "Approve", false, false))),
	}}
	refusal := slack.SlackErrorResponse{Err: "invalid_blocks"}
	sent, _, err := r.inSimplerForms(t.Context(), m, block.TextOnly, func(m block.Message) error {
		if len(m.Blocks) > 0 {
			return refusal
		}
		return nil
	})
	if err != nil || len(sent.Blocks) != 0 || sent.Text == "" {
		t.Fatalf("%v %v", sent, err)
	}
	sent, whole, err := r.inSimplerForms(t.Context(), m, block.TextOnly, func(block.Message) error { return nil })
	if err != nil || !whole || !slices.Equal(sent.Kinds(), m.Kinds()) {
		t.Errorf("the next message has %v, %v", sent.Kinds(), err)
	}

	r.remember(t.Context(), "actions", errors.New("unsupported type: actions"), time.Hour)
	_, _, err = r.inSimplerForms(t.Context(), m, block.SectionsOnly, func(m block.Message) error {
		if len(m.Blocks) == 0 {
			t.Error("a Home tab without blocks was sent")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Slack's reason names the kind of block that it refuses. The reason also points to a block, which may be of another
// kind.
func TestKindsNamed(t *testing.T) {
	m := block.Message{Blocks: []slack.Block{slack.NewDividerBlock(), slack.NewActionBlock("")}}
	for reason, want := range map[string][]string{
		"[ERROR] unsupported type: actions [json-pointer:/blocks/0/type]": {"actions"},
		"[ERROR] unsupported type: table [json-pointer:/blocks/0/type]":   nil,
		"[ERROR] invalid value [json-pointer:/blocks/1/type]":             {"actions"},
	} {
		err := slack.SlackErrorResponse{Err: "invalid_blocks", ResponseMetadata: slack.ResponseMetadata{Messages: []string{reason}}}
		if got, said := kindsNamed(m, err); !said || !slices.Equal(got, want) {
			t.Errorf("%s: %v", reason, got)
		}
	}
}
