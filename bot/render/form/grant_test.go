package form

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/bottest"
)

// The error is at the number that is too large by itself. It is at the first number if only several numbers together
// are too large. Other reasons against the grant are not errors of the form.
func TestAllowanceFaults(t *testing.T) {
	policy := bottest.GrantingPolicy()
	policy.Tools[2].Grants = approvers.GrantTerms{Uses: 5, Within: 2 * time.Hour, AtMost: []string{"amount", "count"}}
	policy.Tools[2].Rules = []approvers.Rule{{Risk: approvers.Critical, When: approvers.Condition{Text: "too much", Eval: func(f approvers.Facts) (bool, error) {
		var amount, count float64
		_, err := fmt.Sscan(fmt.Sprint(f.Args["amount"], " ", f.Args["count"]), &amount, &count)
		return amount > 50 || count > 5 || amount+count > 52, err
	}}}}
	r := bottest.Request(`{"order_id":"ORD-1","amount":1,"count":1}`)
	in := approvers.DecisionContext{Policy: policy, Now: bottest.Noon}
	teo := approvers.Identity{ID: teo, Name: "Teo"}
	for name, c := range map[string]struct {
		who           approvers.Identity
		amount, count string
		at            string
	}{
		"within":      {teo, "50", "2", ""},
		"the first":   {teo, "51", "1", "arg.amount"},
		"the second":  {teo, "1", "6", "arg.count"},
		"both":        {teo, "49", "5", "arg.amount"},
		"a stranger":  {approvers.Identity{}, "51", "1", ""},
		"not a lead":  {approvers.Identity{ID: approvers.Who("T0001", "U0001")}, "51", "1", ""},
		"not allowed": {approvers.Identity{ID: approvers.Who("T0001", "U0100")}, "51", "1", ""},
	} {
		a := approvers.Allowance{Uses: 1, Within: time.Hour, AtMost: map[string]json.RawMessage{"amount": json.RawMessage(c.amount), "count": json.RawMessage(c.count)}}
		faults := AllowanceFaults(r, in, c.who, a)
		if text := faults[c.at]; (len(faults) > 0) != (c.at != "") || c.at != "" && !strings.Contains(text, "a call with the largest value is critical risk, above what Team Lead may approve.") {
			t.Errorf("%s: %v", name, faults)
		}
	}
}
