package main

import "testing"

// The shop says on the card what a refund would do, before anybody decides, and once more for changed arguments. What
// it says is the shop's word: the sentence above it stays the policy's.
func TestBrowserPreview(t *testing.T) {
	h := openHouse(t, t.TempDir(), nil)
	b := openBrowserTest(t, h.base)
	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	b.become("U0002", "U0BOT")
	b.sees(inMessages, "Refund of $20.00 for order ORD-131")
	b.sees(inMessages, "What preview_refund says of it, in its own words:")
	b.sees(inMessages, "could still be refunded.")
	b.shot("preview-1-card")
}
