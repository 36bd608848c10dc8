package workspace

import (
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// inner returns the inner event of a delivery.
func inner(t *testing.T, e socketmode.Event) any {
	t.Helper()
	outer, ok := e.Data.(slackevents.EventsAPIEvent)
	if !ok {
		t.Fatalf("%s is no event", e.Type)
	}
	return outer.InnerEvent.Data
}

// A person mentions the bot, and the bot answers with a card in the thread. Another person presses a button, and a
// modal opens. The app refuses the first submission of the modal and accepts a corrected one, and the card changes.
func TestAConversationFromMentionToModal(t *testing.T) {
	b := newHarness(t)
	var cardTS string
	trigger := make(chan string, 1)
	on := func(e socketmode.Event) (bool, any) {
		callback, ok := e.Data.(slack.InteractionCallback)
		if !ok {
			return true, nil
		}
		switch callback.Type {
		case slack.InteractionTypeBlockActions:
			trigger <- callback.TriggerID
		case slack.InteractionTypeViewSubmission:
			if callback.View.State.Values["why"]["reason"].Value == "no" {
				return true, slack.NewErrorsViewSubmissionResponse(map[string]string{"why": "Please say more."})
			}
		}
		return true, nil
	}
	app := b.connect(on)

	ts := b.say("sam", "#support", "@Countersign refund 20 € for a@example.com", "")
	message := inner(t, wait(t, app.events)).(*slackevents.MessageEvent)
	if want := "<@U0BOT> refund 20 € for <mailto:a@example.com|a@example.com>"; message.Text != want || message.ChannelType != "channel" || message.TimeStamp != ts {
		t.Fatalf("message event: %+v", message)
	}
	mention := inner(t, wait(t, app.events)).(*slackevents.AppMentionEvent)
	if mention.User != "U0100" || mention.TimeStamp != ts || mention.Channel != "C0001" {
		t.Fatalf("mention event: %+v", mention)
	}

	approve := slack.NewButtonBlockElement("approve", "req1", slack.NewTextBlockObject("plain_text", "Approve", false, false)).WithStyle(slack.StylePrimary)
	_, cardTS, err := b.api.PostMessage("C0001", slack.MsgOptionTS(ts), slack.MsgOptionText("A card", false),
		slack.MsgOptionBlocks(slack.NewActionBlock("card", approve)))
	if err != nil {
		t.Fatal(err)
	}
	own := inner(t, wait(t, app.events)).(*slackevents.MessageEvent)
	if own.BotID != "B0001" || own.ThreadTimeStamp != ts || own.User != "U0BOT" {
		t.Fatalf("the bot's own message came back as %+v", own)
	}
	if got := b.messages("sam", "support", ""); len(got) != 1 || dig(got[0], "reply_count") != 1.0 {
		t.Fatalf("top level: %v", got)
	}

	b.must(b.post("/people/ada/actions", obj{"channel": "C0001", "ts": cardTS, "action_id": "approve"}))
	click := wait(t, app.events).Data.(slack.InteractionCallback)
	if a := click.ActionCallback.BlockActions[0]; a.Value != "req1" || a.BlockID != "card" || click.User.ID != "U0001" ||
		click.Container.MessageTs != cardTS || click.Message.ThreadTimestamp != ts || click.ResponseURL == "" || click.BlockActionState == nil {
		t.Fatalf("click: %+v", click)
	}

	modal := slack.ModalViewRequest{
		Type: slack.VTModal, Title: slack.NewTextBlockObject("plain_text", "Reject", false, false),
		Submit: slack.NewTextBlockObject("plain_text", "Send", false, false), PrivateMetadata: "req1", CallbackID: "reject",
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewInputBlock("why", slack.NewTextBlockObject("plain_text", "Why", false, false), nil,
			slack.NewPlainTextInputBlockElement(nil, "reason"))}},
	}
	opened, err := b.api.OpenView(wait(t, trigger), modal)
	if err != nil {
		t.Fatal(err)
	}
	views := b.must(b.get("/people/ada/views")).body["views"].([]any)
	if len(views) != 1 || dig(views[0], "id") != opened.ID || dig(views[0], "state", "values", "why", "reason", "type") != "plain_text_input" {
		t.Fatalf("views: %v", views)
	}
	submit := "/people/ada/views/" + opened.ID + "/submit"
	if r := b.post(submit, obj{"values": obj{}}); r.code() != "view_errors" || r.text("errors", "why") == "" {
		t.Fatalf("an empty required input: %v", r)
	}
	if r := b.post(submit, obj{"values": obj{"reason": "no"}}); r.status != 400 || r.text("errors", "why") != "Please say more." {
		t.Fatalf("the app's refusal: %v", r)
	}
	if got := dig(b.get("/people/ada/views").body, "views", "0", "errors", "why"); got != "Please say more." {
		t.Fatalf("the refusal isn't kept: %v", got)
	}
	b.must(b.post(submit, obj{"values": obj{"why": obj{"reason": "the order was never paid"}}}))
	if views := b.must(b.get("/people/ada/views")).body["views"].([]any); len(views) != 0 {
		t.Fatalf("the modal is still open: %v", views)
	}

	if _, _, _, err := b.api.UpdateMessage("C0001", cardTS, slack.MsgOptionText("Rejected by Ada", false)); err != nil {
		t.Fatal(err)
	}
	card := b.messages("sam", "C0001", ts)[1]
	if dig(card, "text") != "Rejected by Ada" || dig(card, "blocks") != nil {
		t.Fatalf("text without blocks must remove the blocks: %v", card)
	}
	if r := b.post("/people/ada/actions", obj{"channel": "C0001", "ts": cardTS, "action_id": "approve"}); r.status != 404 || r.code() != "unknown_action" {
		t.Fatalf("pressing a button that is gone: %v", r)
	}
}
