package pagetest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/testkit/chromium"
)

// cards matches the names of the golden files of cards. decides matches the buttons of a card that waits for a
// decision.
var (
	cards   = regexp.MustCompile(`^(card_|bundle_|again_card|tool_preview_|reader_|unknown)`)
	decides = regexp.MustCompile(`"action_id": "(approve|reject|take_back|did_not)`)
)

// taller lists the cards that may be too tall, with the reasons.
var taller = map[string]string{
	"card_hostile":      "four warnings and eight lines of arguments",
	"card_long":         "an argument of several thousand characters, cut",
	"tool_preview_long": "a preview of hundreds of characters",
	"unknown_cut":       "an argument of several thousand characters, cut",
	"unknown_cut_grant": "an argument of several thousand characters, cut",
}

// The test scrolls to the bottom of a waiting card, on a laptop and on a phone. The warnings, the headline and the
// buttons of the card must be visible together. If a card is taller than the screen, at least the end of the first
// warning must be visible together with the buttons.
func TestCardsFit(t *testing.T) {
	b := openBrowser(newHarness(t))
	b.become("U0002", "U0BOT")
	tried := map[string]bool{}
	for _, s := range surfaces(t) {
		if !s.messages || !cards.MatchString(s.name) || !strings.Contains(string(s.body), `"type": "header"`) || !decides.Match(s.body) {
			continue
		}
		tried[s.name] = true
		b.shows(s, func(selector string) {
			for _, w := range windows {
				b.resize(w.width, w.height, w.scale)
				at := b.measure(selector)
				fits := at.Begin >= 0
				switch {
				case at.Buttons > at.Pane || at.Warned < 0:
					t.Errorf("%s at %s: the buttons and a warning are not visible together: %+v", s.name, w.name, at)
				case !fits && taller[s.name] == "":
					t.Errorf("%s at %s: %.0f pixels above the buttons are out of view: %+v", s.name, w.name, -at.Begin, at)
				}
			}
		})
	}
	if len(tried) == 0 {
		t.Error("no card waits in the golden files")
	}
	for name := range taller { // a card in the list may fit after all, because this depends on the machine's fonts
		if !tried[name] {
			t.Errorf("%s does not exist any more: remove it from the list", name)
		}
	}
}

// extent has the positions of parts of a card, in pixels below the top of the visible messages. Begin is the beginning
// of the first warning or the headline. Warned is the end of the first warning. Buttons is the end of the buttons.
type extent struct{ Begin, Warned, Buttons, Pane float64 }

// measure scrolls to the bottom of a card and returns the card's extent.
func (b *browser) measure(selector string) extent {
	b.Helper()
	return chromium.Eval[extent](b.page, fmt.Sprintf(`(() => {
		const card = document.querySelector(%q), pane = card.closest(".scroller");
		document.activeElement?.blur();
		pane.scrollTop = pane.scrollHeight;
		const place = (e) => { const to = pane.getBoundingClientRect(), r = e.getBoundingClientRect(); return { top: r.top - to.top, bottom: r.bottom - to.top }; };
		const blocks = [...card.querySelectorAll("[data-testid=block]")];
		const buttons = place(blocks.findLast((e) => e.querySelector("[data-action-id^=approve], [data-action-id^=reject], [data-action-id=take_back], [data-action-id=did_not]")));
		const warnings = blocks.filter((e) => /^(⚠️|⛔|✂️|🔒)/u.test(e.innerText)).map(place);
		return {
			Begin: Math.min(place(card.querySelector("[data-block-type=header]")).top, ...warnings.map((w) => w.top)),
			Warned: Math.min(...warnings.map((w) => w.bottom), buttons.bottom),
			Buttons: buttons.bottom, Pane: pane.clientHeight,
		};
	})()`, selector))
}
