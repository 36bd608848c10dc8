package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"countersign/approvers"
	"countersign/config/check"
	"countersign/internal/testkit"
)

// A user can read the introduction to its end while notifications about messages to other people appear. The test uses
// the window sizes of a laptop and of a phone.
func TestBrowserIntroduction(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	h := openDemoHarness(t, t.TempDir(), nil)
	b := openBrowserTest(t, h.base)
	for name, size := range map[string][2]int64{"laptop": {1280, 900}, "phone": {390, 844}} {
		b.Do("resize", chromedp.EmulateViewport(size[0], size[1]))
		b.become("U0100", "C0001")
		b.write("composer", "@Countersign refund ORD-123, it arrived broken")
		b.Until("somebody else got a message", `document.querySelector("[data-testid=toast]") !== null`)
		if name == "phone" {
			b.Do("the list", chromedp.Navigate(b.base+"/#/U0100"))
			b.Until("the list is drawn", `document.getElementById("app").dataset.screen === "list"`)
		}
		b.Until("the introduction is open", `document.querySelector("[data-testid=hint]") !== null`)
		b.Shot("introduction-" + name)
		b.Until("its last line is not covered, on a "+name, `(() => {
			const line = document.querySelector("[data-testid=hint] li:last-of-type");
			line.scrollIntoView({block: "end"});
			const at = line.getBoundingClientRect();
			return at.bottom <= innerHeight && document.querySelector("[data-testid=hint]").contains(document.elementFromPoint(at.left + 20, at.bottom - 8));
		})()`)
		b.Shot("introduction-end-" + name)
	}
}

// The introduction for a user's own policy names the tools of this policy, and not the tools of the demo.
func TestIntroductionToAPolicyOfOnesOwn(t *testing.T) {
	p := &approvers.Policy{
		Tools: []approvers.ToolPolicy{
			{Name: "files.read", Risk: approvers.Low}, {Name: "files.write", Risk: approvers.High, Confirm: true}, {Name: "files.gone", Risk: approvers.High, Confirm: true},
		},
		Approvers: []approvers.Role{{
			Name: "lead", Title: "Team Lead", MaxRisk: approvers.High, CanApprove: []string{"*"}, Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U0002"}},
		}},
		Agents: []approvers.Agent{{Name: "a", Tools: []string{"*"}}},
	}
	known := []check.Tool{{Name: "files.write", Schema: []byte(`{"required":["path","content"]}`)}, {Name: "files.read", Schema: []byte(`{"required":["path"]}`)}}
	hint := suggestCalls(p, known)
	said := strings.Join(hint.Lines, "\n")
	for _, want := range []string{"`@Countersign call files.read path=…`", "waits for *Team Lead*: `@Countersign call files.write path=… content=…`"} {
		if !strings.Contains(said, want) {
			t.Errorf("it lacks %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "ORD-") || strings.Contains(said, "gone") {
		t.Errorf("it names what can't be called:\n%s", said)
	}
	if hint := suggestCalls(p, nil); hint.Title != "" || len(hint.Lines) > 0 {
		t.Errorf("nothing can be called, and it says %+v", hint)
	}
}
