package workspace

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

func TestCommands(t *testing.T) {
	b := newHarness(t)
	var commands []slack.SlashCommand
	answers := make(chan any, 1)
	b.connect(func(e socketmode.Event) (bool, any) {
		if c, ok := e.Data.(slack.SlashCommand); ok {
			commands = append(commands, c)
			return true, <-answers
		}
		return true, nil
	})
	run := func(answer any) reply {
		answers <- answer
		return b.post("/people/sam/commands", obj{"channel": "C0001", "command": "/countersign", "text": "list me"})
	}
	if r := b.must(run(nil)); r.body["message"] != nil {
		t.Errorf("no answer: %v", r)
	}
	if r := b.must(run(obj{"text": "for you"})); dig(r.body, "message", "is_ephemeral") != true || len(b.messages("ada", "C0001", "")) != 0 {
		t.Errorf("an ephemeral answer: %v", r)
	}
	if b.must(run(obj{"text": "for all", "response_type": "in_channel"})); len(b.messages("ada", "C0001", "")) != 1 {
		t.Error("an answer to all is missing")
	}
	if r := run(obj{"blocks": arr{obj{"type": "nonsense"}}}); r.status != 400 || r.code() != "invalid_app_response" {
		t.Errorf("a bad answer: %v", r)
	}
	if c := commands[0]; c.Command != "/countersign" || c.Text != "list me" || c.UserID != "U0100" || c.ChannelName != "support" || c.TriggerID == "" || c.ResponseURL == "" {
		t.Errorf("the command: %+v", c)
	}
}

// The payload of a command has the keys of Slack's form.
func TestACommandsPayload(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	for _, test := range []struct{ user, channel, name string }{
		{"sam", "#support", "support"},
		{"teo", "#finance", "privategroup"}, // a command also works in channels that the bot is not in
		{"sam", "countersign", "directmessage"},
	} {
		b.must(b.post("/people/"+test.user+"/commands", obj{"channel": test.channel, "command": "/countersign", "text": "away"}))
		e := wait(t, app.events)
		var got map[string]string // a form has strings only
		if err := json.Unmarshal(e.Request.Payload, &got); err != nil || e.Request.Type != "slash_commands" || !e.Request.AcceptsResponsePayload {
			t.Fatalf("%s %v: %s", e.Request.Type, err, e.Request.Payload)
		}
		if got["channel_name"] != test.name || got["user_name"] != test.user || got["text"] != "away" || got["team_domain"] != "countersign-demo" || got["api_app_id"] != "A0001" {
			t.Errorf("in %s: %v", test.channel, got)
		}
		for _, key := range []string{"token", "team_id", "channel_id", "user_id", "command", "response_url", "trigger_id", "is_enterprise_install"} {
			if got[key] == "" {
				t.Errorf("in %s: %s is missing", test.channel, key)
			}
		}
	}
}

// With should_escape, the app gets ids and names. Without should_escape, the app gets the typed text.
func TestACommandsText(t *testing.T) {
	seed := OpenSeed()
	seed.App.Commands = append(seed.App.Commands, SeedCommand{Command: "/raw", Description: "Takes text as it is"})
	b := newHarness(t, func(c *Config) { c.Seed = seed })
	app := b.connect(nil)
	for _, test := range []struct{ typed, escaped string }{
		{"away until monday, delegate to @kenji", "away until monday, delegate to <@U0004|kenji>"},
		{"ask <@U0900> & @support in #general", "ask <@U0900|gus> &amp; <!subteam^S0001|@support> in <#C0000|general>"},
		{"<@U9999> @nobody <!subteam^S0001> <@U0004|somebody else>", "<@U9999> @nobody <!subteam^S0001|@support> <@U0004|kenji>"},
		{"see https://example.com/?a=1&b=2 `@kenji`", "see <https://example.com/?a=1&amp;b=2> `@kenji`"},
	} {
		for command, want := range map[string]string{"/countersign": test.escaped, "/raw": test.typed} {
			b.must(b.post("/people/sam/commands", obj{"channel": "C0001", "command": command, "text": test.typed}))
			if got := wait(t, app.events).Data.(slack.SlashCommand).Text; got != want {
				t.Errorf("%s %s became %q, want %q", command, test.typed, got, want)
			}
		}
	}
}

func TestWhereCommandsDontWork(t *testing.T) {
	b := newHarness(t, func(c *Config) { c.Seed.Channels[0].Archived = true })
	b.connect(func(socketmode.Event) (bool, any) { t.Error("the app received it"); return true, nil })
	for _, test := range []struct {
		body   obj
		status int
		code   string
	}{
		{obj{"channel": "C0001", "command": "/countersign", "thread_ts": "1.000000"}, 400, "command_in_thread"},
		{obj{"channel": "C0003", "command": "/countersign"}, 404, "channel_not_found"},
		{obj{"channel": "C0002", "command": "/countersign"}, 403, "not_in_channel"},
		{obj{"channel": "C0000", "command": "/countersign"}, 403, "is_archived"},
		{obj{"channel": "C0001", "command": "countersign"}, 404, "unknown_command"},
	} {
		if r := b.post("/people/sam/commands", test.body); r.status != test.status || r.code() != test.code {
			t.Errorf("%v: %d %s, want %d %s", test.body, r.status, r.code(), test.status, test.code)
		}
	}
}

// An app that acknowledged a command without a text can answer later, through the response_url. If the answer sets
// in_channel, all members see the answer. In all other cases, only the person who sent the command sees it.
func TestACommandAnsweredLater(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	if r := b.must(b.post("/people/teo/commands", obj{"channel": "#finance", "command": "/countersign", "text": "list"})); r.body["message"] != nil {
		t.Errorf("an empty acknowledgement shows nothing: %v", r)
	}
	url := wait(t, app.events).Data.(slack.SlashCommand).ResponseURL
	for _, answer := range []string{`{"text":"for you"}`, `{"text":"for all","response_type":"in_channel"}`} {
		resp, err := http.Post(url, "application/json", bytes.NewReader([]byte(answer)))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", answer, resp.StatusCode, body)
		}
	}
	if got := b.messages("teo", "#finance", ""); len(got) != 2 || dig(got[0], "is_ephemeral") != true || dig(got[0], "text") != "for you" {
		t.Errorf("teo sees %v", got)
	}
	if got := b.messages("kenji", "#finance", ""); len(got) != 1 || dig(got[0], "text") != "for all" {
		t.Errorf("kenji sees %v", got)
	}
}
