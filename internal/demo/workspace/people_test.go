package workspace

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

// TestWhoMayDoWhat checks the permissions of people.
func TestWhoMayDoWhat(t *testing.T) {
	b := newHarness(t)
	ts := b.postButton("C0002")
	for _, test := range []struct {
		user, method, path string
		body               any
		status             int
		code               string
	}{
		{"nobody", "GET", "channels", nil, 404, "user_not_found"},
		{"dora", "GET", "channels", nil, 403, "account_inactive"},
		{"U0902", "POST", "messages", obj{"channel": "C0001", "text": "x"}, 403, "account_inactive"},
		{"deploybot", "POST", "messages", obj{"channel": "C0000", "text": "x"}, 403, "user_is_bot"},
		{"U0BOT", "POST", "messages", obj{"channel": "C0000", "text": "x"}, 403, "user_is_bot"},
		{"sam", "GET", "channels/C0003/messages", nil, 404, "channel_not_found"},    // private
		{"sam", "GET", "channels/C0002/messages", nil, 200, ""},                     // members may read public channels
		{"gus", "GET", "channels/C0002/messages", nil, 404, "channel_not_found"},    // guests may not read the channel
		{"xavier", "GET", "channels/C0001/messages", nil, 404, "channel_not_found"}, // people of other organizations may not read the channel
		{"xavier", "GET", "channels/C0004/messages", nil, 200, ""},
		{"teo", "GET", "channels/finance/messages", nil, 200, ""},
		{"sam", "POST", "messages", obj{"channel": "C0002", "text": "x"}, 403, "not_in_channel"},
		{"sam", "POST", "actions", obj{"channel": "C0002", "ts": ts, "action_id": "go"}, 403, "not_in_channel"},
		{"ada", "POST", "actions", obj{"channel": "C0002", "ts": ts, "action_id": "stop"}, 404, "unknown_action"},
		{"ada", "POST", "actions", obj{"channel": "C0002", "ts": ts, "action_id": "go", "value": "forged"}, 400, "invalid_value"},
		{"ada", "POST", "actions", obj{"channel": "C0002", "ts": "1.000000", "action_id": "go"}, 404, "message_not_found"},
		{"ada", "POST", "actions", obj{"channel": "C0002", "ts": ts, "action_id": "go"}, 504, "app_did_not_respond"},
		{"ada", "POST", "messages", obj{"channel": "C0002", "text": "  "}, 400, "no_text"},
		{"ada", "POST", "messages", obj{"channel": "C0002", "text": "x", "thread_ts": "1.000000"}, 404, "thread_not_found"},
		{"ada", "POST", "messages", obj{"channel": "#nowhere", "text": "x"}, 404, "channel_not_found"},
		{"ada", "POST", "commands", obj{"channel": "C0001", "command": "/nothing"}, 404, "unknown_command"},
		{"ada", "POST", "shortcuts", obj{"callback_id": "nothing"}, 404, "unknown_shortcut"},
		{"ada", "POST", "views/V1/submit", obj{}, 404, "view_not_found"},
	} {
		r := b.do(test.method, "/people/"+test.user+"/"+test.path, test.body)
		if r.status != test.status || r.code() != test.code {
			t.Errorf("%s %s %s %v: %d %s, want %d %s", test.user, test.method, test.path, test.body, r.status, r.code(), test.status, test.code)
		}
	}
}

