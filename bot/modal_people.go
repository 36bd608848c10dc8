package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// The forms for what people do beside deciding. For somebody who can't, each says why at once.
var peopleForms = map[string]func(seen, approvers.Identity) slack.ModalViewRequest{
	actAsk: askForm, actAnswer: answerForm, actComment: commentForm, actHandOn: handOnForm, actTakeBack: takeBackForm,
	actAllow: allowForm,
}

// wordsNeeded says what is missing in a form that was sent without its text.
var wordsNeeded = map[string]string{
	actReject:    "Say why. The person who asked and the agent are told this.",
	actRejectAll: "Say why. The person who asked and the agent are told this.",
	actAsk:       "Write your question.",
	actAnswer:    "Write your answer.",
	actComment:   "Write your comment.",
	actTakeBack:  "Say why. The person who asked and the agent are told this.",
}

// trial is a move of somebody's that holds whatever is still to be filled in, to see early whether they may.
func trial(s seen, who approvers.Identity) (approvers.Deciding, approvers.Move) {
	return approvers.Deciding{Policy: s.Policy, Now: s.Now}, approvers.Move{Who: who, At: s.Now, Reason: "…"}
}

func askForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, d := r.Say(in, m, approvers.Question); d != nil {
		return refusal(actAsk, denied(d, &r, s.Policy))
	}
	p := new(page)
	p.para(say("Before you decide about ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)).say(":"))
	p.blocks = append(p.blocks, wordsInput("Question",
		"It is put to whoever asked for this, in their thread, where everybody who reads along sees it. The answer comes on the card and to you. The time goes on."))
	return s.sendable(p, actAsk, "Ask")
}

func answerForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, d := r.Reply(in, m, s.Surface.Step); d != nil {
		return refusal(actAnswer, denied(d, &r, s.Policy))
	}
	p := new(page)
	q := r.Remarks[s.Surface.Step]
	p.para(new(prose).person(q.By, q.Name).say(" (" + name(titleOf(s.Policy, q.Role)) + ") asks:"))
	p.quoted(clip(Visible(q.Text), maxSentence))
	p.blocks = append(p.blocks, wordsInput("Answer", "It comes on the card, for everybody who decides."))
	return s.sendable(p, actAnswer, "Answer")
}

func commentForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, d := r.Say(in, m, approvers.Comment); d != nil {
		return refusal(actComment, denied(d, &r, s.Policy))
	}
	p := new(page)
	p.para(say("About ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)).say(":"))
	p.blocks = append(p.blocks, wordsInput("Comment", "It stands on every copy of the card, with your name. It decides nothing."))
	return s.sendable(p, actComment, "Comment")
}

func handOnForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, d := r.HandOn(in, m, approvers.Identity{}); d != nil && d.Code != approvers.DeniedNotPeer { // no colleague was chosen yet
		return refusal(actHandOn, denied(d, &r, s.Policy))
	}
	p := new(page)
	p.para(say("Ask a colleague to decide about ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)).say(":"))
	people := slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plainText("Choose a person"), fieldColleague)
	p.blocks = append(p.blocks, inputBlock(fieldColleague, "Colleague",
		fmt.Sprintf("It takes somebody whose own role may decide this in place of %s. They get the card by direct message; you keep your own say.",
			short(oneLine(r.Plan.Stages[r.Stage].Title(s.Policy)), maxStageName)), people, false))
	return s.sendable(p, actHandOn, "Hand on")
}

func takeBackForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, d := r.Revoke(in, m); d != nil {
		return refusal(actTakeBack, denied(d, &r, s.Policy))
	}
	p := new(page)
	p.para(say("This will not run: ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)),
		say("Taking an approval back ends the request for good, also for others who have agreed."))
	p.blocks = append(p.blocks, textInput(fieldReason, "Why?", "The person who asked and the agent are told this, so that the agent can offer something else.", "", true, false))
	return s.sendable(p, actTakeBack, "Take back")
}

// sendable is a form about what was clicked.
func (s seen) sendable(p *page, action, submit string) slack.ModalViewRequest {
	return submittable(modal(formTitles[action], p), action, submit, formMark{mark: s.mark, Execution: s.Request.Execution})
}

// wordsInput is a field for what stands on the card: no longer than the card can hold.
func wordsInput(label, hint string) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, fieldReason).WithMultiline(true).WithMaxLength(maxRemark)
	return inputBlock(fieldReason, label, hint, in, false)
}

// colleagueWait bounds the look at a chosen colleague while Slack waits for the form's acknowledgement.
const colleagueWait = time.Second

// examineColleague says at once, beside the field, that a colleague can't take it. What can't be known in time is said later.
func (b *Bot) examineColleague(ctx context.Context, r approvers.Request, i interaction) map[string]string {
	user := i.filled(fieldColleague)
	if user == "" {
		return map[string]string{fieldColleague: "Choose a colleague."}
	}
	ctx, cancel := context.WithTimeout(ctx, colleagueWait)
	defer cancel()
	p := b.Desk.Policy()
	to, err := b.clicker(ctx, user, p, r.Tool, approvers.Low, &r)
	if err != nil {
		return nil
	}
	if _, d := r.Peer(p, to); d != nil {
		d = &approvers.Denied{Code: approvers.DeniedNotPeer, Role: r.Plan.Stages[r.Stage].Title(p)}
		return map[string]string{fieldColleague: clip(plainly(denied(d, &r, p)), maxErrorText)}
	}
	return nil
}

// plainly is prose without styles, for places that take text only.
func plainly(p *prose) string {
	var b strings.Builder
	for _, part := range p.parts {
		if text, ok := part.(*slack.RichTextSectionTextElement); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// submitPeople hands on what somebody did beside deciding.
func (b *Bot) submitPeople(ctx context.Context, d delivered, w whisper, s seen, i interaction, c desk.Click) error {
	var r approvers.Request
	var err error
	switch i.View.Callback {
	case actAsk:
		r, err = b.Desk.Say(ctx, c, approvers.Question)
	case actComment:
		r, err = b.Desk.Say(ctx, c, approvers.Comment)
	case actAnswer:
		r, err = b.Desk.Reply(ctx, c, s.Surface.Step)
	case actTakeBack:
		r, err = b.Desk.Revoke(ctx, c)
	case actHandOn:
		to, unknown := b.clicker(ctx, i.filled(fieldColleague), s.Policy, s.Request.Tool, stakes(s.Policy, s.Request), s.Request)
		if unknown != nil {
			return b.unknownClicker(ctx, d, w, c, s, unknown)
		}
		r, err = b.Desk.HandOn(ctx, c, to)
	}
	return b.answerClick(ctx, w, &r, s.Policy, err)
}
