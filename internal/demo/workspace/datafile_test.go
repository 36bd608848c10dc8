package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
)

func TestItGoesOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "workspace.json")
	kept := func(c *Config) { c.DataFile = path }
	b := newHarness(t, kept)
	parent := b.say("sam", "#support", "hello @Countersign", "")
	dm, cardTS, err := b.api.PostMessage("U0001", text("card"), slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "e", EventPayload: map[string]any{"n": 1}}),
		slack.MsgOptionBlocks(slack.NewActionBlock("b", slack.NewButtonBlockElement("go", "v", slack.NewTextBlockObject("plain_text", "Go", false, false)))))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.api.PostMessage("C0001", text("reply"), slack.MsgOptionTS(parent)); err != nil {
		t.Fatal(err)
	}
	if err := b.api.AddReaction("eyes", slack.NewRefToMessage("C0001", parent)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.api.UploadFile(slack.UploadFileParameters{Filename: "a.txt", FileSize: 1, Content: "a", Channel: "C0001"}); err != nil {
		t.Fatal(err)
	}
	home := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}}}
	if _, err := b.api.PublishView("U0100", home, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.srv.SetGroupUsers("S0001", []string{"U0002"}); err != nil {
		t.Fatal(err)
	}
	b.get("/people/ada/channels/C0001/messages?mark=true")
	read := func(b *harness) (out []any) {
		for _, path := range []string{"/people", "/people/ada/channels", "/people/ada/channels/C0001/messages", "/people/ada/channels/C0001/messages?thread_ts=" + parent, "/people/ada/channels/U0BOT/messages", "/people/sam/home?quiet=true"} {
			out = append(out, b.must(b.get(path)).body)
		}
		return out
	}
	before := read(b)
	if err := b.srv.Close(); err != nil {
		t.Fatal(err)
	}

	again := newHarness(t, kept, func(c *Config) {
		earlier := newClock()
		earlier.advance(-time.Hour) // even if the clock was set back
		c.Now = earlier.Now
	})
	if diff := cmp.Diff(before, read(again)); diff != "" {
		t.Errorf("after the restart (-before +after):\n%s", diff)
	}
	if ts := again.say("sam", "#support", "later", ""); ts <= cardTS {
		t.Errorf("time went back: %s after %s", ts, cardTS)
	}
	if _, _, _, err := again.api.UpdateMessage(dm, cardTS, text("done")); err != nil {
		t.Errorf("updating the old card: %v", err)
	}
}

func TestBadDataFiles(t *testing.T) {
	for content, want := range map[string]string{
		"{":                             "damaged",
		`{"version":99,"team":"T0001"}`: "version 99",
		`{"version":1,"team":"T0002"}`:  "another file",
	} {
		path := filepath.Join(t.TempDir(), "w.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Seed: DemoSeed(), DataFile: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestSeeds(t *testing.T) {
	if err := DemoSeed().Validate(); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	read := func(content string) (Seed, error) {
		path := filepath.Join(dir, "seed.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSeed(path)
	}
	const good = `
team: {id: T1, name: Ours}
app: {id: A1, bot_id: B1, bot_user: U1, name: Bot, bot_tokens: [xoxb-1], app_tokens: [xapp-1]}
people:
  - {id: U2, name: ada, tz: Europe/Berlin, single_channel_guest: true}
groups: [{id: S1, handle: all, users: [U2]}]
channels: [{id: C1, name: general, members: [U1, U2]}]
`
	seed, err := read(good)
	if err != nil || !seed.People[0].SingleGuest || seed.Channels[0].Members[0] != "U1" {
		t.Errorf("%+v %v", seed, err)
	}
	for change, want := range map[[2]string]string{
		{"tz: Europe/Berlin", "zone: Europe/Berlin"}: "zone",
		{"tz: Europe/Berlin", "tz: Nowhere"}:         "time zone",
		{"[xoxb-1]", "[xoxp-1]"}:                     "xoxb-",
		{"users: [U2]", "users: [U3]"}:               "no person U3",
		{"members: [U1, U2]", "members: [U9]"}:       "no person U9",
		{"name: ada", "name: Ada L"}:                 "lower-case",
		{"{id: T1, name: Ours}", "{name: Ours}"}:     "team",
	} {
		if _, err := read(strings.Replace(good, change[0], change[1], 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}

// The example in the documentation is a valid seed.
func TestTheDocumentedSeed(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/workspace.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "\n```yaml\n")
	example, _, found := strings.Cut(rest, "\n```\n")
	path := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil || !found {
		t.Fatal(err)
	}
	seed, err := ReadSeed(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Seed: seed}); err != nil {
		t.Error(err)
	}
}
