package demomodel

import (
	"slices"
	"strings"
)

var allThose = re(`\b(?:them|those|these)\b`)

// ordersOf returns the orders of a request. If a call or an answer is needed first, ok is false.
func (d *responder) ordersOf(w *request) (ids []string, ok bool) {
	if len(w.orders) > 0 {
		return w.orders, true
	}
	if by, some := d.customer(w); some {
		list, state := d.lookup(by)
		if state != known {
			return nil, false
		}
		d.focus(list, []arg{by})
		return d.choose(w, list)
	}
	if d.searching {
		return nil, false // the orders are known only after the search, as in "find her orders and refund the last one"
	}
	list := d.m.listed()
	if chosen := w.pick.from(list, d.m.order); len(chosen) > 0 {
		return idsOf(chosen), true
	}
	for _, among := range [][]*order{list, d.m.all()} {
		if chosen := byItem(w.text, among); len(chosen) > 0 {
			return d.chosen(w, chosen)
		}
	}
	if thing := thingIn(w); thing != "" {
		d.ask(w, lackOrder, "I know of no order with the "+thing+" yet. Which order is it? Give me its number, or the customer's e-mail address or name.")
		return nil, false
	}
	if w.pick.way == "" && allThose.MatchString(w.text) && len(list) > 1 && d.m.order == "" {
		return idsOf(list), true
	}
	switch {
	case d.m.order != "" && w.pick.way == "":
		return []string{d.m.order}, true
	case len(list) > 0:
		return d.choose(w, list)
	case d.m.email != "":
		return d.ordersOf(withEmail(w, d.m.email))
	}
	d.ask(w, lackOrder, "Which order is it about? Give me its number, or the customer's e-mail address or name.")
	return nil, false
}

// The method "chosen" returns the orders that the text names by their items. A text can name several items, joined by
// "and" ("the teapot and the headphones"). If the text does not name the orders clearly, the method asks which orders
// are meant.
func (d *responder) chosen(w *request, list []*order) ([]string, bool) {
	if len(list) == 1 || strings.Contains(w.text, " and ") {
		return idsOf(list), true
	}
	d.m.listing = idsOf(list)
	d.ask(w, lackWhich, "Which of these orders do you mean?\n"+lines(list))
	return nil, false
}

var (
	goods   = re(`\b(?:refund(?:ing)?|reimburse|charge|give|back|for|discount on|off) (?:(?:\S+ )?for )?(?:the|his|her|their) ([a-z]+(?: [a-z]+)?)`)
	generic = wordSet(`order orders money amount rest full whole total customer balance price sum remainder purchase parcel package delivery difference shipping
		entire account payment refund discount last first second third other same newest latest oldest cheapest cheaper most remaining user client open
		unpaid delivered shipped late broken damaged trouble inconvenience delay scratch damage missing wrong card bank invoice next company usual`)
)

// thingIn returns the goods that a request names. If the request names no goods, thingIn returns an empty text.
func thingIn(w *request) string {
	for _, m := range goods.FindAllStringSubmatch(withoutReason(w.text), -1) {
		words := strings.Fields(m[1])
		if !slices.ContainsFunc(words, func(word string) bool { return generic[word] }) {
			if last := words[len(words)-1]; len(words) > 1 && (notNames[last] || last == "please") {
				words = words[:1]
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}

func withEmail(w *request, email string) *request {
	w.emails = []string{email}
	return w
}

// choose selects the orders of a request from a list, or asks which orders are meant.
func (d *responder) choose(w *request, list []*order) ([]string, bool) {
	if len(list) == 0 {
		d.notes = append(d.notes, "I found no orders for "+d.whom(w)+", so I did nothing.")
		return nil, false
	}
	if chosen := w.pick.from(list, d.m.order); len(chosen) > 0 {
		return idsOf(chosen), true
	}
	if chosen := byItem(w.text, list); len(chosen) > 0 && len(chosen) < len(list) {
		return d.chosen(w, chosen)
	}
	if w.kind == takePayment {
		if due := slices.DeleteFunc(slices.Clone(list), func(o *order) bool { return o.due == 0 }); len(due) == 1 {
			return idsOf(due), true
		}
	}
	if len(list) == 1 && w.pick.way == "" {
		return idsOf(list), true
	}
	d.m.listing = idsOf(list)
	d.ask(w, lackWhich, "Which of these orders do you mean?\n"+lines(list))
	return nil, false
}

func (d *responder) whom(w *request) string {
	switch {
	case len(w.emails) > 0:
		return w.emails[0]
	case len(w.users) > 0:
		return w.users[0]
	case w.name != "":
		return w.name
	}
	return "that customer"
}

func idsOf(list []*order) []string {
	ids := make([]string, len(list))
	for i, o := range list {
		ids[i] = o.id
	}
	return ids
}
