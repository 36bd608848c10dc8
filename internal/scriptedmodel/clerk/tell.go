package clerk

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// report tells how a call of this turn ended, and offers what fits.
func (d *desk) report(w *wish, i int) {
	c := d.t.done[i]
	d.told = append(d.told, d.outcome(w, c))
	if c.result.status != "" {
		d.alternatives(c)
	}
}

// outcome puts a call's result into words.
func (d *desk) outcome(w *wish, c done) string {
	if c.result.status != "" {
		return d.refusal(c)
	}
	text := d.tell(w, c)
	if c.result.changedBy != "" || c.result.changed != nil {
		text = strings.TrimSpace(changes(c) + " " + text)
	}
	return text
}

// tell says what a tool did, from what it answered.
func (d *desk) tell(w *wish, c done) string {
	a := c.result.object()
	currency := a.text("currency")
	amount, _ := a.cents("amount")
	order := a.text("order_id")
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

// plainly tells the answer of a tool that the clerk does not know.
func plainly(c done) string {
	const most = 900
	switch v := c.result.data.(type) {
	case nil:
		if strings.TrimSpace(c.result.raw) == "" {
			return fmt.Sprintf("%s is done; it answered nothing.", c.Name)
		}
		return fmt.Sprintf("%s answered: %s", c.Name, cut(c.result.raw, most))
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
		return cut(fmt.Sprintf("%s is done. %s.", c.Name, strings.Join(parts, "; ")), most)
	default:
		return cut(fmt.Sprintf("%s answered: %s", c.Name, plainValue(v)), most)
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

// changes says what an approver changed before it ran.
func changes(c done) string {
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
		return by + " changed the request before approving it."
	}
	return by + " changed the request before approving it: " + strings.Join(parts, "; ") + "."
}

// tellOrders answers a search.
func (d *desk) tellOrders(w *wish, list []*order, args []arg) string {
	switch len(list) {
	case 0:
		return "I found no orders" + sought(w, args) + "." + d.whyNone(args)
	case 1:
		return d.tellOrder(w, list[0])
	}
	who := ""
	if same(list, func(o *order) string { return o.name }) && list[0].name != "" {
		who = " of " + list[0].name + " (" + list[0].email + ", account " + list[0].user + ")"
	}
	return fmt.Sprintf("I found %d orders%s:\n%s", len(list), who, lines(list))
}

func same(list []*order, of func(*order) string) bool {
	return !slices.ContainsFunc(list, func(o *order) bool { return of(o) != of(list[0]) })
}

func sought(w *wish, args []arg) string {
	var parts []string
	for _, a := range args {
		switch a.name {
		case "order_id":
			parts = append(parts, "with the number "+strings.Trim(a.value, `"`))
		case "customer_email", "customer_name", "user_id":
			parts = append(parts, "of "+strings.Trim(a.value, `"`))
		case "status":
			parts = append(parts, "that are "+strings.Trim(a.value, `"`))
		}
	}
	if w != nil && w.filter == unpaid {
		parts = append(parts, "with anything due")
	}
	if parts == nil {
		return ""
	}
	return " " + strings.Join(parts, " ")
}

// whyNone repeats what the search said beside finding nothing.
func (d *desk) whyNone(args []arg) string {
	for _, c := range d.t.done {
		for _, a := range args {
			if note := c.result.object().text("note"); note != "" && textArg("", value(c.args, a.name)).value == a.value {
				return " " + note
			}
		}
	}
	return ""
}

// lines lists orders, numbered so that people can say "the second one".
func lines(list []*order) string {
	var b strings.Builder
	for i, o := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%d. %s, %s, %s, %s", i+1, o.id, things(o), show(o.total, o.currency), o.state)
		if !same(list, func(o *order) string { return o.name }) {
			b.WriteString(", " + o.name)
		}
		if note := moneyNote(o); note != "" {
			b.WriteString(" (" + note + ")")
		}
	}
	return b.String()
}

func things(o *order) string {
	var names []string
	for _, i := range o.items {
		if i.quantity != "" && i.quantity != "1" {
			names = append(names, i.quantity+" × "+i.name)
			continue
		}
		names = append(names, i.name)
	}
	if names == nil {
		return "no items"
	}
	return strings.Join(names, " and ")
}

func moneyNote(o *order) string {
	switch {
	case o.refunded > 0 && o.refundable == 0:
		return "refunded"
	case o.refunded > 0:
		return show(o.refunded, o.currency) + " refunded"
	case o.due > 0:
		return show(o.due, o.currency) + " due"
	}
	return ""
}

func day(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return ""
	}
	return t.Format("2 January 2006")
}

// What a question about one order asks for.
var (
	asksRefund  = re(`\b(?:refund\w*|money)\b`)
	asksPaid    = re(`\b(?:paid|pay|owe\w*|due)\b`)
	asksTotal   = re(`\b(?:how much|cost\w*|total|price|amount)\b`)
	asksAddress = re(`\baddress\b`)
	asksWho     = re(`\b(?:whose|who)\b`)
)

// tellOrder tells about one order, what was asked for first.
func (d *desk) tellOrder(w *wish, o *order) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	whose := ""
	if o.name != "" {
		whose = " of " + o.name
	}
	asked := ""
	if w != nil {
		asked = strings.ToLower(w.text)
	}
	is := func(words *regexp.Regexp) bool { return words.MatchString(asked) }
	switch {
	case is(asksRefund):
		switch {
		case o.refunded == 0:
			say("Nothing has been refunded for order %s%s yet; %s could be.", o.id, whose, show(o.refundable, o.currency))
		case o.refundable == 0:
			say("Yes, order %s%s has been refunded in full: %s.", o.id, whose, show(o.refunded, o.currency))
		default:
			say("%s of order %s%s has been refunded; %s could still be.", show(o.refunded, o.currency), o.id, whose, show(o.refundable, o.currency))
		}
	case is(asksPaid):
		if o.due > 0 {
			say("Order %s%s is not fully paid: %s of %s is due.", o.id, whose, show(o.due, o.currency), show(o.total, o.currency))
		} else {
			say("Order %s%s is paid: %s.", o.id, whose, show(o.paid, o.currency))
		}
	case is(asksTotal):
		say("Order %s%s comes to %s: %s.", o.id, whose, show(o.total, o.currency), things(o))
	case is(asksAddress):
		say("Order %s%s goes to %s.", o.id, whose, o.address)
	case is(asksWho):
		say("Order %s belongs to %s (%s, account %s).", o.id, o.name, o.email, o.user)
	default:
		say("Order %s%s: %s, %s.", o.id, whose, things(o), show(o.total, o.currency))
	}
	if !is(asksAddress) {
		say("%s", progress(o))
	}
	if note := moneyNote(o); note != "" && !is(asksRefund) && !is(asksPaid) {
		say("%s.", capital(note))
	}
	return strings.Join(parts, " ")
}

// progress says where an order is.
func progress(o *order) string {
	switch {
	case o.state == "delivered" && day(o.delivered) != "":
		return fmt.Sprintf("It was delivered on %s.", day(o.delivered))
	case o.state == "shipped" && o.tracking != "":
		return fmt.Sprintf("It is on its way to %s, tracking number %s.", o.address, o.tracking)
	case o.state == "processing":
		return fmt.Sprintf("It is being prepared and will go to %s.", o.address)
	case o.state == "":
		return ""
	}
	return "It is " + o.state + "."
}
