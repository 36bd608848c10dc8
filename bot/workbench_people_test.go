package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// call uses the people's API.
func (w *workbench) call(method, path string, body any) map[string]any {
	w.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequest(method, w.url+path, bytes.NewReader(raw))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		w.t.Fatalf("%s %s: %s", method, path, text)
	}
	return out
}

// says posts a message as a person. A mention of the bot is written @bot.
func (w *workbench) says(user, channel, text string) string {
	w.t.Helper()
	return w.saysIn(user, channel, text, "")
}

func (w *workbench) saysIn(user, channel, text, thread string) string {
	w.t.Helper()
	out := w.call("POST", "/people/"+user+"/messages", map[string]any{"channel": channel, "text": strings.ReplaceAll(text, "@bot", "<@U0BOT>"), "thread_ts": thread})
	ts, _ := out["ts"].(string)
	if ts == "" {
		w.t.Fatalf("%s could not say it: %v", user, out)
	}
	return ts
}

// sees is what a person sees in a channel or thread, as text, with buttons as [words](action).
func (w *workbench) sees(user, channel, thread string) []posted {
	w.t.Helper()
	path := "/people/" + user + "/channels/" + strings.ReplaceAll(channel, "#", "%23") + "/messages"
	if thread != "" {
		path += "?thread_ts=" + thread
	}
	out := w.call("GET", path, nil)
	list, _ := out["messages"].([]any)
	var all []posted
	for _, item := range list {
		raw, err := json.Marshal(item)
		if err != nil {
			w.t.Fatal(err)
		}
		var p posted
		if err := json.Unmarshal(raw, &p); err != nil {
			w.t.Fatal(err)
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

// finds waits until a person sees a message of the bot that contains the words.
func (w *workbench) finds(user, channel, thread string, words ...string) posted {
	w.t.Helper()
	var found posted
	w.until(fmt.Sprintf("%s sees %q in %s", user, words, channel), func() bool {
		for _, p := range w.sees(user, channel, thread) {
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

// clicks presses a button, and wants the click acknowledged.
func (w *workbench) clicks(user, channel string, p posted, action string) {
	w.t.Helper()
	out := w.call("POST", "/people/"+user+"/actions", map[string]any{"channel": channel, "ts": p.TS, "action_id": action})
	if out["ok"] != true {
		w.t.Fatalf("%s could not click %s: %v", user, action, out)
	}
}

// opened waits for a person's modal with the callback.
func (w *workbench) opened(user, callback string) map[string]any {
	w.t.Helper()
	var found map[string]any
	w.until(user+" has the form "+callback, func() bool {
		out := w.call("GET", "/people/"+user+"/views", nil)
		views, _ := out["views"].([]any)
		if len(views) == 0 {
			return false
		}
		found, _ = views[len(views)-1].(map[string]any)
		return found["callback_id"] == callback
	})
	return found
}

func (w *workbench) submits(user string, view map[string]any, values map[string]any) map[string]any {
	w.t.Helper()
	return w.call("POST", fmt.Sprintf("/people/%s/views/%s/submit", user, view["id"]), map[string]any{"values": values})
}

// quiet waits until all is done that was due.
func (w *workbench) quiet() {
	w.t.Helper()
	w.until("all is quiet", func() bool {
		idle, err := w.desk.Idle(context.Background())
		return err == nil && idle
	})
}
