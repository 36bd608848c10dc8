package slackapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/internal/demo/workspace"
)

type (
	obj = map[string]any
	arr = []any
)

// The functions below make parts of the cases. chars returns a text of n characters of three bytes.
func chars(n int) string { return strings.Repeat("界", n) }
func plainObj(n int) obj { return obj{"type": "plain_text", "text": chars(n)} }
func repeated(n int, make func(i int) any) (out arr) {
	for i := range n {
		out = append(out, make(i))
	}
	return out
}
func having(o obj, key string, v any) obj {
	o = maps.Clone(o)
	o[key] = v
	return o
}
func acting(element obj) arr { return arr{obj{"type": "actions", "elements": arr{element}}} }
func asking(element obj) arr {
	return arr{obj{"type": "input", "label": plainObj(1), "element": element}}
}
func aButton(key string, v any) arr {
	return acting(having(obj{"type": "button", "action_id": "a", "text": plainObj(1)}, key, v))
}
func confirmed(key string, n int) arr {
	return aButton("confirm", having(obj{"title": plainObj(1), "text": plainObj(1), "confirm": plainObj(1), "deny": plainObj(1)}, key, plainObj(n)))
}
func menu(kind string, n int) arr {
	return acting(obj{"type": kind, "action_id": "a", "options": repeated(n, func(i int) any { return obj{"text": plainObj(1), "value": fmt.Sprint(i)} })})
}
func anOption(key string, v any) arr {
	return acting(obj{"type": "static_select", "action_id": "a", "options": arr{having(obj{"text": plainObj(1), "value": "v"}, key, v)}})
}
func feedback(side, key string, v any) arr {
	b := obj{"text": plainObj(1), "value": "v"}
	o := obj{"type": "feedback_buttons", "action_id": "a", "positive_button": b, "negative_button": b}
	return arr{obj{"type": "context_actions", "elements": arr{having(o, side, having(b, key, v))}}}
}

