package render

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// span is the position of an object's member in its bytes: the whole member, and its value.
type span struct {
	name       string
	from       int // opening quote of the name
	start, end int // of the value
}

// spans returns the members of an object's top level, or nil if raw is not an object.
func spans(raw []byte) []span {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return nil
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	out := []span{}
	for dec.PeekKind() != '}' {
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		from := int(dec.InputOffset()) - len(value)
		name, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return nil
		}
		v, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		end := int(dec.InputOffset())
		out = append(out, span{name: string(name), from: from, start: end - len(v), end: end})
	}
	return out
}

// splice replaces, removes and adds members of an object's top level. All other bytes stay unchanged. A nil value
// removes a member. The names in added are appended in order.
func splice(raw []byte, change map[string][]byte, added []string) []byte {
	members := spans(raw)
	var out bytes.Buffer
	open := bytes.IndexByte(raw, '{')
	out.Write(raw[:open+1])
	first := true
	sep := func() {
		if !first {
			out.WriteByte(',')
		}
		first = false
	}
	end := open + 1
	for i, m := range members {
		lead := raw[end:m.from] // spaces, and the comma before it
		end = m.end
		v, changed := change[m.name]
		if changed && v == nil {
			continue
		}
		sep()
		if i > 0 {
			if comma := bytes.IndexByte(lead, ','); comma >= 0 {
				lead = append(bytes.Clone(lead[:comma]), lead[comma+1:]...)
			}
		}
		out.Write(lead)
		out.Write(raw[m.from:m.start])
		if !changed {
			v = raw[m.start:m.end]
		}
		out.Write(v)
	}
	for _, n := range added {
		sep()
		out.Write(mustQuote(n))
		out.WriteByte(':')
		out.Write(change[n])
	}
	out.Write(raw[end:])
	return out.Bytes()
}
