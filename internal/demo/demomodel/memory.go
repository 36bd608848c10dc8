package demomodel

import (
	"maps"
	"slices"
	"strings"
)

// memory has the facts that are known from the conversation so far.
type memory struct {
	orders  map[string]*order
	people  []*person
	listing []string // the orders of the last list, in the order of the list

	order  string // the order that "it" means; empty after a list of several orders
	user   string // the account that "her account" means
	email  string
	name   string
	last   []done   // the calls of the last turn in which the model made calls
	acted  []done   // the calls of the last turn that had other calls than searches; without the searches
	wanted *request // the last request for which a call was made
	open   *request // a request that still lacks a detail
	offers []offer
}

type order struct {
	id, user, name, email    string
	state, address, tracking string
	currency                 string
	total, paid, due         int
	refunded, refundable     int
	delivered                string
	accountState             string
	items                    []item
}

type item struct {
	name     string
	quantity string
}

type person struct{ id, name, email string }

func newMemory() *memory { return &memory{orders: map[string]*order{}} }

// learn adds the result of a call.
func (m *memory) learn(c done) {
	if !c.answered || c.result.status != "" {
		return
	}
	answer := c.result.object()
	for _, o := range answer.list("orders") {
		m.learnOrder(o)
	}
	id := answer.text("order_id")
	if answer["items"] != nil && id != "" {
		m.learnOrder(answer)
		return
	}
	if o := m.orders[id]; o != nil {
		if n, ok := answer.cents("refundable"); ok {
			o.refundable = n
		}
		if n, ok := answer.cents("refunded_total", "refunded"); ok {
			o.refunded = n
		}
		if n, ok := answer.cents("due"); ok {
			o.due = n
		}
		if n, ok := answer.cents("total"); ok {
			o.total = n
		}
		if address := answer.text("address", "shipping_address"); address != "" {
			o.address = address
		}
		if answer.text("payment_id") != "" {
			o.paid = o.total - o.due
			o.refundable = o.paid - o.refunded
		}
	}
	if id := answer.text("user_id"); id != "" {
		m.learnPerson(id, answer.text("name", "customer_name"), answer.text("email", "customer_email"))
	}
}

func (m *memory) learnOrder(a object) {
	o := &order{
		id: a.text("order_id", "id"), user: a.text("user_id", "customer_id"), name: a.text("customer_name", "customer"), email: a.text("customer_email", "email"),
		state: a.text("status", "state"), address: a.text("shipping_address", "address"), tracking: a.text("tracking", "tracking_number"), currency: a.text("currency"),
		delivered: a.text("delivered_at"), accountState: a.text("account_status"),
	}
	if o.id == "" {
		return
	}
	o.total, _ = a.cents("total", "amount")
	o.paid, _ = a.cents("paid")
	o.due, _ = a.cents("due")
	o.refunded, _ = a.cents("refunded")
	var known bool
	if o.refundable, known = a.cents("refundable"); !known {
		o.refundable = o.total - o.refunded
	}
	for _, i := range a.list("items") {
		o.items = append(o.items, item{name: i.text("name", "title", "sku"), quantity: i.text("quantity")})
	}
	m.orders[o.id] = o
	if o.user != "" {
		m.learnPerson(o.user, o.name, o.email)
	}
}

func (m *memory) learnPerson(id, name, email string) {
	for _, p := range m.people {
		if p.id == id {
			if name != "" {
				p.name = name
			}
			if email != "" {
				p.email = email
			}
			return
		}
	}
	m.people = append(m.people, &person{id, name, email})
}

// find returns the known person with an id, an e-mail address or a name. If no known person fits, or several persons
// fit, find returns nil.
func (m *memory) find(what string) *person {
	var found *person
	for _, p := range m.people {
		if !strings.EqualFold(p.id, what) && !strings.EqualFold(p.email, what) && !hasName(p.name, what) {
			continue
		}
		if found != nil {
			return nil
		}
		found = p
	}
	return found
}

func hasName(full, part string) bool {
	if full == "" || part == "" {
		return false
	}
	have := strings.Fields(strings.ToLower(full))
	for _, w := range strings.Fields(strings.ToLower(part)) {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

// The method "listed" returns the orders of the last list.
func (m *memory) listed() []*order {
	var list []*order
	for _, id := range m.listing {
		if o := m.orders[id]; o != nil {
			list = append(list, o)
		}
	}
	return list
}

// The method "all" returns every known order, sorted by number.
func (m *memory) all() []*order {
	return slices.SortedFunc(maps.Values(m.orders), func(a, b *order) int { return strings.Compare(a.id, b.id) })
}

// look sets the order that "it" means.
func (m *memory) look(id string) {
	m.order = id
	if o := m.orders[id]; o != nil {
		m.meet(o.user, o.email, o.name)
	}
}

// meet sets the person that "her" means.
func (m *memory) meet(user, email, name string) {
	m.user, m.email, m.name = user, email, name
	for _, key := range []string{user, email, name} {
		if key == "" {
			continue
		}
		if p := m.find(key); p != nil {
			m.user, m.email, m.name = p.id, p.email, p.name
			return
		}
	}
}
