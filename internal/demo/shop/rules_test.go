package shop

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// For each row, TestRules runs calls in order in a new shop, and checks the last call.
func TestRules(t *testing.T) {
	type call struct{ tool, args string }
	for _, row := range []struct {
		name  string
		calls []call
		kind  error  // nil: the call succeeds
		says  string // text within the result or the error
	}{
		{"the exercise's refund", []call{{"issue_refund", `{"order_id":"ORD-123","amount":49.99,"currency":"USD","reason":"arrived broken"}`}}, nil, "Refunded $49.99 for ORD-123 to Jane Doe."},
		{"lower case number", []call{{"issue_refund", `{"order_id":"ord-123","amount":1,"currency":"USD","reason":"x"}`}}, nil, `"refundable":48.99`},
		{"refund in two halves", []call{{"issue_refund", `{"order_id":"ORD-123","amount":25,"currency":"USD","reason":"x"}`}, {"issue_refund", `{"order_id":"ORD-123","amount":24.99,"currency":"USD","reason":"x"}`}}, nil, `"refundable":0.00`},
		{"refund above the rest", []call{{"issue_refund", `{"order_id":"ORD-123","amount":25,"currency":"USD","reason":"x"}`}, {"issue_refund", `{"order_id":"ORD-123","amount":25,"currency":"USD","reason":"x"}`}}, ErrRefused, "at most $24.99 is left"},
		{"refund twice in full", []call{{"issue_refund", `{"order_id":"ORD-123","amount":49.99,"currency":"USD","reason":"x"}`}, {"issue_refund", `{"order_id":"ORD-123","amount":49.99,"currency":"USD","reason":"x"}`}}, ErrRefused, "already been refunded in full"},
		{"refund of what was not paid", []call{{"issue_refund", `{"order_id":"ORD-126","amount":5,"currency":"USD","reason":"x"}`}}, ErrRefused, "has not been paid"},
		{"refund in another currency", []call{{"issue_refund", `{"order_id":"ORD-123","amount":5,"currency":"EUR","reason":"x"}`}}, ErrInvalid, "was paid in USD"},
		{"refund of nothing", []call{{"issue_refund", `{"order_id":"ORD-123","amount":0,"currency":"USD","reason":"x"}`}}, ErrInvalid, "more than zero"},
		{"refund below zero", []call{{"issue_refund", `{"order_id":"ORD-123","amount":-5,"currency":"USD","reason":"x"}`}}, ErrInvalid, "more than zero"},
		{"refund of a third of a cent", []call{{"issue_refund", `{"order_id":"ORD-123","amount":0.333,"currency":"USD","reason":"x"}`}}, ErrInvalid, "two decimal places"},
		{"refund with an exponent", []call{{"issue_refund", `{"order_id":"ORD-123","amount":1e2,"currency":"USD","reason":"x"}`}}, ErrInvalid, "plain number"},
		{"refund as text", []call{{"issue_refund", `{"order_id":"ORD-123","amount":"5","currency":"USD","reason":"x"}`}}, ErrInvalid, "arguments of issue_refund"},
		{"order that isn't there", []call{{"issue_refund", `{"order_id":"ORD-999","amount":5,"currency":"USD","reason":"x"}`}}, ErrNotFound, "There is no order ORD-999. Order numbers go from ORD-123 to ORD-134"},
		{"unknown argument", []call{{"issue_refund", `{"order_id":"ORD-123","amount":5,"currency":"USD","reason":"x","fast":true}`}}, ErrInvalid, "fast"},
		{"argument given twice", []call{{"issue_refund", `{"order_id":"ORD-123","amount":5,"amount":50,"currency":"USD","reason":"x"}`}}, ErrInvalid, "duplicate"},
		{"argument in other case", []call{{"issue_refund", `{"order_id":"ORD-123","Amount":5,"currency":"USD","reason":"x"}`}}, ErrInvalid, "Amount"},
		{"two values", []call{{"search_orders", `{} {}`}}, ErrInvalid, "arguments of search_orders"},

		{"payment", []call{{"process_payment", `{"order_id":"ORD-132","amount":840,"currency":"USD"}`}}, nil, "Took $840.00 for ORD-132 from Northwind Office Ltd (card on file)."},
		{"payment in parts", []call{{"process_payment", `{"order_id":"ORD-132","amount":800,"currency":"USD"}`}, {"process_payment", `{"order_id":"ORD-132","amount":41,"currency":"USD"}`}}, ErrRefused, "more than is due for ORD-132: $40.00"},
		{"payment with an expired card", []call{{"process_payment", `{"order_id":"ORD-126","amount":59,"currency":"USD"}`}}, ErrRefused, "expired in January 2026"},
		{"payment by transfer instead", []call{{"process_payment", `{"order_id":"ORD-126","amount":59,"currency":"USD","method":"bank_transfer"}`}}, nil, `"due":0.00`},
		{"payment by shells", []call{{"process_payment", `{"order_id":"ORD-126","amount":59,"currency":"USD","method":"shells"}`}}, ErrInvalid, "method shells"},
		{"payment of what is paid", []call{{"process_payment", `{"order_id":"ORD-123","amount":1,"currency":"USD"}`}}, ErrRefused, "already paid"},
		{"payment for a cancelled order", []call{{"process_payment", `{"order_id":"ORD-130","amount":1,"currency":"USD"}`}}, ErrRefused, "is cancelled"},
		{"payment from a cancelled account", []call{{"cancel_account", `{"user_id":"USR-462"}`}, {"process_payment", `{"order_id":"ORD-132","amount":1,"currency":"USD"}`}}, ErrRefused, "is cancelled: no payment"},
		{"payment in another currency", []call{{"process_payment", `{"order_id":"ORD-132","amount":1,"currency":"GBP"}`}}, ErrInvalid, "priced in USD"},
		{"payment of nothing", []call{{"process_payment", `{"order_id":"ORD-132","amount":0,"currency":"USD"}`}}, ErrInvalid, "more than zero"},

		{"discount on an unpaid order", []call{{"apply_discount", `{"order_id":"ORD-132","percent":10}`}}, nil, `"due":756.00`},
		{"discount on a paid order is a voucher", []call{{"apply_discount", `{"order_id":"ORD-123","percent":15,"reason":"broken"}`}}, nil, `"applies_to":"next_order","total":49.99`},
		{"discounts add up to a limit", []call{{"apply_discount", `{"order_id":"ORD-132","percent":40}`}, {"apply_discount", `{"order_id":"ORD-132","percent":20}`}}, ErrRefused, "at most 10 % more"},
		{"discount of all", []call{{"apply_discount", `{"order_id":"ORD-132","percent":100}`}}, ErrInvalid, "between 1 and 50"},
		{"discount for a deactivated account", []call{{"apply_discount", `{"order_id":"ORD-127","percent":5}`}}, ErrRefused, "is deactivated"},
		{"discount for a cancelled order", []call{{"apply_discount", `{"order_id":"ORD-130","percent":5}`}}, ErrRefused, "is cancelled"},

		{"address", []call{{"update_shipping_address", `{"order_id":"ORD-133","address":"12 Elm St, Springfield"}`}}, nil, `"previous_address":"742 Evergreen Terrace, Springfield"`},
		{"address of what has arrived", []call{{"update_shipping_address", `{"order_id":"ORD-123","address":"12 Elm St, Springfield"}`}}, nil, "used for a replacement or a return"},
		{"address of a parcel on its way", []call{{"update_shipping_address", `{"order_id":"ORD-131","address":"12 Elm St, Springfield"}`}}, ErrRefused, "already on its way"},
		{"address of a cancelled order", []call{{"update_shipping_address", `{"order_id":"ORD-130","address":"12 Elm St, Springfield"}`}}, ErrRefused, "will not be shipped"},
		{"address that is none", []call{{"update_shipping_address", `{"order_id":"ORD-133","address":" x  "}`}}, ErrInvalid, "too short"},

		{"e-mail", []call{{"send_email", `{"to":"bob@example.com","subject":"Late","body":"Sorry."}`}}, nil, `"email_id":"EML-1001"`},
		{"e-mail to a name", []call{{"send_email", `{"to":"Bob <bob@example.com>","subject":"Late","body":"Sorry."}`}}, ErrInvalid, "is not an e-mail address"},
		{"e-mail with a header within the subject", []call{{"send_email", `{"to":"bob@example.com","subject":"Late\nBcc: all@example.com","body":"Sorry."}`}}, ErrInvalid, "one line"},
		{"e-mail without a subject", []call{{"send_email", `{"to":"bob@example.com","subject":"","body":"Sorry."}`}}, ErrInvalid, "needs a subject"},
		{"e-mail without a text", []call{{"send_email", `{"to":"bob@example.com","subject":"Late","body":""}`}}, ErrInvalid, "needs a text"},

		{"profile", []call{{"update_profile", `{"user_id":"USR-456","phone":"+1 555 0199"}`}}, nil, `"changed":["phone"]`},
		{"deactivation", []call{{"update_profile", `{"user_id":"USR-456","status":"deactivated"}`}}, nil, "it can be activated again"},
		{"activation", []call{{"update_profile", `{"user_id":"USR-460","status":"active"}`}}, nil, "Activated the account USR-460 of Priya Shah again"},
		{"profile like that already", []call{{"update_profile", `{"user_id":"USR-456","name":"Jane Doe"}`}}, ErrRefused, "like that already"},
		{"profile with a taken address", []call{{"update_profile", `{"user_id":"USR-456","email":"BOB@example.com"}`}}, ErrRefused, "belongs to the account USR-457"},
		{"profile with a bad address", []call{{"update_profile", `{"user_id":"USR-456","email":"jane at home"}`}}, ErrInvalid, "is not an e-mail address"},
		{"profile into cancelled", []call{{"update_profile", `{"user_id":"USR-456","status":"cancelled"}`}}, ErrInvalid, "cancel_account"},
		{"profile of a cancelled account", []call{{"cancel_account", `{"user_id":"USR-456"}`}, {"update_profile", `{"user_id":"USR-456","name":"J"}`}}, ErrRefused, "cancelled for good"},

		{"cancel", []call{{"cancel_account", `{"user_id":"USR-456"}`}}, nil, `"open_orders":["ORD-131","ORD-133"]`},
		{"cancel twice", []call{{"cancel_account", `{"user_id":"USR-456"}`}, {"cancel_account", `{"user_id":"USR-456","reason":"again"}`}}, ErrRefused, "cancelled already"},
		{"cancel by e-mail", []call{{"cancel_account", `{"user_id":"jane@example.com"}`}}, ErrInvalid, "that account is USR-456"},
		{"cancel nobody", []call{{"cancel_account", `{"user_id":"U-77"}`}}, ErrNotFound, "There is no account U-77. Account numbers look like USR-456"},
		{"delete with open orders", []call{{"delete_account", `{"user_id":"USR-456"}`}}, ErrRefused, "has open orders (ORD-131, ORD-133)"},
		{"delete", []call{{"delete_account", `{"user_id":"USR-460"}`}}, nil, "Deleted the account USR-460"},
		{"delete twice", []call{{"delete_account", `{"user_id":"USR-460"}`}, {"delete_account", `{"user_id":"USR-460","reason":"again"}`}}, ErrNotFound, "was deleted"},

		{"export", []call{{"export_customer_data", `{"user_id":"USR-456"}`}}, nil, `"export_id":"EXP-1001"`},
		{"export of e-mails only", []call{{"send_email", `{"to":"jane@example.com","subject":"Hello","body":"Hi"}`}, {"export_customer_data", `{"user_id":"USR-456","sections":["emails"]}`}}, nil, `"emails":[{"email_id":"EML-1001"`},
		{"export of secrets", []call{{"export_customer_data", `{"user_id":"USR-456","sections":["passwords"]}`}}, ErrInvalid, "passwords"},

		{"search by e-mail", []call{{"search_orders", `{"customer_email":"JANE@example.com"}`}}, nil, `"found":3`},
		{"search by part of a name", []call{{"search_orders", `{"customer_name":"laurent"}`}}, nil, `"order_id":"ORD-125"`},
		{"search by words", []call{{"search_orders", `{"query":"teapot Jane"}`}}, nil, `"found":1,"orders":[{"order_id":"ORD-123"`},
		{"search by words, not all there", []call{{"search_orders", `{"query":"teapot bob"}`}}, nil, `"found":0`},
		{"refund without a reason", []call{{"issue_refund", `{"order_id":"ORD-123","amount":5,"currency":"USD"}`}}, nil, `"refundable":44.99`},
		{"search by number", []call{{"search_orders", `{"order_id":"ORD-123"}`}}, nil, `"refundable":49.99`},
		{"search by state and account", []call{{"search_orders", `{"user_id":"USR-456","status":"shipped"}`}}, nil, `"found":1`},
		{"search with a limit", []call{{"search_orders", `{"limit":2}`}}, nil, `"found":12`},
		{"search for nobody", []call{{"search_orders", `{"customer_email":"nobody@example.com"}`}}, nil, "No customer has the e-mail address nobody@example.com."},
		{"search for no number", []call{{"search_orders", `{"order_id":"ORD-9"}`}}, nil, "There is no order ORD-9."},
		{"search for a contradiction", []call{{"search_orders", `{"order_id":"ORD-123","status":"shipped"}`}}, nil, "nothing matches all"},
		{"search by no such state", []call{{"search_orders", `{"status":"lost"}`}}, ErrInvalid, "status lost"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := New(clock)
			tools := map[string]Tool{}
			for _, tool := range s.Tools() {
				tools[tool.Name] = tool
			}
			var result json.RawMessage
			var err error
			for i, c := range row.calls {
				result, err = tools[c.tool].Run(t.Context(), row.name+string(rune('a'+i)), json.RawMessage(c.args))
				if i < len(row.calls)-1 && err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
			}
			if !errors.Is(err, row.kind) {
				t.Fatalf("err = %v, want %v", err, row.kind)
			}
			said := string(result)
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, row.says) {
				t.Errorf("said %s\nwant it to contain %s", said, row.says)
			}
		})
	}
}

