package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"countersign/bot/render/control"
)

// call sends a request to the fake workspace's API. Through this API, a test acts as a person.
func (h *harness) call(method, path string, body any) map[string]any {
	h.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	req, err := http.NewRequest(method, h.url+path, bytes.NewReader(raw))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		h.t.Fatalf("%s %s: %s", method, path, text)
	}
	return out
}

// says posts a message as a person. A mention of the bot is written @bot.
func (h *harness) says(user, channel, text string) string {
	h.t.Helper()
	return h.saysIn(user, channel, text, "")
}

func (h *harness) saysIn(user, channel, text, thread string) string {
	h.t.Helper()
	out := h.call("POST", "/people/"+user+"/messages", map[string]any{"channel": channel, "text": strings.ReplaceAll(text, "@bot", "<@U0BOT>"), "thread_ts": thread})
	ts, _ := out["ts"].(string)
	if ts == "" {
		h.t.Fatalf("%s could not say it: %v", user, out)
	}
	return ts
}

// sees returns the messages of a channel or thread as a person sees them. The messages are text, with buttons as
// [label](action).
func (h *harness) sees(user, channel, thread string) []posted {
	h.t.Helper()
	path := "/people/" + user + "/channels/" + strings.ReplaceAll(channel, "#", "%23") + "/messages"
	if thread != "" {
		path += "?thread_ts=" + thread
	}
	out := h.call("GET", path, nil)
	list, _ := out["messages"].([]any)
	var all []posted
	for _, item := range list {
		raw, err := json.Marshal(item)
		if err != nil {
			h.t.Fatal(err)
		}
		var p posted
		if err := json.Unmarshal(raw, &p); err != nil {
			h.t.Fatal(err)
		}
		p.raw = string(raw)
		all = append(all, p)
	}
	return all
}

type posted struct {
	TS        string `json:"ts"`
	User      string `json:"user"`
	Text      string `json:"text"`
	Ephemeral bool   `json:"is_ephemeral"`
	raw       string
}

func (p posted) has(action string) bool { return strings.Contains(p.raw, `"action_id":"`+action+`"`) }

// live reports whether the message has a button with an effect. Every button except Details… has an effect.
func (p posted) live() bool {
	return strings.Count(p.raw, `"type":"button"`) > strings.Count(p.raw, `"action_id":"`+control.ActArguments+`"`)
}

// finds waits until a person sees a message of the bot that contains the words.
func (h *harness) finds(user, channel, thread string, words ...string) posted {
	h.t.Helper()
	var found posted
	h.until(fmt.Sprintf("%s sees %q in %s", user, words, channel), func() bool {
		for _, p := range h.sees(user, channel, thread) {
			ok := p.User == "U0BOT"
			for _, word := range words {
				ok = ok && strings.Contains(p.Text, word)
			}
			if ok {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

// clicks presses a button, and expects the click to be acknowledged.
func (h *harness) clicks(user, channel string, p posted, action string) {
	h.t.Helper()
	if !p.has(action) && p.has(control.ActArguments) { // the button is in Details…
		h.clicks(user, channel, p, control.ActArguments)
		h.clicksInDetails(user, action)
		return
	}
	out := h.call("POST", "/people/"+user+"/actions", map[string]any{"channel": channel, "ts": p.TS, "action_id": action})
	if out["ok"] != true {
		h.t.Fatalf("%s could not click %s: %v", user, action, out)
	}
}

// clicksInDetails presses a button in the open form of Details….
func (h *harness) clicksInDetails(user, action string) {
	h.t.Helper()
	details := h.opened(user, control.ActArguments)
	if out := h.call("POST", "/people/"+user+"/actions", map[string]any{"view_id": details["id"], "action_id": action}); out["ok"] != true {
		h.t.Fatalf("%s could not click %s in the details: %v", user, action, out)
	}
}

// The method "opened" waits for a person's modal with the callback.
func (h *harness) opened(user, callback string) map[string]any {
	h.t.Helper()
	var found map[string]any
	h.until(user+" has the form "+callback, func() bool {
		out := h.call("GET", "/people/"+user+"/views", nil)
		views, _ := out["views"].([]any)
		if len(views) == 0 {
			return false
		}
		found, _ = views[len(views)-1].(map[string]any)
		return found["callback_id"] == callback
	})
	return found
}

func (h *harness) submits(user string, modal map[string]any, values map[string]any) map[string]any {
	h.t.Helper()
	return h.call("POST", fmt.Sprintf("/people/%s/views/%s/submit", user, modal["id"]), map[string]any{"values": values})
}

// The method "quiet" waits until the bot has received all deliveries, and no timer is due.
func (h *harness) quiet() {
	h.t.Helper()
	h.until("all is quiet", func() bool {
		before, received := h.slack.Delivered()
		idle, err := h.workflow.Idle(context.Background())
		after, _ := h.slack.Delivered()
		return err == nil && idle && received && after == before
	})
}
