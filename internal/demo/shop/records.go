package shop

import (
	"encoding/json"
	"time"
)

// State is the complete state of the shop, as stored in the file.
type State struct {
	Format    int            `json:"format"`
	Revision  int            `json:"revision"` // grows by one with every write
	Customers []Customer     `json:"customers"`
	Orders    []Order        `json:"orders"`
	Payments  []Payment      `json:"payments"`
	Refunds   []Refund       `json:"refunds"`
	Discounts []Discount     `json:"discounts"`
	Emails    []Email        `json:"emails"`
	Exports   []Export       `json:"exports"`
	Ledger    []Entry        `json:"ledger"`
	Runs      map[string]Run `json:"runs"` // by idempotency key
}

// AccountStatus is the state of a customer's account.
type AccountStatus string

// The states of an account. A deactivated account can be reactivated. A cancelled or deleted account can't be
// reactivated.
const (
	Active      AccountStatus = "active"
	Deactivated AccountStatus = "deactivated"
	Cancelled   AccountStatus = "cancelled"
	Deleted     AccountStatus = "deleted"
)

// Customer is a person with an account.
type Customer struct {
	ID       string        `json:"user_id"`
	Name     string        `json:"name"`
	Email    string        `json:"email"`
	Phone    string        `json:"phone"`
	Language string        `json:"language"`
	Address  string        `json:"address"`
	Status   AccountStatus `json:"status"`
	Since    time.Time     `json:"customer_since"`
	Card     Card          `json:"card"`
}

// Card is a customer's card on file.
type Card struct {
	Brand   string    `json:"brand"`
	Last4   string    `json:"last4"`
	Expires time.Time `json:"expires"`
}

// Progress is the progress of an order.
type Progress string

// The progress of an order. Orders are easiest to change before they are shipped.
const (
	Processing Progress = "processing"
	Shipped    Progress = "shipped"
	Arrived    Progress = "delivered"
	CalledOff  Progress = "cancelled"
)

// Order is an order of a customer.
type Order struct {
	ID        string    `json:"order_id"`
	Customer  string    `json:"user_id"`
	Progress  Progress  `json:"status"`
	PlacedAt  time.Time `json:"placed_at"`
	Items     []Item    `json:"items"`
	Currency  string    `json:"currency"`
	Total     Amount    `json:"total"` // sum of the items' prices, minus discounts
	Paid      Amount    `json:"paid"`  // sum of all payments; refunds don't reduce it
	Refunded  Amount    `json:"refunded"`
	Discount  int       `json:"discount_percent,omitempty"`
	Address   string    `json:"shipping_address"`
	Tracking  string    `json:"tracking,omitempty"`
	Delivered time.Time `json:"delivered_at,omitzero"`
}

// Refundable returns the amount that can still be refunded.
func (o *Order) Refundable() Amount { return o.Paid - o.Refunded }

// Due returns the remaining amount to be paid.
func (o *Order) Due() Amount {
	if o.Progress == CalledOff {
		return 0
	}
	return max(0, o.Total-o.Paid)
}

// Item is one line of an order.
type Item struct {
	Name     string `json:"name"`
	Quantity int    `json:"quantity"`
	Price    Amount `json:"price"` // price of one piece
}

// Payment is a payment by the customer.
type Payment struct {
	ID       string    `json:"payment_id"`
	Order    string    `json:"order_id"`
	Amount   Amount    `json:"amount"`
	Currency string    `json:"currency"`
	Method   string    `json:"method"`
	At       time.Time `json:"at"`
}

// Refund is a refund to the customer.
type Refund struct {
	ID       string    `json:"refund_id"`
	Order    string    `json:"order_id"`
	Amount   Amount    `json:"amount"`
	Currency string    `json:"currency"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
}

// Discount is a lower price of an unpaid order, or a voucher for the next order if the order is paid.
type Discount struct {
	Code     string    `json:"code"`
	Order    string    `json:"order_id"`
	Customer string    `json:"user_id"`
	Percent  int       `json:"percent"`
	Voucher  bool      `json:"voucher"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}

// Email is a sent message.
type Email struct {
	ID      string    `json:"email_id"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Body    string    `json:"body"`
	At      time.Time `json:"at"`
}

// Export is a copy of a customer's data that was exported.
type Export struct {
	ID       string    `json:"export_id"`
	Customer string    `json:"user_id"`
	Sections []string  `json:"sections"`
	At       time.Time `json:"at"`
}

// Entry is one effect in the ledger. Repeats counts the calls that repeated the key of the effect.
type Entry struct {
	Number  int       `json:"number"`
	At      time.Time `json:"at"`
	Tool    string    `json:"tool"`
	Key     string    `json:"key"`
	Summary string    `json:"summary"`
	Repeats int       `json:"repeats"`
}

// Run is the first call with a key, and the answer of this call.
type Run struct {
	Tool   string          `json:"tool"`
	Digest string          `json:"digest"` // digest of the tool's name and the arguments
	Entry  int             `json:"entry"`
	Result json.RawMessage `json:"result"`
}