func TestDeletingErasesWhatIsPersonal(t *testing.T) {
	s := New(clock)
	if _, err := s.SendEmail(t.Context(), "k1", EmailArgs{To: "priya@example.com", Subject: "Your jacket", Body: "Dear Priya Shah"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateProfile(t.Context(), "k2", ProfileArgs{UserID: "USR-460", Phone: "+44 20 7946 0321", Status: "active"}); err != nil {
		t.Fatal(err)
	}
	for i, o := range s.State().Orders {
		if o.Customer == "USR-460" {
			if _, err := s.ApplyDiscount(t.Context(), fmt.Sprint("discount ", i), DiscountArgs{OrderID: o.ID, Percent: 5, Reason: "Priya asked"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.SendEmail(t.Context(), "another", EmailArgs{To: "jane@example.com", Subject: "Hello", Body: "Dear Jane"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteAccount(t.Context(), "k3", CloseArgs{UserID: "USR-460"}); err != nil {
		t.Fatal(err)
	}
	data := string(encode(s.State()))
	for _, personal := range []string{"Priya", "priya@example.com", "Canal Walk", "0321", "Your jacket"} {
		if strings.Contains(data, personal) {
			t.Errorf("%q is still in the shop", personal)
		}
	}
	if !strings.Contains(data, "Sent an e-mail to jane@example.com: Hello") {
		t.Error("the ledger lacks an entry about another customer")
	}
	again, err := s.UpdateProfile(t.Context(), "k2", ProfileArgs{UserID: "USR-460", Phone: "+44 20 7946 0321", Status: "active"})
	if want := "update_profile; the details were deleted with the account USR-460"; err != nil || again.UserID != "USR-460" || again.Message != want {
		t.Errorf("the repeated call: %+v, %v", again, err)
	}
}

// A preview describes a refund, and changes nothing. If the refund would be refused, the preview gives the reason in
// the same words.
func TestPreviewRefund(t *testing.T) {
	s := New(clock)
	before := string(encode(s.State()))
	for args, says := range map[string]string{
		`{"order_id":"ORD-123","amount":49.99,"currency":"USD"}`: `"refundable_now":49.99,"refundable_after":0`,
		`{"order_id":"ORD-123","amount":99999,"currency":"USD"}`: "It would be refused: $99999.00 is more than can be refunded for ORD-123",
		`{"order_id":"ORD-123","amount":1,"currency":"EUR"}`:     `"refused":"ORD-123 was paid in USD`,
		`{"order_id":"ORD-9","amount":1,"currency":"EUR"}`:       "There is no order",
		`{"order_id":"ORD-123","amount":1}`:                      "It would be refused",
		`{"order_id":"ORD-123","sum":1}`:                         "The arguments of preview_refund are not right",
	} {
		for _, tool := range s.Tools() {
			if tool.Name != "preview_refund" {
				continue
			}
			result, err := tool.Run(t.Context(), "", json.RawMessage(args))
			said := string(result)
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, says) {
				t.Errorf("%s: said %s", args, said)
			}
		}
	}
	if after := string(encode(s.State())); after != before {
		t.Error("a preview changed something")
	}
}
