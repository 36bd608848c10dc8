package workspace

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

func TestPeopleAsTheAppSeesThem(t *testing.T) {
	b := newHarness(t)
	if u, err := b.api.GetUserInfo("U0004"); err != nil || u.TZ != "Asia/Tokyo" || u.TZOffset != 9*3600 || u.Profile.Email != "kenji@example.com" {
		t.Errorf("users.info: %+v %v", u, err)
	}
	if u, err := b.api.GetUserInfo("U0903"); err != nil || !u.IsStranger || u.TeamID != "T0999" {
		t.Errorf("a stranger: %+v %v", u, err)
	}
	if u, err := b.api.GetUserInfo("U0901"); err != nil || !u.IsRestricted || !u.IsUltraRestricted {
		t.Errorf("a single-channel guest: %+v %v", u, err)
	}
	if u, err := b.api.GetUserInfo("U0BOT"); err != nil || !u.IsBot || u.Profile.BotID != "B0001" {
		t.Errorf("the bot: %+v %v", u, err)
	}
	if _, err := b.api.GetUserInfo("U9999"); code(err) != "user_not_found" {
		t.Errorf("nobody: %v", err)
	}
	if u, err := b.api.GetUserByEmail("SUPPORT-oncall@example.com"); err != nil || u.ID != "U0101" {
		t.Errorf("by e-mail: %+v %v", u, err)
	}
	for _, email := range []string{"dora@example.com", "xavier@supplier.example.com", "", "nobody@example.com"} { // deactivated, of another team, …
		if _, err := b.api.GetUserByEmail(email); code(err) != "users_not_found" {
			t.Errorf("by e-mail %q: %v", email, err)
		}
	}
	all, err := b.api.GetUsers(slack.GetUsersOptionLimit(5))
	if err != nil || len(all) != 12 {
		t.Errorf("users.list: %d %v", len(all), err)
	}
	start, end := int64(1772480000), int64(1772510000)
	if err := b.srv.ChangeUser("U0001", UserChange{DNDStart: &start, DNDEnd: &end}); err != nil {
		t.Fatal(err)
	}
	ada := "U0001"
	if dnd, err := b.api.GetDNDInfo(&ada); err != nil || !dnd.Enabled || dnd.NextEndTimestamp != int(end) {
		t.Errorf("dnd.info: %+v %v", dnd, err)
	}
	if bot, err := b.api.GetBotInfo(slack.GetBotInfoParameters{Bot: "B0001"}); err != nil || bot.UserID != "U0BOT" || bot.AppID != "A0001" {
		t.Errorf("bots.info: %+v %v", bot, err)
	}
	if team, err := b.api.GetTeamInfo(); err != nil || team.ID != "T0001" || team.Domain != "countersign-demo" {
		t.Errorf("team.info: %+v %v", team, err)
	}
}

func TestConversationsAsTheAppSeesThem(t *testing.T) {
	b := newHarness(t)
	if ch, err := b.api.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: "C0004", IncludeNumMembers: true}); err != nil || !ch.IsExtShared || !ch.IsMember || ch.NumMembers != 4 {
		t.Errorf("a shared channel: %+v %v", ch, err)
	}
	if _, err := b.api.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: "C0003"}); code(err) != "channel_not_found" {
		t.Errorf("a private channel: %v", err)
	}
	names := func(types ...string) (out []string) {
		cursor := ""
		for {
			page, next, err := b.api.GetConversations(&slack.GetConversationsParameters{Types: types, Limit: 2, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, ch := range page {
				out = append(out, ch.Name+ch.User)
			}
			if cursor = next; cursor == "" {
				return out
			}
		}
	}
	if got := names("public_channel", "private_channel"); !slices.Equal(got, []string{"general", "support", "support-approvals", "supplier-desk"}) {
		t.Errorf("channels: %v", got)
	}
	if got := names("im"); len(got) != 8 || !slices.Contains(got, "U0100") {
		t.Errorf("DMs: %v", got)
	}
	var members []string
	cursor := ""
	for {
		page, next, err := b.api.GetUsersInConversation(&slack.GetUsersInConversationParameters{ChannelID: "C0002", Limit: 3, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, page...)
		if cursor = next; cursor == "" {
			break
		}
	}
	if !slices.Equal(members, DemoSeed().Channels[2].Members) {
		t.Errorf("members: %v", members)
	}
	dm, _, existed, err := b.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0001"}})
	if err != nil || !existed || dm.ID[0] != 'D' {
		t.Errorf("a DM: %+v %v", dm, err)
	}
	for user, want := range map[string]string{"U0902": "user_disabled", "U9999": "user_not_found", "U0904": "cannot_dm_bot", "U0903": "invalid_user_combination"} {
		if _, _, _, err := b.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{user}}); code(err) != want {
			t.Errorf("a DM with %s: %v, want %s", user, err, want)
		}
	}
	group, _, _, err := b.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0001", "U0002"}})
	if err != nil {
		t.Fatal(err)
	}
	again, _, existed, err := b.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0002", "U0001"}})
	if err != nil || !existed || again.ID != group.ID {
		t.Errorf("the same group DM: %+v %v", again, err)
	}
	if r := b.form("conversations.list", obj{"cursor": "nonsense"}); r.code() != "invalid_cursor" {
		t.Errorf("a bad cursor: %v", r)
	}
}

