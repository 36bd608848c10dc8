package main

import (
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/shop"
	"countersign/internal/testkit"
)

// cutRefund is a bot in its own process that is killed in the middle of a refund.
type cutRefund struct {
	*browser
	world *killHarness
	bot   *process
}

// cut makes Sam request a refund, and makes Teo approve the refund. The bot is killed at a given point of the refund,
// and a new process continues with the same store and workspace.
func (c *cutRefund) cut(point, ask, preview string) {
	c.Helper()
	if c.bot != nil {
		c.stop()
	}
	c.bot = c.world.start(c.Context(), killPoint{point, 1})
	c.world.awaitUp(c.bot)
	c.become("U0100", "C0001")
	c.write("composer", "@Countersign "+ask)
	c.become("U0002", "U0BOT")
	c.sees(inMessages, preview)
	c.click("button", "Approve")
	c.press("confirm-accept")
	select {
	case <-c.bot.gone:
	case <-time.After(patience):
		c.Error("the bot was not killed")
	}
	c.world.killed(c.bot)
	c.bot = c.world.start(c.Context(), killPoint{})
	c.world.awaitUp(c.bot)
}

func (c *cutRefund) stop() {
	c.Helper()
	if err := c.bot.end(syscall.SIGTERM); err != nil {
		c.Errorf("asked to stop, the bot ended with %v\n%s", err, c.world.tail())
	}
}

// thread opens the newest thread of #support as Sam, the requester.
func (c *cutRefund) thread() {
	c.Helper()
	c.become("U0100", "C0001")
	c.click("replies", "")
}

// The bot is killed during each of four refunds. The bot asks the approver and the requester what happened. The test
// gives each possible answer, and checks its effect. A repeated refund is a new request. It runs only after the Team
// Lead has approved the new request.
func TestBrowserUnknown(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	k := newKillHarness(t, 1, string(demoPolicy), func(*killHarness) scriptedmodel.Responder { return scriptedmodel.Rules() })
	goods := shop.New(time.Now)
	web := httptest.NewServer(goods.Handler())
	defer web.Close()
	k.conf.Shop = web.URL + "/mcp"
	c := &cutRefund{browser: openBrowserTest(t, k.conf.Base), world: k}
	const told = "The bot stopped while issue_refund was running"

	c.cut(toolActed, "refund ORD-123, it arrived broken", "Refund of $49.99 for order ORD-123")
	c.thread()
	c.sees(inThread, told)
	c.sees(inThread, "It may have acted")
	c.Shot("unknown-01-asker")
	c.become("U0002", "U0BOT")
	c.sees(inMessages, told)
	c.Shot("unknown-02-approver")
	c.click("button", "It happened…")
	c.enter("[data-testid=modal][open] [data-testid=input] textarea", "It is in the payment system as RF-7.")
	c.Shot("unknown-03-happened-form")
	c.press("modal-submit")
	c.sees(inMessages, "Reported by @Teo: it happened")
	c.Shot("unknown-04-happened")
	c.thread()
	c.sees(inThread, "Reported by @Teo: it happened")
	c.sees(inThread, "The refund of $49.99 for order ORD-123 is done, as a person reported: It is in the payment system as RF-7.")
	c.Shot("unknown-05-happened-asker")

	c.cut(toolCalled, "refund 20 USD of order ORD-131, the box was damaged", "Refund of $20.00 for order ORD-131")
	c.thread()
	c.sees(inThread, told)
	c.click("button", "It did not")
	c.Do("the dialog says what follows", chromedp.WaitVisible(chromedp.CSS("[data-testid=confirm]")))
	c.Shot("unknown-06-did-not-confirm")
	c.press("confirm-accept")
	c.sees(inThread, "Reported by @Sam: it did not happen")
	c.Shot("unknown-07-did-not-asker")
	c.become("U0002", "U0BOT")
	c.sees(inMessages, "Reported by @Sam")
	c.Shot("unknown-08-did-not-approver")

	c.cut(toolCalled, "refund 30 USD of order ORD-129, a scratch", "Refund of $30.00 for order ORD-129")
	c.become("U0002", "U0BOT")
	c.sees(inMessages, told)
	c.click("button", "Leave it")
	c.sees(inMessages, "The agent was told that the outcome is unknown: @Teo chose Leave it.")
	c.Shot("unknown-09-left")
	c.thread()
	c.sees(inThread, "The agent was told that the outcome is unknown: @Teo chose Leave it.")
	c.Shot("unknown-10-left-asker")

	c.cut(toolCalled, "refund 25 USD of order ORD-129, another scratch", "Refund of $25.00 for order ORD-129")
	c.thread()
	c.sees(inThread, told)
	c.click("button", "Ask again")
	c.Do("the dialog says what may happen", chromedp.WaitVisible(chromedp.CSS("[data-testid=confirm]")))
	c.Shot("unknown-11-again-confirm")
	c.press("confirm-accept")
	c.sees(inThread, "Asked again by @Sam")
	c.sees(inThread, "Waits for Team Lead")
	c.Shot("unknown-12-again-asker")
	c.become("U0002", "U0BOT")
	c.sees(inMessages, "This may have happened already.")
	c.Shot("unknown-13-again-card")
	c.click("button", "Approve")
	c.sees("[data-testid=confirm]", "It may have happened already: if it did, it happens a second time.")
	c.Shot("unknown-14-again-approve")
	c.press("confirm-accept")
	c.sees(inMessages, "It ran")
	c.Shot("unknown-15-again-ran")
	c.thread()
	c.sees(inThread, "I refunded $25.00")
	c.Shot("unknown-16-again-answer")

	c.stop()
	for order, want := range map[string]string{"ORD-123": "49.99", "ORD-131": "0.00", "ORD-129": "25.00"} {
		found, err := goods.SearchOrders(t.Context(), shop.SearchArgs{OrderID: order})
		if err != nil || len(found.Orders) != 1 || found.Orders[0].Refunded.String() != want {
			t.Errorf("refunded of %s: %+v, %v; want %s", order, found.Orders, err, want)
		}
	}
}
