package shop

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestToolsAreWhole(t *testing.T) {
	want := "search_orders read, update_shipping_address idempotent, update_profile idempotent, apply_discount idempotent, issue_refund idempotent, preview_refund read, " +
		"process_payment idempotent, send_email unprotected, delete_account unprotected, cancel_account unprotected, export_customer_data idempotent"
	var got []string
	name := regexp.MustCompile(`^[a-z_]{1,64}$`)
	for _, tool := range New(clock).Tools() {
		got = append(got, tool.Name+" "+tool.Effect)
		if !name.MatchString(tool.Name) || len(tool.Description) < 40 {
			t.Errorf("%s: name or description is poor: %s", tool.Name, tool.Description)
		}
		compile(t, tool)
		var schema struct {
			Type                 string
			AdditionalProperties *bool
			Properties           map[string]struct{ Description string }
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: the schema is not a closed object", tool.Name)
		}
		for property, p := range schema.Properties {
			if p.Description == "" {
				t.Errorf("%s: %s has no description", tool.Name, property)
			}
		}
	}
	if g := strings.Join(got, ", "); g != want {
		t.Errorf("tools are %s\nwant %s", g, want)
	}
}

// TestSchemasAndArgumentsAgree compares the schema with the argument struct. Both must accept arguments with all
// properties of the schema. The schema must refuse an unknown property.
func TestSchemasAndArgumentsAgree(t *testing.T) {
	s := New(clock)
	for _, tool := range s.Tools() {
		schema := compile(t, tool)
		var plain struct {
			Properties map[string]struct {
				Type string
				Enum []string
			}
		}
		if err := json.Unmarshal(tool.Schema, &plain); err != nil {
			t.Fatal(err)
		}
		args := map[string]any{}
		for name, p := range plain.Properties {
			switch {
			case p.Enum != nil:
				args[name] = p.Enum[0]
			case p.Type == "integer":
				args[name] = 1
			case p.Type == "number":
				args[name] = 1.5
			case p.Type == "array":
				args[name] = []any{"profile"}
			case strings.Contains(name, "email") || name == "to":
				args[name] = "someone@example.com"
			case name == "order_id":
				args[name] = "ORD-132"
			case name == "user_id":
				args[name] = "USR-460"
			default:
				args[name] = "Some text"
			}
		}
		if err := schema.Validate(roundTrip(t, args)); err != nil {
			t.Errorf("%s: the full arguments do not fit the schema: %v", tool.Name, err)
		}
		data, _ := json.Marshal(args)
		// The shop's rules may refuse the made-up values, but the shop must accept the types and formats of the values.
		if _, err := tool.Run(t.Context(), "key-"+tool.Name, data); errors.Is(err, ErrInvalid) {
			t.Errorf("%s: the schema allows %s, the tool says: %v", tool.Name, data, err)
		}
		args["extra"] = true
		if schema.Validate(roundTrip(t, args)) == nil {
			t.Errorf("%s: the schema allows an unknown property", tool.Name)
		}
	}
}

func compile(t *testing.T, tool Tool) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tool.Schema)))
	if err == nil {
		err = c.AddResource(tool.Name, document)
	}
	if err != nil {
		t.Fatalf("%s: %v", tool.Name, err)
	}
	schema, err := c.Compile(tool.Name)
	if err != nil {
		t.Fatalf("%s: %v", tool.Name, err)
	}
	return schema
}

func roundTrip(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	back, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return back
}
