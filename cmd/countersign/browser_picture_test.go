package main

import (
	"countersign/internal/testkit"
	"countersign/internal/testkit/chromium"
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"testing"
)

// picture is the path of the picture of a card, which the README shows. pictureText is the path of the text of this
// card.
const (
	picture     = "../../docs/card.png"
	pictureText = "../../docs/card.txt"
)

// changing matches the times on a card, because the times differ in each run.
var changing = regexp.MustCompile(`\d{1,2}:\d{2}( ?[AP]M)?|\b\d+ (second|minute|hour)s?\b|\b(today|tomorrow) at\b`)

// TestPictureOfTheCard makes the demo show the card that is in the README's picture. If the text of the card differs
// from the recorded text, the picture is stale, and the test fails. Pixels are not compared, because fonts differ.
// -update retakes the picture.
func TestPictureOfTheCard(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	b := openBrowserTest(t, openDemoHarness(t, t.TempDir(), nil).base)
	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund ORD-123, it arrived broken")
	b.become("U0002", "U0BOT")
	b.sees(inMessages, "Refund of $49.99 for order ORD-123")
	b.Until("it has its preview", `[...document.querySelectorAll("`+inMessages+`")].some(e => e.innerText.includes("preview_refund: "))`)
	const mark = `(() => { const all = document.querySelectorAll("` + inMessages + `"); all[all.length-1].id = "picture"; return all[all.length-1].innerText })()`
	said := changing.ReplaceAllString(chromium.Eval[string](b.Page, mark), "…") + "\n"
	if *update {
		shot := b.Element("#picture", 2)
		write(t, picture, shot)
		write(t, pictureText, []byte(pictureHead(shot)+said))
	}
	shot, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(pictureText)
	if err != nil {
		t.Fatal(err)
	}
	if want := pictureHead(shot) + said; string(recorded) != want {
		t.Errorf("README's picture is of another card; take it again: go test ./cmd/countersign -run TestPictureOfTheCard -update\nrecorded:\n%s\nnow:\n%s", recorded, want)
	}
}

// pictureHead returns the first line of the text file. The line contains the hash of the picture that shows this text.
func pictureHead(png []byte) string {
	return fmt.Sprintf("card.png, sha256 %x, shows this; times are written as …\n\n", sha256.Sum256(png))
}
