package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"countersign/agent/egress"
	"countersign/config/yamldoc"
)

// Address is the URL template of an HTTP tool. Only the path and the values of the query may contain arguments.
type Address struct {
	Base  Template // scheme and host, without arguments
	Path  Template // the text from the first slash on; empty: no path
	Query []QueryPart
}

// QueryPart is one name=value of a query.
type QueryPart struct{ Name, Value Template }

// Arguments lists the distinct arguments of the address.
func (a Address) Arguments() []string {
	names := a.Path.Arguments()
	for _, q := range a.Query {
		names = append(names, q.Value.Arguments()...)
	}
	return yamldoc.SortedUnique(names)
}

// Variables lists the distinct environment variables of the path and the query.
func (a Address) Variables() []string {
	names := a.Path.Variables()
	for _, q := range a.Query {
		names = append(names, q.Value.Variables()...)
	}
	return yamldoc.SortedUnique(names)
}

const likeAddress = `a URL such as "https://api.example.com/v1/places/{place}"`

// readAddress reads a URL template. readAddress accepts a template only if its URL can be parsed, and if no argument of
// a call can change the host.
func readAddress(v yamldoc.Value) (Address, bool) {
	t, ok := readTemplate(v, likeAddress)
	if !ok {
		return Address{}, false
	}
	a, message, hint := splitAddress(t)
	if base, _ := cutTemplate(t, "/?#", len("https://")); strings.Contains(base.String(), "@") ||
		slices.ContainsFunc(a.Query, func(q QueryPart) bool { return WrittenSecret(q.Name.String(), q.Value) }) {
		v.Hide()
	}
	if message == "" {
		message, hint = a.fault()
	}
	if message != "" {
		v.Wrong(message, hint)
		return Address{}, false
	}
	return a, true
}

// splitAddress splits a template into host, path and query.
func splitAddress(t Template) (a Address, message, hint string) {
	if len(t) == 0 || t[0].Variable == "" && !strings.HasPrefix(t[0].Text, "http://") && !strings.HasPrefix(t[0].Text, "https://") {
		return a, quotedAddress(t.String()) + " is not a URL of a server", "write " + likeAddress
	}
	base, rest := cutTemplate(t, "/?#", len("https://"))
	if len(base.Arguments()) > 0 {
		return a, "{" + base.Arguments()[0] + "} stands before the path: the model would choose where requests go", "write scheme and host as they are, or from the environment: ${API_URL}/v1/{id}"
	}
	path, query := cutTemplate(rest, "?", 0)
	a = Address{Base: base, Path: path}
	for len(query) > 0 {
		query = query.skip(1) // the ? or &
		var part Template
		part, query = cutTemplate(query, "&", 0)
		name, value := cutTemplate(part, "=", 0)
		if len(part) == 0 {
			continue
		}
		if len(name.Arguments())+len(name.Variables()) > 0 || len(name) == 0 {
			return a, yamldoc.Quote(part.String()) + " has no plain name", "write name={argument}"
		}
		if slices.ContainsFunc(a.Query, func(q QueryPart) bool { return q.Name.String() == name.String() }) {
			return a, yamldoc.Quote(name.String()) + " appears twice in the query", "an argument that is a list is repeated by itself; keep one of them"
		}
		a.Query = append(a.Query, QueryPart{Name: name, Value: value.skip(1)})
	}
	return a, "", ""
}

// cutTemplate splits a template at the first character of its text that is in chars. The parameter named after is the
// length of the longest scheme, or zero. If after is not zero, cutTemplate skips a scheme such as https:// at the
// beginning.
func cutTemplate(t Template, chars string, after int) (before, rest Template) {
	for i, p := range t {
		if p.Text == "" {
			continue
		}
		from := 0
		if scheme := strings.Index(p.Text, "://"); after > 0 && i < 2 && scheme >= 0 && scheme < after {
			from = scheme + len("://")
		}
		at := strings.IndexAny(p.Text[from:], chars)
		if at < 0 {
			continue
		}
		at += from
		before = slices.Clone(t[:i])
		if at > 0 {
			before = append(before, Piece{Text: p.Text[:at]})
		}
		rest = append(Template{{Text: p.Text[at:]}}, t[i+1:]...)
		return before, rest
	}
	return t, nil
}

// skip removes the first bytes of a template. The template must start with text.
func (t Template) skip(n int) Template {
	if len(t) == 0 {
		return nil
	}
	out := slices.Clone(t)
	if out[0].Text = out[0].Text[n:]; out[0].Text == "" {
		out = out[1:]
	}
	return out
}

// fault describes the fault of an address, or returns "".
func (a Address) fault() (message, hint string) {
	all := slices.Concat(a.Base, a.Path)
	for _, q := range a.Query {
		all = slices.Concat(all, q.Name, q.Value)
	}
	for _, p := range all {
		if i := strings.IndexFunc(p.Text, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", c) }); i >= 0 {
			return yamldoc.Quote(string([]rune(p.Text[i:])[:1])) + " can't stand in a URL", "write it percent-encoded, such as %20 for a space"
		}
		if strings.Contains(p.Text, "#") {
			return "has a # in it, which no server sees", "remove what begins there, or write %23"
		}
	}
	filled := func(t Template) string {
		var b strings.Builder
		for _, p := range t {
			b.WriteString(p.Text)
			if p.Text == "" {
				b.WriteString("x")
			}
		}
		return b.String()
	}
	for segment := range strings.SplitSeq(filled(a.Path), "/") {
		if plain, err := url.PathUnescape(segment); err != nil {
			return yamldoc.Quote(segment) + " is not percent-encoded", "write %25 for a percent sign"
		} else if plain == "." || plain == ".." {
			return "the path has " + plain + " in it", "write the path that is meant"
		}
	}
	if len(a.Base.Variables()) > 0 {
		return "", "" // the values of the variables are unknown until the address is used
	}
	u, err := url.Parse(filled(a.Base) + filled(a.Path))
	if err != nil || u.Host == "" {
		return yamldoc.Quote(a.Base.String()) + " is not a URL of a server", "write " + likeAddress
	}
	if err := egress.CheckURL(u); err != nil {
		return err.Error(), "write " + likeAddress
	}
	return "", ""
}

// Unencrypted reports whether requests to the address leave this machine without encryption. If the host comes from the
// environment, the function returns false, because the host is unknown here.
func (a Address) Unencrypted() bool {
	base := a.Base.String()
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || len(a.Base.Variables()) > 0 {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
}
