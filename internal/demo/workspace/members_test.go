package workspace

import (
	"testing"

	"github.com/slack-go/slack/slackevents"
)

// next returns the app's next event, and the type of this event.
func (b *harness) next(app *bot) (slackevents.EventsAPIInnerEvent, string) {
	b.t.Helper()
	e := wait(b.t, app.events).Data.(slackevents.EventsAPIEvent).InnerEvent
	return e, e.Type
}

// An app that is removed from a channel gets channel_left instead of member_left_channel. For a private channel, it
// gets group_left.
func TestTheAppIsRemoved(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	b.must(b.post("/people/teo/remove", obj{"channel": "#support-approvals", "users": []string{"ada"}}))
	if _, kind := b.next(app); kind != "member_left_channel" {
		t.Errorf("when somebody else is removed, it receives %s", kind)
	}
	b.must(b.post("/people/teo/remove", obj{"channel": "#support-approvals", "users": []string{"U0BOT"}}))
	if e, kind := b.next(app); kind != "channel_left" || e.Data.(*slackevents.ChannelLeftEvent).Channel != "C0002" {
		t.Errorf("when it is removed itself, it receives %s, %+v", kind, e.Data)
	}
	if e, _ := b.next(app); e.Data.(*slackevents.MessageEvent).User != "USLACKBOT" {
		t.Errorf("no message from Slackbot: %+v", e.Data)
	}
	if _, _, err := b.api.PostMessage("C0002", text("card")); code(err) != "not_in_channel" {
		t.Errorf("posting there: %v", err)
	}
	b.must(b.post("/people/teo/invite", obj{"channel": "#support-approvals", "users": []string{"U0BOT"}}))
	if e, kind := b.next(app); kind != "member_joined_channel" || e.Data.(*slackevents.MemberJoinedChannelEvent).User != "U0BOT" {
		t.Errorf("when it is invited again, it receives %s", kind)
	}
	b.next(app) // skips the channel's message about the invitation
	for user, want := range map[string]string{"gus": "user_is_restricted", "teo": "cant_kick_self"} {
		if r := b.post("/people/"+user+"/remove", obj{"channel": "#support", "users": []string{"teo"}}); r.code() != want {
			t.Errorf("%s removes teo: %v", user, r)
		}
	}
	b.must(b.post("/people/teo/invite", obj{"channel": "#finance", "users": []string{"U0BOT"}}))
	b.next(app)
	b.next(app)
	b.must(b.post("/people/teo/remove", obj{"channel": "#finance", "users": []string{"U0BOT"}}))
	if _, kind := b.next(app); kind != "group_left" {
		t.Errorf("when it is removed from a private channel, it receives %s", kind)
	}
}

// The test archives, unarchives and deletes a channel. After a public channel is unarchived, the app is not a member.
func TestChannelsCloseAndGo(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	b.must(b.post("/people/teo/archive", obj{"channel": "#support-approvals"}))
	if _, kind := b.next(app); kind != "channel_archive" {
		t.Errorf("it receives %s", kind)
	}
	if _, _, err := b.api.PostMessage("C0002", text("card")); code(err) != "is_archived" {
		t.Errorf("posting there: %v", err)
	}
	if r := b.post("/people/teo/archive", obj{"channel": "#support-approvals"}); r.code() != "already_archived" {
		t.Errorf("again: %v", r)
	}
	b.must(b.post("/people/teo/unarchive", obj{"channel": "#support-approvals"}))
	if _, kind := b.next(app); kind != "channel_unarchive" {
		t.Errorf("it receives %s", kind)
	}
	if _, _, err := b.api.PostMessage("C0002", text("card")); code(err) != "not_in_channel" {
		t.Errorf("posting there afterwards: %v", err)
	}
	if r := b.post("/people/sam/delete_channel", obj{"channel": "#support"}); r.status != 403 || r.code() != "not_an_admin" {
		t.Errorf("deleted by somebody else: %v", r)
	}
	b.must(b.post("/people/ingrid/delete_channel", obj{"channel": "#support"}))
	if _, kind := b.next(app); kind != "channel_deleted" {
		t.Errorf("it receives %s", kind)
	}
	if _, _, err := b.api.PostMessage("C0001", text("card")); code(err) != "channel_not_found" {
		t.Errorf("posting there: %v", err)
	}
	if r := b.post("/people/teo/archive", obj{"channel": "#general"}); r.code() != "cant_archive_general" {
		t.Errorf("#general: %v", r)
	}
}

// An admin may delete all messages, including the app's messages. Retention deletes messages without an event.
func TestAnAdminDeletes(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	_, ts, _ := b.api.PostMessage("C0002", text("card"))
	b.next(app)
	if r := b.post("/people/teo/delete", obj{"channel": "C0002", "ts": ts}); r.status != 403 || r.code() != "not_yours" {
		t.Errorf("by somebody else: %v", r)
	}
	b.must(b.post("/people/ingrid/delete", obj{"channel": "C0002", "ts": ts}))
	if e, _ := b.next(app); e.Data.(*slackevents.MessageEvent).SubType != "message_deleted" || e.Data.(*slackevents.MessageEvent).PreviousMessage.User != "U0BOT" {
		t.Errorf("deleted: %+v", e.Data)
	}
	_, ts, _ = b.api.PostMessage("C0002", text("card"))
	b.next(app)
	if err := b.srv.Expire("C0002", ts); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := b.api.UpdateMessage("C0002", ts, text("card")); code(err) != "message_not_found" {
		t.Errorf("after the retention: %v", err)
	}
	if err := b.srv.Expire("C0002", ts); err == nil {
		t.Error("twice")
	}
	b.say("sam", "#support", "next", "")
	if e, _ := b.next(app); e.Data.(*slackevents.MessageEvent).Text != "next" {
		t.Errorf("it received an event for the retention: %+v", e.Data)
	}
}

// A link's preview changes a message but not its text. An edit that mentions the app sends a new mention event with the
// field "edited".
func TestPreviewsAndEditedMentions(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	ts := b.say("sam", "#support", "see https://example.com", "")
	b.next(app)
	if err := b.srv.Unfurl("C0001", ts, "https://example.com"); err != nil {
		t.Fatal(err)
	}
	e, _ := b.next(app)
	m := e.Data.(*slackevents.MessageEvent)
	if m.SubType != "message_changed" || m.Message.Text != m.PreviousMessage.Text || len(m.Message.Attachments) != 1 || m.Message.Edited != nil {
		t.Errorf("a preview: %+v", m)
	}
	b.must(b.post("/people/sam/edit", obj{"channel": "C0001", "ts": ts, "text": "<@U0BOT> see"}))
	b.next(app)
	if e, kind := b.next(app); kind != "app_mention" || e.Data.(*slackevents.AppMentionEvent).Edited == nil || e.Data.(*slackevents.AppMentionEvent).TimeStamp != ts {
		t.Errorf("an edited mention: %s %+v", kind, e.Data)
	}
	if err := b.srv.Unfurl("C0001", "1.1", "https://example.com"); err == nil {
		t.Error("a preview for a missing message was accepted")
	}
}
