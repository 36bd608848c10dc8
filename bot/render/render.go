package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"countersign/bot/render/block"
	"countersign/bot/render/card"
	"countersign/bot/render/home"
	"countersign/bot/render/notice"
	"countersign/bot/render/thread"
	"countersign/bot/render/wording"
	"countersign/store"
)

// Draw renders an outbox message. Draw is pure: the same view gives the same messages.
func Draw(v wording.View) (block.Rendered, []byte, error) { return drawAs(v, render) }

// DrawHome renders a person's Home tab. DrawHome is pure, as Draw is.
func DrawHome(v wording.View, tab home.Tab) (block.Rendered, []byte, error) {
	return drawAs(v, func(v wording.View) block.Rendered { return home.Draw(v, tab) })
}

// drawAs draws a view twice: first to compute the fingerprint, and then with the fingerprint in the buttons.
func drawAs(plain wording.View, draw func(wording.View) block.Rendered) (block.Rendered, []byte, error) {
	var err error
	if plain.Print, err = fingerprint(plain, draw); err != nil {
		return block.Rendered{}, nil, err
	}
	d := draw(plain)
	for i := range d.Messages {
		plain.Reader.Localize(&d.Messages[i])
	}
	body, err := d.Body()
	return d, body, err
}

// fingerprint returns a hash of the content. The hash distinguishes the versions of an outbox message.
func fingerprint(v wording.View, draw func(wording.View) block.Rendered) (string, error) {
	v.Print = ""
	first, err := json.Marshal(draw(v).Messages)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", v.Message.Kind, err)
	}
	sum := sha256.Sum256(first)
	return hex.EncodeToString(sum[:8]), nil
}

// render draws every kind of outbox message except a Home tab.
func render(v wording.View) block.Rendered { //nolint:cyclop // one case for each kind of message
	switch v.Message.Kind {
	case store.OutboxCard, store.OutboxEscalation:
		return card.Draw(v)
	case store.OutboxBundle:
		return card.DrawBundle(v)
	case store.OutboxCardQueue:
		return card.DrawQueue(v.CardQueue)
	case store.OutboxStep:
		return block.Single(thread.DrawStep(v))
	case store.OutboxDraft: // drafts are drawn elsewhere, while they are written
		return block.Single(block.Paragraph(block.Say("The agent is still writing…")))
	case store.OutboxAnswer:
		return thread.DrawAnswer(v)
	case store.OutboxFile:
		return thread.DrawRest(v.Text)
	case store.OutboxElicitation:
		return block.Single(thread.Elicitation(v.Version(), *v.Elicitation, *v.Call))
	case store.OutboxAttachment:
		return block.Single(thread.Attachment(*v.File, v.Execution.Tool))
	case store.OutboxProblem:
		return block.Single(thread.Problem(v))
	case store.OutboxQueued:
		return thread.Queued(v)
	case store.OutboxMessageEdit:
		return thread.MessageEdit(v.Version(), wording.Under(v.Policy), v.Turn.ID, v.Calls, v.MessageEdit)
	case store.OutboxUnknown:
		return card.DrawUnknownRun(v)
	case store.OutboxStandIn:
		return block.Single(notice.StandIn(*v.Absence, v.Message, v.Policy, v.Now))
	case store.OutboxQuestion:
		return block.Single(thread.Question(v.Version(), wording.Under(v.Policy), *v.Request))
	case store.OutboxNotice:
		return notice.Draw(v)
	case store.OutboxModelQuestion:
		return block.Single(thread.ModelQuestion(v.Version(), *v.Call, v.Turn.Requesters))
	case store.OutboxGrant:
		return block.Single(notice.Grant(v))
	case store.OutboxPause:
		return block.Single(notice.Pause(v.Version(), v.Pause))
	case store.OutboxHead:
		return block.Single(notice.AuditHead(*v.Head))
	case store.OutboxReport:
		return notice.WeeklyReport(v.Report, v.Message, wording.Titles{Policy: v.Policy}, v.Now)
	case store.OutboxOperators:
		return notice.Operators(v.Notice, v.Message, wording.Titles{Policy: v.Policy})
	case store.OutboxStandstill:
		return block.Single(thread.Standstill(v))
	case store.OutboxGap:
		return block.Single(notice.Gap(v.Gap))
	}
	p := new(block.Builder)
	p.Para(block.Say("This version of the bot can't display this message."))
	return block.Single(p)
}
