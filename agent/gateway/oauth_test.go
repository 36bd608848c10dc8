package gateway

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"countersign/approvers"
)

const resource = "https://gate.example.com/agents"

// issuerHarness has an authorization server, and a gateway that accepts the server's tokens.
type issuerHarness struct {
	*Gateway
	*testing.T
	url     string
	keys    map[string]crypto.Signer // by key id
	served  []string                 // key ids that the server publishes
	foreign []string                 // entries of the key set that are not keys of the server
	down    bool
	reads   atomic.Int64 // number of reads of the keys
	clock   time.Time
	policy  *approvers.Policy
}

func newIssuer(t *testing.T) *issuerHarness {
	t.Helper()
	h := &issuerHarness{T: t, keys: map[string]crypto.Signer{}, served: []string{"rsa", "ec", "ed"}, clock: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	for _, id := range []string{"rsa", "next"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		h.keys[id] = key
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h.keys["ec"], h.keys["ed"] = ec, ed
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case h.down:
			w.WriteHeader(http.StatusBadGateway)
		case r.URL.Path == "/tenant/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": h.url, "jwks_uri": strings.TrimSuffix(h.url, "/tenant") + "/keys"})
		case r.URL.Path == "/keys":
			h.reads.Add(1)
			var set jose.JSONWebKeySet
			for _, id := range h.served {
				set.Keys = append(set.Keys, jose.JSONWebKey{Key: h.keys[id].Public(), KeyID: id, Use: "sig"})
			}
			all := map[string][]any{"keys": {}}
			for _, raw := range h.foreign {
				all["keys"] = append(all["keys"], json.RawMessage(raw))
			}
			for _, key := range set.Keys {
				all["keys"] = append(all["keys"], key)
			}
			_ = json.NewEncoder(w).Encode(all)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	h.url = server.URL + "/tenant"
	client := func(name, algorithm, person string) approvers.Client {
		return approvers.Client{Name: name, OAuth: &approvers.OAuth{Issuer: h.url, Subject: name + "-id", Person: person, Algorithm: algorithm, Allow: []string{"127.0.0.1"}}}
	}
	signIn := client("sign-in", "RS256", "slack")
	signIn.OAuth.Subject, signIn.OAuth.ClientID = "", "cli"
	both := client("ec", "ES256", "slack")
	both.OAuth.ClientID = "ec-app"
	h.policy = &approvers.Policy{Clients: []approvers.Client{
		{Name: "static", Token: hashOf([]byte(testToken))}, client("rsa", "RS256", "slack"), both, client("ed", "EdDSA", ""), signIn,
	}}
	h.Gateway, err = New(t.Context(), Config{
		Callers: fakeCallers{}, Views: &fakeViews{}, Policy: func() *approvers.Policy { return h.policy }, Key: NewReceiptKey(), Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return h.clock }, Resource: resource,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// claims returns the claims of a token of the client rsa, with changes. A nil value removes a claim.
func (h *issuerHarness) claims(changes map[string]any) map[string]any {
	out := map[string]any{"iss": h.url, "sub": "rsa-id", "aud": resource, "exp": h.clock.Add(time.Minute).Unix(), "iat": h.clock.Unix()}
	for name, value := range changes {
		if out[name] = value; value == nil {
			delete(out, name)
		}
	}
	return out
}

// token returns a token: the claims, signed with a key.
func (h *issuerHarness) token(algorithm, key string, claims map[string]any, headers ...any) string {
	h.Helper()
	o := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", key)
	for i := 0; i < len(headers); i += 2 {
		o = o.WithHeader(jose.HeaderKey(headers[i].(string)), headers[i+1])
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: h.keys[key]}, o)
	if err != nil {
		h.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(claims).Serialize()
	if err != nil {
		h.Fatal(err)
	}
	return token
}

// who authenticates a request with a token, and returns the names of the client and of the person.
func (h *issuerHarness) who(token string) (string, error) {
	c, err := h.Authenticate(testRequest(context.Background(), http.MethodGet, "/v1/requests/req_1", "", "Authorization", "Bearer "+token))
	return c.Name + " for " + c.ActsFor, err
}

// A token belongs to a client, or to a person for whom a client acts.
func TestAccessTokens(t *testing.T) {
	h := newIssuer(t)
	for want, token := range map[string]string{
		"rsa for ":          h.token("RS256", "rsa", h.claims(nil)),
		"ec for ":           h.token("ES256", "ec", h.claims(map[string]any{"sub": "ec-id"})),
		"ec for \x00app":    h.token("ES256", "ec", h.claims(map[string]any{"sub": "ec-id", "azp": "ec-app"})),
		"ec for U0006":      h.token("ES256", "ec", h.claims(map[string]any{"sub": "kim", "azp": "ec-app", "slack": "U0006"})),
		"ed for ":           h.token("EdDSA", "ed", h.claims(map[string]any{"sub": "ed-id", "aud": []string{"another", resource}}), "typ", "JWT"),
		"rsa for U0002":     h.token("RS256", "rsa", h.claims(map[string]any{"sub": "teo@example.com", "act": map[string]any{"sub": "rsa-id"}, "slack": "U0002"})),
		"rsa for U0003":     h.token("RS256", "rsa", h.claims(map[string]any{"sub": "x", "act": map[string]any{"sub": "rsa-id", "act": map[string]any{"sub": "ec-id"}}, "slack": "U0003"})),
		"static for ":       testToken,
		"rsa for \x00mcp":   h.token("RS256", "rsa", h.claims(map[string]any{"aud": resource + "/mcp"})),
		"sign-in for U0004": h.token("RS256", "rsa", h.claims(map[string]any{"sub": "sam@example.com", "client_id": "cli", "slack": "U0004"})),
		"sign-in for U0005": h.token("RS256", "rsa", h.claims(map[string]any{"sub": "kim@example.com", "azp": "cli", "slack": "U0005"})),
		"rsa for \x00skew":  h.token("RS256", "rsa", h.claims(map[string]any{"exp": h.clock.Add(-tokenLeeway / 2).Unix(), "nbf": h.clock.Add(tokenLeeway / 2).Unix()})),
		"rsa for \x00claim": h.token("RS256", "rsa", h.claims(map[string]any{"slack": "U0002", "on_behalf_of": "U0002"})), // without the claim "act", the client acts for no person
	} {
		want, _, _ = strings.Cut(want, "\x00")
		if got, err := h.who(token); err != nil || got != want {
			t.Errorf("it is a token of %q (%v), want %q", got, err, want)
		}
	}
	if n := h.reads.Load(); n != 1 {
		t.Errorf("the keys were read %d times", n)
	}
	c, err := h.Authenticate(testRequest(context.Background(), http.MethodGet, "/", "", "Authorization", "Bearer "+h.token("RS256", "rsa", h.claims(nil))))
	if err != nil || !c.Until.Equal(h.clock.Add(time.Minute)) {
		t.Errorf("the token is valid until %s (%v)", c.Until, err)
	}
}

// A stream of events ends when its token expires.
func TestStreamEndsWithToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request := edited(`{"a":1}`)
		g := testGateway(t, fakeCallers{}, &fakeViews{request: request})
		began := time.Now()
		client := testPolicy.Clients[0]
		client.Until = began.Add(20 * time.Minute)
		r := testRequest(t.Context(), http.MethodGet, "/v1/requests/req_1", "", "Accept", "text/event-stream")
		if err := g.stream(httptest.NewRecorder(), r, client, "req_1"); err != nil || time.Since(began) != 20*time.Minute {
			t.Errorf("the stream ended after %s (%v)", time.Since(began), err)
		}
	})
}

