package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// answerBase lists the fields that every answer of the Web API may have.
var answerBase = []string{"ok", "error", "needed", "provided", "warning", "response_metadata"}

// noPictures lists fields that a person has in Slack, but not in the workspace. docs/workspace.md names these fields.
var noPictures = map[string]string{
	"@user.profile.image_24": "the page draws initials: there are no pictures to link to",
	"@user.profile.image_72": "as image_24",
}

// TestAnswersAreSlacks calls every method and compares the fields of the answer with the fields of Slack's answer.
func TestAnswersAreSlacks(t *testing.T) {
	b, list := newHarness(t), readSlackFields(t)
	root := b.say("sam", "#support", "<@U0BOT> hello", "")
	b.say("ada", "#support", "a reply", root)
	b.must(b.post("/people/ada/reactions", obj{"channel": "#support", "ts": root, "name": "eyes"}))
	b.must(b.post("/people/sam/edit", obj{"channel": "#support", "ts": root, "text": "<@U0BOT> hello again"}))
	sections := arr{obj{"type": "section", "text": plain("x")}}
	own := func() string {
		return b.must(b.form("chat.postMessage", obj{"channel": "C0001", "text": "x"})).text("ts")
	}
	streaming := func() string {
		return b.must(b.form("chat.startStream", obj{"channel": "C0001", "thread_ts": root, "recipient_user_id": "U0100", "recipient_team_id": "T0001", "markdown_text": "x"})).text("ts")
	}
	trigger := func(v string) string {
		b.srv.mu.Lock()
		defer b.srv.mu.Unlock()
		return b.srv.triggers.create("U0001", v)
	}
	open := func() string {
		return b.must(b.form("views.open", obj{"trigger_id": trigger(""), "view": modal(nil)})).text("view", "id")
	}
	upload := func() string {
		r := b.must(b.form("files.getUploadURLExternal", obj{"filename": "a.txt", "length": "1"}))
		resp, err := http.Post(r.text("upload_url"), "application/octet-stream", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return r.text("file_id")
	}
	complete := func() reply {
		return b.form("files.completeUploadExternal", obj{"files": arr{obj{"id": upload(), "title": "t"}}, "channel_id": "C0001", "thread_ts": root, "initial_comment": "x"})
	}
	call := func(method string, args obj) func() reply { return func() reply { return b.form(method, args) } }
	calls := map[string]func() reply{
		"api.test":  call("api.test", obj{"foo": "bar"}),
		"auth.test": call("auth.test", nil),
		"team.info": call("team.info", nil),
		"bots.info": call("bots.info", obj{"bot": "B0001"}),
		"oauth.v2.access": func() reply {
			return newHarness(t, rotating).form("oauth.v2.access", obj{
				"client_id": "1.2", "client_secret": "secret", "grant_type": "refresh_token", "refresh_token": "xoxe-1-first",
			})
		},
		"apps.connections.open": func() reply {
			resp, err := http.PostForm(b.http.URL+"/api/apps.connections.open", map[string][]string{"token": {DemoAppToken}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			out := reply{status: resp.StatusCode}
			if err := errors.Join(err, json.Unmarshal(raw, &out.body)); err != nil {
				t.Fatal(err)
			}
			return out
		},
		"chat.postMessage": call("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": sections, "thread_ts": root, "reply_broadcast": "true",
			"metadata": obj{"event_type": "e", "event_payload": obj{"k": "v"}}}),
		"chat.postEphemeral": call("chat.postEphemeral", obj{"channel": "C0001", "user": "U0100", "text": "x"}),
		"chat.update":        func() reply { return b.form("chat.update", obj{"channel": "C0001", "ts": own(), "text": "y"}) },
		"chat.delete":        func() reply { return b.form("chat.delete", obj{"channel": "C0001", "ts": own()}) },
		"chat.getPermalink":  call("chat.getPermalink", obj{"channel": "C0001", "message_ts": root}),
		"chat.startStream":   call("chat.startStream", obj{"channel": "C0001", "thread_ts": root, "recipient_user_id": "U0100", "recipient_team_id": "T0001"}),
		"chat.appendStream": func() reply {
			return b.form("chat.appendStream", obj{"channel": "C0001", "ts": streaming(), "markdown_text": "y"})
		},
		"chat.stopStream":       func() reply { return b.form("chat.stopStream", obj{"channel": "C0001", "ts": streaming()}) },
		"conversations.open":    call("conversations.open", obj{"users": "U0001", "return_im": "true"}),
		"conversations.info":    call("conversations.info", obj{"channel": "C0001", "include_num_members": "true"}),
		"conversations.list":    call("conversations.list", obj{"types": "public_channel,private_channel,im"}),
		"conversations.members": call("conversations.members", obj{"channel": "C0001"}),
		"conversations.history": call("conversations.history", obj{"channel": "C0001", "include_all_metadata": "true"}),
		"conversations.replies": call("conversations.replies", obj{"channel": "C0001", "ts": root, "include_all_metadata": "true"}),
		"conversations.join": func() reply {
			b.srv.mu.Lock()
			b.srv.app.Scopes = nil
			b.srv.mu.Unlock()
			return b.form("conversations.join", obj{"channel": "C0000"})
		},
		"users.conversations":         call("users.conversations", nil),
		"users.info":                  call("users.info", obj{"user": "U0001", "include_locale": "true"}),
		"users.list":                  call("users.list", nil),
		"users.lookupByEmail":         call("users.lookupByEmail", obj{"email": "ada@example.com"}),
		"users.getPresence":           call("users.getPresence", obj{"user": "U0001"}),
		"usergroups.list":             call("usergroups.list", obj{"include_users": "true", "include_count": "true"}),
		"usergroups.users.list":       call("usergroups.users.list", obj{"usergroup": "S0001"}),
		"dnd.info":                    call("dnd.info", obj{"user": "U0001"}),
		"dnd.teamInfo":                call("dnd.teamInfo", obj{"users": "U0001,U0002"}),
		"views.open":                  func() reply { return b.form("views.open", obj{"trigger_id": trigger(""), "view": modal(nil)}) },
		"views.push":                  func() reply { return b.form("views.push", obj{"trigger_id": trigger(open()), "view": modal(nil)}) },
		"views.update":                func() reply { return b.form("views.update", obj{"view_id": open(), "view": modal(nil)}) },
		"views.publish":               call("views.publish", obj{"user_id": "U0001", "view": obj{"type": "home", "blocks": sections}}),
		"assistant.threads.setStatus": call("assistant.threads.setStatus", obj{"channel_id": "C0001", "thread_ts": root, "status": "is thinking"}),
		"assistant.threads.setTitle":  call("assistant.threads.setTitle", obj{"channel_id": "C0001", "thread_ts": root, "title": "t"}),
		"assistant.threads.setSuggestedPrompts": call("assistant.threads.setSuggestedPrompts", obj{"channel_id": "C0001", "thread_ts": root,
			"prompts": arr{obj{"title": "t", "message": "m"}}}),
		"reactions.add":                call("reactions.add", obj{"channel": "C0001", "timestamp": root, "name": "tada"}),
		"reactions.remove":             call("reactions.remove", obj{"channel": "C0001", "timestamp": root, "name": "tada"}),
		"reactions.get":                call("reactions.get", obj{"channel": "C0001", "timestamp": root}),
		"files.getUploadURLExternal":   call("files.getUploadURLExternal", obj{"filename": "a.txt", "length": "1"}),
		"files.completeUploadExternal": complete,
		"files.info": func() reply {
			return b.form("files.info", obj{"file": b.must(complete()).text("files", "0", "id")})
		},
	}
	report := fieldReport{}
	for _, method := range slices.Sorted(maps.Keys(b.srv.webAPI.methods)) {
		call, rules := calls[method], list["api "+method]
		if call == nil || rules == nil {
			t.Errorf("%s is not compared with Slack's: add a call of it here, and its fields to testdata/fields.txt", method)
			continue
		}
		body := b.must(call()).body
		for _, name := range answerBase {
			delete(body, name)
		}
		list.object(report, method, body, rules)
	}
	report.excepting(t, noPictures)
}

// recorder is an app that stores all deliveries that it gets.
type recorder struct {
	mu   sync.Mutex
	told map[string][]map[string]any
}

func (r *recorder) keep(kind string, raw json.RawMessage) {
	var payload map[string]any
	if err := json.Unmarshal(raw, &payload); err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[kind] = append(r.told[kind], payload)
}

func (r *recorder) Event(payload json.RawMessage) { r.keep("events_api", payload) }

func (r *recorder) Ask(kind string, payload json.RawMessage) (json.RawMessage, error) {
	r.keep(kind, payload)
	return nil, nil
}

// TestPayloadsAreSlacks makes people do all actions that cause a delivery. The test compares the fields of each
// delivery with Slack's fields.
func TestPayloadsAreSlacks(t *testing.T) {
	app, list := &recorder{told: map[string][]map[string]any{}}, readSlackFields(t)
	b := newHarness(t, func(c *Config) { c.App = app })
	live(b)
	report, seen := fieldReport{}, map[string]bool{}
	compare := func(heading, at string, v map[string]any) {
		t.Helper()
		seen[heading] = true
		if list[heading] == nil {
			t.Errorf("testdata/fields.txt has no %q", heading)
			return
		}
		list.object(report, at, v, list[heading])
	}
	for _, payload := range app.told["events_api"] {
		event := payload["event"].(map[string]any)
		delete(payload, "event")
		compare("event envelope", "envelope", payload)
		heading := "event " + event["type"].(string)
		if subtype, _ := event["subtype"].(string); subtype != "" {
			heading += "/" + subtype
		}
		compare(heading, strings.TrimPrefix(heading, "event "), event)
	}
	for _, payload := range app.told["interactive"] {
		kind := payload["type"].(string)
		compare("interactive "+kind, kind, payload)
	}
	for _, payload := range app.told["slash_commands"] {
		compare("command", "command", payload)
	}
	for heading := range list {
		if kind, _, _ := strings.Cut(heading, " "); kind != "shape" && kind != "api" && !seen[heading] {
			t.Errorf("nobody provoked %q", heading)
		}
	}
	asAny := "as in any other message that a person writes; the sample lacks it"
	reasons := map[string]string{
		"message/thread_broadcast.parent_user_id": asAny, "message/thread_broadcast.team": asAny,
		"message/file_share.client_msg_id": asAny, "message/file_share.team": asAny,
	}
	maps.Copy(reasons, noPictures)
	report.excepting(t, reasons)
}

// The function "live" makes people do every kind of action at least once.
func live(b *harness) {
	do := func(path string, body obj) reply { b.t.Helper(); return b.must(b.post("/people/"+path, body)) }
	root := b.say("sam", "#support", "<@U0BOT> hello", "")
	do("sam/messages", obj{"channel": "#support", "text": "a reply", "thread_ts": root, "reply_broadcast": true})
	do("sam/edit", obj{"channel": "#support", "ts": root, "text": "changed"})
	do("sam/messages", obj{"channel": "#support", "text": "a file", "thread_ts": root, "files": arr{obj{"name": "a.txt", "content": "x"}}})
	do("sam/reactions", obj{"channel": "#support", "ts": root, "name": "eyes"})
	do("sam/reactions", obj{"channel": "#support", "ts": root, "name": "eyes", "remove": true})
	b.say("sam", "U0BOT", "in a direct message", "")
	do("sam/delete", obj{"channel": "#support", "ts": b.say("sam", "#support", "away with it", "")})
	do("ada/commands", obj{"channel": "#support", "command": "/countersign", "text": "help"})
	do("ada/shortcuts", obj{"callback_id": "ask_countersign"})
	do("ada/shortcuts", obj{"callback_id": "hand_over", "channel": "#support", "ts": root})

	menu := obj{"type": "external_select", "action_id": "menu", "min_query_length": 0}
	blocks := arr{obj{"type": "actions", "block_id": "b", "elements": arr{button(obj{"value": "v"}), menu}}}
	ts := b.must(b.form("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": blocks, "thread_ts": root})).text("ts")
	do("ada/actions", obj{"channel": "#support", "ts": ts, "action_id": "a"})
	do("ada/options", obj{"channel": "#support", "ts": ts, "action_id": "menu", "value": "x"})
	b.must(b.form("chat.update", obj{"channel": "C0001", "ts": ts, "text": "y"}))
	b.must(b.form("chat.postEphemeral", obj{"channel": "C0001", "user": "U0001", "text": "x", "blocks": blocks}))
	for _, item := range b.messages("ada", "#support", "") {
		if m := item.(map[string]any); m["is_ephemeral"] == true {
			do("ada/actions", obj{"channel": "#support", "ts": m["ts"], "action_id": "a"})
		}
	}

	form := modal(obj{"submit": plain("S"), "notify_on_close": true, "blocks": append(arr{input(obj{"type": "plain_text_input", "action_id": "t", "initial_value": "x"})}, blocks...)})
	for _, end := range []string{"submit", "close"} {
		b.srv.mu.Lock()
		trigger := b.srv.triggers.create("U0001", "")
		b.srv.mu.Unlock()
		id := b.must(b.form("views.open", obj{"trigger_id": trigger, "view": form})).text("view", "id")
		do("ada/actions", obj{"view_id": id, "action_id": "a"})
		do("ada/options", obj{"view_id": id, "action_id": "menu", "value": "x"})
		do("ada/views/"+id+"/"+end, obj{})
	}
	b.must(b.form("views.publish", obj{"user_id": "U0001", "view": obj{"type": "home", "blocks": blocks}}))
	b.must(b.get("/people/ada/home"))
	do("ada/actions", obj{"view_id": "home", "action_id": "a"})

	title := "Something else"
	end := b.clock.Now().Unix() + 3600
	for _, change := range []UserChange{{Title: &title}, {SnoozeUntil: &end}} {
		if err := b.srv.ChangeUser("U0001", change); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.srv.SetGroupUsers("S0001", []string{"U0001"}); err != nil {
		b.t.Fatal(err)
	}
	thread := do("ada/agent_threads", obj{"context": "#support"}).text("thread_ts")
	do("ada/looks", obj{"context": "#general", "thread_ts": thread})
	do("ada/looks", obj{"context": "#general"})
	b.must(b.form("chat.startStream", obj{"channel": "C0001", "thread_ts": root, "recipient_user_id": "U0100", "recipient_team_id": "T0001", "markdown_text": "x"}))
	do("sam/stop", obj{"channel": "#support", "thread_ts": root})
	do("priya/leave", obj{"channel": "#support"})
	do("ada/invite", obj{"channel": "#support", "users": arr{"priya"}})
	do("teo/invite", obj{"channel": "C0003", "users": arr{"U0BOT"}})
	for _, channel := range []string{"C0001", "C0003"} {
		do("ingrid/archive", obj{"channel": channel})
		do("ingrid/unarchive", obj{"channel": channel})
	}
	do("ingrid/invite", obj{"channel": "C0001", "users": arr{"U0BOT"}})
	for _, channel := range []string{"C0001", "C0003"} {
		do("ingrid/remove", obj{"channel": channel, "users": arr{"U0BOT"}})
		do("ingrid/invite", obj{"channel": channel, "users": arr{"U0BOT"}})
		do("ingrid/delete_channel", obj{"channel": channel})
	}
}

// fieldType is a JSON type as testdata/fields.txt writes it.
type fieldType struct {
	name   string               // string, number, bool, any, a shape's name after @; empty for a list or an object
	list   *fieldType           // the type of the list's items
	fields map[string]fieldRule // the fields of an object
}

type fieldRule struct {
	fieldType
	must, null bool
}

// slackFields is the content of testdata/fields.txt, by heading ("shape user", "api users.info", "event message").
type slackFields map[string]map[string]fieldRule

func readSlackFields(t *testing.T) slackFields {
	t.Helper()
	raw, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	out, heading, body := slackFields{}, "", ""
	end := func() {
		if heading != "" {
			p := fieldParser{rest: body}
			out[heading] = p.fields()
			if p.rest != "" {
				t.Fatalf("testdata/fields.txt, %s: cannot read %.40q", heading, p.rest)
			}
		}
	}
	for line := range strings.Lines(string(raw)) {
		switch {
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, " "):
			body += " " + strings.TrimSpace(line)
		default:
			end()
			heading, body = strings.TrimSpace(line), ""
		}
	}
	end()
	return out
}

type fieldParser struct{ rest string }

func (p *fieldParser) fields() map[string]fieldRule {
	out := map[string]fieldRule{}
	for {
		p.rest = strings.TrimLeft(p.rest, " ")
		name, rest, found := strings.Cut(p.rest, ":")
		if !found || strings.HasPrefix(p.rest, "}") {
			return out
		}
		p.rest = rest
		rule := fieldRule{fieldType: p.readType(), must: strings.Contains(name, "!"), null: strings.Contains(name, "?")}
		out[strings.TrimRight(name, "!?")] = rule
	}
}

func (p *fieldParser) readType() fieldType {
	switch {
	case strings.HasPrefix(p.rest, "["):
		p.rest = p.rest[1:]
		item := p.readType()
		p.rest = strings.TrimPrefix(p.rest, "]")
		return fieldType{list: &item}
	case strings.HasPrefix(p.rest, "{"):
		p.rest = p.rest[1:]
		fields := p.fields()
		p.rest = strings.TrimPrefix(strings.TrimLeft(p.rest, " "), "}")
		return fieldType{fields: fields}
	}
	end := strings.IndexAny(p.rest, " ]}")
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	p.rest = p.rest[end:]
	return fieldType{name: name}
}

// fieldReport lists the differences from Slack. A key is the place of a difference, and its value describes the
// difference.
type fieldReport map[string]string

// object compares an object of the workspace with the fields of the same object in Slack.
func (l slackFields) object(report fieldReport, at string, v map[string]any, rules map[string]fieldRule) {
	for name, value := range v {
		rule, known := rules[name]
		if !known {
			rule, known = rules["*"]
		}
		if !known {
			report[at+"."+name] = "Slack has no such field"
			continue
		}
		l.value(report, at+"."+name, value, rule.fieldType, rule.null)
	}
	for name, rule := range rules {
		if _, there := v[name]; rule.must && !there {
			report[at+"."+name] = "missing"
		}
	}
}

func (l slackFields) value(report fieldReport, at string, v any, want fieldType, null bool) {
	got := jsonType(v)
	shape, isShape := l["shape "+strings.TrimPrefix(want.name, "@")], strings.HasPrefix(want.name, "@")
	switch {
	case want.name == "any", got == "null" && null:
	case isShape && got == "object":
		l.object(report, want.name, v.(map[string]any), shape) // a difference is reported once for all places where the shape occurs
	case want.list != nil && got == "list":
		for _, item := range v.([]any) {
			l.value(report, at+"[]", item, *want.list, false)
		}
	case want.fields != nil && got == "object":
		l.object(report, at, v.(map[string]any), want.fields)
	case got != want.name:
		report[at] = fmt.Sprintf("is %s, in Slack %s", got, want)
	}
}

func (f fieldType) String() string {
	switch {
	case f.list != nil:
		return "a list"
	case f.fields != nil:
		return "an object"
	}
	return f.name
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "string"
	case float64, json.Number:
		return "number"
	case []any:
		return "list"
	}
	return "object"
}

// The method "excepting" fails the test for each difference without a reason, and for each reason without a difference.
func (r fieldReport) excepting(t *testing.T, reasons map[string]string) {
	t.Helper()
	var lines []string
	for at, what := range r {
		if reasons[at] == "" {
			lines = append(lines, at+": "+what)
		}
	}
	for at := range reasons {
		if _, differs := r[at]; !differs {
			lines = append(lines, at+" is as in Slack now: take it off the list of differences, here and in docs/workspace.md")
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		t.Error(line)
	}
}
