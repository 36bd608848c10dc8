package shop

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// SearchArgs holds the criteria of a search. An order must match all given criteria.
type SearchArgs struct {
	Query         string `json:"query,omitempty"` // each word must occur in the order, or in the data of its customer
	OrderID       string `json:"order_id,omitempty"`
	CustomerEmail string `json:"customer_email,omitempty"`
	CustomerName  string `json:"customer_name,omitempty"`
	UserID        string `json:"user_id,omitempty"`
	Status        string `json:"status,omitempty"`
	Limit         int    `json:"limit,omitempty"`
}

// SearchResult lists the newest orders first.
type SearchResult struct {
	Found  int         `json:"found"`
	Orders []OrderView `json:"orders"`
	Note   string      `json:"note,omitempty"`
}

// OrderView is an order as support staff sees it.
type OrderView struct {
	OrderID         string        `json:"order_id"`
	UserID          string        `json:"user_id"`
	CustomerName    string        `json:"customer_name"`
	CustomerEmail   string        `json:"customer_email"`
	AccountStatus   AccountStatus `json:"account_status"`
	Status          Progress      `json:"status"`
	PlacedAt        time.Time     `json:"placed_at"`
	DeliveredAt     *time.Time    `json:"delivered_at,omitempty"`
	Items           []Item        `json:"items"`
	Currency        string        `json:"currency"`
	Total           Amount        `json:"total"`
	Paid            Amount        `json:"paid"`
	Due             Amount        `json:"due"`
	Refunded        Amount        `json:"refunded"`
	Refundable      Amount        `json:"refundable"`
	DiscountPercent int           `json:"discount_percent,omitempty"`
	ShippingAddress string        `json:"shipping_address"`
	Tracking        string        `json:"tracking,omitempty"`
}

// mostOrders limits the length of an answer, because a model's context is limited.
const mostOrders = 20

// SearchOrders finds orders, and changes nothing.
func (s *Shop) SearchOrders(ctx context.Context, a SearchArgs) (SearchResult, error) {
	return read(ctx, s, func(state *State) (SearchResult, error) { return state.search(a) })
}

func (s *State) search(a SearchArgs) (SearchResult, error) {
	progress := []Progress{Processing, Shipped, Arrived, CalledOff}
	if a.Status != "" && !slices.Contains(progress, Progress(a.Status)) {
		return SearchResult{}, problem(ErrInvalid, "status %s is not one of processing, shipped, delivered and cancelled.", shown(a.Status))
	}
	if a.Limit < 0 {
		return SearchResult{}, problem(ErrInvalid, "limit %d is below 1.", a.Limit)
	}
	r := SearchResult{Orders: []OrderView{}}
	for _, o := range s.Orders {
		c := s.customer(o.Customer)
		if a.matches(&o, c) {
			r.Orders = append(r.Orders, view(&o, c))
		}
	}
	r.Found = len(r.Orders)
	slices.SortStableFunc(r.Orders, func(x, y OrderView) int {
		return cmp.Or(y.PlacedAt.Compare(x.PlacedAt), strings.Compare(x.OrderID, y.OrderID))
	})
	limit := mostOrders
	if a.Limit > 0 {
		limit = min(a.Limit, mostOrders)
	}
	if r.Found > limit {
		r.Orders = r.Orders[:limit]
		r.Note = "Only the newest are listed; narrow the search to see the others."
	}
	if r.Found == 0 {
		r.Note = s.whyNone(a)
	}
	return r, nil
}

func (a SearchArgs) matches(o *Order, c *Customer) bool {
	same := func(want, have string) bool { return want == "" || strings.EqualFold(strings.TrimSpace(want), have) }
	return same(a.OrderID, o.ID) && same(a.CustomerEmail, c.Email) && same(a.UserID, c.ID) && same(a.Status, string(o.Progress)) &&
		strings.Contains(strings.ToLower(c.Name), strings.ToLower(strings.TrimSpace(a.CustomerName))) && a.hasWords(o, c)
}

// hasWords reports whether every word of the query is found in the order or its customer.
func (a SearchArgs) hasWords(o *Order, c *Customer) bool {
	about := []string{o.ID, string(o.Progress), c.ID, c.Name, c.Email}
	for _, i := range o.Items {
		about = append(about, i.Name)
	}
	text := strings.ToLower(strings.Join(about, " "))
	for _, word := range strings.Fields(strings.ToLower(a.Query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// whyNone returns a sentence on the criterion that no order matched.
func (s *State) whyNone(a SearchArgs) string {
	if a.OrderID != "" {
		if _, err := s.order(a.OrderID); err != nil {
			return err.Error()
		}
	}
	known := func(match func(Customer) bool) bool { return slices.ContainsFunc(s.Customers, match) }
	switch {
	case a.UserID != "" && s.customer(a.UserID) == nil:
		return "No account has the number " + shown(a.UserID) + "."
	case a.CustomerEmail != "" && !known(func(c Customer) bool { return strings.EqualFold(c.Email, strings.TrimSpace(a.CustomerEmail)) }):
		return "No customer has the e-mail address " + shown(a.CustomerEmail) + "."
	case a.CustomerName != "" && !known(func(c Customer) bool {
		return strings.Contains(strings.ToLower(c.Name), strings.ToLower(strings.TrimSpace(a.CustomerName)))
	}):
		return "No customer's name contains " + shown(a.CustomerName) + "."
	}
	return "Such a customer or order exists, but nothing matches all of the conditions together."
}

func view(o *Order, c *Customer) OrderView {
	v := OrderView{
		OrderID: o.ID, UserID: c.ID, CustomerName: c.Name, CustomerEmail: c.Email, AccountStatus: c.Status, Status: o.Progress,
		PlacedAt: o.PlacedAt, Items: o.Items, Currency: o.Currency, Total: o.Total, Paid: o.Paid, Due: o.Due(), Refunded: o.Refunded,
		Refundable: o.Refundable(), DiscountPercent: o.Discount, ShippingAddress: o.Address, Tracking: o.Tracking,
	}
	if !o.Delivered.IsZero() {
		v.DeliveredAt = &o.Delivered
	}
	return v
}
