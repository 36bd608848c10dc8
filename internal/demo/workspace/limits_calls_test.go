package workspace

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Limits of calls: the largest legal case is answered with ok, the smallest illegal one with Slack's code.
func TestCallLimits(t *testing.T) {
	b := newBench(t)
	b.srv.app.Scopes = nil
	root := b.say("sam", "#support", "hello", "")
	stream := func(n int, blocks int) obj {
		return obj{"channel": "C0001", "thread_ts": root, "recipient_user_id": "U0100", "recipient_team_id": "T0001", "markdown_text": chars(n),
			"chunks": arr{obj{"type": "blocks", "blocks": many(min(blocks, 50), func(int) any { return obj{"type": "divider"} })}, obj{"type": "blocks", "blocks": many(max(blocks-50, 0), func(int) any { return obj{"type": "divider"} })}}}
	}
	metadata := func(bytes int) obj {
		bare, _ := json.Marshal(obj{"event_type": "e", "event_payload": obj{"k": ""}})
		return obj{"channel": "C0001", "text": "x", "metadata": obj{"event_type": "e", "event_payload": obj{"k": strings.Repeat("x", bytes-len(bare))}}}
	}
	home := func(n int) obj {
		return obj{"user_id": "U0001", "view": obj{"type": "home", "blocks": many(n, func(int) any { return obj{"type": "divider"} })}}
	}
	var crowd []string
	b.srv.mu.Lock()
	for i := range 51 {
		u := newUser(SeedPerson{ID: fmt.Sprintf("UC%03d", i), Name: fmt.Sprintf("crowd%d", i)}, "T0001", b.clock.Now())
		b.srv.addUser(u)
		crowd = append(crowd, u.ID)
	}
	b.srv.mu.Unlock()
	for _, test := range []struct {
		name, method string
		legal, not   obj
		code         string
	}{
		{"stream text", "chat.startStream", stream(12000, 0), stream(12001, 0), "msg_blocks_too_long"},
		{"stream blocks", "chat.startStream", stream(1, 50), stream(1, 51), "msg_blocks_too_many"},
		{"metadata", "chat.postMessage", metadata(16 * 1024), metadata(16*1024 + 1), "metadata_too_large"},
		{"markdown_text", "chat.postMessage", obj{"channel": "C0001", "markdown_text": chars(12000)}, obj{"channel": "C0001", "markdown_text": chars(12001)}, "msg_blocks_too_long"},
		{"ephemeral text", "chat.postEphemeral", obj{"channel": "C0001", "user": "U0001", "text": chars(40000)}, obj{"channel": "C0001", "user": "U0001", "text": chars(40001)}, "msg_too_long"},
		{"home blocks", "views.publish", home(100), home(101), "invalid_arguments"},
		{"prompts", "assistant.threads.setSuggestedPrompts", obj{"channel_id": "C0001", "thread_ts": root, "prompts": many(4, func(int) any { return obj{"title": "t", "message": "m"} })},
			obj{"channel_id": "C0001", "thread_ts": root, "prompts": many(5, func(int) any { return obj{"title": "t", "message": "m"} })}, "invalid_arguments"},
		{"loading messages", "assistant.threads.setStatus", obj{"channel_id": "C0001", "thread_ts": root, "status": "s", "loading_messages": many(10, func(int) any { return "m" })},
			obj{"channel_id": "C0001", "thread_ts": root, "status": "s", "loading_messages": many(11, func(int) any { return "m" })}, "invalid_arguments"},
		{"quiet people", "dnd.teamInfo", obj{"users": strings.Join(crowd[:50], ",")}, obj{"users": strings.Join(crowd, ",")}, "too_many_users"},
		{"group people", "conversations.open", obj{"users": strings.Join(crowd[:8], ",")}, obj{"users": strings.Join(crowd[:9], ",")}, "too_many_users"},
		{"file size", "files.getUploadURLExternal", obj{"filename": "a", "length": fmt.Sprint(maxUpload)}, obj{"filename": "a", "length": fmt.Sprint(maxUpload + 1)}, "file_upload_size_restricted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			tested(test.name)
			if r := b.form(test.method, test.legal); r.body["ok"] != true {
				t.Errorf("legal, but refused: %v", r.body)
			}
			if r := b.form(test.method, test.not); r.code() != test.code {
				t.Errorf("illegal, but answered %.200v", r.body)
			}
		})
	}
	t.Run("reactions", func(t *testing.T) {
		b.t = t
		tested("reactions")
		for i := range 24 {
			r := b.form("reactions.add", obj{"channel": "C0001", "timestamp": root, "name": fmt.Sprintf("emoji%d", i)})
			if want := map[bool]string{true: "too_many_emoji"}[i == 23]; r.code() != want {
				t.Errorf("emoji %d: %v", i+1, r.body)
			}
		}
	})
}

// An archived channel takes no posts, and what is in it stays as it is.
func TestArchivedChannelsTakeNothing(t *testing.T) {
	b := newBench(t)
	ts := b.must(b.form("chat.postMessage", obj{"channel": "C0001", "text": "x"})).text("ts")
	b.must(b.post("/people/ingrid/archive", obj{"channel": "C0001"}))
	if r := b.form("chat.postMessage", obj{"channel": "C0001", "text": "y"}); r.code() != "is_archived" {
		t.Errorf("a post: %v", r.body)
	}
	if r := b.form("chat.update", obj{"channel": "C0001", "ts": ts, "text": "y"}); r.code() != "is_inactive" {
		t.Errorf("an update: %v", r.body)
	}
}

// Of ephemerals only the newest are kept.
func TestEphemeralsAreFew(t *testing.T) {
	b := newBench(t)
	tested("ephemerals")
	for range 501 {
		b.must(b.form("chat.postEphemeral", obj{"channel": "C0001", "user": "U0001", "text": "x"}))
	}
	if n := len(b.messages("ada", "#support", "")); n != 500 {
		t.Errorf("%d ephemerals are kept", n)
	}
}

// Every method lets through as many calls a minute as its tier has, and answers the next with 429 and the seconds to
// wait.
func TestTiers(t *testing.T) {
	b := newBench(t)
	b.srv.app.Scopes = nil
	b.srv.SetRealRates(true)
	published := map[tier]string{tier2: "20", tier3: "50", tier4: "100", special: "600"}
	for name, m := range methods {
		limit := int(m.tier)
		if name == "chat.postMessage" || m.open {
			continue // TestRealRates has the posts; api.test has no limit that Slack tells
		}
		if published[m.tier] == "" {
			t.Errorf("%s has a tier of %d, which Slack doesn't have", name, m.tier)
		}
		for i := range limit {
			if wait := b.srv.rates.wait(name, m.tier, "", b.clock.Now()); wait != 0 {
				t.Fatalf("call %d of %s has to wait %d s", i+1, name, wait)
			}
		}
		b.clock.advance(20 * time.Second)
		resp, err := http.PostForm(b.http.URL+"/api/"+name, map[string][]string{"token": {map[bool]string{true: DemoAppToken, false: DemoBotToken}[m.app]}})
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if wait := resp.Header.Get("Retry-After"); resp.StatusCode != http.StatusTooManyRequests || wait != "40" {
			t.Errorf("call %d of %s: status %d, Retry-After %q instead of 429 and 40", limit+1, name, resp.StatusCode, wait)
		}
		b.clock.advance(40 * time.Second)
		if wait := b.srv.rates.wait(name, m.tier, "", b.clock.Now()); wait != 0 {
			t.Errorf("%s has to wait %d s a minute later", name, wait)
		}
	}
}
