package workspace

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

func text(s string) slack.MsgOption { return slack.MsgOptionText(s, false) }

// code returns Slack's code of an error, or "".
func code(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhereTheAppMayPost(t *testing.T) {
	b := newHarness(t)
	deactivated := true
	b.must(b.get("/people/priya/channels"))
	if err := b.srv.ChangeUser("U0101", UserChange{Deactivated: &deactivated}); err != nil {
		t.Fatal(err)
	}
	b.srv.mu.Lock()
	b.srv.channels.byID["C0009"] = &channel{ID: "C0009", Name: "elsewhere", Members: []string{"U0001"}}
	b.srv.channels.byID["C0008"] = &channel{ID: "C0008", Name: "old", Archived: true, Members: []string{"U0BOT"}}
	b.srv.channels.ids = append(b.srv.channels.ids, "C0009", "C0008")
	b.srv.dataFile.index()
	b.srv.mu.Unlock()
	for _, test := range []struct{ channel, code string }{
		{"C0001", ""},
		{"#support", ""},
		{"support", ""},
		{"U0100", ""},                  // a person: the app opens the DM
		{"C0009", "not_in_channel"},    // public, but the bot isn't in it
		{"C0003", "channel_not_found"}, // private: the bot can't even see it
		{"C0008", "is_archived"},       // archived
		{"C9999", "channel_not_found"}, // does not exist
		{"", "channel_not_found"},      // no channel
		{"U0904", "cannot_dm_bot"},     // another bot
		{"U0902", "channel_not_found"}, // deactivated, no DM yet
		{"U0903", "channel_not_found"}, // a person of another organisation
	} {
		if _, _, err := b.api.PostMessage(test.channel, text("x")); code(err) != test.code {
			t.Errorf("to %q: %v, want %q", test.channel, err, test.code)
		}
	}
	if _, _, err := b.api.PostMessage("C0001"); code(err) != "no_text" {
		t.Errorf("neither text nor blocks: %v", err)
	}
	dm := b.srv.channels.dms[pair("U0BOT", "U0101")]
	if _, _, err := b.api.PostMessage(dm, text("x")); err != nil {
		t.Errorf("to the existing DM of a deactivated person: %v", err)
	}
}

func TestTokens(t *testing.T) {
	b := newHarness(t)
	client := func(token string) *slack.Client {
		return slack.New(token, slack.OptionAppLevelToken(token), slack.OptionAPIURL(b.http.URL+"/api/"))
	}
	for token, want := range map[string]string{DemoBotToken: "", "": "not_authed", "xoxb-wrong": "invalid_auth", DemoAppToken: "not_allowed_token_type"} {
		if _, err := client(token).AuthTest(); code(err) != want {
			t.Errorf("auth.test with %q: %v, want %q", token, err, want)
		}
	}
	for token, want := range map[string]string{DemoAppToken: "", "": "not_authed", "xapp-wrong": "invalid_auth", DemoBotToken: "not_allowed_token_type"} {
		if _, _, err := client(token).StartSocketModeContext(t.Context()); code(err) != want {
			t.Errorf("apps.connections.open with %q: %v, want %q", token, err, want)
		}
	}
	who, err := b.api.AuthTest()
	if err != nil || who.UserID != "U0BOT" || who.BotID != "B0001" || who.TeamID != "T0001" {
		t.Errorf("auth.test: %+v %v", who, err)
	}
	if r := b.form("chat.shout", nil); r.code() != "unknown_method" || r.status != 200 {
		t.Errorf("an unknown method: %v", r)
	}
}

func TestScopes(t *testing.T) {
	b := newHarness(t, func(c *Config) { c.Seed.App.Scopes = []string{"chat:write", "users:read"} })
	if r := b.form("dnd.info", obj{"user": "U0001"}); r.code() != "missing_scope" || r.text("needed") != "dnd:read" || r.text("provided") != "chat:write,users:read" {
		t.Errorf("a missing scope: %v", r)
	}
	if r := b.form("users.info", obj{"user": "U0001"}); r.body["ok"] != true || dig(r.body, "user", "profile", "email") != nil {
		t.Errorf("without users:read.email: %v", r.body)
	}
}

// A scope allows a method only for the kind of channel that the scope names.
func TestScopesByKindOfChannel(t *testing.T) {
	b := newHarness(t, func(c *Config) {
		c.Seed.App.Scopes = []string{"channels:read", "channels:history", "im:history", "chat:write"}
		c.Seed.Channels[3].Members = append(c.Seed.Channels[3].Members, "U0BOT") // #finance, private
	})
	dm := b.form("chat.postMessage", obj{"channel": "U0100", "text": "hello"}).text("channel")
	for _, test := range []struct {
		method string
		args   obj
		needed string
	}{
		{"conversations.info", obj{"channel": "C0001"}, ""},
		{"conversations.info", obj{"channel": "C0003"}, "groups:read"},
		{"conversations.info", obj{"channel": dm}, "im:read"},
		{"conversations.history", obj{"channel": "C0001"}, ""},
		{"conversations.history", obj{"channel": "C0003"}, "groups:history"},
		{"conversations.history", obj{"channel": dm}, ""},
		{"conversations.list", obj{}, ""},
		{"conversations.list", obj{"types": "public_channel,private_channel"}, "groups:read"},
	} {
		if r := b.form(test.method, test.args); r.text("needed") != test.needed || (r.code() == "missing_scope") != (test.needed != "") {
			t.Errorf("%s of %v: %v, want that %q is needed", test.method, test.args, r.body, test.needed)
		}
	}
}

func TestUpdatesAndDeletions(t *testing.T) {
	b := newHarness(t)
	dm, ts, err := b.api.PostMessage("U0100", text("one"), slack.MsgOptionBlocks(slack.NewDividerBlock()))
	if err != nil {
		t.Fatal(err)
	}
	theirs := b.say("sam", "#support", "mine", "")
	ephemeral, err := b.api.PostEphemeral("C0001", "U0100", text("only you"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ channel, ts, code string }{
		{"U0100", ts, "channel_not_found"},        // this method does not accept a person's id as a channel
		{"#support", theirs, "channel_not_found"}, // this method does not accept the name of a channel
		{"C0001", theirs, "cant_update_message"},
		{"C0001", ephemeral, "message_not_found"},
		{"C0001", "1.000000", "message_not_found"},
	} {
		if _, _, _, err := b.api.UpdateMessage(test.channel, test.ts, text("x")); code(err) != test.code {
			t.Errorf("update %s/%s: %v, want %s", test.channel, test.ts, err, test.code)
		}
	}
	message := func() any { return b.messages("sam", "U0BOT", "")[0] }
	if _, _, _, err := b.api.UpdateMessage(dm, ts, slack.MsgOptionBlocks(slack.NewDividerBlock(), slack.NewDividerBlock())); err != nil {
		t.Fatal(err)
	}
	if m := message(); dig(m, "text") != "one" || len(dig(m, "blocks").([]any)) != 2 || dig(m, "edited") != nil {
		t.Errorf("blocks without text: %v", m)
	}
	if _, _, _, err := b.api.UpdateMessage(dm, ts, text("two")); err != nil {
		t.Fatal(err)
	}
	if m := message(); dig(m, "text") != "two" || dig(m, "blocks") != nil || dig(m, "edited", "user") != "U0BOT" {
		t.Errorf("text without blocks: %v", m)
	}
	if _, _, _, err := b.api.UpdateMessage(dm, ts); code(err) != "no_text" {
		t.Errorf("an empty update: %v", err)
	}
	if _, _, err := b.api.DeleteMessage("C0001", theirs); code(err) != "cant_delete_message" {
		t.Errorf("deleting somebody else's: %v", err)
	}
	if _, _, err := b.api.DeleteMessage(dm, ts); err != nil || len(b.messages("sam", "U0BOT", "")) != 0 {
		t.Errorf("deleting one's own: %v", err)
	}
}

// A reply to a reply goes to the thread. Deleting a thread's parent leaves a tombstone. A reply to a message that does
// not exist goes to the channel.
func TestThreads(t *testing.T) {
	b := newHarness(t)
	_, parent, _ := b.api.PostMessage("C0001", text("parent"))
	_, reply, err := b.api.PostMessage("C0001", text("reply"), slack.MsgOptionTS(parent))
	if err != nil {
		t.Fatal(err)
	}
	nested := b.say("sam", "C0001", "to the reply", reply)
	if thread := b.messages("sam", "C0001", parent); len(thread) != 3 || dig(thread[2], "ts") != nested || dig(thread[2], "thread_ts") != parent {
		t.Fatalf("a reply to a reply: %v", thread)
	}
	if _, _, err := b.api.PostMessage("C0001", text("to all"), slack.MsgOptionTS(parent), slack.MsgOptionBroadcast()); err != nil {
		t.Fatal(err)
	}
	top := b.messages("sam", "C0001", "")
	if len(top) != 2 || dig(top[1], "subtype") != "thread_broadcast" || dig(top[0], "reply_count") != 3.0 || dig(top[0], "latest_reply") != dig(top[1], "ts") {
		t.Errorf("the channel: %v", top)
	}
	if _, _, err := b.api.DeleteMessage("C0001", parent); err != nil {
		t.Fatal(err)
	}
	if top := b.messages("sam", "C0001", ""); dig(top[0], "subtype") != "tombstone" || dig(top[0], "reply_count") != 3.0 {
		t.Errorf("the tombstone: %v", top[0])
	}
	_, _, m, err := b.api.PostMessageWithResponse("C0001", text("too late"), slack.MsgOptionTS("1.000000"))
	if err != nil || m.ThreadTimestamp != "" {
		t.Errorf("a reply to nothing: %+v %v", m, err)
	}
	if _, _, err := b.api.PostMessage("C0001", text("x"), slack.MsgOptionTS("never")); code(err) != "invalid_thread_ts" {
		t.Errorf("a malformed thread_ts: %v", err)
	}
	found, more, _, err := b.api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: "C0001", Timestamp: parent, Limit: 2})
	if err != nil || !more || len(found) != 2 || found[1].Text != "reply" {
		t.Errorf("conversations.replies: %v %v %v", found, more, err)
	}
}

