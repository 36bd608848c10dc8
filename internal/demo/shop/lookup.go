package shop

import (
	"fmt"
	"slices"
	"strings"
)

func number(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, 1000+n) }

// customer returns an account by id, or nil.
func (s *State) customer(id string) *Customer {
	i := slices.IndexFunc(s.Customers, func(c Customer) bool { return strings.EqualFold(c.ID, id) })
	if i < 0 {
		return nil
	}
	return &s.Customers[i]
}

// order returns an order. If the order does not exist, the error gives the first and the last order number.
func (s *State) order(id string) (*Order, error) {
	id = strings.TrimSpace(id)
	i := slices.IndexFunc(s.Orders, func(o Order) bool { return strings.EqualFold(o.ID, id) })
	if i >= 0 {
		return &s.Orders[i], nil
	}
	first, last := s.Orders[0].ID, s.Orders[len(s.Orders)-1].ID
	return nil, problem(ErrNotFound, "There is no order %s. Order numbers go from %s to %s; a search by customer e-mail or name finds them.", shown(id), first, last)
}

// account returns a customer. An unknown or deleted account is an error.
func (s *State) account(id string) (*Customer, error) {
	id = strings.TrimSpace(id)
	c := s.customer(id)
	if c == nil {
		if i := slices.IndexFunc(s.Customers, func(c Customer) bool { return strings.EqualFold(c.Email, id) }); i >= 0 {
			return nil, problem(ErrInvalid, "user_id takes an account number, and %s is an e-mail address: that account is %s.", shown(id), s.Customers[i].ID)
		}
		return nil, problem(ErrNotFound, "There is no account %s. Account numbers look like %s; a search for a customer's orders names the account.", shown(id), s.Customers[0].ID)
	}
	if c.Status == Deleted {
		return nil, problem(ErrNotFound, "The account %s was deleted with its personal data; nothing can be done with it.", c.ID)
	}
	return c, nil
}

// openOrders returns the customer's orders that are being processed or are on their way.
func (s *State) openOrders(customer string) []string {
	open := []string{}
	for _, o := range s.Orders {
		if o.Customer == customer && (o.Progress == Processing || o.Progress == Shipped) {
			open = append(open, o.ID)
		}
	}
	return open
}

// The function "shown" makes a long or empty value readable within a sentence.
func shown(value string) string {
	if value == "" {
		return `""`
	}
	if r := []rune(value); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return value
}
