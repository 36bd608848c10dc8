package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"countersign/agent"
	"countersign/agent/jsonobject"
	"countersign/config"
	"countersign/internal/redact"
)

// spilt is the secret of these tests. The secret contains letters of both cases, and characters that are escaped in
// JSON or in URLs.
const spilt = `s3cr3t/K"e\y-é-1234`

// escapedAll writes a text as JSON in which every character is escaped.
func escapedAll(s string) string {
	var b strings.Builder
	for _, c := range s {
		fmt.Fprintf(&b, `\u%04X`, c)
	}
	return b.String()
}

func init() {
	scriptedServers["spills"] = acts{"tools/list": func(p *scriptedServer, m wire) {
		key := os.Getenv("KEY")
		p.result(m, `{"tools":[`+aTool+`,`+strings.Replace(strings.Replace(aTool, "Acts.", escapedAll(key), 1), `"act"`, `"tell"`, 1)+`,`+
			strings.Replace(aTool, `"act"`, string(quoted("as-"+key)), 1)+`]}`)
	}, "tools/call": func(p *scriptedServer, m wire) {
		key := os.Getenv("KEY")
		k := string(quoted("<" + key + ">"))
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":1,"message":%s}}`, tokenOf(m), k)
		p.say(`{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"mode":"form","message":%s,"requestedSchema":{"type":"object","properties":{"a":{"type":"string","title":"%s"}}}}}`, k, escapedAll(key))
		p.next()
		inner, _ := json.Marshal(`{"inner":"` + escapedAll(key) + `"}`)
		file := base64.StdEncoding.EncodeToString([]byte("key=" + key))
		p.result(m, `{"content":[{"type":"text","text":`+k+`},{"type":"text","text":`+string(inner)+`},{"type":"resource","resource":{"uri":`+k+`,"text":`+k+`}},`+
			`{"type":"resource_link","uri":`+k+`,"name":`+k+`,"description":`+k+`},{"type":"resource","resource":{"uri":`+string(quoted("file:///"+strings.ReplaceAll(key, "/", "%2F")))+`,"mimeType":"text/plain","blob":"AAAA"}},`+
			`{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","blob":"`+file+`"}},{"type":`+k+`}],`+
			`"structuredContent":{"a":"`+escapedAll(key)+`",`+k+`:[ 1.0, 12345678 , true, "plain \u00e9" ]}}`)
	}}
}

