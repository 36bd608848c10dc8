package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/agent/jsonobject"
	"countersign/config"
	"countersign/internal/redact"
)

// readSecrets reads the server's current secrets, because a secret may have been replaced since the last connection. The
// earlier secrets stay masked, too.
func (s *server) readSecrets() {
	s.given = append(s.given, secretsOf(s.Server, s.lookup)...)
	slices.Sort(s.given)
	s.given = slices.Compact(s.given)
	values := redact.NewValues(s.given)
	s.secrets.Store(&values)
}

// secretsOf returns the secrets that the policy gives a server. They are masked in the server's output. Secrets are the
// values of ${NAME}, and literal values whose name suggests a secret. A path is not a secret, even if the file at the
// path contains one.
func secretsOf(s config.Server, lookup func(string) (string, bool)) []string {
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
	return out
}

// masked replaces the server's secrets in a message of the server. A list of tools stays unchanged, because the exact
// bytes of the definitions are pinned. A tool whose definition contains a secret is not offered.
func (t *tap) masked(o jsonobject.Object, raw []byte) (jsonobject.Object, []byte) {
	if !t.secrets.In(string(raw)) || !o.Has("method") && t.isList(string(o.Get("id"))) {
		return o, raw
	}
	for i, m := range o {
		switch m.Name {
		case "params", "result", "error":
			o[i].Value = maskJSON(m.Value, t.secrets)
			// The member requestState goes back only to the server, so it stays unchanged.
			if state := o.Object(m.Name).Get("requestState"); state != nil {
				before, _ := jsonobject.Read(m.Value)
				o[i].Value = o.Object(m.Name).With("requestState", before.Get("requestState")).Bytes()
			}
		}
	}
	return o, o.Bytes()
}

// isList reports whether an id belongs to a request for the list of tools.
func (t *tap) isList(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pending[id]
	return p != nil && p.method == "tools/list"
}

// maskJSON replaces secrets in all texts, names and numbers of a JSON value. All other bytes stay unchanged.
func maskJSON(raw json.RawMessage, secrets redact.Values) json.RawMessage {
	dec := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(raw)))
	var out bytes.Buffer
	for written := int64(0); ; {
		before := dec.InputOffset()
		token, err := dec.ReadToken()
		if err != nil { // the end of the value, which is valid JSON
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
