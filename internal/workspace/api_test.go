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
	b := newBench(t)
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
	groups, err := b.api.GetUserGroups(slack.GetUserGroupsOptionIncludeUsers(true))
	if err != nil || len(groups) != 1 || groups[0].Handle != "support" || len(groups[0].Users) != 2 {
		t.Errorf("usergroups.list: %+v %v", groups, err)
	}
	if members, err := b.api.GetUserGroupMembers("S0001"); err != nil || !slices.Equal(members, []string{"U0001", "U0101"}) {
		t.Errorf("usergroups.users.list: %v %v", members, err)
	}
	if _, err := b.api.GetUserGroupMembers("S9999"); code(err) != "no_such_subteam" {
		t.Errorf("no such group: %v", err)
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
	b := newBench(t)
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
	if len(members) != 5 {
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
	b := newBench(t)
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
		req, _ := http.NewRequest("PUT", u.UploadURL, strings.NewReader(body))
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

// The ways in which Slack's clients send arguments.
func TestArgumentForms(t *testing.T) {
	b := newBench(t)
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
