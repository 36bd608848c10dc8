package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policycmd"
)

// authorizationServer issues access tokens. People who sign in are always the Team Lead.
type authorizationServer struct {
	*httptest.Server
	*testing.T
	signer jose.Signer
}

func newAuthorizationServer(t *testing.T) *authorizationServer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: private}, (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	a := &authorizationServer{T: t, signer: signer}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch {
		case r.URL.Path == "/keys":
			answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k", Algorithm: "EdDSA", Use: "sig"}}}
		case r.URL.Path == "/token" && r.FormValue("code") == "the-code" && r.FormValue("code_verifier") != "":
			id, _, _ := r.BasicAuth()
			claims := map[string]any{"sub": "teo@example.com", "client_id": cmp.Or(id, r.FormValue("client_id")), "aud": r.FormValue("resource"), "slack_user_id": "U0002"}
			answer = map[string]any{"access_token": a.token(claims), "token_type": "Bearer", "expires_in": 3600}
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			answer = map[string]any{
				"issuer": a.URL, "jwks_uri": a.URL + "/keys", "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			}
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(a.Close)
	return a
}

// token returns a token that is valid for an hour.
func (a *authorizationServer) token(claims map[string]any) string {
	all := map[string]any{"iss": a.URL, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	text, err := jwt.Signed(a.signer).Claims(all).Serialize()
	if err != nil {
		a.Error(err)
	}
	return text
}

// openGateway starts a bot whose policy has a client with tokens of this server. The parameter tokens has the keys that
// say which tokens. openGateway also returns the address at which the gateway listens.
func (a *authorizationServer) openGateway(tokens, public string) (p *processHarness, bot *program, address string) {
	a.Helper()
	p = openProcessHarness(a.T)
	policy, err := os.ReadFile(p.policy())
	if err != nil {
		a.Fatal(err)
	}
	write(a.T, p.policy(), append(policy, fmt.Sprintf(`
clients:
  desk:
    oauth: {issuer: %q, %s, person: slack_user_id, algorithm: EdDSA, allow: ["127.0.0.1"]}
    agent: support
    owner: U0100
    tools: [issue_refund]
`, a.URL, tokens)...))
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0", "COUNTERSIGN_GATEWAY_URL="+public)
	bot, _ = p.serve()
	return p, bot, "http://" + bot.says(`countersign is up.* gateway=(\S+)`)
}

// An agent with an access token requests a call on behalf of the Team Lead. The token proves that the call is for the
// Team Lead, so somebody else must approve it. The agent can see the request only with a token for the Team Lead. A
// token for another audience is refused. If the Team Lead signs in with the same client, the client can see the request,
// too.
func TestGatewayOAuth(t *testing.T) {
	t.Parallel()
	issuer := newAuthorizationServer(t)
	const resource = "http://127.0.0.1/gate"
	token := func(more map[string]any) string {
		claims := map[string]any{"sub": "desk-id", "aud": resource}
		maps.Copy(claims, more)
		return issuer.token(claims)
	}
	p, bot, gate := issuer.openGateway("subject: desk-id, client_id: desk-app", resource)
	desk := openCaller(t, gate, token(map[string]any{"sub": "teo", "act": map[string]string{"sub": "desk-id"}, "slack_user_id": "U0002"}))
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
	signedIn := desk
	signedIn.token = token(map[string]any{"sub": "teo", "client_id": "desk-app", "slack_user_id": "U0002"})
	signedIn.wants(signedIn.do(http.MethodGet, "/v1/requests/"+id, ""), http.StatusOK, "pending")
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

// The Team Lead signs in with an MCP client of the official SDK. The client knows only the address of the endpoint. It
// finds the authorization server through the gateway. The gateway is behind a proxy that adds a path. The Team Lead is
// the requester of the client's calls, so somebody else must approve them.
func TestMCPSignIn(t *testing.T) {
	t.Parallel()
	issuer := newAuthorizationServer(t)
	var gate *httputil.ReverseProxy
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/gate")
		gate.ServeHTTP(w, r)
	}))
	t.Cleanup(public.Close)
	_, _, address := issuer.openGateway("client_id: coding-agent", public.URL+"/gate")
	inner, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	gate = httputil.NewSingleHostReverseProxy(inner)
	gate.ErrorLog = log.New(io.Discard, "", 0) // the bot ends while the call is held
	signIn, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "coding-agent"},
		RedirectURL:         "http://127.0.0.1/callback",
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			at, err := url.Parse(args.URL)
			if err != nil {
				return nil, err
			}
			if at.Query().Get("resource") != public.URL+"/gate/mcp" || at.Query().Get("client_id") != "coding-agent" {
				t.Errorf("the person signs in at %s", args.URL)
			}
			return &auth.AuthorizationResult{Code: "the-code", State: at.Query().Get("state")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := connectMCP(t, &mcp.StreamableClientTransport{Endpoint: public.URL + "/gate/mcp", OAuthHandler: signIn, DisableStandaloneSSE: true}, "")
	c.calls("issue_refund", refundOf("1"))
	if waits := c.waits("waits for"); strings.Contains(waits, "waits for Team Lead") {
		t.Errorf("the person who has signed in may decide: %s", waits)
	}
}
