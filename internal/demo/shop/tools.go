package shop

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	strict "github.com/go-json-experiment/json"
)

// The effect of a tool determines whether its call may run again after a crash in the middle of the call.
const (
	EffectRead        = "read"        // changes nothing, so it may be run again
	EffectIdempotent  = "idempotent"  // the same key never acts twice, so it may be run again with that key
	EffectUnprotected = "unprotected" // like a tool of a system without idempotency keys; must not be run again without a check
)

// Tool is one tool as plain data, for registration with an agent.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema (2020-12) of the arguments
	Effect      string
	Title       string // the tool's name for people
	Destroys    bool   // the tool overwrites or removes something, or can't be undone
	Settles     bool   // idempotent by arguments: a repeated call changes nothing, even with another key
	Outside     bool   // the tool reaches people or companies outside the shop
	// Run checks the arguments, acts under the idempotency key and returns the
	// result as JSON. The key of a reading tool is ignored. An error's text is
	// one sentence for people and for the model.
	Run func(ctx context.Context, key string, args json.RawMessage) (json.RawMessage, error)
}

//go:embed schemas.json
var schemasJSON []byte

// Tools returns the shop's tools.
func (s *Shop) Tools() []Tool {
	return []Tool{
		tool(Tool{Name: "search_orders", Title: "Find orders", Effect: EffectRead, Settles: true, Description: "Find orders by order number, customer e-mail, customer name, account number or status, newest first. Shows items, amounts, what is refundable, the address and tracking. Changes nothing."},
			func(ctx context.Context, _ string, a SearchArgs) (SearchResult, error) { return s.SearchOrders(ctx, a) }),
		tool(Tool{Name: "update_shipping_address", Title: "Change a shipping address", Effect: EffectIdempotent, Destroys: true, Settles: true, Description: "Change where an order is shipped. Not possible while the parcel is on its way."}, s.UpdateShippingAddress),
		tool(Tool{Name: "update_profile", Title: "Change a customer's profile", Effect: EffectIdempotent, Destroys: true, Settles: true, Description: "Change a customer's name, e-mail address, phone or language, or set the account's status: deactivated (it can come back) or active."}, s.UpdateProfile),
		tool(Tool{Name: "apply_discount", Title: "Give a discount", Effect: EffectIdempotent, Description: "Take a percentage off an order that is not paid yet; for a paid order, give the customer a voucher for the next one."}, s.ApplyDiscount),
		tool(Tool{Name: "issue_refund", Title: "Give money back", Effect: EffectIdempotent, Destroys: true, Outside: true, Description: "Give money back for an order, to the original payment method. At most what was paid and not refunded yet, in the order's currency."}, s.IssueRefund),
		tool(Tool{Name: "preview_refund", Title: "Look what a refund would do", Effect: EffectRead, Settles: true, Description: "Says what issue_refund with the same arguments would do: who paid how much, what is refunded already and what would be left. Changes nothing."},
			func(ctx context.Context, _ string, a RefundArgs) (RefundPreview, error) {
				return s.PreviewRefund(ctx, a)
			}),
		tool(Tool{Name: "process_payment", Title: "Take a payment", Effect: EffectIdempotent, Destroys: true, Outside: true, Description: "Take a payment for an order that is not fully paid, in the order's currency."}, s.ProcessPayment),
		tool(Tool{Name: "send_email", Title: "Send an e-mail", Effect: EffectUnprotected, Destroys: true, Outside: true, Description: "Send an e-mail to one address in the name of the shop. It can't be called back."}, s.SendEmail),
		tool(Tool{Name: "delete_account", Title: "Delete an account", Effect: EffectUnprotected, Destroys: true, Settles: true, Description: "Delete an account and erase the customer's personal data. It can't be undone."}, s.DeleteAccount),
		tool(Tool{Name: "cancel_account", Title: "Cancel an account for good", Effect: EffectUnprotected, Destroys: true, Settles: true, Description: "Cancel an account for good. It can't be undone; update_profile with status deactivated can."}, s.CancelAccount),
		tool(Tool{Name: exportTool, Title: "Hand out a customer's data", Effect: EffectIdempotent, Outside: true, Description: "Hand out the personal data that the shop holds of a customer: profile, orders, payments, e-mails."}, s.ExportCustomerData),
	}
}

func tool[A, R any](t Tool, run func(context.Context, string, A) (R, error)) Tool {
	t.Schema = schemaOf(t.Name)
	t.Run = func(ctx context.Context, key string, raw json.RawMessage) (json.RawMessage, error) {
		args, err := arguments[A](t.Name, raw)
		if err != nil {
			return nil, err
		}
		result, err := run(ctx, key, args)
		if err != nil {
			return nil, err
		}
		answer, err := json.Marshal(result)
		if err != nil {
			return nil, fmt.Errorf("write the answer of %s: %w", t.Name, err)
		}
		return answer, nil
	}
	return t
}

// The function "arguments" decodes a tool's arguments strictly. Unknown, repeated or differently spelled names are
// errors, even if the caller already checked the names.
func arguments[A any](name string, raw json.RawMessage) (A, error) {
	var args A
	if err := strict.Unmarshal(raw, &args, strict.RejectUnknownMembers(true)); err != nil {
		return args, problem(ErrInvalid, "The arguments of %s are not right: %s.", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return args, nil
}

func schemaOf(name string) json.RawMessage {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(schemasJSON, &all); err != nil || all[name] == nil {
		panic("shop: schemas.json has no schema of " + name) // the file is embedded, and a test checks that it has every tool
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, all[name]); err != nil {
		panic("shop: schema of " + name + ": " + err.Error())
	}
	return compact.Bytes()
}