func TestFiles(t *testing.T) {
	b := newHarness(t)
	summary, err := b.api.UploadFile(slack.UploadFileParameters{Filename: "orders.csv", FileSize: 9, Content: "id,amount", Title: "Orders", Channel: "C0001", InitialComment: "Here"})
	if err != nil {
		t.Fatal(err)
	}
	m := b.messages("sam", "C0001", "")[0]
	if dig(m, "text") != "Here" || dig(m, "files", "0", "id") != summary.ID || dig(m, "files", "0", "title") != "Orders" {
		t.Errorf("the message: %v", m)
	}
	var content bytes.Buffer
	if err := b.api.GetFile(dig(m, "files", "0", "url_private").(string), &content); err != nil || content.String() != "id,amount" {
		t.Errorf("the file: %q %v", content.String(), err)
	}
	u, err := b.api.GetUploadURLExternalContext(t.Context(), slack.GetUploadURLExternalParameters{FileName: "a.html", FileSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	if r := b.form("files.completeUploadExternal", obj{"files": arr{obj{"id": u.FileID}}}); r.code() != "file_update_failed" {
		t.Errorf("complete before the upload: %v", r)
	}
	for body, want := range map[string]int{"abcd": 400, "abc": 200} {
		req, _ := http.NewRequest(http.MethodPut, u.UploadURL, strings.NewReader(body))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("uploading %q: %d", body, resp.StatusCode)
		}
	}
	if _, err := b.api.CompleteUploadExternalContext(t.Context(), slack.CompleteUploadExternalParameters{Files: []slack.FileSummary{{ID: u.FileID}}}); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(b.http.URL + "/files/" + u.FileID + "/a.html")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("a web page is served as %s", resp.Header.Get("Content-Type"))
	}
}