// messageCases has functions that make messages. In each message, a part that Slack limits has the size n. The key of a
// case is the name of the limit in the tables of sizes.go.
var messageCases = map[string]struct {
	most int
	make func(n int) arr
}{
	"blocks":       {50, func(n int) arr { return repeated(n, func(int) any { return obj{"type": "divider"} }) }},
	"header.text":  {150, func(n int) arr { return arr{obj{"type": "header", "text": plainObj(n)}} }},
	"section.text": {3000, func(n int) arr { return arr{obj{"type": "section", "text": plainObj(n)}} }},
	"section.fields": {10, func(n int) arr {
		return arr{obj{"type": "section", "fields": repeated(n, func(int) any { return plainObj(1) })}}
	}},
	"fields.text": {2000, func(n int) arr { return arr{obj{"type": "section", "fields": arr{plainObj(n)}}} }},
	"context.elements": {10, func(n int) arr {
		return arr{obj{"type": "context", "elements": repeated(n, func(int) any { return plainObj(1) })}}
	}},
	"a context's text": {3000, func(n int) arr { return arr{obj{"type": "context", "elements": arr{plainObj(n)}}} }},
	"actions.elements": {25, func(n int) arr {
		return arr{obj{"type": "actions", "elements": repeated(n, func(i int) any { return obj{"type": "button", "action_id": fmt.Sprint(i), "text": plainObj(1)} })}}
	}},
	"context_actions.elements": {5, func(n int) arr {
		return arr{obj{"type": "context_actions", "elements": repeated(n, func(i int) any {
			return obj{"type": "icon_button", "action_id": fmt.Sprint(i), "icon": "trash", "text": plainObj(1)}
		})}}
	}},
	"input.label": {2000, func(n int) arr {
		return arr{obj{"type": "input", "label": plainObj(n), "element": obj{"type": "plain_text_input"}}}
	}},
	"input.hint": {2000, func(n int) arr {
		return arr{obj{"type": "input", "label": plainObj(1), "hint": plainObj(n), "element": obj{"type": "plain_text_input"}}}
	}},
	"image.image_url": {3000, func(n int) arr { return arr{obj{"type": "image", "alt_text": "x", "image_url": chars(n)}} }},
	"image.alt_text":  {2000, func(n int) arr { return arr{obj{"type": "image", "alt_text": chars(n), "image_url": "https://x"}} }},
	"image.title": {2000, func(n int) arr {
		return arr{obj{"type": "image", "alt_text": "x", "image_url": "https://x", "title": plainObj(n)}}
	}},
	"markdown.text": {12000, func(n int) arr { return arr{obj{"type": "markdown", "text": chars(n)}} }},
	"markdown in all": {12000, func(n int) arr {
		return arr{obj{"type": "markdown", "text": chars(6000)}, obj{"type": "markdown", "text": chars(n - 6000)}}
	}},
	"text in all": {12000, func(n int) arr {
		return append(repeated(4, func(int) any { return obj{"type": "section", "text": plainObj(2999)} }), obj{"type": "section", "text": plainObj(n - 4*2999)})
	}},
	"table.rows": {100, func(n int) arr {
		return arr{obj{"type": "table", "rows": repeated(n, func(int) any { return arr{obj{"type": "raw_text", "text": "x"}} })}}
	}},
	"a row": {20, func(n int) arr {
		return arr{obj{"type": "table", "rows": arr{repeated(n, func(int) any { return obj{"type": "raw_text", "text": "x"} })}}}
	}},
	"task_card.task_id": {255, func(n int) arr { return arr{obj{"type": "task_card", "task_id": chars(n), "title": "t"}} }},
	"task_card.title":   {3000, func(n int) arr { return arr{obj{"type": "task_card", "task_id": "1", "title": chars(n)}} }},
	"plan.title":        {3000, func(n int) arr { return arr{obj{"type": "plan", "title": chars(n)}} }},
	"plan.tasks": {50, func(n int) arr {
		return arr{obj{"type": "plan", "title": "p", "tasks": repeated(n, func(i int) any { return obj{"task_id": fmt.Sprint(i), "title": "t"} })}}
	}},

	"button.text":                {75, func(n int) arr { return aButton("text", plainObj(n)) }},
	"button.value":               {2000, func(n int) arr { return aButton("value", chars(n)) }},
	"button.url":                 {3000, func(n int) arr { return aButton("url", chars(n)) }},
	"button.accessibility_label": {75, func(n int) arr { return aButton("accessibility_label", chars(n)) }},
	"icon_button.text": {75, func(n int) arr {
		return arr{obj{"type": "context_actions", "elements": arr{obj{"type": "icon_button", "icon": "trash", "text": plainObj(n)}}}}
	}},
	"confirm.title":         {100, func(n int) arr { return confirmed("title", n) }},
	"confirm.text":          {300, func(n int) arr { return confirmed("text", n) }},
	"confirm.confirm":       {30, func(n int) arr { return confirmed("confirm", n) }},
	"confirm.deny":          {30, func(n int) arr { return confirmed("deny", n) }},
	"positive_button.text":  {75, func(n int) arr { return feedback("positive_button", "text", plainObj(n)) }},
	"positive_button.value": {2000, func(n int) arr { return feedback("positive_button", "value", chars(n)) }},
	"negative_button.text":  {75, func(n int) arr { return feedback("negative_button", "text", plainObj(n)) }},
	"negative_button.value": {2000, func(n int) arr { return feedback("negative_button", "value", chars(n)) }},
	"block_id":              {255, func(n int) arr { return arr{obj{"type": "divider", "block_id": chars(n)}} }},
	"action_id":             {255, func(n int) arr { return aButton("action_id", chars(n)) }},
	"placeholder":           {150, func(n int) arr { return asking(obj{"type": "plain_text_input", "placeholder": plainObj(n)}) }},

	"overflow.options":                  {5, func(n int) arr { return menu("overflow", n) }},
	"checkboxes.options":                {10, func(n int) arr { return menu("checkboxes", n) }},
	"radio_buttons.options":             {10, func(n int) arr { return menu("radio_buttons", n) }},
	"static_select.options":             {100, func(n int) arr { return menu("static_select", n) }},
	"multi_static_select.options":       {100, func(n int) arr { return menu("multi_static_select", n) }},
	"static_select.option_groups":       {100, func(n int) arr { return groups("static_select", n, 1, 1) }},
	"multi_static_select.option_groups": {100, func(n int) arr { return groups("multi_static_select", n, 1, 1) }},
	"option_groups.label":               {75, func(n int) arr { return groups("static_select", 1, n, 1) }},
	"option_groups.options":             {100, func(n int) arr { return groups("static_select", 1, 1, n) }},
	"options.text":                      {75, func(n int) arr { return anOption("text", plainObj(n)) }},
	"options.description":               {75, func(n int) arr { return anOption("description", plainObj(n)) }},
	"options.value":                     {150, func(n int) arr { return anOption("value", chars(n)) }},
	"options.url": {3000, func(n int) arr {
		return acting(obj{"type": "overflow", "action_id": "a", "options": arr{obj{"text": plainObj(1), "value": "v", "url": chars(n)}}})
	}},

	"plain_text_input.initial_value": {3000, func(n int) arr { return asking(obj{"type": "plain_text_input", "initial_value": chars(n)}) }},
	"plain_text_input.max_length":    {3000, func(n int) arr { return asking(obj{"type": "plain_text_input", "max_length": n}) }},
}

