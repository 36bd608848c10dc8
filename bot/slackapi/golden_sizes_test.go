package slackapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Slack accepts everything that has a golden file: each outbox message in each state, each modal, each Home tab. The
// test uses the local workspace in place of Slack.
func TestSlackAcceptsGoldenFiles(t *testing.T) {
	o := newSizeHarness(t)
	paths, err := filepath.Glob("../render/testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	messages, views := 0, 0
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if strings.HasPrefix(name, "manifest") {
			continue
		}
		var golden any
		if err := json.Unmarshal(raw, &golden); err != nil {
			t.Fatal(err)
		}
		o.t = t
		code, want := "", ""
		switch v := golden.(type) {
		case []any: // the blocks of a Home tab
			views++
			code = o.both("views.publish", obj{"user_id": "U0001", "view": obj{"type": "home", "blocks": v}})
		case map[string]any:
			if v["type"] == "modal" {
				views++
				code, want = o.both("views.update", obj{"view_id": "V0NONE", "view": v}), "not_found" // Slack accepted the content of the view
				break
			}
			messages++
			text, _ := v["text"].(string)
			if text == "" || v["blocks"] == nil {
				t.Errorf("%s is not a message: it has no text, or no blocks", name)
			}
			code = o.both("chat.postMessage", obj{"channel": "C0001", "text": text, "blocks": v["blocks"], "unfurl_links": false})
		}
		if code != want {
			t.Errorf("%s is refused with %q", name, code)
		}
	}
	if messages < 100 || views < 15 {
		t.Errorf("%d messages and %d views: some golden files are not checked", messages, views)
	}
}
