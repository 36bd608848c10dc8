package demomodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// report describes in the answer how a call of this turn ended. If the call failed, report also offers alternatives.
func (d *responder) report(w *request, i int) {
	c := d.t.done[i]
	d.told = append(d.told, d.outcome(w, c))
	if c.result.status != "" {
		d.alternatives(c.asChanged())
	}
}

// asChanged returns a call with the arguments that an approver set.
func (c done) asChanged() done {
	if c.result.changed != nil {
		c.args = c.result.changed
	}
	return c
}

// outcome describes a call's result in sentences.
func (d *responder) outcome(w *request, c done) string {
	text, when := "", " before approving it"
	if c.result.status != "" {
		text, when = d.refusal(c.asChanged()), " first"
	} else {
		text = d.tell(w, c)
	}
	if c.result.changedBy != "" || c.result.changed != nil {
		text = strings.TrimSpace(changes(c, when) + " " + text)
	}
	return text
}

// tell describes what a tool did, based on its result.
func (d *responder) tell(w *request, c done) string { //nolint:cyclop // one case for each tool
	a := c.result.object()
	currency := a.text("currency")
	amount, _ := a.cents("amount")
	order := a.text("order_id")
	if c.result.reported {
		text := d.attempt(c) + " is done, as a person reported"
		if words, ok := c.result.data.(string); ok && words != "" {
			return text + ": " + cut(words, mostTold)
		}
		return text + "."
	}
	switch kind := d.tools.kindOf(c.Name); {
	case kind == searchOrders && a["orders"] != nil:
		return d.tellOrders(w, d.ordersIn(c), nil)
	case kind == issueRefund && order != "" && amount > 0:
		text := fmt.Sprintf("Done: I refunded %s for order %s.", show(amount, currency), order)
		if left, ok := a.cents("refundable"); ok && left > 0 {
			text += fmt.Sprintf(" %s could still be refunded.", show(left, currency))
		}
		return text + number(a, "refund_id", " The refund's number is %s.")
	case kind == takePayment && order != "" && amount > 0:
		text := fmt.Sprintf("Done: %s was taken for order %s (%s).", show(amount, currency), order, strings.ReplaceAll(a.text("method"), "_", " "))
		if due, ok := a.cents("due"); ok && due > 0 {
			return text + fmt.Sprintf(" %s is still due.", show(due, currency))
		}
		return text + " Nothing is due any more."
	case kind == applyDiscount && order != "" && a.text("percent") != "":
		if a.text("applies_to") == "next_order" {
			return fmt.Sprintf("Done: order %s is paid already, so the customer gets a voucher of %s %% for the next order%s.", order, a.text("percent"), number(a, "code", " (%s)"))
		}
		total, _ := a.cents("total")
		return fmt.Sprintf("Done: order %s is now %s %% cheaper and costs %s.", order, a.text("percent"), show(total, currency))
	case kind == setAddress && order != "" && a.text("address") != "":
		text := fmt.Sprintf("Done: order %s now goes to %s.", order, a.text("address"))
		if strings.Contains(a.text("message"), "arrived already") {
			text += " The parcel has arrived already, so the new address counts for a replacement or a return."
		}
		return text
	case kind == sendEmail && a.text("to") != "":
		return fmt.Sprintf("Done: the e-mail “%s” went to %s.", a.text("subject"), a.text("to"))
	case a.text("message") != "":
		text := "Done: " + a.text("message")
		if open := a.texts("open_orders"); len(open) > 0 {
			text += " Still open: " + strings.Join(open, ", ") + "."
		}
		return text
	}
	return plainly(c)
}

func number(a object, name, format string) string {
	if n := a.text(name); n != "" {
		return fmt.Sprintf(format, n)
	}
	return ""
}

// mostTold limits the length of a reported answer.
const mostTold = 900

// The function "plainly" describes the answer of a tool without rules in a sentence.
func plainly(c done) string {
	switch v := c.result.data.(type) {
	case nil:
		if strings.TrimSpace(c.result.raw) == "" {
			return fmt.Sprintf("%s is done; it answered nothing.", c.Name)
		}
		return fmt.Sprintf("%s answered: %s", c.Name, cut(c.result.raw, mostTold))
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		var parts []string
		for _, name := range names {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+": "+plainValue(v[name]))
		}
		return cut(fmt.Sprintf("%s is done. %s.", c.Name, strings.Join(parts, "; ")), mostTold)
	default:
		return cut(fmt.Sprintf("%s answered: %s", c.Name, plainValue(v)), mostTold)
	}
}

func plainValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// The function "changes" returns a sentence about the arguments that an approver changed. The parameter "when" is the
// time of the change in words, or empty.
func changes(c done, when string) string {
	by := c.result.changedBy
	if by == "" {
		by = "approver"
	}
	by = "The " + strings.TrimPrefix(strings.TrimPrefix(by, "the "), "The ")
	var parts []string
	names := make([]string, 0, len(c.result.changed))
	for name := range c.result.changed {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		was, is := c.args[name], c.result.changed[name]
		if plainValue(was) == plainValue(is) {
			continue
		}
		label := strings.ReplaceAll(name, "_", " ")
		if was == nil {
			parts = append(parts, fmt.Sprintf("%s “%s” was added", label, plainValue(is)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s is %s instead of %s", label, plainValue(is), plainValue(was)))
	}
	for name := range c.args {
		if c.result.changed != nil && c.result.changed[name] == nil {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+" was left out")
		}
	}
	if len(parts) == 0 {
		return by + " changed the request" + when + "."
	}
	return by + " changed the request" + when + ": " + strings.Join(parts, "; ") + "."
}