func groups(kind string, n, label, options int) arr {
	group := obj{"label": plainObj(label), "options": repeated(options, func(i int) any { return obj{"text": plainObj(1), "value": fmt.Sprint(i)} })}
	return acting(obj{"type": kind, "action_id": "a", "option_groups": repeated(n, func(int) any { return group })})
}

// viewCases has the same kind of functions for views.
var viewCases = map[string]struct {
	most int
	make func(n int) obj
}{
	"modal.title":  {24, func(n int) obj { return having(aModal(), "title", plainObj(n)) }},
	"modal.submit": {24, func(n int) obj { return having(aModal(), "submit", plainObj(n)) }},
	"modal.close":  {24, func(n int) obj { return having(aModal(), "close", plainObj(n)) }},
	"modal.blocks": {100, func(n int) obj {
		return having(aModal(), "blocks", repeated(n, func(int) any { return obj{"type": "divider"} }))
	}},
	"modal.private_metadata": {3000, func(n int) obj { return having(aModal(), "private_metadata", chars(n)) }},
	"modal.callback_id":      {255, func(n int) obj { return having(aModal(), "callback_id", chars(n)) }},
	"modal.external_id":      {255, func(n int) obj { return having(aModal(), "external_id", chars(n)) }},
	"home.blocks": {100, func(n int) obj {
		return having(aHome(), "blocks", repeated(n, func(int) any { return obj{"type": "divider"} }))
	}},
	"home.private_metadata": {3000, func(n int) obj { return having(aHome(), "private_metadata", chars(n)) }},
	"home.callback_id":      {255, func(n int) obj { return having(aHome(), "callback_id", chars(n)) }},
	"home.external_id":      {255, func(n int) obj { return having(aHome(), "external_id", chars(n)) }},
}

func aModal() obj {
	return obj{"type": "modal", "title": plainObj(1), "blocks": arr{obj{"type": "divider"}}}
}
func aHome() obj { return obj{"type": "home", "blocks": arr{obj{"type": "divider"}}} }

// sizeHarness is the local workspace, called through the size guard and directly.
type sizeHarness struct {
	t      *testing.T
	api    string
	fitted *http.Client
}