// Each of these tokens has one wrong part and is refused.
func TestAttackedTokens(t *testing.T) {
	h := newIssuer(t)
	if _, err := h.who(h.token("RS256", "rsa", h.claims(nil))); err != nil {
		t.Fatal(err)
	}
	good := h.token("RS256", "rsa", h.claims(nil))
	parts := strings.Split(good, ".")
	encoded := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	public, err := x509.MarshalPKIXPublicKey(h.keys["rsa"].Public())
	if err != nil {
		t.Fatal(err)
	}
	confused, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})}, (&jose.SignerOptions{}).WithHeader("kid", "rsa"))
	if err != nil {
		t.Fatal(err)
	}
	hmac, err := jwt.Signed(confused).Claims(h.claims(nil)).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	act := func(sub any) map[string]any { return map[string]any{"sub": sub} }
	with := func(name string, value any) string {
		return h.token("RS256", "rsa", h.claims(map[string]any{name: value}))
	}
	acting := func(changes map[string]any) string {
		claims := h.claims(map[string]any{"sub": "teo@example.com", "act": act("rsa-id"), "slack": "U0002"})
		for name, value := range changes {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		}
		return h.token("RS256", "rsa", claims)
	}
	for what, token := range map[string]string{
		"no signature":                   encoded(map[string]string{"alg": "none"}) + "." + parts[1] + ".",
		"a cut signature":                parts[0] + "." + parts[1] + ".",
		"HMAC with the public key":       hmac,
		"other claims, same signature":   parts[0] + "." + encoded(h.claims(map[string]any{"aud": resource, "slack": "U0002"})) + "." + parts[2],
		"a key of the sender":            h.token("RS256", "next", h.claims(nil), "jwk", jose.JSONWebKey{Key: h.keys["next"].Public()}),
		"a key id of another key":        h.token("RS256", "next", h.claims(nil), "kid", "rsa"),
		"an unknown key":                 h.token("RS256", "next", h.claims(nil)),
		"another algorithm of the key":   h.token("PS256", "rsa", h.claims(nil)),
		"another client's algorithm":     h.token("ES256", "ec", h.claims(nil)),
		"another audience":               with("aud", "https://other.example.com"),
		"an audience that begins alike":  with("aud", resource+"/"),
		"an audience below the endpoint": with("aud", resource+"/mcp/"),
		"no audience":                    with("aud", nil),
		"expired":                        with("exp", h.clock.Add(-time.Minute).Unix()),
		"no end":                         with("exp", nil),
		"not yet valid":                  with("nbf", h.clock.Add(time.Minute).Unix()),
		"issued in the future":           with("iat", h.clock.Add(time.Minute).Unix()),
		"another issuer":                 with("iss", "https://login.example.com"),
		"another subject":                with("sub", "desk-id"),
		"no subject":                     with("sub", nil),
		"bound to its sender":            with("cnf", map[string]string{"jkt": "x"}),
		"a receipt":                      h.token("RS256", "rsa", h.claims(nil), "typ", ReceiptType),
		"a person without act":           with("sub", "teo@example.com"),
		"signed in elsewhere":            acting(map[string]any{"act": nil, "client_id": "rsa-id"}),
		"signed in without Slack":        acting(map[string]any{"act": nil, "client_id": "cli", "slack": nil}),
		"the client itself signs in":     with("sub", "cli"),
		"a person named like a client":   h.token("RS256", "rsa", h.claims(map[string]any{"client_id": "cli"})),
		"a person of another app":        h.token("ES256", "ec", h.claims(map[string]any{"sub": "ec-id", "azp": "app"})),
		"client_id and azp differ":       acting(map[string]any{"act": nil, "client_id": "another", "azp": "cli"}),
		"an act, with a client_id":       acting(map[string]any{"act": act("desk-id"), "client_id": "cli"}),
		"an act of the client_id":        acting(map[string]any{"act": act("cli"), "client_id": "cli"}),
		"an act of another agent":        acting(map[string]any{"act": act("desk-id")}),
		"an act of nobody":               acting(map[string]any{"act": map[string]any{}}),
		"an act without a person":        acting(map[string]any{"sub": nil}),
		"a person without Slack":         acting(map[string]any{"slack": nil}),
		"a person of another kind":       acting(map[string]any{"slack": "caller:ci"}),
		"a person who is a list":         acting(map[string]any{"slack": []string{"U0002"}}),
		"an act of another issuer":       acting(map[string]any{"act": map[string]any{"sub": "rsa-id", "iss": "https://other.example.com"}}),
		"an agent that acts for nobody":  h.token("EdDSA", "ed", h.claims(map[string]any{"sub": "teo@example.com", "act": act("ed-id"), "slack": "U0002"})),
		"too long":                       with("x", strings.Repeat("x", maxToken)),
		"not a token":                    "a.b.c",
		"a critical header":              h.token("RS256", "rsa", h.claims(nil), "crit", []string{"x"}),
		"the static token, and two dots": testToken + "..",
	} {
		if got, err := h.who(token); !errors.Is(err, unauthorized) {
			t.Errorf("%s: it is a token of %q (%v)", what, got, err)
		}
	}
	h.tokens.resource = ""
	if _, err := h.who(good); !errors.Is(err, unauthorized) {
		t.Errorf("without an address of the gateway: %v", err)
	}
	h.tokens.resource = resource
	h.policy = &approvers.Policy{Clients: h.policy.Clients[:1]}
	if _, err := h.who(good); !errors.Is(err, unauthorized) {
		t.Errorf("after the client was removed: %v", err)
	}
}

