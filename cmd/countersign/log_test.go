package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/internal/demo/workspace"
)

// TestLogAsJSON plays two calls that wait for approval. The second call fails. The bot's standard error is not a terminal, so each line of its
// log is a JSON object. The lines about the request have its ids and no text that people wrote. An ordinary run has no
// line above INFO.
func TestLogAsJSON(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t)
	p.env = append(p.env, "COUNTERSIGN_LOG_FORMAT=")
	bot := launch(t, p.dir, p.env, "serve")
	bot.says(`("msg":"connected to Slack")`)
	sam, teo := p.watcher("sam"), p.watcher("teo")
	thread := sam.says("#support", "", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	teo.clicks("countersign", "", "Approve", "ORD-131")
	sam.sees("#support", thread, "refunded")
	thread = sam.says("#support", "", "@Countersign refund 20 USD of order ORD-999, the box was damaged")
	teo.clicks("countersign", "", "Approve", "ORD-999")
	sam.sees("#support", thread, "no order ORD-999")
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	personal := regexp.MustCompile(`(?i)\b(U\d{4}|ORD-\d+|damaged|sam|teo)\b`) // whole words, because random keys and ids may contain such letters
	// These warnings depend on timing: the shop may start slowly, and Teo may click before the bot has stored Slack's answer
	// to the post of the card.
	timing := regexp.MustCompile(`"a server starts slowly; |"the clicked version is not recorded yet"`)
	seen := map[string]int{}
	for line := range strings.SplitSeq(bot.text(), "\n") {
		var l struct{ Time, Level, Msg, Request, Conversation, Tool string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time == "" {
			t.Errorf("not a line of the log: %s", line)
			continue
		}
		seen[l.Msg]++
		if l.Level != "INFO" && !timing.MatchString(line) {
			t.Errorf("an ordinary run logs %s", line)
		}
		if strings.HasPrefix(l.Msg, "a request ") && (l.Request == "" || l.Conversation == "" || l.Tool != "issue_refund") {
			t.Errorf("an id is missing in %s", line)
		}
		if found := personal.FindString(line); found != "" {
			t.Errorf("%s is in %s", found, line)
		}
	}
	for _, msg := range []string{"a request waits for people", "a request was decided", "tool ran"} {
		if seen[msg] != 2 {
			t.Errorf("%q was logged %d times: %v", msg, seen[msg], seen)
		}
	}
}

// TestEmptyAttributes writes a line with an empty id and a duration, as text and as JSON.
func TestEmptyAttributes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for _, handler := range []slog.Handler{
		slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutEmpty}),
		slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: inJSON}),
	} {
		slog.New(handler).With("client", "").Info("a line", "request", "", "tool", "issue_refund", "took", time.Second)
	}
	text, asJSON, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	if want := ` level=INFO msg="a line" tool=issue_refund took=1s`; !strings.HasSuffix(text, want) {
		t.Errorf("%s does not end with%s", text, want)
	}
	if want := `,"level":"INFO","msg":"a line","tool":"issue_refund","took":1}`; !strings.HasSuffix(asJSON, want) {
		t.Errorf("%s does not end with %s", asJSON, want)
	}
}

// If an error ends serve, the last line of the log is that error. If the log has JSON objects, the last line is a JSON
// object. Otherwise the last line is text.
func TestLastLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "countersign.yaml"), []byte("version: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLACK_BOT_TOKEN=" + workspace.DemoBotToken, "SLACK_APP_TOKEN=" + workspace.DemoAppToken, "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_MODEL=m"}
	for format, want := range map[string]string{
		"json": `^{"time":"[^"]*","level":"ERROR","msg":"(countersign ends)","error":"[^"]*version`,
		"text": `^(countersign): `,
	} {
		bot := launch(t, dir, append(env[:4:4], "COUNTERSIGN_LOG_FORMAT="+format), "serve")
		bot.says(want)
		<-bot.gone
		if code := bot.cmd.ProcessState.ExitCode(); code != 2 {
			t.Errorf("%s: exit code %d", format, code)
		}
	}
}
