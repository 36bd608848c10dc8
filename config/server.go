package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"countersign/agent/egress"
	"countersign/approvers"
	"countersign/config/yamldoc"
)

// Server is an MCP server. Server has either a command or a URL. Env, URL, Headers and OAuth may contain environment
// variables: see [Expand].
type Server struct {
	Name    string
	Command []string          // program and arguments, for a server that speaks on its standard input and output
	Env     map[string]string // environment variables of the program, in addition to PATH, HOME, LANG and TMPDIR
	Dir     string            // working directory of the program; empty: the working directory of this process

	URL     string // address of a server that uses streamable HTTP
	Headers map[string]string
	OAuth   *OAuth
	Allow   []string // permitted private networks and hosts

	Bare             bool // its tools are offered under their own names, without the server's name in front
	TrustAnnotations bool // the bot uses the server's annotations: for the effect of a tool and, if the policy does not name the tool, for its risk
	Timeout          time.Duration
	MaxResult        int                         // maximum size of one result as the server sends it, in bytes
	Effects          map[string]approvers.Effect // by the server's name for the tool: whether a second run repeats the tool's effect
}

// OAuth configures the client credentials grant, which is a sign-in without a person. The secret is sent only to the
// issuer.
type OAuth struct {
	Issuer       string
	ClientID     string
	ClientSecret string
}

