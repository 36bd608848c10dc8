package condition_test

import (
	"strings"
	"testing"
	"time"

	"countersign/internal/demo/shop"
)

// TestShopRules checks ordinary rules for the sample shop's tools. These rules are accepted without findings.
func TestShopRules(t *testing.T) {
	rules := map[string][]string{
		"search_orders":  {`has(args.limit) && args.limit > 10`, `!has(args.order_id) && !has(args.user_id)`, `has(args.status) && args.status in ["shipped", "delivered"]`, `size(args) == 0`, `"query" in args && size(args.query) < 3`},
		"update_profile": {`has(args.status) && args.status == "deactivated"`, `has(args.email) && !args.email.lowerAscii().endsWith("@example.com")`, `has(args.language) ? args.language != "en" : false`},
		"apply_discount": {`args.percent > 20`, `args.percent >= 12.5`, `int(args.percent) % 5 != 0`, `args.percent * 2.0 > 60`, `!has(args.reason) || args.reason.trim() == ""`},
		"issue_refund": {`args.amount > 500`, `args.amount > 500.5 && args.currency == "USD"`, `args.currency != "EUR"`, `args.amount > (args.currency == "GBP" ? 400.0 : 500.0)`,
			`!args.order_id.matches("^ORD-[0-9]+$")`, `has(args.reason) && args.reason.contains("fraud")`, `string(args.amount).endsWith(".99")`, `conversation.dm && args.amount > 50`},
		"send_email":           {`!args.to.endsWith("@example.com")`, `size(args.body) > 2000`, `args.to.split("@")[1] != "example.com"`, `args.subject == args.body`, `["refund", "legal"].exists(w, args.subject.lowerAscii().contains(w))`},
		"export_customer_data": {`!has(args.sections)`, `has(args.sections) && "payments" in args.sections`, `has(args.sections) && args.sections.exists(s, s == "payments" || s == "emails")`, `!has(args.sections) || size(args.sections) > 2`, `has(args.sections) && args.sections != ["profile"]`, `has(args.sections) && args.sections[0] == "payments"`},
		"delete_account":       {`args.user_id.startsWith("USR-1")`, `now.getDayOfWeek("Europe/Berlin") in [0, 6]`, `agent != "support"`},
	}
	for _, tool := range shop.New(time.Now).Tools() {
		for _, rule := range rules[tool.Name] {
			if found := said(t, rule, tool.Schema); len(found) > 0 {
				t.Errorf("%s:\n%s", tool.Name, strings.Join(found, "\n"))
			}
		}
		delete(rules, tool.Name)
	}
	if len(rules) > 0 {
		t.Errorf("the shop has no such tools: %v", rules)
	}
}
