package pagetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/slack-go/slack"

	"countersign/internal/demo/workspace"
	"countersign/internal/testkit/chromium"
)

// TestEverySurface sends every golden file of the bot (messages, forms and Homes) to the workspace. The workspace must
// accept each file, and the page must draw all of the content. If COUNTERSIGN_SCREENSHOTS is set, the test stores
// screenshots of each file. If COUNTERSIGN_SURFACES is set, it is a regular expression for the names of the files to
// test.
func TestEverySurface(t *testing.T) {
	b := openBrowser(newHarness(t))
	pattern, err := regexp.Compile(os.Getenv("COUNTERSIGN_SURFACES"))
	if err != nil {
		t.Fatalf("COUNTERSIGN_SURFACES: %v", err)
	}
	b.become("U0002", "U0BOT")
	drawn, together := 0, []surface{}
	for _, s := range surfaces(t) {
		if !pattern.MatchString(s.name) {
			continue
		}
		drawn++
		switch {
		case s.messages && pictured():
			b.shows(s, func(selector string) { b.pictures(s.name, selector) })
		case s.messages:
			together = append(together, s)
		case strings.HasPrefix(s.name, "modal_"):
			b.opensForm(s)
		default:
			b.publishes(s)
		}
	}
	b.become("U0002", "home") // leaves the DM, so that the page draws its messages only after all have been sent
	sent := map[string]string{}
	for _, s := range together {
		sent[s.name], _ = b.sends(s)
	}
	for name, selector := range sent {
		b.looksAt(dm, selector, name)
	}
	if drawn == 0 {
		t.Errorf("COUNTERSIGN_SURFACES=%s: no golden file of the bot has such a name", pattern)
	}
}

// dm is the page's address of the DM between the bot and Teo, a Team Lead.
const dm = "#/U0002/U0BOT"

// windows holds the window sizes of a laptop and a phone. A phone draws several screen points for each pixel.
var windows = []struct {
	name          string
	width, height int64
	scale         float64
}{
	{"1280x900", 1280, 900, 1},
	{"390x844", 390, 844, 2},
}

// resize sets the window's size.
func (b *browser) resize(width, height int64, scale float64) {
	b.Helper()
	b.page.Do("resize", chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)))
	b.page.Until("the window is resized", fmt.Sprintf(`innerWidth === %d && innerHeight === %d`, width, height))
}

// surface is the content of a golden file.
type surface struct {
	name     string
	body     json.RawMessage // a view, the blocks of a Home, or the blocks of a message
	text     string
	messages bool
}

// The function "surfaces" reads the bot's golden files whose content is shown in Slack.
func surfaces(t *testing.T) []surface {
	t.Helper()
	paths, err := filepath.Glob("../../../../bot/render/testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files found: %v", err)
	}
	var out []surface
	for _, path := range paths {
		if s, ok := readSurface(t, path); ok {
			out = append(out, s)
		}
	}
	return out
}