// Defaults and limits of MCP servers.
const (
	serverTimeout   = 30 * time.Second
	serverMaxResult = 1 << 20
	// MaxServerResult is the maximum of a server's max_result, in bytes.
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

func readServer(e yamldoc.Entry) Server { //nolint:cyclop // one case for each key
	s := Server{Name: e.Key, Timeout: serverTimeout, MaxResult: serverMaxResult}
	if !serverName.MatchString(e.Key) {
		e.Wrong("is not a valid name for a server", "a server's name has 1 to 32 letters, digits, _ and -, and begins with a letter or digit")
	}
	f := e.Value.Fields(serverKeys...)
	switch {
	case f.Has("command") && f.Has("url"):
		f["url"].Wrong("there is a command too", "keep one of them: a server either is started by a command or has a url")
	case !f.Has("command") && !f.Has("url") && e.Value.IsMapping() && f.Readable():
		e.Wrong("does not say how to reach it", `add command: [npx, -y, some-server], or url: "https://…"`)
	}
	for _, key := range overHTTP {
		if f.Has(key) && f.Has("command") && !f.Has("url") {
			f[key].Wrong("belongs to a server that has a url", "remove it; what a started server needs goes into env")
		}
	}
	for _, key := range overPipes {
		if f.Has(key) && f.Has("url") && !f.Has("command") {
			f[key].Wrong("belongs to a server that is started by a command", "remove it; what a server with a url needs goes into headers")
		}
	}
	if v, ok := f["command"]; ok {
		s.Command = readCommand(v)
	}
	s.Env = readNamed(f, "env", "NAME: value", "a text", variableName, "a variable's name has letters, digits and _")
	if v, ok := f["dir"]; ok {
		s.Dir, _ = v.Text("a directory such as /srv/data")
	}
	if v, ok := f["url"]; ok {
		s.URL = readServerURL(v, f.Has("headers") || f.Has("oauth"))
	}
	s.Headers = readNamed(f, "headers", `Authorization: "Bearer ${TOKEN}"`, "a header's value", headerName, "a header's name has letters, digits and -")
	if v, ok := f["oauth"]; ok {
		s.OAuth = readOAuth(v, s.Headers)
	}
	if v, ok := f["allow"]; ok {
		s.Allow = readPermits(v)
	}
	prefix := true
	f.Flag("prefix", &prefix)
	s.Bare = !prefix
	f.Flag("trust_annotations", &s.TrustAnnotations)
	if v, ok := f["timeout"]; ok && f.Duration("timeout", &s.Timeout) && s.Timeout > longestRun {
		v.Wrong(v.Shown()+" is too long: the longest is 1h", "write a time such as 30s or 5m")
	}
	if v, ok := f["max_result"]; ok {
		if n, ok := v.Size(leastServerResult, MaxServerResult); ok {
			s.MaxResult = n
		}
	}
	if v, ok := f["effects"]; ok {
		s.Effects = readEffects(v)
	}
	return s
}

// readCommand reads a program and its arguments. The arguments must not contain secrets, because everybody on the
// machine can read the arguments.
func readCommand(v yamldoc.Value) []string {
	items, ok := v.List("[npx, -y, some-server]")
	if ok && len(items) == 0 {
		v.Wrong("is empty", "write a list, such as [npx, -y, some-server]")
	}
	var out []string
	for i, item := range items {
		text, ok := item.Free("a word of the command")
		switch {
		case !ok:
			continue
		case len(Variables(text)) > 0:
			item.Wrong("a command line is seen by everybody on the machine, so ${…} is not replaced in it", "give the value to the server in env")
		case i == 0 && strings.ContainsAny(text, " \t"):
			item.Wrong(yamldoc.Quote(text)+" is a program's name with spaces in it", "write each word by itself: ["+strings.Join(strings.Fields(text), ", ")+"]")
		case strings.ContainsRune(text, 0):
			item.Wrong("has a NUL in it", "remove it")
		}
		out = append(out, text)
	}
	return out
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// readNamed reads a mapping of texts that may contain environment variables.
func readNamed(f yamldoc.Fields, key, like, item string, name *regexp.Regexp, names string) map[string]string {
	v, ok := f[key]
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, e := range v.Entries("a mapping, such as " + like) {
		if !name.MatchString(e.Key) {
			e.Wrong(yamldoc.Quote(e.Key)+" is not possible here", names)
			continue
		}
		text, ok := readExpandable(e.Value, item)
		if secretName(e.Key) && len(Variables(text)) == 0 {
			e.Value.Hide()
		}
		if ok && strings.ContainsAny(text, "\r\n\x00") {
			e.Value.Wrong("has a line break in it", "write it on one line")
			continue
		}
		if ok {
			out[e.Key] = text
		}
	}
	return out
}

// readServerURL reads and validates a server's URL. If secret is true, requests contain a secret, so an http URL must
// lead to this machine.
func readServerURL(v yamldoc.Value, secret bool) string {
	const like = "a URL such as https://crm.example.com/mcp"
	text, ok := readExpandable(v, like)
	if !ok || len(Variables(text)) > 0 {
		return text // the values of the variables are unknown until the address is used
	}
	if mayHoldSecret(text) {
		v.Hide()
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.Wrong(quotedAddress(text)+" is not a URL of a server", "write "+like)
	case u.User != nil:
		v.Wrong("has a name or password in it", "write them into headers, such as Authorization: \"Basic ${…}\"")
	case u.Fragment != "":
		v.Wrong("has a # in it, which no server sees", "remove what begins there")
	case secret && u.Scheme == "http" && !onThisMachine(u.Hostname()):
		v.Wrong("would send a secret without encryption", "write https://")
	}
	return text
}

func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func readOAuth(v yamldoc.Value, headers map[string]string) *OAuth {
	var o OAuth
	f := v.Fields("issuer", "client_id", "client_secret")
	for key, to := range map[string]*string{"client_id": &o.ClientID, "client_secret": &o.ClientSecret} {
		if it, ok := f[key]; ok {
			*to, _ = readExpandable(it, "${NAME}, with the name of a variable of the environment")
			if secretName(key) && len(Variables(*to)) == 0 {
				it.Hide()
			}
		}
	}
	if it, ok := f["issuer"]; ok {
		o.Issuer = readServerURL(it, true)
	}
	for _, need := range [][2]string{
		{"issuer", "issuer: https://login.example.com, the only server that receives the secret"},
		{"client_id", "client_id: ${CRM_CLIENT_ID}"}, {"client_secret", "client_secret: ${CRM_CLIENT_SECRET}"},
	} {
		if v.IsMapping() && f.Readable() && !f.Has(need[0]) {
			v.Wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	for name := range headers {
		if strings.EqualFold(name, "Authorization") {
			v.Wrong("there is an Authorization header too", "keep one of them")
		}
	}
	return &o
}

// readPermits reads the permitted private networks and hosts.
func readPermits(v yamldoc.Value) []string {
	items, _ := v.List("[10.2.0.0/16] or [crm.internal]")
	var out []string
	for _, item := range items {
		text, ok := item.Free("a network such as 10.2.0.0/16, or a host")
		if !ok {
			continue
		}
		if _, err := egress.ParsePermit(text); err != nil {
			item.Wrong(yamldoc.Quote(text)+" is neither a network nor a host", "write a network such as 10.2.0.0/16, an address such as 10.2.3.4, or a host such as crm.internal; a port after an address or a host permits only that port")
			continue
		}
		out = append(out, text)
	}
	return out
}

var effectNames = []string{string(approvers.ReadOnly), string(approvers.Idempotent), string(approvers.Unprotected)}

// readEffects reads the effects of a second run, as declared by the operator.
func readEffects(v yamldoc.Value) map[string]approvers.Effect {
	out := map[string]approvers.Effect{}
	for _, e := range v.Entries("a mapping, such as read_file: read-only") {
		if effect, ok := (yamldoc.Fields{"it": e.Value}).Choice("it", effectNames); ok {
			out[e.Key] = approvers.Effect(effect)
		}
	}
	return out
}

// readServers reads the MCP servers.
func readServers(v yamldoc.Value) []Server {
	var out []Server
	for _, e := range section(v, `the servers: name: {command: [npx, -y, some-server]}`) {
		if e.Value.IsList() {
			e.Value.Wrong("is a list", "write name: {command: […]}")
			continue
		}
		out = append(out, readServer(e))
	}
	return out
}
