package shop

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// The payment methods.
const (
	CardOnFile   = "card_on_file"
	BankTransfer = "bank_transfer"
	Invoice      = "invoice"
)

// RefundArgs are the arguments of a refund to the original payment method.
type RefundArgs struct {
	OrderID  string `json:"order_id"`
	Amount   Amount `json:"amount"`
	Currency string `json:"currency"`
	Reason   string `json:"reason,omitempty"`
}

// RefundResult is the refunded amount and the amount that can still be refunded.
type RefundResult struct {
	RefundID   string `json:"refund_id"`
	OrderID    string `json:"order_id"`
	UserID     string `json:"user_id"`
	Amount     Amount `json:"amount"`
	Currency   string `json:"currency"`
	Refunded   Amount `json:"refunded_total"`
	Refundable Amount `json:"refundable"`
	Message    string `json:"message"`
}

// IssueRefund refunds at most the amount that was paid and is not refunded yet.
func (s *Shop) IssueRefund(ctx context.Context, key string, a RefundArgs) (RefundResult, error) {
	return once(ctx, s, key, "issue_refund", a, func(c *change) (RefundResult, error) {
		o, err := c.mayRefund(a)
		if err != nil {
			return RefundResult{}, err
		}
		o.Refunded += a.Amount
		r := Refund{ID: number("RFD", len(c.Refunds)+1), Order: o.ID, Amount: a.Amount, Currency: o.Currency, Reason: a.Reason, At: c.at}
		c.Refunds = append(c.Refunds, r)
		c.summary = fmt.Sprintf("Refunded %s for %s to %s", a.Amount.In(o.Currency), o.ID, c.customer(o.Customer).Name)
		return RefundResult{RefundID: r.ID, OrderID: o.ID, UserID: o.Customer, Amount: a.Amount, Currency: o.Currency, Refunded: o.Refunded, Refundable: o.Refundable(),
			Message: c.summary + "."}, nil
	})
}

// mayRefund returns the order of a refund, or the reason why the refund is impossible. mayRefund changes nothing.
func (s *State) mayRefund(a RefundArgs) (*Order, error) {
	o, err := s.order(a.OrderID)
	if err != nil {
		return nil, err
	}
	left := o.Refundable()
	switch {
	case a.Amount <= 0:
		return o, problem(ErrInvalid, "A refund must be more than zero.")
	case a.Currency != o.Currency:
		return o, problem(ErrInvalid, "%s was paid in %s, so it can't be refunded in %s.", o.ID, o.Currency, shown(a.Currency))
	case o.Paid == 0:
		return o, problem(ErrRefused, "%s has not been paid, so there is nothing to refund.", o.ID)
	case left == 0:
		return o, problem(ErrRefused, "%s has already been refunded in full (%s).", o.ID, o.Refunded.In(o.Currency))
	case a.Amount > left:
		return o, problem(ErrRefused, "%s is more than can be refunded for %s: %s was paid and %s refunded, so at most %s is left.",
			a.Amount.In(o.Currency), o.ID, o.Paid.In(o.Currency), o.Refunded.In(o.Currency), left.In(o.Currency))
	}
	return o, nil
}

// RefundPreview describes the effect of a refund.
type RefundPreview struct {
	Message  string `json:"message"`
	Refused  string `json:"refused,omitempty"` // why the shop would refuse the refund
	Customer string `json:"customer"`
	Paid     Amount `json:"paid"`
	Refunded Amount `json:"refunded"`
	Now      Amount `json:"refundable_now"`
	After    Amount `json:"refundable_after"`
}

