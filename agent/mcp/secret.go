package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/config"
	"countersign/internal/redact"
)

// secretsOf are what the policy gives a server and what must not come back from it: what stands in place of ${NAME}, and what is written out under the name of a secret. A path
// is none: it leads to one.
func secretsOf(s config.Server, lookup func(string) (string, bool)) redact.Values {
	var out []string
	take := func(name, text string, secret bool) {
		for _, variable := range config.Variables(text) {
			if v, ok := lookup(variable); ok && (secret || redact.Variable(variable) || !strings.HasPrefix(v, "/")) {
				out = append(out, v)
			}
		}
		if whole, err := config.Expand(text, lookup); err == nil && secret {
			out = append(out, whole)
			if _, credentials, ok := strings.Cut(whole, " "); ok {
				out = append(out, credentials)
			}
		}
	}
	for name, text := range s.Env {
		take(name, text, redact.Variable(name) && !strings.HasPrefix(text, "/"))
	}
	for name, text := range s.Headers {
		take(name, text, redact.Header(name))
	}
	take("url", s.URL, false)
	if s.OAuth != nil {
		take("issuer", s.OAuth.Issuer, false)
		take("id", s.OAuth.ClientID, false)
		take("secret", s.OAuth.ClientSecret, true)
	}
	return redact.NewValues(out)
}

// masked is a message of the server without the secrets that it was given. A list of tools stays as it is: what is pinned are its bytes, and a tool
// that repeats a secret is not offered.
func (t *tap) masked(o object, raw []byte) (object, []byte) {
	if !t.secrets.In(string(raw)) || !o.has("method") && t.isList(string(o.get("id"))) {
		return o, raw
	}
	for i, m := range o {
		switch m.name {
		case "params", "result", "error":
			o[i].value = maskJSON(m.value, t.secrets)
			if state := o.object(m.name).get("requestState"); state != nil { // it goes back to the server alone, and has to be what it was
				before, _ := readObject(m.value)
				o[i].value = o.object(m.name).with("requestState", before.get("requestState")).bytes()
			}
		}
	}
	return o, o.bytes()
}

// isList reports whether an id is that of a question for the list of tools.
func (t *tap) isList(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pending[id]
	return p != nil && p.method == "tools/list"
}

// maskJSON takes secrets out of all texts, names and numbers of a value. All else keeps its bytes.
func maskJSON(raw json.RawMessage, secrets redact.Values) json.RawMessage {
	dec := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(raw)))
	var out bytes.Buffer
	for written := int64(0); ; {
		before := dec.InputOffset()
		token, err := dec.ReadToken()
		if err != nil { // the end: the message was read as a whole before
			out.Write(raw[written:])
			return out.Bytes()
		}
		if kind := token.Kind(); kind != '"' && kind != '0' {
			continue
		}
		text := token.String()
		clean := secrets.Out(text)
		if clean == text {
			continue
		}
		for bytes.IndexByte([]byte(" \t\r\n,:"), raw[before]) >= 0 {
			before++
		}
		out.Write(raw[written:before])
		out.Write(quoted(clean))
		written = dec.InputOffset()
	}
}