func TestEphemerals(t *testing.T) {
	b := newHarness(t)
	for user, want := range map[string]string{"U0100": "", "U0902": "user_not_in_channel", "U0903": "user_not_in_channel", "U9999": "user_not_in_channel"} {
		if _, err := b.api.PostEphemeral("C0001", user, text("for "+user)); code(err) != want {
			t.Errorf("to %s: %v, want %q", user, err, want)
		}
	}
	if list := b.messages("sam", "C0001", ""); len(list) != 1 || dig(list[0], "is_ephemeral") != true {
		t.Errorf("sam sees %v", list)
	}
	if list := b.messages("ada", "C0001", ""); len(list) != 0 {
		t.Errorf("ada sees %v", list)
	}
	history, err := b.api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: "C0001"})
	if err != nil || len(history.Messages) != 0 {
		t.Errorf("the history: %v %v", history, err)
	}
	if err := b.srv.Inject(Fault{Fault: FaultLostEphemeral}); err != nil {
		t.Fatal(err)
	}
	if ts, err := b.api.PostEphemeral("C0001", "U0001", text("lost")); err != nil || ts == "" || len(b.messages("ada", "C0001", "")) != 0 {
		t.Errorf("a lost ephemeral: %q %v", ts, err)
	}
}

func TestHistoryHasCursorsAndBounds(t *testing.T) {
	b := newHarness(t)
	var all []string
	for range 5 {
		_, ts, err := b.api.PostMessage("C0001", text("x"), slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "e", EventPayload: map[string]any{"k": "v"}}))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ts)
	}
	var got []string
	cursor := ""
	for {
		page, err := b.api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: "C0001", Limit: 2, Cursor: cursor, IncludeAllMetadata: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			got = append([]string{m.Timestamp}, got...)
			if m.Metadata.EventPayload["k"] != "v" {
				t.Errorf("metadata: %+v", m.Metadata)
			}
		}
		if cursor = page.ResponseMetaData.NextCursor; cursor == "" {
			break
		}
	}
	if strings.Join(got, " ") != strings.Join(all, " ") {
		t.Errorf("paged %v, want %v", got, all)
	}
	one, err := b.api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: "C0001", Latest: all[2], Oldest: all[2], Inclusive: true})
	if err != nil || len(one.Messages) != 1 || one.Messages[0].Timestamp != all[2] {
		t.Errorf("one message by its ts: %v %v", one, err)
	}
	if r := b.form("conversations.history", obj{"channel": "C0003"}); r.code() != "channel_not_found" {
		t.Errorf("a private channel: %v", r)
	}
}

