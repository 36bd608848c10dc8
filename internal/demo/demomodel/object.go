package demomodel

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// object is a JSON object whose numbers keep their text.
type object map[string]any

func parseObject(text string) object {
	o, _ := parseJSON(text).(map[string]any)
	return o
}

// parseJSON returns nil if text is not exactly one JSON value.
func parseJSON(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return v
}

// The method "text" looks up the given names in order. It returns the first value that is a text or a number.
func (o object) text(names ...string) string {
	for _, name := range names {
		switch v := o[name].(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		}
	}
	return ""
}

func (o object) list(name string) []object {
	values, _ := o[name].([]any)
	var list []object
	for _, v := range values {
		if item, ok := v.(map[string]any); ok {
			list = append(list, item)
		}
	}
	return list
}

func (o object) texts(name string) []string {
	values, _ := o[name].([]any)
	list := make([]string, 0, len(values))
	for _, v := range values {
		list = append(list, fmt.Sprint(v))
	}
	return list
}

// The method "cents" reads an amount of money. If the value is not an amount, ok is false.
func (o object) cents(names ...string) (n int, ok bool) { return parseCents(o.text(names...)) }

// result is a tool's result, or the outcome of a call that did not run.
type result struct {
	status    string // empty if the tool ran
	reported  bool   // a person reported whether the call ran, because the outcome of the call was unknown
	reason    string
	decidedBy string // the role that decided
	changedBy string // the role that changed the arguments
	changed   object // the arguments with which the tool ran, if an approver changed them
	data      any
	raw       string
}

// outcomes lists the states of calls that did not run successfully.
var outcomes = map[string]bool{
	"rejected": true, "expired": true, "withdrawn": true, "revoked": true, "refused": true, "voided": true,
	"unknown": true, "observed": true, "error": true,
}

var saysReported = re(`a person reported`)

func parseResult(raw string) result {
	r := result{raw: raw, data: parseJSON(raw)}
	o, ok := r.data.(map[string]any)
	if !ok {
		if strings.HasPrefix(strings.ToLower(raw), "error") {
			r.status, r.reason = "error", raw
		}
		return r
	}
	answer := object(o)
	_, named := answer["tool"]
	_, reasoned := answer["reason"]
	_, guided := answer["guidance"]
	structured := named || reasoned || guided
	r.reported = structured && saysReported.MatchString(answer.text("reason"))
	switch status := answer.text("status"); {
	case structured && outcomes[status]:
		r.status, r.reason, r.decidedBy = status, answer.text("reason"), answer.text("decided_by")
	case answer.text("error") != "":
		r.status, r.reason = "error", answer.text("error")
	case answer["error"] != nil:
		r.status, r.reason = "error", asObject(answer["error"]).text("message")
	}
	if modified := asObject(answer["modified"]); modified != nil {
		r.changedBy = modified.text("by", "decided_by", "role")
		for _, name := range []string{"args", "arguments", "to"} {
			if args := asObject(modified[name]); args != nil {
				r.changed = args
			}
		}
	}
	if inner, ok := answer["result"]; ok && (structured || r.changed != nil) {
		r.data = inner
	}
	return r
}

func asObject(v any) object {
	o, _ := v.(map[string]any)
	return o
}

// object returns the result as an object. If the result is not an object, object returns nil.
func (r result) object() object { return asObject(r.data) }
