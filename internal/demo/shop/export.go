package shop

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// ExportArgs names the account whose data is exported, and the sections of the data.
type ExportArgs struct {
	UserID   string   `json:"user_id"`
	Sections []string `json:"sections,omitempty"` // empty: all sections

	chosen []string // the requester's choice if Sections is empty; may differ when the same key is repeated
}

// ExportResult is the exported data.
type ExportResult struct {
	ExportID string      `json:"export_id"`
	UserID   string      `json:"user_id"`
	Sections []string    `json:"sections"`
	Profile  *Customer   `json:"profile,omitempty"`
	Orders   []OrderView `json:"orders,omitempty"`
	Payments []Payment   `json:"payments,omitempty"`
	Emails   []Email     `json:"emails,omitempty"`
	Message  string      `json:"message"`
}

var exportSections = []string{"profile", "orders", "payments", "emails"}

// ExportCustomerData returns the chosen sections of the data about a customer. Without a choice, it returns all
// sections. Each export has a ledger entry, because an export can't be undone.
func (s *Shop) ExportCustomerData(ctx context.Context, key string, a ExportArgs) (ExportResult, error) {
	return once(ctx, s, key, "export_customer_data", a, func(c *change) (ExportResult, error) {
		customer, err := c.account(a.UserID)
		if err != nil {
			return ExportResult{}, err
		}
		r := ExportResult{ExportID: number("EXP", len(c.Exports)+1), UserID: customer.ID, Sections: a.Sections}
		if len(r.Sections) == 0 {
			r.Sections = a.chosen
		}
		if len(r.Sections) == 0 {
			r.Sections = exportSections
		}
		for _, section := range r.Sections {
			switch section {
			case "profile":
				profile := *customer
				r.Profile = &profile
			case "orders":
				r.Orders = c.ordersOf(customer)
			case "payments":
				r.Payments = c.paymentsOf(customer)
			case "emails":
				r.Emails = slices.DeleteFunc(slices.Clone(c.Emails), func(e Email) bool { return !strings.EqualFold(e.To, customer.Email) })
			default:
				return ExportResult{}, problem(ErrInvalid, "sections has %s, which is not one of %s.", shown(section), strings.Join(exportSections, ", "))
			}
		}
		c.Exports = append(c.Exports, Export{ID: r.ExportID, Customer: customer.ID, Sections: r.Sections, At: c.at})
		c.summary = fmt.Sprintf("Exported the data of %s (%s): %s", customer.ID, customer.Name, strings.Join(r.Sections, ", "))
		r.Message = c.summary + "."
		return r, nil
	})
}

func (s *State) ordersOf(customer *Customer) []OrderView {
	var views []OrderView
	for i := range s.Orders {
		if s.Orders[i].Customer == customer.ID {
			views = append(views, view(&s.Orders[i], customer))
		}
	}
	return views
}

func (s *State) paymentsOf(customer *Customer) []Payment {
	var payments []Payment
	for _, p := range s.Payments {
		if o, err := s.order(p.Order); err == nil && o.Customer == customer.ID {
			payments = append(payments, p)
		}
	}
	return payments
}
