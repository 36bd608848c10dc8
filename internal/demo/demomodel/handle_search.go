package demomodel

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// found is the state of a look-up.
type found int

const (
	known  found = iota // the look-up was answered
	wait                // the look-up is called in this step, so its result is not known yet
	failed              // the look-up was refused, or the tool for it is missing; a note says so
)

// lookup finds orders by the given arguments. The function uses the results of this turn, or makes a new call.
func (d *responder) lookup(args ...arg) ([]*order, found) {
	if !d.tools.has(searchOrders) {
		d.notes = append(d.notes, "I can't look orders up here, so please give me the order or account number.")
		return nil, failed
	}
	call := d.tools.call(searchOrders, args...)
	wanted := parseObject(call.Arguments)
	for i, c := range d.t.done {
		if c.Name != call.Name || !reflect.DeepEqual(c.args, wanted) {
			continue
		}
		d.claimed[i] = true
		if c.result.status != "" {
			d.notes = append(d.notes, d.outcome(nil, c))
			return nil, failed
		}
		return d.ordersIn(c), known
	}
	d.queue(call)
	return nil, wait
}

func (d *responder) ordersIn(c done) []*order {
	var list []*order
	for _, o := range c.result.object().list("orders") {
		if o := d.m.orders[o.text("order_id", "id")]; o != nil {
			list = append(list, o)
		}
	}
	return list
}

// lookedUp reports whether this turn contains a search with this argument.
func (d *responder) lookedUp(by arg) bool {
	return slices.ContainsFunc(d.t.done, func(c done) bool {
		return d.tools.kindOf(c.Name) == searchOrders && textArg("", value(c.args, by.name)).value == by.value
	})
}

// customer returns the search argument that finds a person's orders.
func (d *responder) customer(w *request) (arg, bool) {
	switch {
	case len(w.emails) > 0:
		return textArg("customer_email", w.emails[0]), true
	case len(w.users) > 0:
		return textArg("user_id", w.users[0]), true
	case w.name != "":
		by := textArg("customer_name", w.name)
		// If this turn has a search by name, the next search also uses the name, although the e-mail address is known
		// by now. A search by e-mail address would look up the same orders twice.
		if p := d.m.find(w.name); p != nil && p.email != "" && !d.lookedUp(by) {
			return textArg("customer_email", p.email), true
		}
		return by, true
	}
	return arg{}, false
}

var (
	notHers  = re(`\b(?:that|those|these|all)\b`)
	myOrders = re(`\bmy orders\b`)
)

// handleSearch looks up orders and reports the result.
func (d *responder) handleSearch(w *request) {
	if len(w.orders) > 0 {
		for _, id := range w.orders {
			d.search(w, textArg("order_id", id))
		}
		return
	}
	if by, ok := d.customer(w); ok {
		d.search(w, by)
		return
	}
	mine := d.m.user != "" || d.m.email != ""
	switch {
	case plural.MatchString(w.text) && w.pronoun && mine && !notHers.MatchString(w.text):
		if d.m.email != "" {
			d.search(w, textArg("customer_email", d.m.email))
			return
		}
		d.search(w, textArg("user_id", d.m.user))
	case plural.MatchString(w.text) && !myOrders.MatchString(w.text):
		d.search(w)
	default:
		d.searchKnown(w)
	}
}

// searchKnown looks up the order that "it" or "the second one" means.
func (d *responder) searchKnown(w *request) {
	list := d.m.listed()
	chosen := w.pick.from(list, d.m.order)
	for _, among := range [][]*order{list, d.m.all()} {
		if len(chosen) == 0 {
			chosen = byItem(w.text, among)
		}
	}
	for _, o := range chosen {
		d.search(w, textArg("order_id", o.id))
	}
	if len(chosen) > 0 {
		return
	}
	if d.m.order != "" {
		d.search(w, textArg("order_id", d.m.order))
		return
	}
	d.ask(w, lackSearch, "Which order, or whose? Give me an order number such as ORD-123, or the customer's e-mail address or name.")
}

func (d *responder) search(w *request, args ...arg) {
	if w.filter != "" && w.filter != unpaid {
		args = append(args, textArg("status", w.filter))
	}
	if w.newest > 0 {
		args = append(args, arg{"limit", strconv.Itoa(w.newest)})
	}
	list, state := d.lookup(args...)
	d.remember(w)
	switch state {
	case wait:
		d.searching = true
		if len(args) > 0 && args[0].name == "order_id" {
			d.m.look(strings.Trim(args[0].value, `"`)) // from here on, "it" means this order
		}
		return
	case failed:
		return
	}
	if w.filter == unpaid {
		var due []*order
		for _, o := range list {
			if o.due > 0 {
				due = append(due, o)
			}
		}
		list = due
	}
	if len(w.orders) == 0 && w.pick.way != "" {
		if chosen := w.pick.from(list, ""); len(chosen) > 0 {
			list = chosen
		}
	}
	d.focus(list, args)
	d.told = append(d.told, d.tellOrders(w, list, args))
}

// The method "focus" sets the meaning of "it" and "her" after a search.
func (d *responder) focus(list []*order, args []arg) {
	switch {
	case len(list) == 1:
		d.m.look(list[0].id)
		if len(d.m.listing) == 0 || !slices.Contains(d.m.listing, list[0].id) {
			d.m.listing = []string{list[0].id}
		}
	case len(list) > 1:
		d.m.order, d.m.listing = "", nil
		same := true
		for _, o := range list {
			d.m.listing = append(d.m.listing, o.id)
			same = same && o.user == list[0].user
		}
		if same {
			d.m.meet(list[0].user, list[0].email, list[0].name)
		}
	default:
		for _, a := range args {
			said := strings.Trim(a.value, `"`)
			switch a.name {
			case "customer_email":
				d.m.meet("", said, "")
			case "user_id":
				d.m.meet(said, "", "")
			}
		}
	}
}
