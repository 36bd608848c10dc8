package demomodel

import (
	"encoding/json"
	"slices"
	"strings"
)

// toolbox holds the offered tools by kind.
type toolbox struct {
	offered []Tool
	names   map[string]bool
	kinds   map[string]offeredTool
}

type offeredTool struct {
	name       string
	properties map[string]bool // properties of the schema; nil if it names none
}

var kinds = []string{searchOrders, setAddress, updateProfile, applyDiscount, issueRefund, takePayment, sendEmail, deleteAccount, cancelAccount, exportData}

// newToolbox also recognizes tools whose name has a prefix. Gateways add such prefixes, as in shop_issue_refund.
func newToolbox(tools []Tool) toolbox {
	box := toolbox{offered: tools, names: map[string]bool{}, kinds: map[string]offeredTool{}}
	for _, t := range tools {
		box.names[t.Name] = true
		for _, kind := range kinds {
			if _, have := box.kinds[kind]; t.Name == kind || !have && strings.HasSuffix(t.Name, "_"+kind) {
				box.kinds[kind] = offeredTool{name: t.Name, properties: properties(t.Parameters)}
			}
		}
	}
	return box
}

func properties(schema json.RawMessage) map[string]bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	names := map[string]bool{}
	for name := range s.Properties {
		names[name] = true
	}
	return names
}

func (b toolbox) has(kind string) bool { _, ok := b.kinds[kind]; return ok }

// kindOf returns the kind of a tool. If the tool has no rules, the kind is empty.
func (b toolbox) kindOf(name string) string {
	for kind, t := range b.kinds {
		if t.name == name {
			return kind
		}
	}
	if slices.Contains(kinds, name) {
		return name
	}
	return ""
}

// arg is one argument: its name in the shop's tools, and its value as JSON.
type arg struct{ name, value string }

func textArg(name, value string) arg {
	data, err := json.Marshal(value)
	if err != nil {
		panic("demomodel: a text that can't be written: " + err.Error()) // impossible, because a string always has a JSON form
	}
	return arg{name, string(data)}
}

// synonyms are the names of the same arguments in other shops' tools.
var synonyms = map[string][]string{
	"customer_email": {"email", "customer", "query", "q"},
	"customer_name":  {"name", "customer", "query", "q"},
	"order_id":       {"order", "id", "order_number", "query", "q"},
	"user_id":        {"account_id", "customer_id", "account", "id", "user"},
	"address":        {"shipping_address", "new_address"},
	"reason":         {"note", "comment"},
	"percent":        {"percentage", "discount_percent"},
	"body":           {"text", "message", "content"},
	"to":             {"recipient", "email"},
}

// call builds a call with the arguments that the tool's schema names. The function omits empty values.
func (b toolbox) call(kind string, args ...arg) Call {
	t := b.kinds[kind]
	var parts []string
	used := map[string]bool{}
	for _, a := range args {
		name := t.property(a.name)
		if a.value == "" || a.value == `""` || name == "" || used[name] {
			continue
		}
		used[name] = true
		key := textArg("", name).value
		parts = append(parts, key+":"+a.value)
	}
	return Call{Name: t.name, Arguments: "{" + strings.Join(parts, ",") + "}"}
}

func (t offeredTool) property(name string) string {
	if t.properties == nil || t.properties[name] {
		return name
	}
	for _, other := range synonyms[name] {
		if t.properties[other] {
			return other
		}
	}
	return ""
}

// value returns an argument of a call. The argument may have the given name or one of its synonyms.
func value(args object, name string) string {
	return args.text(append([]string{name}, synonyms[name]...)...)
}