func TestChannelsAreCounted(t *testing.T) {
	b := newHarness(t)
	b.say("sam", "#support", "for @ada", "")
	parent := b.say("sam", "#support", "for all", "")
	reply := b.say("sam", "#support", "@support in the thread", parent)
	b.say("sam", "teo", "in private", "")
	channel := func(user, name string) any {
		for _, ch := range b.must(b.get("/people/" + user + "/channels")).body["channels"].([]any) {
			if dig(ch, "name") == name {
				return ch
			}
		}
		return nil
	}
	if ch := channel("ada", "support"); dig(ch, "unread_count") != 2.0 || dig(ch, "mention_count") != 2.0 || dig(ch, "latest_ts") != reply {
		t.Errorf("ada's: %v", ch)
	}
	if ch := channel("teo", "support"); dig(ch, "unread_count") != 2.0 || dig(ch, "mention_count") != 0.0 {
		t.Errorf("teo's: %v", ch)
	}
	if ch := channel("teo", "sam"); dig(ch, "is_im") != true || dig(ch, "user") != "U0100" || dig(ch, "mention_count") != 1.0 {
		t.Errorf("teo's DM: %v", ch)
	}
	if ch := channel("sam", "support"); dig(ch, "unread_count") != 0.0 {
		t.Errorf("one's own: %v", ch)
	}
	b.must(b.get("/people/ada/channels/C0001/messages?mark=true&thread_ts=" + parent))
	if ch := channel("ada", "support"); dig(ch, "unread_count") != 2.0 || dig(ch, "mention_count") != 1.0 {
		t.Errorf("the thread is read: %v", ch)
	}
	b.must(b.get("/people/ada/channels/C0001/messages?mark=true"))
	if ch := channel("ada", "support"); dig(ch, "unread_count") != 0.0 || dig(ch, "mention_count") != 0.0 {
		t.Errorf("read: %v", ch)
	}
	if channel("teo", "countersign") == nil || channel("xavier", "general") != nil {
		t.Error("the DM with the app is missing, or a stranger is in #general")
	}
}

func TestTypedText(t *testing.T) {
	b := newHarness(t)
	for typed, want := range map[string]string{
		"@Countersign hi":                    "<@U0BOT> hi",
		"@countersign, hi":                   "<@U0BOT>, hi",
		"hi @sam.":                           "hi <@U0100>.",
		"@DeployBot":                         "<@U0904>",
		"@nobody":                            "@nobody",
		"@support and #general":              "<!subteam^S0001|@support> and <#C0000|general>",
		"@here #nothing":                     "<!here> #nothing",
		"1 < 2 & 3 > 2":                      "1 &lt; 2 &amp; 3 &gt; 2",
		"<@U0100> <!here> <#C0001>":          "<@U0100> <!here> <#C0001>",
		"<script>":                           "&lt;script&gt;",
		"mail ann@example.com.":              "mail <mailto:ann@example.com|ann@example.com>.",
		"see https://example.com/a?b=1&c=2.": "see <https://example.com/a?b=1&amp;c=2>.",
		"`@sam <b>` @sam":                    "`@sam &lt;b&gt;` <@U0100>",
		"```\n@sam\n```":                     "```\n@sam\n```",
		"ORD-123 für 49,99 €":                "ORD-123 für 49,99 €",
	} {
		if got := b.srv.notation.typed(typed); got != want {
			t.Errorf("%q became %q, want %q", typed, got, want)
		}
	}
}

func TestShortcuts(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	r := b.must(b.post("/people/sam/shortcuts", obj{"callback_id": "ask_countersign"}))
	if e := wait(t, app.events).Data.(slack.InteractionCallback); e.Type != slack.InteractionTypeShortcut || e.TriggerID != r.text("trigger_id") {
		t.Errorf("shortcut: %+v", e)
	}
	ts := b.say("sam", "C0001", "take this", "")
	wait(t, app.events)
	b.must(b.post("/people/ada/shortcuts", obj{"callback_id": "hand_over", "channel": "C0001", "ts": ts}))
	if e := wait(t, app.events).Data.(slack.InteractionCallback); e.Type != slack.InteractionTypeMessageAction || e.Message.Text != "take this" || e.MessageTs != ts {
		t.Errorf("message shortcut: %+v", e)
	}
	if r := b.post("/people/sam/shortcuts", obj{"callback_id": "hand_over"}); r.code() != "unknown_shortcut" {
		t.Errorf("a message shortcut without a message: %v", r)
	}
}