// If a key can't be read, for example because its kind is unknown, the gateway uses the other keys.
func TestForeignKeys(t *testing.T) {
	h := newIssuer(t)
	h.foreign = []string{
		`{"kty":"AKP","alg":"ML-DSA-44","kid":"new","pub":"AAAA"}`, `{"kty":"OKP","crv":"Ed448","x":"AAAA","kid":"ed448"}`, `{"kty":"RSA","kid":"bad","n":"!"}`,
		`{"kty":"oct","kid":"rsa","k":"c2VjcmV0"}`, `{}`, `null`, `"x"`,
	}
	if _, err := h.who(h.token("RS256", "rsa", h.claims(nil))); err != nil {
		t.Errorf("beside keys of other kinds: %v", err)
	}
	h.foreign, h.served = []string{`{"kty":"oct","kid":"rsa","k":"c2VjcmV0"}`}, nil
	h.clock = h.clock.Add(keysStale)
	if _, err := h.who(h.token("RS256", "rsa", h.claims(nil))); err == nil {
		t.Error("a set without public keys is used")
	}
}

// The gateway reads an issuer's keys rarely, even if tokens with unknown keys arrive. The gateway finds new keys. If
// the issuer is down, the gateway uses the old keys for a limited time.
func TestKeysOfIssuer(t *testing.T) {
	h := newIssuer(t)
	own := func(key string) error {
		_, err := h.who(h.token("RS256", key, h.claims(nil)))
		return err
	}
	if err := own("rsa"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := own("next"); !errors.Is(err, unauthorized) {
			t.Fatalf("an unknown key: %v", err)
		}
	}
	if n := h.reads.Load(); n != 1 {
		t.Errorf("tokens with an unknown key made the keys be read %d times", n)
	}
	h.served = []string{"next"}
	h.clock = h.clock.Add(keysPause)
	if err := own("next"); err != nil {
		t.Errorf("a new key: %v", err)
	}
	if err := own("rsa"); !errors.Is(err, unauthorized) {
		t.Errorf("a key that was removed: %v", err)
	}
	h.down = true
	h.clock = h.clock.Add(keysStale - time.Second)
	if err := own("next"); err != nil {
		t.Errorf("while the issuer is down: %v", err)
	}
	h.clock = h.clock.Add(keysPause)
	if err := own("next"); err == nil || errors.Is(err, unauthorized) || problemOf(err).status != http.StatusServiceUnavailable {
		t.Errorf("when the issuer was down for long: %v", err)
	}
	h.policy.Clients[1].OAuth.Allow = nil // without an allow entry, the guard refuses this machine
	h.down = false
	if err := own("next"); err == nil || !strings.Contains(err.Error(), "this machine") {
		t.Errorf("an issuer on this machine: %v", err)
	}
}