// readSurface reads a golden file. If the file's content is not for Slack, ok is false.
func readSurface(t *testing.T, path string) (s surface, ok bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = surface{name: strings.TrimSuffix(filepath.Base(path), ".json"), body: raw}
	if raw[0] == '[' || strings.HasPrefix(s.name, "modal_") {
		return s, true
	}
	var m struct {
		Text   string
		Blocks json.RawMessage
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.Blocks == nil {
		return s, false
	}
	s.text, s.body, s.messages = m.Text, m.Blocks, true
	return s, true
}

// sends sends a message to Teo, in his DM with the bot.
func (b *browser) sends(s surface) (selector string, remove func()) {
	b.Helper()
	sent := b.must("chat.postMessage", url.Values{"channel": {"U0002"}, "text": {s.text}, "blocks": {string(s.body)}}, s.name)
	return fmt.Sprintf("%s[data-ts=%q]", messages, sent.TS), func() {
		b.must("chat.delete", url.Values{"channel": {sent.Channel}, "ts": {sent.TS}}, s.name)
	}
}

// shows sends a message to Teo, as the only message in his DM with the bot. When the message is drawn, shows calls the
// function look, and afterwards deletes the message.
func (b *browser) shows(s surface, look func(selector string)) {
	b.Helper()
	selector, remove := b.sends(s)
	b.looksAt(dm, selector, s.name)
	look(selector)
	remove()
	b.page.Until(s.name+" is gone", fmt.Sprintf(`document.querySelector(%q) === null`, selector))
}

// publishes shows a Home, and then removes it.
func (b *browser) publishes(s surface) {
	b.Helper()
	const home = "[data-testid=home]"
	publish := func(blocks string) {
		b.must("views.publish", url.Values{"user_id": {"U0002"}, "view": {`{"type":"home","blocks":` + blocks + `}`}}, s.name)
	}
	publish(string(s.body))
	b.looksAt("#/U0002/home", home+":has([data-testid=block])", s.name)
	b.pictures(s.name, home)
	publish("[]")
	b.page.Until(s.name+" is gone", `document.querySelector("`+home+` [data-testid=block]") === null`)
}

// answer has the fields of the workspace's answers that the tests read.
type answer struct {
	OK          bool
	Channel, TS string
	Error       string
	Metadata    struct{ Messages []string } `json:"response_metadata"`
}

// The method "must" calls a method with the content of a golden file, byte for byte.
func (b *browser) must(method string, form url.Values, name string) (got answer) {
	b.Helper()
	form.Set("token", workspace.DemoBotToken)
	resp, err := http.PostForm(b.http.URL+"/api/"+method, form)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || !got.OK {
		b.Errorf("%s of %s: %v %s %v", method, name, err, got.Error, got.Metadata.Messages)
	}
	return got
}

// looksAt waits until a surface is completely drawn.
func (b *browser) looksAt(place, selector, name string) {
	b.Helper()
	b.page.Until("the page is ready for "+name, fmt.Sprintf(`(location.hash = %q, document.body.dataset.ready === "true")`, place))
	b.page.Until(name+" is drawn", fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e !== null && e.innerText.trim() !== "" && e.querySelector(".fallback") === null; })()`, selector))
}

// opensForm makes the app open a form for a command.
func (b *browser) opensForm(s surface) {
	b.Helper()
	b.opens = slack.ModalViewRequest{}
	if err := json.Unmarshal(s.body, &b.opens); err != nil {
		b.Fatalf("%s: %v", s.name, err)
	}
	b.page.Until("the page is ready", `(location.hash = "`+dm+`", document.body.dataset.ready === "true")`)
	b.focus("[data-testid=composer]")
	b.keys("/countersign form")
	b.press("Enter")
	if _, ok := b.next().Data.(slack.SlashCommand); !ok {
		b.Fatal("the app received something else")
	}
	b.page.Until(s.name+" is drawn", `(() => { const e = document.querySelector("`+modal+`"); return e !== null && e.innerText.trim() !== "" && e.querySelector(".fallback") === null && e.querySelector("[data-testid=modal-error]").hidden; })()`)
	b.pictures(s.name, modal)
	b.click(modal+" [data-testid=modal-close]", "")
	b.page.Until("the form is closed", `!document.querySelector("`+modal+`")`)
	if b.opens.NotifyOnClose {
		b.next()
	}
}

// pictured reports whether screenshots are stored.
func pictured() bool { return os.Getenv("COUNTERSIGN_SCREENSHOTS") != "" }

// The method "pictures" stores screenshots of a surface on a laptop and a phone, in the light and the dark theme. The
// window is high enough to show all of a message or a Home.
func (b *browser) pictures(name, selector string) {
	b.Helper()
	if !pictured() {
		return
	}
	for _, w := range windows {
		b.resize(w.width, w.height, w.scale)
		missing := chromium.Eval[int64](b.page, fmt.Sprintf(`(() => { const e = document.querySelector(%q), pane = e.closest(".scroller"); if (pane) document.activeElement?.blur(); return pane === null ? 0 : Math.max(0, Math.ceil(e.offsetHeight - pane.clientHeight) + 8); })()`, selector))
		if missing > 0 {
			b.resize(w.width, w.height+missing, w.scale)
		}
		for _, theme := range []string{"light", "dark"} {
			b.page.Until(name+" is visible, "+theme, fmt.Sprintf(`(() => { document.documentElement.dataset.theme = %q; document.querySelector(%q).scrollIntoView({block: "end"}); return true; })()`, theme, selector))
			b.page.Shot(name + "-" + w.name + "-" + theme)
		}
	}
	b.resize(windows[0].width, windows[0].height, windows[0].scale)
}
