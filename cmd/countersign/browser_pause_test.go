package main

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// The brake in a real browser: the lead pauses everything while a call waits, everybody sees it, what is approved
// meanwhile does not run, and it does when somebody else of those who may lets everything go on.
func TestBrowserPause(t *testing.T) {
	b := openBrowserTest(t, openHouse(t, t.TempDir(), nil).base)

	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund ORD-123, it arrived broken")
	b.click("replies", "")
	b.sees(inThread, "Waits for Team Lead")

	b.become("U0100", "C0001")
	b.write("composer", "/countersign pause I don't like it")
	b.sees("[data-testid=messages]", "Team Lead")
	b.shot("pause-1-refused")

	b.become("U0002", "U0BOT")
	b.write("composer", "/countersign pause we look into wrong refunds")
	b.click("button", "Pause everything")
	b.do("the dialog repeats what will happen", chromedp.WaitVisible(chromedp.CSS("[data-testid=confirm]")))
	b.shot("pause-2-confirm")
	b.press("confirm-accept")
	b.sees("[data-testid=messages]", "Everything is paused")
	b.shot("pause-3-paused")

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "we look into wrong refunds")
	b.shot("pause-4-asker")

	b.become("U0002", "U0BOT")
	b.sees(inMessages, "we look into wrong refunds")
	b.click("button", "Approve")
	b.press("confirm-accept")
	b.sees(inMessages, "It starts when everything goes on")
	b.shot("pause-5-approved-not-started")

	b.become("U0003", "U0BOT")
	b.sees(inMessages, "Everything is paused")
	b.shot("pause-6-director")
	b.click("button", "Resume")
	b.press("confirm-accept")
	b.sees(inMessages, "Everything goes on")
	b.shot("pause-7-resumed")

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "I refunded $49.99")
	b.shot("pause-8-answer")
}