func TestPeopleJoinLeaveAndReact(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	b.must(b.post("/people/sam/join", obj{"channel": "#support-approvals"}))
	if e := inner(t, wait(t, app.events)).(*slackevents.MemberJoinedChannelEvent); e.User != "U0100" || e.Channel != "C0002" {
		t.Errorf("joined: %+v", e)
	}
	if e := inner(t, wait(t, app.events)).(*slackevents.MessageEvent); e.SubType != "channel_join" {
		t.Errorf("join message: %+v", e)
	}
	b.must(b.post("/people/ada/invite", obj{"channel": "C0002", "users": arr{"gus"}}))
	if e := inner(t, wait(t, app.events)).(*slackevents.MemberJoinedChannelEvent); e.User != "U0900" || e.Inviter != "U0001" {
		t.Errorf("invited: %+v", e)
	}
	wait(t, app.events)
	ts := b.say("sam", "C0002", "x", "")
	wait(t, app.events)
	b.must(b.post("/people/gus/reactions", obj{"channel": "C0002", "ts": ts, "name": ":eyes:"}))
	if e := inner(t, wait(t, app.events)).(*slackevents.ReactionAddedEvent); e.Reaction != "eyes" || e.ItemUser != "U0100" {
		t.Errorf("reaction: %+v", e)
	}
	if err := b.api.AddReaction("eyes", slack.NewRefToMessage("C0002", ts)); err != nil {
		t.Fatal(err)
	}
	if err := b.api.AddReaction("eyes", slack.NewRefToMessage("C0002", ts)); code(err) != "already_reacted" {
		t.Errorf("twice: %v", err)
	}
	if m := b.messages("sam", "C0002", ""); dig(m[len(m)-1], "reactions", "0", "count") != 2.0 {
		t.Errorf("reactions: %v", m)
	}
	b.must(b.post("/people/sam/leave", obj{"channel": "C0002"}))
	if r := b.post("/people/sam/messages", obj{"channel": "C0002", "text": "x"}); r.code() != "not_in_channel" {
		t.Errorf("after leaving: %v", r)
	}
}

func TestPeopleAreListed(t *testing.T) {
	b := newHarness(t)
	r := b.must(b.get("/people"))
	kinds := map[string]obj{}
	for _, p := range r.body["people"].([]any) {
		kinds[dig(p, "name").(string)] = p.(obj)
	}
	for name, field := range map[string]string{"gus": "is_restricted", "uma": "is_ultra_restricted", "dora": "deleted", "xavier": "is_stranger", "deploybot": "is_bot"} {
		if kinds[name][field] != true {
			t.Errorf("%s isn't %s: %v", name, field, kinds[name])
		}
	}
	if dig(r.body, "bot", "id") != "U0BOT" || kinds["kenji"]["tz_offset"] != 9*3600.0 || dig(r.body, "groups", "0", "handle") != "support" || dig(r.body, "commands", "0", "command") != "/countersign" {
		t.Errorf("people: %v", r.body)
	}
}

// Another website's page can't act through the browser of the workspace's user.
func TestForeignOriginsAreRefused(t *testing.T) {
	b := newHarness(t)
	own := strings.TrimPrefix(b.http.URL, "http://")
	for _, test := range []struct {
		host, origin, site string
		want               int
	}{
		{own, "", "", 200}, // no browser
		{own, b.http.URL, "same-origin", 200},
		{own, "", "none", 200},
		{own, "https://evil.example.com", "cross-site", 403},
		{own, "null", "", 403},
		{own, "", "cross-site", 403},
		{"evil.example.com:8484", "http://evil.example.com:8484", "same-origin", 403}, // a host name that resolves to this server
		{"workspace:8484", "", "", 200},
		{"localhost:8484", "http://localhost:8484", "same-origin", 200},
	} {
		req, _ := http.NewRequest(http.MethodPost, b.http.URL+"/people/sam/messages", strings.NewReader(`{"channel":"C0001","text":"x"}`))
		req.Host = test.host
		if test.origin != "" {
			req.Header.Set("Origin", test.origin)
		}
		if test.site != "" {
			req.Header.Set("Sec-Fetch-Site", test.site)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.want {
			t.Errorf("%+v: %d", test, resp.StatusCode)
		}
	}
}

// A browser gets only the changes that concern its person.
func TestTheFeed(t *testing.T) {
	b := newHarness(t)
	listen := func(user string) *bufio.Scanner {
		resp, err := http.Get(b.http.URL + "/events?user=" + user)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() && lines.Text() != ": listening" {
		}
		return lines
	}
	next := func(lines *bufio.Scanner) obj {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var c obj
				if err := json.Unmarshal([]byte(data), &c); err != nil {
					t.Fatal(err)
				}
				return c
			}
		}
		t.Fatal("the stream ended")
		return nil
	}
	sam, teo := listen("sam"), listen("teo")
	secret := b.say("teo", "#finance", "figures", "")
	open := b.say("sam", "#support", "hello", "")
	if c := next(teo); c["ts"] != secret || c["type"] != "message" || c["channel"] != "C0003" {
		t.Errorf("teo received %v", c)
	}
	if c := next(sam); c["ts"] != open {
		t.Errorf("sam received %v", c)
	}
	if _, err := b.api.PostEphemeral("C0001", "U0100", slack.MsgOptionText("psst", false)); err != nil {
		t.Fatal(err)
	}
	if c := next(sam); c["type"] != "ephemeral" || c["user"] != "U0100" {
		t.Errorf("sam received %v", c)
	}
}

