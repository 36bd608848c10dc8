package demomodel

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// tellOrders answers a search.
func (d *responder) tellOrders(w *request, list []*order, args []arg) string {
	switch len(list) {
	case 0:
		return "I found no orders" + sought(w, args) + "." + d.whyNone(args)
	case 1:
		return d.tellOrder(w, list[0])
	}
	who := ""
	if same(list, func(o *order) string { return o.name }) && list[0].name != "" {
		who = " of " + list[0].name + " (" + list[0].email + ", account " + list[0].user + accountNote(list[0]) + ")"
	}
	return fmt.Sprintf("I found %d orders%s:\n%s", len(list), who, lines(list))
}

// accountNote returns the state of the customer's account, or "" if the account is active.
func accountNote(o *order) string {
	if o.accountState == "" || o.accountState == "active" {
		return ""
	}
	return ", " + o.accountState
}

func same(list []*order, of func(*order) string) bool {
	return !slices.ContainsFunc(list, func(o *order) bool { return of(o) != of(list[0]) })
}

func sought(w *request, args []arg) string {
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

// whyNone returns the note that came with an empty search result.
func (d *responder) whyNone(args []arg) string {
	for _, c := range d.t.done {
		for _, a := range args {
			if note := c.result.object().text("note"); note != "" && textArg("", value(c.args, a.name)).value == a.value {
				return " " + note
			}
		}
	}
	return ""
}

// The function "lines" lists orders, numbered so that people can say "the second one".
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

// Patterns of questions about one order.
var (
	asksRefund  = re(`\b(?:refund\w*|money)\b`)
	asksPaid    = re(`\b(?:paid|pay|owe\w*|due)\b`)
	asksTotal   = re(`\b(?:how much|cost\w*|total|price|amount)\b`)
	asksAddress = re(`\baddress\b`)
	asksAccount = re(`\baccount\b[^!?;\n]*\?|e-?mail|phone`)
	asksWho     = re(`\b(?:whose|who)\b`)
)

// The function "asked" returns the text of a search request, without e-mail addresses.
func asked(w *request) string {
	if w == nil {
		return ""
	}
	return withoutEmails(w.text)
}

// tellOrder describes one order, with the requested detail first.
func (d *responder) tellOrder(w *request, o *order) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	whose := ""
	if o.name != "" {
		whose = " of " + o.name
	}
	if asksAccount.MatchString(asked(w)) && o.user != "" {
		state := o.accountState
		if state == "" {
			state = "state unknown"
		}
		say("%s has the account %s (%s) and the e-mail address %s.", o.name, o.user, state, o.email)
	}
	is := func(words *pattern) bool { return words.MatchString(asked(w)) }
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

// progress describes the progress of an order.
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
