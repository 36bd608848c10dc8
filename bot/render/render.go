package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"countersign/store"
)

// Draw renders an outbox message. Draw is pure: the same view gives the same messages.
func Draw(v View) (Rendered, []byte, error) { return drawAs(v, render) }

// DrawHome renders a person's Home tab. DrawHome is pure, as Draw is.
func DrawHome(v View, tab HomeTab) (Rendered, []byte, error) {
	return drawAs(v, func(v View) Rendered { return drawHome(v, tab) })
}

// drawAs draws a view twice: first to find the fingerprint, and then with the fingerprint in the buttons.
func drawAs(plain View, draw func(View) Rendered) (Rendered, []byte, error) {
	var err error
	if plain.print, err = fingerprint(plain, draw); err != nil {
		return Rendered{}, nil, err
	}
	d := draw(plain)
	for i := range d.Messages {
		plain.Reader.Localize(&d.Messages[i])
	}
	body, err := d.Body()
	return d, body, err
}

// fingerprint returns a hash of the content. The hash distinguishes the versions of an outbox message.
func fingerprint(v View, draw func(View) Rendered) (string, error) {
	v.print = ""
	first, err := json.Marshal(draw(v).Messages)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", v.Message.Kind, err)
	}
	sum := sha256.Sum256(first)
	return hex.EncodeToString(sum[:8]), nil
}

// render draws every kind of outbox message except a Home tab.
func render(v View) Rendered { //nolint:cyclop // one case for each kind of message
	switch v.Message.Kind {
	case store.OutboxCard, store.OutboxEscalation:
		return drawCard(v)
	case store.OutboxBundle:
		return drawBundle(v)
	case store.OutboxCardQueue:
		return cardQueue(v.CardQueue)
	case store.OutboxStep:
		return Single(drawStep(v))
	case store.OutboxDraft: // drafts are drawn elsewhere, while they are written
		return Single(Paragraph(Say("The agent is still writing…")))
	case store.OutboxAnswer:
		return drawAnswer(v)
	case store.OutboxFile:
		return restOfAnswer(v.Text)
	case store.OutboxElicitation:
		return Single(elicitation(v.version(), *v.Elicitation, *v.Call))
	case store.OutboxAttachment:
		return Single(attachment(*v.File, v.Execution.Tool))
	case store.OutboxProblem:
		return Single(problemNotice(v))
	case store.OutboxQueued:
		return queuedNotice(v)
	case store.OutboxMessageEdit:
		return messageEdit(v.version(), wordsUnder(v.Policy), v.Turn.ID, v.Calls, v.MessageEdit)
	case store.OutboxUnknown:
		return drawUnknownRun(v)
	case store.OutboxStandIn:
		return Single(standIn(*v.Absence, v.Message, v.Policy, v.Now))
	case store.OutboxQuestion:
		return Single(question(v.version(), wordsUnder(v.Policy), *v.Request))
	case store.OutboxNotice:
		return drawNotice(v)
	case store.OutboxModelQuestion:
		return Single(modelQuestion(v.version(), *v.Call, v.Turn.Requesters))
	case store.OutboxGrant:
		return Single(grantNotice(v))
	case store.OutboxPause:
		return Single(pauseMessage(v.version(), v.Pause))
	case store.OutboxHead:
		return Single(auditHead(*v.Head))
	case store.OutboxReport:
		return weeklyReport(v.Report, v.Message, titles{v.Policy}, v.Now)
	case store.OutboxOperators:
		return operatorNotice(v.Notice, v.Message, titles{v.Policy})
	case store.OutboxStandstill:
		return Single(standstill(v))
	case store.OutboxGap:
		return Single(gap(v.Gap))
	}
	p := new(BlockBuilder)
	p.Para(Say("This version of the bot can't show what belongs here."))
	return Single(p)
}