// usergroups.list has users and user_count only on request. It cuts a long list of users, unlike
// usergroups.users.list. A disabled group appears only on request, too.
func TestUserGroups(t *testing.T) {
	b := newHarness(t)
	list := func(o ...slack.GetUserGroupsOption) slack.UserGroup {
		t.Helper()
		groups, err := b.api.GetUserGroups(o...)
		if err != nil || len(groups) != 1 || groups[0].Handle != "support" {
			t.Fatalf("usergroups.list: %+v %v", groups, err)
		}
		return groups[0]
	}
	users, count, disabled := slack.GetUserGroupsOptionIncludeUsers(true), slack.GetUserGroupsOptionIncludeCount(true), slack.GetUserGroupsOptionIncludeDisabled(true)
	if g := list(); g.Users != nil || g.UserCount != 0 {
		t.Errorf("unasked: %+v", g)
	}
	if g := list(users); len(g.Users) != 2 || g.UserCount != 0 {
		t.Errorf("with users: %+v", g)
	}
	for _, n := range []int{maxListedUsers, maxListedUsers + 1} {
		b.srv.mu.Lock()
		b.srv.groups.list[0].Users = slices.Repeat([]string{"U0001"}, n)
		b.srv.mu.Unlock()
		if g := list(users, count); len(g.Users) != maxListedUsers || g.UserCount != n {
			t.Errorf("%d of %d users, user_count %d", len(g.Users), n, g.UserCount)
		}
		if all, err := b.api.GetUserGroupMembers("S0001"); err != nil || len(all) != n {
			t.Errorf("usergroups.users.list: %d of %d users, %v", len(all), n, err)
		}
	}
	b.must(b.post("/faults", obj{"fault": "group", "group": "@support", "disabled": true}))
	if groups, err := b.api.GetUserGroups(); err != nil || len(groups) != 0 {
		t.Errorf("disabled: %+v %v", groups, err)
	}
	if _, err := b.api.GetUserGroupMembers("S0001"); code(err) != "no_such_subteam" {
		t.Errorf("members of a disabled group: %v", err)
	}
	if g := list(disabled); g.DateDelete == 0 {
		t.Errorf("disabled, on request: %+v", g)
	}
	if _, err := b.api.GetUserGroupMembers("S0001", slack.GetUserGroupMembersOptionIncludeDisabled(true)); err != nil {
		t.Errorf("members of a disabled group, on request: %v", err)
	}
	b.must(b.post("/faults", obj{"fault": "group", "group": "S0001", "disabled": false}))
	if g := list(); g.DateDelete != 0 {
		t.Errorf("enabled again: %+v", g)
	}
	if _, err := b.api.GetUserGroupMembers("S9999"); code(err) != "no_such_subteam" {
		t.Errorf("no such group: %v", err)
	}
}
