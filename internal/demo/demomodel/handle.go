package demomodel

import (
	"reflect"
	"slices"
	"strings"
)

// handle processes a request as far as the turn allows: it queues a call, reports a finished call, or asks for missing
// details.
func (d *responder) handle(w *request) {
	switch {
	case w.kind == "verbatim":
		d.handleVerbatim(w)
		return
	case w.kind == "again":
		d.handleAgain()
		return
	case w.kind == recap:
		d.handleRecap()
		return
	case w.kind == cancelOrder:
		d.handleCancelOrder(w)
		return
	case w.mood == unwant:
		d.notes = append(d.notes, "All right, I won't "+infinitive[w.kind]+".")
		if len(w.orders) == 1 {
			d.m.look(w.orders[0])
		}
		return
	case w.mood == explain:
		d.told = append(d.told, d.explanation(w))
		return
	case !d.tools.has(w.kind):
		d.notes = append(d.notes, d.without(w.kind))
		return
	}
	switch w.kind {
	case searchOrders:
		d.handleSearch(w)
	case issueRefund, applyDiscount, takePayment, setAddress:
		d.handleOrders(w)
	case sendEmail:
		d.handleEmail(w)
	default:
		d.handleAccounts(w)
	}
}

// infinitive has the infinitive for each kind of request, for sentences such as "I won't …".
var infinitive = map[string]string{
	searchOrders: "look orders up", setAddress: "change the address", updateProfile: "change the profile", applyDiscount: "give a discount", issueRefund: "refund anything",
	takePayment: "take a payment", sendEmail: "send an e-mail", deleteAccount: "delete the account", cancelAccount: "cancel the account", exportData: "export any data",
}

// claim finds a call of this turn by its kind and one argument, and returns the call's index. Each call is found only
// once.
func (d *responder) claim(kind, name, want string) int {
	for i, c := range d.t.done {
		if d.claimed[i] || d.tools.kindOf(c.Name) != kind || !strings.EqualFold(value(c.args, name), want) {
			continue
		}
		d.claimed[i] = true
		return i
	}
	return -1
}

// queue adds a call to this step. If this step already has the same call, queue does nothing.
func (d *responder) queue(call Call) {
	for _, c := range d.calls {
		if c == call {
			return
		}
	}
	d.calls = append(d.calls, call)
}

// act queues a call for a request, and stores the request in the memory.
func (d *responder) act(w *request, call Call) {
	d.queue(call)
	d.remember(w)
}

func (d *responder) remember(w *request) {
	kept := *w
	d.m.wanted = &kept
}

// ask adds a question about a missing detail of a request. If the answer already has such a question, ask does nothing.
func (d *responder) ask(w *request, what lack, question string) {
	if d.open == nil {
		kept := *w
		kept.lacks = what
		d.open = &kept
		d.questions = append(d.questions, question)
	}
}

// handleAgain repeats those failed calls of the last turn that may be repeated, and explains why it does not repeat the
// others.
func (d *responder) handleAgain() {
	failed := slices.DeleteFunc(slices.Clone(d.m.last), func(c done) bool { return c.result.status == "" })
	if len(failed) == 0 {
		d.told = append(d.told, "That went through the first time, so I don't do it again:")
		d.handleRecap()
		return
	}
	for _, before := range failed {
		again := -1
		for i, c := range d.t.done {
			if !d.claimed[i] && c.Name == before.Name && reflect.DeepEqual(c.args, before.args) {
				again = i
				break
			}
		}
		if again >= 0 {
			d.claimed[again] = true
			d.report(nil, again)
			continue
		}
		switch before.result.status {
		case "expired", "withdrawn", "voided", "revoked", "error":
			if d.tools.names[before.Name] {
				d.queue(Call{Name: before.Name, Arguments: before.Arguments})
			}
		case "rejected", "refused":
			d.notes = append(d.notes, "That was "+before.result.status+", so I don't ask for the very same thing again.")
			d.alternatives(before)
		case "unknown":
			d.notes = append(d.notes, "It is unknown whether the first time went through, so I must not do it again. Somebody has to look first.")
		}
	}
}

// handleRecap reports how the last calls ended.
func (d *responder) handleRecap() {
	last := d.m.acted
	if len(last) == 0 {
		last = d.m.last
	}
	if len(last) == 0 {
		d.told = append(d.told, "I have not done anything in this conversation yet, so there is nothing to report.")
		return
	}
	for _, c := range last {
		d.told = append(d.told, d.outcome(nil, c))
	}
}

func (d *responder) handleCancelOrder(w *request) {
	id := d.m.order
	if len(w.orders) > 0 {
		id = w.orders[0]
		d.m.look(id)
	}
	if w.mood == unwant {
		d.notes = append(d.notes, "All right, the order stays.")
		return
	}
	note := "I have no tool to cancel an order."
	if id != "" && d.tools.has(issueRefund) {
		note = "I have no tool to cancel an order, but I can refund " + id + "."
		d.offers = append(d.offers, offer{"refund " + id, request{kind: issueRefund, orders: []string{id}, reason: "The customer wants to cancel the order"}})
	}
	d.notes = append(d.notes, note)
}

// The method "without" reports that the tool for a request is missing, and offers alternatives.
func (d *responder) without(kind string) string {
	var can []string
	for _, k := range kinds {
		if d.tools.has(k) {
			can = append(can, infinitive[k])
		}
	}
	text := "I have no tool here to " + infinitive[kind] + "."
	if len(can) > 0 {
		text += " What I can do: " + strings.ReplaceAll(strings.Join(can, ", "), "anything", "orders") + "."
	}
	return text
}