// PreviewRefund describes the effect of a refund with these arguments, or gives the reason why the shop would refuse
// the refund. PreviewRefund changes nothing.
func (s *Shop) PreviewRefund(ctx context.Context, a RefundArgs) (RefundPreview, error) {
	return read(ctx, s, func(state *State) (RefundPreview, error) {
		o, err := state.mayRefund(a)
		if o == nil {
			return RefundPreview{}, err
		}
		name := "a customer whose account is deleted"
		if c := state.customer(o.Customer); c != nil && c.Status != Deleted {
			name = c.Name
		}
		p := RefundPreview{Customer: name, Paid: o.Paid, Refunded: o.Refunded, Now: o.Refundable(), After: o.Refundable() - a.Amount}
		p.Message = fmt.Sprintf("%s paid %s for %s and got %s back so far; after this, %s could still be refunded.",
			name, p.Paid.In(o.Currency), o.ID, p.Refunded.In(o.Currency), p.After.In(o.Currency))
		if err != nil { // the preview reports the refusal as its result
			p.Refused, p.After = err.Error(), p.Now
			p.Message = "It would be refused: " + p.Refused
		}
		return p, nil
	})
}

// PaymentArgs are the arguments of a payment for an order.
type PaymentArgs struct {
	OrderID  string `json:"order_id"`
	Amount   Amount `json:"amount"`
	Currency string `json:"currency"`
	Method   string `json:"method,omitempty"`
}

// PaymentResult is the amount taken and the remaining amount due.
type PaymentResult struct {
	PaymentID string `json:"payment_id"`
	OrderID   string `json:"order_id"`
	UserID    string `json:"user_id"`
	Amount    Amount `json:"amount"`
	Currency  string `json:"currency"`
	Method    string `json:"method"`
	Due       Amount `json:"due"`
	Message   string `json:"message"`
}

// ProcessPayment takes at most the amount that is due. The account must be active.
func (s *Shop) ProcessPayment(ctx context.Context, key string, a PaymentArgs) (PaymentResult, error) {
	return once(ctx, s, key, "process_payment", a, func(c *change) (PaymentResult, error) {
		o, err := c.order(a.OrderID)
		if err != nil {
			return PaymentResult{}, err
		}
		customer, method := c.customer(o.Customer), a.Method
		if method == "" {
			method = CardOnFile
		}
		switch {
		case a.Amount <= 0:
			return PaymentResult{}, problem(ErrInvalid, "A payment must be more than zero.")
		case a.Currency != o.Currency:
			return PaymentResult{}, problem(ErrInvalid, "%s is priced in %s, so it can't be paid in %s.", o.ID, o.Currency, shown(a.Currency))
		case !slices.Contains([]string{CardOnFile, BankTransfer, Invoice}, method):
			return PaymentResult{}, problem(ErrInvalid, "method %s is not one of card_on_file, bank_transfer and invoice.", shown(method))
		case o.Progress == CalledOff:
			return PaymentResult{}, problem(ErrRefused, "%s is cancelled, so nothing can be paid for it.", o.ID)
		case customer.Status != Active:
			return PaymentResult{}, problem(ErrRefused, "The account %s of %s is %s: no payment is taken from it.", customer.ID, customer.Name, customer.Status)
		case o.Due() == 0:
			return PaymentResult{}, problem(ErrRefused, "%s is already paid (%s).", o.ID, o.Paid.In(o.Currency))
		case a.Amount > o.Due():
			return PaymentResult{}, problem(ErrRefused, "%s is more than is due for %s: %s.", a.Amount.In(o.Currency), o.ID, o.Due().In(o.Currency))
		case method == CardOnFile && customer.Card.Expires.Before(c.at):
			return PaymentResult{}, problem(ErrRefused, "%s's %s ending in %s expired in %s: ask for another card, or use bank_transfer or invoice.",
				customer.Name, customer.Card.Brand, customer.Card.Last4, customer.Card.Expires.Format("January 2006"))
		}
		o.Paid += a.Amount
		p := Payment{ID: number("PAY", len(c.Payments)+1), Order: o.ID, Amount: a.Amount, Currency: o.Currency, Method: method, At: c.at}
		c.Payments = append(c.Payments, p)
		c.summary = fmt.Sprintf("Took %s for %s from %s (%s)", a.Amount.In(o.Currency), o.ID, customer.Name, strings.ReplaceAll(method, "_", " "))
		return PaymentResult{PaymentID: p.ID, OrderID: o.ID, UserID: customer.ID, Amount: a.Amount, Currency: o.Currency, Method: method, Due: o.Due(),
			Message: c.summary + "."}, nil
	})
}

