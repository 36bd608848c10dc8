package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
)

// AddressArgs names an order and its new address.
type AddressArgs struct {
	OrderID string `json:"order_id"`
	Address string `json:"address"`
}

// AddressResult has the old and the new address.
type AddressResult struct {
	OrderID  string `json:"order_id"`
	UserID   string `json:"user_id"`
	Address  string `json:"address"`
	Previous string `json:"previous_address"`
	Message  string `json:"message"`
}

// UpdateShippingAddress changes the address of an order. A parcel in transit can't be redirected. After delivery, the
// shop uses the new address for a replacement or a return.
func (s *Shop) UpdateShippingAddress(ctx context.Context, key string, a AddressArgs) (AddressResult, error) {
	return once(ctx, s, key, "update_shipping_address", a, func(c *change) (AddressResult, error) {
		o, err := c.order(a.OrderID)
		if err != nil {
			return AddressResult{}, err
		}
		address := strings.TrimSpace(a.Address)
		switch {
		case len([]rune(address)) < 5:
			return AddressResult{}, problem(ErrInvalid, "%s is too short for an address: give street, number and town.", shown(address))
		case o.Progress == Shipped:
			return AddressResult{}, problem(ErrRefused, "%s is already on its way (tracking number %s), so its address can't be changed any more.", o.ID, o.Tracking)
		case o.Progress == CalledOff:
			return AddressResult{}, problem(ErrRefused, "%s is cancelled and will not be shipped.", o.ID)
		}
		r := AddressResult{OrderID: o.ID, UserID: o.Customer, Address: address, Previous: o.Address}
		o.Address = address
		c.summary = fmt.Sprintf("Changed the shipping address of %s to %s", o.ID, address)
		r.Message = c.summary + "."
		if o.Progress == Arrived {
			r.Message += " The parcel has arrived already; the new address is used for a replacement or a return."
		}
		return r, nil
	})
}

// ProfileArgs holds the fields to change. All other fields of the profile stay as they are.
type ProfileArgs struct {
	UserID   string `json:"user_id"`
	Name     string `json:"name,omitempty"`
	Email    string `json:"email,omitempty"`
	Phone    string `json:"phone,omitempty"`
	Language string `json:"language,omitempty"`
	Status   string `json:"status,omitempty"` // active or deactivated
}

// ProfileResult is the new profile.
type ProfileResult struct {
	UserID   string        `json:"user_id"`
	Name     string        `json:"name"`
	Email    string        `json:"email"`
	Phone    string        `json:"phone"`
	Language string        `json:"language"`
	Status   AccountStatus `json:"status_of_account"`
	Changed  []string      `json:"changed"`
	Message  string        `json:"message"`
}

// UpdateProfile changes a customer's details, or deactivates or reactivates the account.
func (s *Shop) UpdateProfile(ctx context.Context, key string, a ProfileArgs) (ProfileResult, error) {
	return once(ctx, s, key, "update_profile", a, func(c *change) (ProfileResult, error) {
		customer, err := c.account(a.UserID)
		if err != nil {
			return ProfileResult{}, err
		}
		if customer.Status == Cancelled {
			return ProfileResult{}, problem(ErrRefused, "The account %s is cancelled for good, so its profile can't be changed.", customer.ID)
		}
		if err := c.checkProfile(customer, a); err != nil {
			return ProfileResult{}, err
		}
		changed := []string{}
		set := func(field, value string, into *string) {
			if value != "" && value != *into {
				*into = value
				changed = append(changed, field)
			}
		}
		status := string(customer.Status)
		set("name", a.Name, &customer.Name)
		set("email", a.Email, &customer.Email)
		set("phone", a.Phone, &customer.Phone)
		set("language", a.Language, &customer.Language)
		set("status", a.Status, &status)
		customer.Status = AccountStatus(status)
		switch {
		case len(changed) == 0:
			return ProfileResult{}, problem(ErrRefused, "The profile of %s is like that already; nothing was changed.", customer.ID)
		case slices.Equal(changed, []string{"status"}) && customer.Status == Deactivated:
			c.summary = fmt.Sprintf("Deactivated the account %s of %s; it can be activated again", customer.ID, customer.Name)
		case slices.Equal(changed, []string{"status"}):
			c.summary = fmt.Sprintf("Activated the account %s of %s again", customer.ID, customer.Name)
		default:
			c.summary = fmt.Sprintf("Changed the profile of %s (%s): %s", customer.ID, customer.Name, strings.Join(changed, ", "))
		}
		return ProfileResult{UserID: customer.ID, Name: customer.Name, Email: customer.Email, Phone: customer.Phone, Language: customer.Language,
			Status: customer.Status, Changed: changed, Message: c.summary + "."}, nil
	})
}

