package demomodel

import (
	"fmt"
	"strconv"
	"strings"
)

// handleOrders processes a request for each of its orders.
func (d *responder) handleOrders(w *request) {
	ids, ok := d.ordersOf(w)
	if !ok {
		return
	}
	for _, id := range ids {
		d.m.look(id)
		if i := d.claim(w.kind, "order_id", id); i >= 0 {
			d.remember(w)
			d.report(w, i)
			continue
		}
		switch w.kind {
		case issueRefund:
			d.refund(w, id)
		case applyDiscount:
			d.discount(w, id)
		case takePayment:
			d.payment(w, id)
		case setAddress:
			d.ship(w, id)
		}
	}
}

// The method "details" returns an order, and looks it up if necessary. It returns nil if the look-up is pending, found
// nothing, or is not possible with the offered tools.
func (d *responder) details(id string) *order {
	if o := d.m.orders[id]; o != nil {
		return o
	}
	if !d.tools.has(searchOrders) {
		return nil
	}
	list, state := d.lookup(textArg("order_id", id))
	if state != known {
		return nil
	}
	if len(list) == 0 {
		d.notes = append(d.notes, "I found no order "+id+", so I did nothing with it."+d.noteOf(id))
		return nil
	}
	d.m.look(list[0].id)
	return list[0]
}

// noteOf returns the note that came with an empty search result.
func (d *responder) noteOf(id string) string {
	for _, c := range d.t.done {
		if strings.EqualFold(value(c.args, "order_id"), id) {
			if note := c.result.object().text("note", "message"); note != "" {
				return " " + note
			}
		}
	}
	return ""
}

func (d *responder) refund(w *request, id string) {
	amount, currency := 0, ""
	if w.money != nil {
		amount, currency = w.money.cents, w.money.currency
	}
	o := d.m.orders[id]
	if amount == 0 || currency == "" || w.share != nil {
		if !d.tools.has(searchOrders) && o == nil {
			d.ask(w, lackAmount, "How much shall I refund for "+id+", and in which currency?")
			return
		}
		if o = d.details(id); o == nil {
			return
		}
		currency = o.currency
		switch {
		case w.share != nil:
			amount = min(w.share.share(o.total), max(o.refundable, 0))
		case amount == 0:
			amount = o.refundable
		}
	}
	if o != nil {
		if text := cannotRefund(o); text != "" {
			d.notes = append(d.notes, text)
			return
		}
		if amount > o.refundable && currency == o.currency {
			d.notes = append(d.notes, fmt.Sprintf("%s is more than can be refunded for %s: %s is left.", show(amount, currency), id, show(o.refundable, currency)))
			rest := request{kind: issueRefund, orders: []string{id}, money: &money{o.refundable, currency}, reason: w.reason}
			d.offers = append(d.offers, offer{"refund " + show(o.refundable, currency), rest})
			return
		}
	}
	reason := w.reason
	if reason == "" {
		reason = "No reason was given"
	}
	d.act(w, d.tools.call(issueRefund, textArg("order_id", id), arg{"amount", jsonNumber(amount)}, textArg("currency", currency), textArg("reason", reason)))
}

func cannotRefund(o *order) string {
	switch {
	case o.due == o.total && o.due > 0:
		return fmt.Sprintf("%s has not been paid yet (%s is due), so there is nothing to refund.", o.id, show(o.due, o.currency))
	case o.refundable <= 0 && o.refunded == 0:
		return fmt.Sprintf("Nothing was paid for %s, so there is nothing to refund.", o.id)
	case o.refundable <= 0:
		return fmt.Sprintf("%s has already been refunded in full (%s), so there is nothing left to refund.", o.id, show(o.refunded, o.currency))
	}
	return ""
}

func (d *responder) discount(w *request, id string) {
	if w.percent == 0 && w.money != nil {
		d.ask(w, lackPercent, "I can give a discount in percent only. How many percent off for "+id+"?")
		return
	}
	if w.percent == 0 {
		d.ask(w, lackPercent, "How many percent off shall "+id+" get?")
		return
	}
	d.act(w, d.tools.call(applyDiscount, textArg("order_id", id), arg{"percent", strconv.Itoa(w.percent)}, textArg("reason", w.reason)))
}

func (d *responder) payment(w *request, id string) {
	amount, currency := 0, ""
	if w.money != nil {
		amount, currency = w.money.cents, w.money.currency
	}
	if amount == 0 || currency == "" || w.share != nil {
		if !d.tools.has(searchOrders) && d.m.orders[id] == nil {
			d.ask(w, lackAmount, "How much shall I charge for "+id+", and in which currency?")
			return
		}
		o := d.details(id)
		if o == nil {
			return
		}
		if o.due == 0 {
			d.notes = append(d.notes, fmt.Sprintf("Nothing is due for %s: %s of %s is paid.", id, show(o.paid, o.currency), show(o.total, o.currency)))
			return
		}
		currency = o.currency
		switch {
		case w.share != nil:
			amount = w.share.share(o.due)
		case amount == 0:
			amount = o.due
		}
	}
	d.act(w, d.tools.call(takePayment, textArg("order_id", id), arg{"amount", jsonNumber(amount)}, textArg("currency", currency), textArg("method", w.method)))
}

func (d *responder) ship(w *request, id string) {
	if w.address == "" {
		d.ask(w, lackAddress, "Where shall "+id+" go? Give me the whole address: street and number, town.")
		return
	}
	d.act(w, d.tools.call(setAddress, textArg("order_id", id), textArg("address", w.address)))
}