// A client finds the authorization server from the answer 401 and the metadata.
func TestResourceMetadata(t *testing.T) {
	h := newIssuer(t)
	get := func(path, token string) *httptest.ResponseRecorder {
		reply, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		h.ServeHTTP(reply, r)
		return reply
	}
	const at = `Bearer realm="countersign", resource_metadata="https://gate.example.com/.well-known/oauth-protected-resource/agents"`
	if got := get("/v1/requests/req_1", "").Header().Get("WWW-Authenticate"); got != at {
		t.Errorf("the challenge is %s", got)
	}
	if got := get("/v1/requests/req_1", "a.b.c").Header().Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) {
		t.Errorf("the challenge after a wrong token is %s", got)
	}
	h.Handle(MCPPath, "mcp", func(http.ResponseWriter, *http.Request, *approvers.Client) error { return nil })
	if got := get("/mcp", "").Header().Get("WWW-Authenticate"); got != strings.TrimSuffix(at, `"`)+`/mcp"` {
		t.Errorf("the challenge of the MCP endpoint is %s", got)
	}
	for path, want := range map[string]string{"/agents": resource, "/agents/mcp": resource + "/mcp", "/mcp": resource + "/mcp", "": resource} {
		reply := get(resourcePath+path, "")
		var about struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		if err := json.Unmarshal(reply.Body.Bytes(), &about); err != nil || about.Resource != want || len(about.Servers) != 1 || about.Servers[0] != h.url {
			t.Errorf("the metadata at %q is %s (%v)", path, reply.Body, err)
		}
	}
}