// An edit and a deletion reach the app as message_changed and message_deleted.
func TestEditsReachTheApp(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	ts := b.say("sam", "#support", "one", "")
	wait(t, app.events)
	b.must(b.post("/people/sam/edit", obj{"channel": "C0001", "ts": ts, "text": "two"}))
	if e := inner(t, wait(t, app.events)).(*slackevents.MessageEvent); e.SubType != "message_changed" || e.Message.Text != "two" || e.PreviousMessage.Text != "one" {
		t.Errorf("edited: %+v", e)
	}
	b.must(b.post("/people/sam/delete", obj{"channel": "C0001", "ts": ts}))
	if e := inner(t, wait(t, app.events)).(*slackevents.MessageEvent); e.SubType != "message_deleted" || e.DeletedTimeStamp != ts {
		t.Errorf("deleted: %+v", e)
	}
	if r := b.post("/people/ada/edit", obj{"channel": "C0001", "ts": b.say("sam", "C0001", "x", ""), "text": "y"}); r.status != 403 || r.code() != "not_yours" {
		t.Errorf("editing somebody else's: %v", r)
	}
}

// A thread outlives its parent message. When the parent is deleted, the app gets an event: the message has changed to a
// tombstone. When the last reply is deleted, the app also gets the deletion of the tombstone.
func TestTheDeletionOfAThread(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	parent := b.say("sam", "C0001", "question", "")
	reply := b.say("ada", "C0001", "answer", parent)
	wait(t, app.events)
	wait(t, app.events)
	b.must(b.post("/people/sam/delete", obj{"channel": "C0001", "ts": parent}))
	if e := inner(t, wait(t, app.events)).(*slackevents.MessageEvent); e.SubType != "message_changed" || e.Message.SubType != "tombstone" || !e.Message.Hidden || e.Message.Timestamp != parent || e.PreviousMessage.Text != "question" {
		t.Errorf("the first message: %+v", e)
	}
	b.must(b.post("/people/ada/delete", obj{"channel": "C0001", "ts": reply}))
	for _, want := range []struct{ ts, subtype string }{{reply, ""}, {parent, "tombstone"}} {
		if e := inner(t, wait(t, app.events)).(*slackevents.MessageEvent); e.SubType != "message_deleted" || e.DeletedTimeStamp != want.ts || e.PreviousMessage.SubType != want.subtype {
			t.Errorf("the reply, then the tombstone: %+v", e)
		}
	}
	if left := b.messages("sam", "C0001", ""); len(left) != 0 {
		t.Errorf("still there: %v", left)
	}
}