func newSizeHarness(t *testing.T) *sizeHarness {
	t.Helper()
	srv, err := workspace.New(workspace.Config{Seed: workspace.OpenSeed()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return &sizeHarness{t, web.URL + "/api/", &http.Client{Transport: sizeGuard{http.DefaultTransport, slog.New(slog.DiscardHandler)}}}
}

// call makes a call, and returns the code of Slack's refusal, or "".
func (o *sizeHarness) call(client *http.Client, method string, fields obj) string {
	o.t.Helper()
	form := url.Values{"token": {workspace.DemoBotToken}}
	for key, v := range fields {
		if s, ok := v.(string); ok {
			form.Set(key, s)
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			o.t.Fatal(err)
		}
		form.Set(key, string(raw))
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, o.api+method, strings.NewReader(form.Encode()))
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if errors.Is(err, errTooLarge) {
		return ErrorCode(err)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Error string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		o.t.Fatal(err)
	}
	return answer.Error
}

// The method "both" makes a call through the size guard and directly. The refusals must be the same.
func (o *sizeHarness) both(method string, fields obj) string {
	o.t.Helper()
	before, slack := o.call(o.fitted, method, fields), o.call(http.DefaultClient, method, fields)
	if before != slack {
		o.t.Errorf("the bot refuses it with %q, and Slack with %q", before, slack)
	}
	return before
}

// For each limit, the largest legal message is sent and accepted. The size guard refuses the smallest illegal message
// with the same code as Slack.
func TestEachLimit(t *testing.T) {
	o := newSizeHarness(t)
	for _, name := range slices.Sorted(maps.Keys(messageCases)) {
		c := messageCases[name]
		t.Run(name, func(t *testing.T) {
			o.t = t
			if code := o.both("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": c.make(c.most)}); code != "" {
				t.Errorf("%d is legal, and refused with %s", c.most, code)
			}
			if code := o.both("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": c.make(c.most + 1)}); code != "invalid_blocks" && code != "msg_blocks_too_long" {
				t.Errorf("%d is illegal, and answered with %q", c.most+1, code)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(viewCases)) {
		c := viewCases[name]
		t.Run(name, func(t *testing.T) {
			o.t = t
			method, fields, legal := "views.update", obj{"view_id": "V0NONE"}, "not_found" // Slack accepted the content of the view
			if strings.HasPrefix(name, "home.") {
				method, fields, legal = "views.publish", obj{"user_id": "U0001"}, ""
			}
			if code := o.both(method, having(fields, "view", c.make(c.most))); code != legal {
				t.Errorf("%d is legal, and refused with %s", c.most, code)
			}
			if code := o.call(o.fitted, method, having(fields, "view", c.make(c.most+1))); code != "invalid_arguments" {
				t.Errorf("%d is illegal, and answered with %q", c.most+1, code)
			}
		})
	}
	// Every limit has a case.
	for _, table := range []map[string]map[string]int{sizes, partSizes, {"": anySizes}} {
		for kind, limits := range table {
			for field := range limits {
				name := strings.TrimPrefix(kind+"."+field, ".")
				_, message := messageCases[name]
				_, view := viewCases[name]
				if !message && !view && !sameAsButton[name] {
					t.Errorf("%s has no case", name)
				}
			}
		}
	}
}

// sameAsButton lists elements with the limits of a button. Slack's reference does not state the limits of these
// elements.
var sameAsButton = map[string]bool{"icon_button.value": true, "icon_button.accessibility_label": true}

func TestLimitsOnTexts(t *testing.T) {
	o := newSizeHarness(t)
	post := obj{"channel": "C0001", "text": "x"}
	for _, c := range []struct {
		name, method, code string
		fields             func(n int) obj
		most               int
	}{
		{"text", "chat.postMessage", "msg_too_long", func(n int) obj { return having(post, "text", chars(n)) }, 4000}, // Slack recommends this limit, and an update of the message could not be longer
		{"markdown_text", "chat.postMessage", "msg_too_long", func(n int) obj { return obj{"channel": "C0001", "markdown_text": chars(n)} }, 12000},
		{"ephemeral", "chat.postEphemeral", "msg_too_long", func(n int) obj { return obj{"channel": "C0001", "user": "U0001", "text": chars(n)} }, 4000},
		{"a piece of a stream", "chat.startStream", "msg_too_long", func(n int) obj {
			return obj{"channel": "C0001", "thread_ts": "1.000001", "recipient_user_id": "U0001", "recipient_team_id": "T0001", "chunks": arr{obj{"type": "markdown_text", "text": chars(n)}}}
		}, 12000},
		{"blocks in a stream", "chat.startStream", "invalid_blocks", func(n int) obj {
			return obj{"channel": "C0001", "thread_ts": "1.000001", "recipient_user_id": "U0001", "recipient_team_id": "T0001", "chunks": arr{obj{"type": "blocks", "blocks": arr{obj{"type": "header", "text": plainObj(n)}}}}}
		}, 150},
		{"prompts", "assistant.threads.setSuggestedPrompts", "invalid_arguments", func(n int) obj {
			return obj{"channel_id": "D0001", "prompts": repeated(n, func(int) any { return obj{"title": "t", "message": "m"} })}
		}, 4},
		{"metadata", "chat.postMessage", "metadata_too_large", func(n int) obj {
			around := len(`{"event_payload":{"surface":""},"event_type":"countersign_surface"}`)
			return having(post, "metadata", obj{"event_type": "countersign_surface", "event_payload": obj{"surface": strings.Repeat("x", n-around)}})
		}, 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			o.t = t
			if code := o.call(o.fitted, c.method, c.fields(c.most)); code == c.code {
				t.Errorf("%d is legal, and refused with %s", c.most, code)
			}
			if code := o.call(o.fitted, c.method, c.fields(c.most+1)); code != c.code {
				t.Errorf("%d is illegal, and answered with %q", c.most+1, code)
			}
		})
	}
	// The size of a view is the size of the JSON that is sent.
	big := func(n int) obj {
		blocks := repeated(86, func(int) any {
			return obj{"type": "section", "text": obj{"type": "plain_text", "text": strings.Repeat("x", 2900)}}
		})
		last := obj{"type": "plain_text", "text": ""}
		v := having(aModal(), "blocks", append(blocks, obj{"type": "section", "text": last}))
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		last["text"] = strings.Repeat("x", n-len(raw))
		return v
	}
	o.t = t
	for n, want := range map[int]string{MaxViewBytes: "not_found", MaxViewBytes + 1: "view_too_large"} {
		if code := o.both("views.update", obj{"view_id": "V0NONE", "view": big(n)}); code != want {
			t.Errorf("a view of %d bytes is answered with %q", n, code)
		}
	}
}

// The size guard also refuses duplicate names, empty texts and empty lists.
func TestNamesOnce(t *testing.T) {
	o := newSizeHarness(t)
	for name, blocks := range map[string]arr{
		"block_id":  {obj{"type": "divider", "block_id": "a"}, obj{"type": "divider", "block_id": "a"}},
		"action_id": {obj{"type": "actions", "elements": arr{obj{"type": "button", "action_id": "a", "text": plainObj(1)}, obj{"type": "button", "action_id": "a", "text": plainObj(1)}}}},
		"empty":     {obj{"type": "section", "text": plainObj(0)}},
		"nothing":   {obj{"type": "actions", "elements": arr{}}},
	} {
		t.Run(name, func(t *testing.T) {
			o.t = t
			if code := o.both("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": blocks}); code != "invalid_blocks" {
				t.Errorf("answered with %q", code)
			}
		})
	}
}

// All calls that the bot sends pass the size guard.
func TestTheBotMeasuresWhatItSends(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Write([]byte(`{"ok":true}`))
	}))
	defer srv.Close()
	api := New(Options{BotToken: "xoxb-test", URL: srv.URL, Log: slog.New(slog.DiscardHandler)})
	large := slack.MsgOptionText(chars(MaxMessageText+1), false)
	_, _, post := api.PostMessage("C0001", large)
	_, _, _, update := api.UpdateMessage("C0001", "1.000001", large)
	_, ephemeral := api.PostEphemeral("C0001", "U0001", large)
	_, _, answer := api.PostMessage("C0001", large, slack.MsgOptionResponseURL(srv.URL+"/response/1", slack.ResponseTypeEphemeral))
	_, open := api.OpenView("trigger", slack.ModalViewRequest{Type: slack.VTModal, Title: slack.NewTextBlockObject(slack.PlainTextType, chars(MaxModalTitle+1), false, false)})
	_, home := api.PublishView("U0001", slack.HomeTabViewRequest{Type: slack.VTHomeTab, PrivateMetadata: chars(3001)}, "")
	for name, err := range map[string]error{"a post": post, "an update": update, "an ephemeral": ephemeral, "an answer to a click": answer, "a modal": open, "a Home": home} {
		if !errors.Is(err, errTooLarge) {
			t.Errorf("%s was sent (%v)", name, err)
		}
		if !IsNotSent(err) {
			t.Errorf("%s counts as perhaps sent (%v)", name, err)
		}
	}
	if asked > 0 {
		t.Errorf("Slack was asked %d times", asked)
	}
}