// The test sends arguments in the ways in which Slack's clients send them, and in wrong ways.
func TestArgumentForms(t *testing.T) {
	b := newHarness(t)
	send := func(method, path, contentType, bearer, body string) string {
		t.Helper()
		req, _ := http.NewRequest(method, b.http.URL+"/api/"+path, strings.NewReader(body))
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		if bearer != "" {
			req.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		return string(raw)
	}
	const form, jsonType = "application/x-www-form-urlencoded", "application/json; charset=utf-8"
	for _, test := range []struct{ got, want string }{
		{send("POST", "chat.postMessage", form, "", "token="+DemoBotToken+"&channel=C0001&text=x"), `"ok":true`},
		{send("POST", "chat.postMessage", form, DemoBotToken, "channel=C0001&text=x"), `"ok":true`},
		{send("POST", "chat.postMessage", jsonType, DemoBotToken, `{"channel":"C0001","blocks":[{"type":"divider"}]}`), `"ok":true`},
		{send("POST", "chat.postMessage", jsonType, DemoBotToken, `{"channel":"C0001","blocks":"[{\"type\":\"divider\"}]"}`), `"ok":true`},
		{send("POST", "chat.postMessage", jsonType, "", `{"token":"`+DemoBotToken+`","channel":"C0001","text":"x"}`), "not_authed"}, // as in Slack
		{send("POST", "chat.postMessage?token="+DemoBotToken, jsonType, "", `{"channel":"C0001","text":"x"}`), "not_authed"},
		{send("POST", "chat.postMessage?token="+DemoBotToken, "application/x-www-form-urlencoded", "", "channel=C0001&text=x"), "not_authed"},
		{send("GET", "auth.test?token="+DemoBotToken, "", "", ""), "not_authed"},
		{send("POST", "chat.postMessage", jsonType, DemoBotToken, `{"channel"`), "invalid_json"},
		{send("POST", "chat.postMessage", jsonType, DemoBotToken, `[]`), "json_not_object"},
		{send("POST", "chat.postMessage", form, DemoBotToken, "channel=C0001&blocks={}"), "invalid_blocks_format"},
		{send("POST", "chat.postMessage", form, DemoBotToken, "channel=C0001&blocks=[1"), "invalid_blocks_format"},
		{send("GET", "users.info?user=U0001", "", DemoBotToken, ""), `"ok":true`},
		{send("POST", "api.test", form, "", "error=my_error"), "my_error"},
		{send("PUT", "api.test", form, "", ""), "invalid_post_type"},
	} {
		if !strings.Contains(test.got, test.want) {
			t.Errorf("answered %s, want %s", test.got, test.want)
		}
	}
}

// The test tries methods and blocks that have no test of their own.
func TestFurtherMethods(t *testing.T) {
	b := newHarness(t)
	_, ts, err := b.api.PostMessage("C0001", text("x"))
	if err != nil {
		t.Fatal(err)
	}
	item := slack.NewRefToMessage("C0001", ts)
	if err := b.api.RemoveReaction("eyes", item); code(err) != "no_reaction" {
		t.Errorf("removing what isn't there: %v", err)
	}
	for range 2 { // added and removed, twice
		if err := b.api.AddReaction("eyes", item); err != nil {
			t.Fatal(err)
		}
		if got, err := b.api.GetReactions(item, slack.NewGetReactionsParameters()); err != nil || len(got.Reactions) != 1 || got.Reactions[0].Users[0] != "U0BOT" {
			t.Errorf("reactions.get: %+v %v", got, err)
		}
		if err := b.api.RemoveReaction("eyes", item); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"NOT AN EMOJI": "invalid_name", "": "invalid_name"} {
		if r := b.form("reactions.add", obj{"channel": "C0001", "timestamp": ts, "name": name}); r.code() != want {
			t.Errorf("reacting with %q: %v", name, r)
		}
	}
	if err := b.api.SetAssistantThreadsTitle(slack.AssistantThreadsSetTitleParameters{ChannelID: "C0001", ThreadTS: ts, Title: "Refund"}); err != nil {
		t.Fatal(err)
	}
	if r := b.get("/people/sam/channels/C0001/messages?thread_ts=" + ts); r.text("title") != "Refund" {
		t.Errorf("the title: %v", r)
	}
	mine, _, err := b.api.GetConversationsForUser(&slack.GetConversationsForUserParameters{UserID: "U0900", Types: []string{"public_channel"}})
	if err != nil || len(mine) != 2 {
		t.Errorf("users.conversations: %v %v", mine, err)
	}
	if p, err := b.api.GetUserPresence("U0902"); err != nil || p.Presence != "away" {
		t.Errorf("users.getPresence: %v %v", p, err)
	}
	for _, test := range []struct {
		blocks arr
		ok     bool
	}{
		{arr{obj{"type": "context_actions", "elements": arr{obj{"type": "feedback_buttons", "action_id": "f", "positive_button": obj{"text": plain("Good"), "value": "1"}, "negative_button": obj{"text": plain("Bad"), "value": "0"}}}}}, true},
		{arr{obj{"type": "context_actions", "elements": arr{obj{"type": "feedback_buttons", "action_id": "f", "positive_button": obj{"text": plain("Good"), "value": "1"}}}}}, false},
		{arr{obj{"type": "image", "image_url": "https://example.com/a.png", "alt_text": "a"}}, true},
		{arr{obj{"type": "image", "image_url": "https://example.com/a.png"}}, false},
		{arr{obj{"type": "plan", "title": "P", "tasks": arr{obj{"type": "task_card", "task_id": "1", "title": "T", "status": "pending"}}}}, true},
		{arr{obj{"type": "plan", "title": "P", "tasks": arr{obj{"task_id": "1"}}}}, false},
		{arr{obj{"type": "file", "external_id": "x", "source": "remote"}}, false},
		{arr{obj{"type": "section", "text": mrkdwn("x"), "accessory": obj{"type": "overflow", "action_id": "o", "options": many(5, func(int) any { return option(1) })}}}, true},
		{arr{obj{"type": "section", "text": mrkdwn("x"), "accessory": obj{"type": "overflow", "action_id": "o", "options": many(6, func(int) any { return option(1) })}}}, false},
		{arr{"a string"}, false},
	} {
		if r := b.form("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": test.blocks}); (r.body["ok"] == true) != test.ok {
			t.Errorf("%v: %v", test.blocks, r.body)
		}
	}
}