// DiscountArgs are the arguments of a discount in percent.
type DiscountArgs struct {
	OrderID string `json:"order_id"`
	Percent int    `json:"percent"`
	Reason  string `json:"reason,omitempty"`
}

// DiscountResult is the discount on this order, or the voucher for the next order.
type DiscountResult struct {
	Code      string `json:"code"`
	OrderID   string `json:"order_id"`
	UserID    string `json:"user_id"`
	Percent   int    `json:"percent"`
	AppliesTo string `json:"applies_to"` // order or next_order
	Total     Amount `json:"total"`
	Due       Amount `json:"due"`
	Currency  string `json:"currency"`
	Message   string `json:"message"`
}

// mostPercent is the largest discount on one order.
const mostPercent = 50

// ApplyDiscount lowers the price of an order for which nothing was paid yet. For any other order, ApplyDiscount issues
// a voucher for the customer's next order.
func (s *Shop) ApplyDiscount(ctx context.Context, key string, a DiscountArgs) (DiscountResult, error) {
	return once(ctx, s, key, "apply_discount", a, func(c *change) (DiscountResult, error) {
		o, err := c.order(a.OrderID)
		if err != nil {
			return DiscountResult{}, err
		}
		customer := c.customer(o.Customer)
		switch {
		case a.Percent < 1 || a.Percent > mostPercent:
			return DiscountResult{}, problem(ErrInvalid, "A discount is between 1 and %d percent, not %d.", mostPercent, a.Percent)
		case o.Progress == CalledOff:
			return DiscountResult{}, problem(ErrRefused, "%s is cancelled, so it can't be made cheaper.", o.ID)
		case customer.Status != Active:
			return DiscountResult{}, problem(ErrRefused, "The account %s of %s is %s: it gets no discounts.", customer.ID, customer.Name, customer.Status)
		case o.Discount+a.Percent > mostPercent:
			return DiscountResult{}, problem(ErrRefused, "%s already has %d %% off, and %d %% is the most for one order: at most %d %% more.", o.ID, o.Discount, mostPercent, mostPercent-o.Discount)
		}
		d := Discount{Code: fmt.Sprintf("THANKS%d-%d", a.Percent, 1001+len(c.Discounts)), Order: o.ID, Customer: customer.ID, Percent: a.Percent, Reason: a.Reason, At: c.at}
		r := DiscountResult{Code: d.Code, OrderID: o.ID, UserID: customer.ID, Percent: a.Percent, AppliesTo: "order", Currency: o.Currency}
		o.Discount += a.Percent
		if o.Paid > 0 {
			d.Voucher, r.AppliesTo = true, "next_order"
			c.summary = fmt.Sprintf("Gave %s the voucher %s: %d %% off the next order, for %s", customer.Name, d.Code, a.Percent, o.ID)
		} else {
			off := o.listPrice().percent(a.Percent)
			o.Total -= off
			c.summary = fmt.Sprintf("Took %d %% (%s) off %s of %s", a.Percent, off.In(o.Currency), o.ID, customer.Name)
		}
		c.Discounts = append(c.Discounts, d)
		r.Total, r.Due, r.Message = o.Total, o.Due(), c.summary+"."
		return r, nil
	})
}

// listPrice is the price before discounts.
func (o *Order) listPrice() Amount {
	var sum Amount
	for _, item := range o.Items {
		sum += item.Price * Amount(item.Quantity)
	}
	return sum
}
