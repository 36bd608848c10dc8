package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"countersign/config"
)

// server determines the address for an operation's requests. server uses the policy's address. If the policy has none,
// server uses the first address of the operation, of its path, or of the file. server returns the address as written,
// without the values of environment variables.
func (a *api) server(o *operation, item, op map[string]any) (string, error) {
	written := a.config.URL.String()
	if len(a.config.URL) == 0 {
		var err error
		if written, err = serverOf(op, item, a.doc.root); err != nil {
			return "", err
		}
		o.base = written
		u, err := url.Parse(written)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("the file's server %.100q names no host; write url: in the policy", written)
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return "", fmt.Errorf("the file's server %.100q has more than a path; write url: in the policy", written)
		}
		if u.Scheme == "http" && a.sendsSecrets() && !loopback(u) {
			return "", fmt.Errorf("the file's server %.100q would be sent a secret without encryption; write url: https://… in the policy", written)
		}
	}
	o.base = strings.TrimRight(o.base, "/")
	return written, nil
}

// sendsSecrets reports whether requests contain values of environment variables.
func (a *api) sendsSecrets() bool {
	for _, h := range a.config.Headers {
		if len(h.Value.Variables()) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(a.config.Query, func(q config.QueryPart) bool { return len(q.Value.Variables()) > 0 })
}

func loopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

var errNoServer = errors.New("the file names no server; write url: in the policy")

// serverOf finds the first object that has servers, and returns the URL of its first server. The variables of the
// server have their default values.
func serverOf(from ...map[string]any) (string, error) {
	for _, o := range from {
		list, _ := o["servers"].([]any)
		if len(list) == 0 {
			continue
		}
		server, _ := list[0].(map[string]any)
		text, _ := server["url"].(string)
		variables, _ := server["variables"].(map[string]any)
		for name, v := range variables {
			of, _ := v.(map[string]any)
			text = strings.ReplaceAll(text, "{"+name+"}", fmt.Sprint(of["default"]))
		}
		if text == "" {
			return "", errNoServer
		}
		return text, nil
	}
	return "", errNoServer
}

// security warns if an operation requires authentication that the policy's headers and query don't provide.
func (a *api) security(method, path string, op map[string]any) {
	wanted, ok := op["security"].([]any)
	if !ok {
		wanted, _ = a.doc.root["security"].([]any)
	}
	var hints []string
	for _, alternative := range wanted {
		schemes, _ := alternative.(map[string]any)
		missing := ""
		for _, name := range sortedKeys(schemes) {
			if hint := a.lacks(name); hint != "" && missing == "" {
				missing = hint
			}
		}
		if missing == "" {
			return // the policy's headers satisfy this alternative
		}
		hints = append(hints, missing)
	}
	hint := strings.Join(slices.Compact(hints), ", or ")
	if hint != "" && !slices.Contains(a.asked, hint) {
		a.asked = append(a.asked, hint)
		a.warn("operations such as "+method+" "+path+" require authentication, and the policy has none for them", hint)
	}
}

// lacks returns a hint for a security scheme that the policy's headers and query don't provide, or "".
func (a *api) lacks(name string) string {
	o, err := a.doc.object(map[string]any{"$ref": "#/components/securitySchemes/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)})
	if err != nil {
		return "describe the security scheme " + name + " in the file"
	}
	kind, _ := o["type"].(string)
	scheme, _ := o["scheme"].(string)
	in, _ := o["in"].(string)
	key, _ := o["name"].(string)
	header, example := "Authorization", `"Bearer ${TOKEN}"`
	switch {
	case kind == "mutualTLS":
		return "a client certificate (mutualTLS) is needed, which is not supported"
	case kind == "http" && strings.EqualFold(scheme, "basic"):
		example = `"Basic ${CREDENTIALS}", the base64 of name:password`
	case kind == "http" && !strings.EqualFold(scheme, "bearer"):
		example = `"` + scheme + ` ${CREDENTIALS}"`
	case kind == "apiKey" && in == "query":
		if slices.ContainsFunc(a.config.Query, func(q config.QueryPart) bool { return q.Name.String() == key }) {
			return ""
		}
		return fmt.Sprintf(`add query: {%s: "${API_KEY}"}`, key)
	case kind == "apiKey" && in == "cookie":
		header, example = "Cookie", `"`+key+`=${API_KEY}"`
	case kind == "apiKey":
		header, example = key, `"${API_KEY}"`
	}
	if slices.ContainsFunc(a.config.Headers, func(h config.Header) bool { return strings.EqualFold(h.Name, header) }) {
		return ""
	}
	return fmt.Sprintf("add headers: {%s: %s}", header, example)
}

// definition returns the definition of an operation, which is the tool's pinned definition. The definition has the
// file's description of the request with all references, the address, and the policy's headers, query and idempotency
// key. It does not have the description of responses.
func (a *api) definition(method, path, server string, item, op map[string]any) json.RawMessage {
	own := map[string]any{}
	for k, v := range op {
		if k != "responses" && k != "callbacks" {
			own[k] = v
		}
	}
	refs := map[string]any{}
	a.doc.refs(own, refs)
	a.doc.refs(item["parameters"], refs)
	headers, query := shown(a.config.Headers), map[string]string{}
	for _, q := range a.config.Query {
		query[q.Name.String()] = q.Value.String()
	}
	out := map[string]any{"openapi": a.doc.root["openapi"], "server": server, "method": method, "path": path, "operation": own}
	for key, v := range map[string]any{"parameters": item["parameters"], "security": a.doc.root["security"]} {
		if v != nil {
			out[key] = v
		}
	}
	if len(refs) > 0 {
		out["references"] = refs
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
	if len(query) > 0 {
		out["query"] = query
	}
	if a.config.IdempotencyKey != "" {
		out["idempotency_key"] = a.config.IdempotencyKey
	}
	return encoded(json.Marshal(out))
}
