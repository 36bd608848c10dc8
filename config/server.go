package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/agent/egress"
	"countersign/approvers"
)

// Server is an MCP server whose tools are offered. It has either a command or an address. Env, URL, Headers and OAuth may name variables of the
// environment: see [Expand].
type Server struct {
	Name    string
	Command []string          // the program and its arguments, for a server that speaks on its standard input and output
	Env     map[string]string // what the program finds in its environment, besides a path and a language
	Dir     string            // where the program starts; empty: where this one runs

	URL     string // of a server that speaks streamable HTTP
	Headers map[string]string
	OAuth   *OAuth
	Allow   []string // networks and hosts that the address may lead to although they are private

	Bare             bool // its tools are called as it calls them, without the server's name before them
	TrustAnnotations bool // what it says of its tools' nature counts where the policy does not name a tool
	Timeout          time.Duration
	MaxResult        int                         // bytes of one result, as the server sends it
	Effects          map[string]approvers.Effect // what a second run of a tool would do, by the server's name for the tool
}

// OAuth is how a program without a person signs in: the client credentials grant. The secret goes to the issuer alone.
type OAuth struct {
	Issuer       string
	ClientID     string
	ClientSecret string
}

// What holds for an MCP server where the policy says nothing, and the most that it can say.
const (
	serverTimeout   = 30 * time.Second
	serverMaxResult = 1 << 20
	// MaxServerResult is the largest result of an MCP server that the policy can allow, in bytes.
	MaxServerResult   = 12 << 20
	longestRun        = time.Hour
	leastServerResult = 1 << 10
)

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
	serverKeys = []string{"command", "env", "dir", "url", "headers", "oauth", "allow", "prefix", "trust_annotations", "timeout", "max_result", "effects"}
	overHTTP   = []string{"headers", "oauth", "allow"}
	overPipes  = []string{"env", "dir"}
)

func (r *reader) server(e entry) Server {
	s := Server{Name: e.key, Timeout: serverTimeout, MaxResult: serverMaxResult}
	if !serverName.MatchString(e.key) {
		r.wrongAt(e.at, e.value.path+": no server can be called that", "a server's name has 1 to 32 letters, digits, _ and -, and begins with a letter or digit")
	}
	f := e.value.fields(serverKeys...)
	switch {
	case f.has("command") && f.has("url"):
		f["url"].wrong("there is a command too", "keep one of them: a server is either started or called at its address")
	case !f.has("command") && !f.has("url") && e.value.isMapping() && f.readable():
		r.wrongAt(e.at, e.value.path+": does not say how to reach it", `add command: [npx, -y, some-server], or url: "https://…"`)
	}
	for _, key := range overHTTP {
		if f.has(key) && f.has("command") && !f.has("url") {
			f[key].wrong("belongs to a server that has an address", "remove it; what a started server needs goes into env")
		}
	}
	for _, key := range overPipes {
		if f.has(key) && f.has("url") && !f.has("command") {
			f[key].wrong("belongs to a server that is started by a command", "remove it; what a server at an address needs goes into headers")
		}
	}
	if v, ok := f["command"]; ok {
		s.Command = v.command()
	}
	s.Env = f.named("env", "NAME: value", "a text", variableName, "a variable's name has letters, digits and _")
	if v, ok := f["dir"]; ok {
		s.Dir, _ = v.text("a directory such as /srv/data")
	}
	if v, ok := f["url"]; ok {
		s.URL = v.endpoint(f.has("headers") || f.has("oauth"))
	}
	s.Headers = f.named("headers", `Authorization: "Bearer ${TOKEN}"`, "a header's value", headerName, "a header's name has letters, digits and -")
	if v, ok := f["oauth"]; ok {
		s.OAuth = v.oauth(s.Headers)
	}
	if v, ok := f["allow"]; ok {
		s.Allow = v.allow()
	}
	prefix := true
	f.flag("prefix", &prefix)
	s.Bare = !prefix
	f.flag("trust_annotations", &s.TrustAnnotations)
	if v, ok := f["timeout"]; ok && f.duration("timeout", &s.Timeout) && s.Timeout > longestRun {
		v.wrong(v.shown()+" is too long: the longest is 1h", "write a time such as 30s or 5m")
	}
	if v, ok := f["max_result"]; ok {
		if n, ok := v.size(leastServerResult, MaxServerResult); ok {
			s.MaxResult = n
		}
	}
	if v, ok := f["effects"]; ok {
		s.Effects = v.effects()
	}
	return s
}

