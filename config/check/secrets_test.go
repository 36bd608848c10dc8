package check_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/config/check"
)

// charge has arguments that the schema masks, and arguments at deeper levels.
var charge = check.Tool{Name: "charge", Schema: json.RawMessage(`{"type": "object", "additionalProperties": false, "properties": {
	"card": {"type": "object", "properties": {"number": {"type": "string"}}},
	"cards": {"type": "array", "items": {"type": "array", "items": {"type": "object", "properties": {"number": {"type": "string"}}}}},
	"either": {"anyOf": [{"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, {"type": "object", "properties": {"b": {}}}]},
	"open": {"type": "object", "properties": {"a": {}}, "additionalProperties": true},
	"amount": {"type": "number"}, "pin": {"type": "string", "x-secret": true}, "odd.name": {"type": "string"}}}`)}

// found returns the findings about a tool's policy that contain a text.
func found(t *testing.T, tool, about string) (out []string) {
	t.Helper()
	f := parse(t, "version: 1\ntools:\n  charge: {risk: high, "+tool+"}\napprovers:\n  lead: {members: [U0001], max_risk: critical, can_approve: [\"*\"]}\nagents:\n  a: {tools: [\"*\"]}\n")
	for _, p := range check.Run(f, []check.Tool{charge}) {
		if strings.Contains(p.Error(), about) {
			out = append(out, p.Error())
		}
	}
	return out
}

// TestMaskedArguments checks that a misspelt name in secrets is an error, because the value would be shown to
// everybody. A name that is similar to no argument, or only to a masked one, is a warning.
func TestMaskedArguments(t *testing.T) {
	for secret, want := range map[string]string{
		"card": "", "card.number": "", "cards.number": "", "either.a": "", "either.b": "", "open.any": "", "odd.name": "", "odd": "", "crad, '*'": "",
		"crad":                     "error: charge has no argument crad, so nothing of this name is masked; did you mean card? ",
		"card.nmber":               "error: card has no field nmber, so nothing of this name is masked; did you mean number? ",
		"cards.nmber":              "error: cards has no field nmber, so nothing of this name is masked; did you mean number? ",
		"crad, card":               "warning: charge has no argument crad, so this masks nothing; did you mean card? ",
		"crad, card.number":        "error: charge has no argument crad, so nothing of this name is masked; did you mean card? ",
		"crad.number, card.number": "warning: charge has no argument crad, so this masks nothing; did you mean card? ",
		"card.nmber, card":         "warning: card has no field nmber, so this masks nothing; did you mean number? ",
		"iban":                     "warning: charge has no argument iban, so this masks nothing; its arguments are amount, card, ",
		"amount.cents":             "warning: amount has no field cents, so this masks nothing; its schema lists none",
	} {
		severity, text, _ := strings.Cut(want, ": ")
		got := found(t, "secrets: ["+secret+"]", "secrets[0]")
		switch {
		case want == "" && len(got) == 0:
		case len(got) != 1 || !strings.Contains(got[0], "tools.charge.secrets[0]: "+text) || strings.Contains(got[0], "warning: ") != (severity == "warning"):
			t.Errorf("%s: %q, want %q", secret, got, want)
		}
	}
}

// TestSchemaSecretsInGrants checks the warning about grants of a tool with an argument that the schema masks.
func TestSchemaSecretsInGrants(t *testing.T) {
	const about = "no call with pin can be granted"
	if got := found(t, "grants: {uses: 5, within: 1h, same: [amount]}", about); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	if got := found(t, "grants: {uses: 5, within: 1h, same: [pin]}", about); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

// TestPreviewArguments checks the warning about a template that reads an argument that the tool does not have.
func TestPreviewArguments(t *testing.T) {
	for template, want := range map[string]string{
		"Pay {{.amount}} with {{.card.number}}":                              "",
		"{{range .cards}}{{.nothing}}{{$.amount}}{{end}}":                    "",
		"{{with .card}}{{.nmber}}{{else}}{{.amount}}{{end}}":                 "",
		`{{if has . "amount"}}{{get . "pin" "x"}}{{index . "open"}}{{end}}x`: "",
		"Pay {{.amonut}}":                                      "charge has no argument amonut; did you mean amount? ",
		"Pay {{money .amonut \"USD\"}}":                        "charge has no argument amonut; ",
		"Pay {{.card.nmber}}":                                  "card has no field nmber; did you mean number? ",
		"{{range .cards}}{{$.amonut}}{{end}}":                  "charge has no argument amonut; ",
		"{{with .card}}x{{else}}{{.amonut}}{{end}}":            "charge has no argument amonut; ",
		`{{if has . "amonut"}}x{{end}}x`:                       "charge has no argument amonut; ",
		`{{range .cards}}{{get $ "amonut" "x"}}{{end}}`:        "charge has no argument amonut; ",
		"{{$x := .card}}{{$x.nothing}} {{(index .cards 0).n}}": "",
	} {
		for form, path := range map[string]string{"preview: ": "preview: ", "preview: {text: ": "preview.text: "} {
			value := form + "'" + template + "'"
			if strings.HasSuffix(path, "text: ") {
				value += "}"
			}
			got := found(t, value, "tools.charge."+path)
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], "warning: tools.charge."+path+want)) {
				t.Errorf("%s: %q, want %q", template, got, want)
			}
		}
	}
}
