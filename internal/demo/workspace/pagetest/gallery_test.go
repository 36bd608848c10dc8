package pagetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/slack-go/slack"

	"countersign/internal/demo/workspace"
)

// TestEverySurface sends every golden file of the bot (messages, forms and Homes) to the workspace, which must accept
// it, and looks at it on the page, which must draw all of it. COUNTERSIGN_SCREENSHOTS keeps a picture of each, light
// and dark.
func TestEverySurface(t *testing.T) {
	b := openBrowser(newHarness(t))
	paths, err := filepath.Glob("../../../../bot/render/testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files found: %v", err)
	}
	var shown []surface
	for _, path := range paths {
		if s, ok := readSurface(t, path); ok {
			shown = append(shown, s)
		}
	}
	for i, s := range shown {
		if s.messages {
			shown[i].ts = b.post(s)
		}
	}
	themes := []string{"light", "dark"}
	if os.Getenv("COUNTERSIGN_SCREENSHOTS") == "" {
		themes = themes[:1]
	} else if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1100, 2600)); err != nil { // the longest card, and the place to write
		t.Fatal(err)
	}
	b.become("U0002", "C0001")
	for _, theme := range themes {
		for _, s := range shown {
			switch {
			case s.messages && s.ts == "":
			case s.messages:
				b.looksAt(theme, "#/U0002/C0001", fmt.Sprintf("%s[data-ts=%q]", messages, s.ts), s.name)
			case strings.HasPrefix(s.name, "modal_"):
				b.opensForm(theme, s)
			default:
				b.must("views.publish", url.Values{"user_id": {"U0002"}, "view": {fmt.Sprintf(`{"type":"home","blocks":%s}`, s.body)}})
				b.looksAt(theme, "#/U0002/home", "[data-testid=home]", s.name)
			}
		}
	}
}

// surface is the content of a golden file.
type surface struct {
	name     string
	body     json.RawMessage // a view, the blocks of a Home, or of a message
	text     string
	messages bool
	ts       string // once it is posted
}

// readSurface reads a golden file; not ok: Slack does not show its content.
func readSurface(t *testing.T, path string) (s surface, ok bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = surface{name: strings.TrimSuffix(filepath.Base(path), ".json"), body: raw}
	if s.name != "home" && strings.HasPrefix(s.name, "home_") || strings.HasPrefix(s.name, "modal_") {
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

func (b *browser) post(s surface) (ts string) {
	b.Helper()
	return b.must("chat.postMessage", url.Values{"channel": {"C0001"}, "text": {s.text}, "blocks": {string(s.body)}}, s.name)
}

// must calls a method with the content of a golden file, byte for byte.
func (b *browser) must(method string, form url.Values, name ...string) (ts string) {
	b.Helper()
	form.Set("token", workspace.DemoBotToken)
	resp, err := http.PostForm(b.http.URL+"/api/"+method, form)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		OK       bool
		TS       string
		Error    string
		Metadata struct{ Messages []string } `json:"response_metadata"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || !answer.OK {
		b.Errorf("%s of %v: %v %s %v", method, name, err, answer.Error, answer.Metadata.Messages)
	}
	return answer.TS
}

// looksAt waits until a surface is completely drawn.
func (b *browser) looksAt(theme, place, selector, name string) {
	b.Helper()
	ready := fmt.Sprintf(`(location.hash = %q, document.documentElement.dataset.theme = %q, document.body.dataset.ready === "true")`, place, theme)
	b.until("the page is ready for "+name, ready)
	b.until(name+" is drawn", fmt.Sprintf(`(() => { const e = document.querySelector(%q); e?.scrollIntoView({block: "start"}); return e !== null && e.innerText.trim() !== "" && e.querySelector(".fallback") === null; })()`, selector))
	b.picture(theme+"-"+name, selector)
}

// opensForm makes the app open a form for a command.
func (b *browser) opensForm(theme string, s surface) {
	b.Helper()
	b.opens = slack.ModalViewRequest{}
	if err := json.Unmarshal(s.body, &b.opens); err != nil {
		b.Fatalf("%s: %v", s.name, err)
	}
	b.until("the page is ready", fmt.Sprintf(`(location.hash = "#/U0002/C0001", document.documentElement.dataset.theme = %q, document.body.dataset.ready === "true")`, theme))
	b.focus("[data-testid=composer]")
	b.keys("/countersign form")
	b.press("Enter")
	if _, ok := b.next().Data.(slack.SlashCommand); !ok {
		b.Fatal("the app heard something else")
	}
	b.until(s.name+" is drawn", `(() => { const e = document.querySelector("`+modal+`"); return e !== null && e.innerText.trim() !== "" && e.querySelector(".fallback") === null && e.querySelector("[data-testid=modal-error]").hidden; })()`)
	b.picture(theme+"-"+s.name, modal)
	b.click(modal+" [data-testid=modal-close]", "")
	b.until("the form is closed", `!document.querySelector("`+modal+`")`)
	if b.opens.NotifyOnClose {
		b.next()
	}
}

// picture stores a screenshot of one element.
func (b *browser) picture(name, selector string) {
	dir := os.Getenv("COUNTERSIGN_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.Screenshot(selector))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.Errorf("screenshot %s: %v", name, err)
	}
}
