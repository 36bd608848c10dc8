package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policycmd"
)

// An agent with an access token requests a call on behalf of the Team Lead. The token proves that the call is for the
// Team Lead, so somebody else must approve it. The agent can see the request only with a token for the Team Lead. A
// token for another audience is refused.
func TestGatewayOAuth(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k", Algorithm: "EdDSA", Use: "sig"}}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys"})
	}))
	defer issuer.Close()
	const resource = "http://127.0.0.1/gate"
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: private}, (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	token := func(more map[string]any) string {
		claims := map[string]any{"iss": issuer.URL, "sub": "desk-id", "aud": resource, "exp": time.Now().Add(time.Hour).Unix()}
		for name, value := range more {
			claims[name] = value
		}
		text, err := jwt.Signed(signer).Claims(claims).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	p := openProcessHarness(t)
	policy, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.policy(), append(policy, fmt.Sprintf(`
clients:
  desk:
    oauth: {issuer: %q, subject: desk-id, person: slack_user_id, algorithm: EdDSA, allow: ["127.0.0.1"]}
    agent: support
    owner: U0100
    tools: [issue_refund]
`, issuer.URL)...))
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0", "COUNTERSIGN_GATEWAY_URL="+resource)
	bot, _ := p.serve()
	desk := openCaller(t, "http://"+bot.says(`countersign is up.* gateway=(\S+)`), token(map[string]any{"sub": "teo", "act": map[string]string{"sub": "desk-id"}, "slack_user_id": "U0002"}))
	asked := desk.wants(desk.ask("1", refund+`}`), http.StatusAccepted, "pending")
	if fmt.Sprint(asked.Body["waits_for"]) == "[Team Lead]" {
		t.Errorf("the person for whom it is asked may decide it: %s", asked.Original)
	}
	desk.wants(desk.ask("2", refund+`,"on_behalf_of":"U0003"}`), http.StatusBadRequest, "invalid_request")
	id := asked.text("id")
	for what, text := range map[string]string{
		"the agent alone": token(nil),
		"another person":  token(map[string]any{"sub": "priya", "act": map[string]string{"sub": "desk-id"}, "slack_user_id": "U0001"}),
	} {
		stranger := desk
		stranger.token = text
		if r := stranger.do(http.MethodGet, "/v1/requests/"+id, ""); r.Status != http.StatusNotFound {
			t.Errorf("%s reads the request: %s", what, r.Original)
		}
	}
	stranger := desk
	stranger.token = token(map[string]any{"aud": "https://other.example.com"})
	if r := stranger.wants(stranger.do(http.MethodGet, "/v1/requests/"+id, ""), http.StatusUnauthorized, "unauthorized"); !strings.Contains(r.Header.Get("WWW-Authenticate"), "http://127.0.0.1/.well-known/oauth-protected-resource/gate") {
		t.Errorf("the challenge is %s", r.Header.Get("WWW-Authenticate"))
	}
	desk.wants(desk.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", ""), http.StatusOK, "withdrawn")
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	db, err := openstore.File(p.store())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if calls, err := policycmd.StoredFixtures(t.Context(), db); err != nil || len(calls) != 1 || calls[0].Client != "desk" || calls[0].For != "U0002" || !calls[0].Proven {
		t.Errorf("as a fixture, the call is %+v (%v)", calls, err)
	}
}