// command reads a program with its arguments. They are seen by everybody on the machine, so no secrets go into them.
func (v value) command() []string {
	items, ok := v.list("[npx, -y, some-server]")
	if ok && len(items) == 0 {
		v.wrong("is empty", "write a list, such as [npx, -y, some-server]")
	}
	var out []string
	for i, item := range items {
		text, ok := item.free("a word of the command")
		switch {
		case !ok:
			continue
		case len(Variables(text)) > 0:
			item.wrong("a command line is seen by everybody on the machine, so ${…} is not replaced in it", "give the value to the server in env")
		case i == 0 && strings.ContainsAny(text, " \t"):
			item.wrong(quote(text)+" is a program's name with spaces in it", "write each word by itself: ["+strings.Join(strings.Fields(text), ", ")+"]")
		case strings.ContainsRune(text, 0):
			item.wrong("has a NUL in it", "remove it")
		}
		out = append(out, text)
	}
	return out
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// named reads a mapping of texts that may name variables of the environment.
func (f fieldset) named(key, like, item string, name *regexp.Regexp, names string) map[string]string {
	v, ok := f[key]
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, e := range v.entries("a mapping, such as " + like) {
		if !name.MatchString(e.key) {
			v.r.wrongAt(e.at, e.value.path+": "+quote(e.key)+" is not possible here", names)
			continue
		}
		text, ok := e.value.expandable(item)
		if ok && strings.ContainsAny(text, "\r\n\x00") {
			e.value.wrong("has a line break in it", "write it on one line")
			continue
		}
		if ok {
			out[e.key] = text
		}
	}
	return out
}

// endpoint reads an address of HTTP. One that carries a secret is not called without encryption, except on this machine.
func (v value) endpoint(secret bool) string {
	const like = "an address such as https://crm.example.com/mcp"
	text, ok := v.expandable(like)
	if !ok || len(Variables(text)) > 0 {
		return text // what it is shows when it is used
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.wrong(quote(text)+" is no address of a server", "write "+like)
	case u.User != nil:
		v.wrong("has a name or password in it", "write them into headers, such as Authorization: \"Basic ${…}\"")
	case u.Fragment != "":
		v.wrong("has a # in it, which no server sees", "remove what begins there")
	case secret && u.Scheme == "http" && !onThisMachine(u.Hostname()):
		v.wrong("would send a secret without encryption", "write https://")
	}
	return text
}

func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (v value) oauth(headers map[string]string) *OAuth {
	var o OAuth
	f := v.fields("issuer", "client_id", "client_secret")
	for key, to := range map[string]*string{"client_id": &o.ClientID, "client_secret": &o.ClientSecret} {
		if it, ok := f[key]; ok {
			*to, _ = it.expandable("${NAME}, with the name of a variable of the environment")
		}
	}
	if it, ok := f["issuer"]; ok {
		o.Issuer = it.endpoint(true)
	}
	for _, need := range [][2]string{
		{"issuer", "issuer: https://login.example.com, who alone is given the secret"},
		{"client_id", "client_id: ${CRM_CLIENT_ID}"}, {"client_secret", "client_secret: ${CRM_CLIENT_SECRET}"},
	} {
		if v.isMapping() && f.readable() && !f.has(need[0]) {
			v.wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	for name := range headers {
		if strings.EqualFold(name, "Authorization") {
			v.wrong("there is an Authorization header too", "keep one of them")
		}
	}
	return &o
}

// allow reads which private networks and hosts an address may lead to.
func (v value) allow() []string {
	items, _ := v.list("[10.2.0.0/16] or [crm.internal]")
	var out []string
	for _, item := range items {
		text, ok := item.free("a network such as 10.2.0.0/16, or a host")
		if !ok {
			continue
		}
		if _, err := egress.ParsePermit(text); err != nil {
			item.wrong(quote(text)+" is neither a network nor a host", "write a network such as 10.2.0.0/16, an address such as 10.2.3.4, or a host such as crm.internal, the last two with a port if only one is meant")
			continue
		}
		out = append(out, text)
	}
	return out
}

var effectNames = []string{string(approvers.ReadOnly), string(approvers.Idempotent), string(approvers.Unprotected)}

// effects reads the operator's word on what a second run of a tool would do.
func (v value) effects() map[string]approvers.Effect {
	out := map[string]approvers.Effect{}
	for _, e := range v.entries("a mapping, such as read_file: read-only") {
		if effect, ok := (fieldset{"it": e.value}).choice("it", effectNames); ok {
			out[e.key] = approvers.Effect(effect)
		}
	}
	return out
}

// servers reads the MCP servers.
func (r *reader) servers(v value) []Server {
	var out []Server
	for _, e := range section(v, `the servers: name: {command: [npx, -y, some-server]}`) {
		if _, list := e.value.node.(*ast.SequenceNode); list {
			e.value.wrong("is a list", "write name: {command: […]}")
			continue
		}
		out = append(out, r.server(e))
	}
	return out
}