func TestPermalinksLeadToThePage(t *testing.T) {
	b := newHarness(t)
	_, ts, _ := b.api.PostMessage("C0002", text("card"))
	link, err := b.api.GetPermalink(&slack.PermalinkParameters{Channel: "C0002", Ts: ts})
	if err != nil || !strings.HasPrefix(link, b.http.URL+"/archives/C0002/p") {
		t.Fatalf("%s %v", link, err)
	}
	resp, err := b.http.Client().Get(link)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Request.URL.String(); resp.StatusCode != http.StatusOK || got != b.http.URL+"/#/U0001/C0002/"+ts {
		t.Errorf("it leads to %s (%d)", got, resp.StatusCode)
	}
}

// Without the scope of an event, the app does not get the event, even if it subscribed to the event.
func TestEventsNeedScopes(t *testing.T) {
	for _, event := range DemoSeed().App.Events {
		all := &scopes{core: &core{app: DemoSeed().App}}
		few := &scopes{core: &core{app: SeedApp{Scopes: []string{"chat:write", "channels:history"}}}}
		free := strings.HasPrefix(event, "agent_") || strings.HasPrefix(event, "assistant_") || strings.HasPrefix(event, "app_") && event != "app_mention"
		if !all.mayReceive(event) {
			t.Errorf("the demo's app subscribes to %s, but may not receive it", event)
		}
		if want := free || event == "message.channels"; few.mayReceive(event) != want {
			t.Errorf("%s with few scopes: %t, want %t", event, !want, want)
		}
	}
}