// People use feedback buttons, overflow menus and inputs in messages.
func TestActionsInMessages(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	blocks := arr{
		obj{"type": "context_actions", "block_id": "f", "elements": arr{obj{"type": "feedback_buttons", "action_id": "feedback", "positive_button": obj{"text": plain("Good"), "value": "good"}, "negative_button": obj{"text": plain("Bad"), "value": "bad"}}}},
		obj{"type": "section", "block_id": "s", "text": mrkdwn("x"), "accessory": obj{"type": "overflow", "action_id": "more", "options": arr{obj{"text": plain("Details"), "value": "details"}}}},
		obj{"type": "input", "block_id": "i", "label": plain("L"), "element": obj{"type": "plain_text_input", "action_id": "note"}},
		actions(obj{"type": "static_select", "action_id": "colour", "options": arr{obj{"text": plain("Red"), "value": "r"}}}, button(obj{"action_id": "same", "value": "1"})),
		actions(button(obj{"action_id": "same", "value": "2"})),
	}
	blocks[4].(obj)["block_id"] = "second"
	ts := b.must(b.form("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": blocks})).text("ts")
	wait(t, app.events)
	press := func(extra obj) reply {
		body := obj{"channel": "C0001", "ts": ts}
		for k, v := range extra {
			body[k] = v
		}
		return b.post("/people/ada/actions", body)
	}
	pressed := func() *slack.BlockAction {
		return wait(t, app.events).Data.(slack.InteractionCallback).ActionCallback.BlockActions[0]
	}
	b.must(press(obj{"action_id": "feedback", "value": "bad"}))
	if a := pressed(); a.Value != "bad" || a.BlockID != "f" {
		t.Errorf("feedback: %+v", a)
	}
	if r := press(obj{"action_id": "feedback", "value": "meh"}); r.code() != "invalid_value" {
		t.Errorf("feedback that isn't offered: %v", r)
	}
	b.must(press(obj{"action_id": "more", "value": "details"}))
	if a := pressed(); a.SelectedOption.Value != "details" {
		t.Errorf("overflow: %+v", a)
	}
	b.must(press(obj{"action_id": "note", "value": "typed"})) // the input has no dispatch_action, so the app gets nothing
	b.must(press(obj{"action_id": "colour", "value": "r"}))
	click := wait(t, app.events).Data.(slack.InteractionCallback)
	if a := click.ActionCallback.BlockActions[0]; a.SelectedOption.Value != "r" || click.BlockActionState.Values["i"]["note"].Value != "typed" {
		t.Errorf("select: %+v %+v", a, click.BlockActionState)
	}
	b.must(press(obj{"action_id": "same", "block_id": "second"}))
	if a := pressed(); a.Value != "2" {
		t.Errorf("the second of two with one action_id: %+v", a)
	}
}

// A click reaches the app with the message version that the person saw, even if the app changed the message in the
// meantime. As in Slack, the blocks of a changed message get new ids.
func TestClickOnEarlierVersion(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	blocks := func(value string) arr { return arr{actions(button(obj{"action_id": "go", "value": value}))} }
	ts := b.must(b.form("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": blocks("1")})).text("ts")
	wait(t, app.events)
	b.must(b.form("views.publish", obj{"user_id": "U0001", "view": obj{"type": "home", "blocks": blocks("h1")}}))
	home := b.must(b.get("/people/ada/home?quiet=true")).body["view"]
	seen := dig(b.messages("ada", "C0001", "")[0], "blocks", "0", "block_id").(string)
	seenAtHome := dig(home, "blocks", "0", "block_id").(string)
	for _, value := range []string{"2", "3"} {
		b.must(b.form("chat.update", obj{"channel": "C0001", "ts": ts, "text": "x", "blocks": blocks(value)}))
		b.must(b.form("views.publish", obj{"user_id": "U0001", "view": obj{"type": "home", "blocks": blocks("h" + value)}}))
	}
	b.must(b.form("chat.update", obj{"channel": "C0001", "ts": ts, "text": "It is over."}))
	wants := func(want string, click obj) {
		t.Helper()
		b.must(b.post("/people/ada/actions", click))
		for {
			if got, ok := wait(t, app.events).Data.(slack.InteractionCallback); ok {
				if a := got.ActionCallback.BlockActions[0]; a.Value != want || a.BlockID != click["block_id"] {
					t.Errorf("the app got %+v, want the value %s", a, want)
				}
				return
			}
		}
	}
	wants("1", obj{"channel": "C0001", "ts": ts, "action_id": "go", "block_id": seen, "value": "1"})
	wants("h1", obj{"view_id": "home", "action_id": "go", "block_id": seenAtHome})
	for _, unseen := range []obj{
		{"channel": "C0001", "ts": ts, "action_id": "go"}, {"channel": "C0001", "ts": ts, "action_id": "go", "block_id": "other"},
		{"channel": "C0001", "ts": ts, "action_id": "other", "block_id": seen},
	} {
		if r := b.post("/people/ada/actions", unseen); r.code() != "unknown_action" {
			t.Errorf("%v: %v", unseen, r)
		}
	}
}