func (s *State) checkProfile(customer *Customer, a ProfileArgs) error {
	if a.Status != "" && a.Status != string(Active) && a.Status != string(Deactivated) {
		return problem(ErrInvalid, "status %s is not one of active and deactivated; closing an account for good is cancel_account.", shown(a.Status))
	}
	if a.Email == "" {
		return nil
	}
	if !validAddress(a.Email) {
		return problem(ErrInvalid, "%s is not an e-mail address.", shown(a.Email))
	}
	for _, other := range s.Customers {
		if other.ID != customer.ID && strings.EqualFold(other.Email, a.Email) {
			return problem(ErrRefused, "The e-mail address %s belongs to the account %s already.", a.Email, other.ID)
		}
	}
	return nil
}

// CloseArgs names the account to cancel or delete.
type CloseArgs struct {
	UserID string `json:"user_id"`
	Reason string `json:"reason,omitempty"`
}

// CloseResult is the new state of the account.
type CloseResult struct {
	UserID     string        `json:"user_id"`
	Name       string        `json:"name,omitempty"` // empty after the account is deleted
	Status     AccountStatus `json:"status_of_account"`
	At         time.Time     `json:"at"`
	OpenOrders []string      `json:"open_orders"`
	Message    string        `json:"message"`
}

// CancelAccount closes an account permanently. The account's orders stay, and open orders continue.
func (s *Shop) CancelAccount(ctx context.Context, key string, a CloseArgs) (CloseResult, error) {
	return once(ctx, s, key, "cancel_account", a, func(c *change) (CloseResult, error) {
		customer, err := c.account(a.UserID)
		if err != nil {
			return CloseResult{}, err
		}
		if customer.Status == Cancelled {
			return CloseResult{}, problem(ErrRefused, "The account %s of %s is cancelled already.", customer.ID, customer.Name)
		}
		customer.Status = Cancelled
		c.summary = fmt.Sprintf("Cancelled the account %s of %s for good", customer.ID, customer.Name)
		return CloseResult{UserID: customer.ID, Name: customer.Name, Status: Cancelled, At: c.at, OpenOrders: c.openOrders(customer.ID), Message: c.summary + "."}, nil
	})
}

// DeleteAccount erases a customer's personal data in the account, the orders and the e-mails, but not in the ledger or
// in the stored answers of earlier calls. The records of the orders stay for accounting, without name and address. An
// account with open orders can't be deleted.
func (s *Shop) DeleteAccount(ctx context.Context, key string, a CloseArgs) (CloseResult, error) {
	return once(ctx, s, key, "delete_account", a, func(c *change) (CloseResult, error) {
		customer, err := c.account(a.UserID)
		if err != nil {
			return CloseResult{}, err
		}
		if open := c.openOrders(customer.ID); len(open) > 0 {
			return CloseResult{}, problem(ErrRefused, "The account %s of %s has open orders (%s): it can be deleted when they have arrived. Deactivating it is possible now.",
				customer.ID, customer.Name, strings.Join(open, ", "))
		}
		email := customer.Email
		*customer = Customer{ID: customer.ID, Name: "Deleted customer", Status: Deleted, Since: customer.Since}
		for i := range c.Orders {
			if c.Orders[i].Customer == customer.ID {
				c.Orders[i].Address = "deleted"
			}
		}
		for i := range c.Emails {
			if strings.EqualFold(c.Emails[i].To, email) {
				c.Emails[i].To, c.Emails[i].Subject, c.Emails[i].Body = "deleted", "deleted", "deleted"
			}
		}
		c.eraseTexts(customer.ID, email)
		c.summary = fmt.Sprintf("Deleted the account %s and its personal data", customer.ID)
		return CloseResult{UserID: customer.ID, Status: Deleted, At: c.at, OpenOrders: []string{}, Message: c.summary + "."}, nil
	})
}

// eraseTexts erases the texts about a customer: the reasons of refunds and discounts, the summaries in the ledger, and
// the stored answers. An answer is about the customer if it contains the customer's id, the number of one of the
// customer's orders, or the e-mail address.
func (s *State) eraseTexts(id, email string) {
	about := []string{id}
	if email != "" {
		about = append(about, email)
	}
	for _, o := range s.Orders {
		if o.Customer == id {
			about = append(about, o.ID)
		}
	}
	for i := range s.Refunds {
		if slices.Contains(about, s.Refunds[i].Order) {
			s.Refunds[i].Reason = "deleted"
		}
	}
	for i := range s.Discounts {
		if s.Discounts[i].Customer == id {
			s.Discounts[i].Reason = "deleted"
		}
	}
	for key, run := range s.Runs {
		answer := strings.ToLower(string(run.Result))
		if !slices.ContainsFunc(about, func(text string) bool { return strings.Contains(answer, `"`+strings.ToLower(text)+`"`) }) {
			continue
		}
		text := fmt.Sprintf("%s; the details were deleted with the account %s", run.Tool, id)
		s.Ledger[run.Entry-1].Summary = text
		run.Result = json.RawMessage(fmt.Sprintf(`{"user_id":%q,"message":%q}`, id, text))
		s.Runs[key] = run
	}
}

// validAddress accepts a bare address only, not `Jane <jane@example.com>`.
func validAddress(address string) bool {
	parsed, err := mail.ParseAddress(address)
	return err == nil && parsed.Address == address
}