// TestSecretsStayHere checks that a server can't reveal a secret from the policy to the model or to people. The
// server writes the secret in different encodings.
func TestSecretsStayHere(t *testing.T) {
	t.Setenv("SPILT_KEY", spilt)
	t.Setenv("SPILT_PIN", "12345678")
	s := program(t, "bad", "spills")
	s.Env["KEY"], s.Env["PIN"] = "${SPILT_KEY}", "${SPILT_PIN}"
	c, o := running(t, quick(), s)
	tool := o.tool(t, "bad.act")
	var seen []string
	see := func(v any) { seen = append(seen, fmt.Sprintf("%+v", v)) }
	text, err := tool.Run(t.Context(), agent.Invocation{
		Args: []byte(`{}`), Progress: func(p agent.Progress) { see(p) }, Attach: func(f agent.File) error { see(f.Name + string(f.Data)); return nil },
		Ask: func(_ context.Context, f agent.Form) (agent.Reply, error) {
			see(f.Text + string(f.Schema))
			return agent.Reply{Action: agent.ReplyDeclined}, nil
		},
	})
	if err != nil || len(seen) != 3 {
		t.Fatalf("%v, %q", err, seen)
	}
	see(text)
	for _, one := range seen {
		if strings.Contains(one, "s3cr3t") || strings.Contains(one, "12345678") || strings.Contains(one, `\u0073`) || strings.Contains(one, "1234") || !strings.Contains(one, "removed") {
			t.Errorf("%s", one)
		}
	}
	for _, want := range []string{
		"<(removed)>\n", `{"inner":"(removed)"}`, "[resource <(removed)>]\n<(removed)>", "<(removed)> <(removed)> <(removed)>]", "file, text/plain, 24 bytes: left out, because it contains a secret",
		`{"a":"(removed)","\u003c(removed)\u003e":[ 1.0, "(removed)" , true, "plain \u00e9" ]}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if names := o.names(); len(names) != 1 {
		t.Errorf("tools with the secret in their definition are offered: %q", names)
	}
	if problem := c.Status()[0].Problem; !strings.Contains(problem, "repeats a value that the policy gives the server as a secret") || strings.Contains(problem, "s3cr3t") {
		t.Errorf("%q", problem)
	}
	if _, err := c.Tool("bad", []byte(`{"name":"act","description":"`+escapedAll(spilt)+`","inputSchema":{}}`)); !errors.Is(err, ErrDefinition) {
		t.Errorf("the lock file's: %v", err)
	}
}

// TestReplacedSecret checks a secret that is replaced while the client runs. The next connection uses the new value. The
// new value and the old one are masked.
func TestReplacedSecret(t *testing.T) {
	var token atomic.Value
	token.Store("old-secret-value")
	a := &address{act: func(w http.ResponseWriter, r *http.Request, m wire) {
		answerJSON(w, m, `{"content":[{"type":"text","text":"it was old-secret-value, and is `+r.Header.Get("Authorization")+`"}]}`)
	}}
	s := a.at(t)
	s.Headers = map[string]string{"Authorization": "Bearer ${FAR_TOKEN}"}
	o := newOffers()
	c := open(Config{Servers: []config.Server{s}, Offer: o.take, Log: discard, Lookup: func(string) (string, bool) { return token.Load().(string), true }}, quick())
	runUntilEnd(t, c)
	tool := o.tool(t, "far.act")
	live, err := c.servers[0].ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token.Store("new-secret-value")
	live.end()
	if text, err := call(t, tool, `{}`); text != "it was (removed), and is (removed)" {
		t.Errorf("%q, %v", text, err)
	}
	if _, head := a.sent(`"tools/call"`); head.Get("Authorization") != "Bearer new-secret-value" {
		t.Errorf("%v", head)
	}
}

// TestWhatIsSecret checks which values count as secrets: all values from the environment, and literal values whose name
// suggests a secret.
func TestWhatIsSecret(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "aaaaaaaa", "B": "bbbbbbbb", "DIR": "/srv/files", "PATH_TOKEN": "/tttttttt", "SHORT": "abc", "BASIC": base64.StdEncoding.EncodeToString([]byte("name:pppppppp"))}[name]
		return v, ok
	}
	v := redact.NewValues(secretsOf(config.Server{
		Env:     map[string]string{"X": "x-${A}", "API_KEY": "written-out", "MODE": "production", "ROOT": "${DIR}", "T": "${PATH_TOKEN}", "S": "${SHORT}", "KEY_TOKEN": "/etc/token"},
		Headers: map[string]string{"Authorization": "Bearer hhhhhhhh", "X-Auth": "Basic ${BASIC}", "X-Tenant": "acme-corporation"},
		URL:     "https://example.com/${B}", OAuth: &config.OAuth{Issuer: "https://issuer.example", ClientID: "client-1", ClientSecret: "oooooooo"},
	}, lookup))
	for text, secret := range map[string]bool{
		"aaaaaaaa": true, "bbbbbbbb": true, "written-out": true, "/tttttttt": true, "hhhhhhhh": true, "pppppppp": true, "oooooooo": true,
		"production": false, "/srv/files": false, "abc": false, "/etc/token": false, "acme-corporation": false, "https://issuer.example": false, "client-1": false,
	} {
		if v.In("a "+text+" b") != secret || (v.Out("a "+text+" b") == "a (removed) b") != secret {
			t.Errorf("%s: %q", text, v.Out("a "+text+" b"))
		}
	}
}

// TestStateGoesBack checks that the client does not remove secrets from a server's requestState, because the state must
// go back to the server unchanged.
func TestStateGoesBack(t *testing.T) {
	t.Setenv("SPILT_KEY", spilt)
	s := newServer(config.Server{Env: map[string]string{"KEY": "${SPILT_KEY}"}}, Config{Lookup: os.LookupEnv, Log: discard}, quick())
	tap := newTap(discard, *s.secrets.Load(), 1000, func() {}, nil)
	raw := `{"id":1,"result":{"a":` + string(quoted(spilt)) + `,"requestState":` + string(quoted(spilt)) + `}}`
	o, err := jsonobject.Read([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if _, got := tap.masked(o, []byte(raw)); string(got) != `{"id":1,"result":{"a":"(removed)","requestState":`+string(quoted(spilt))+`}}` {
		t.Errorf("%s", got)
	}
}
