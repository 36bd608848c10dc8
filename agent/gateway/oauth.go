package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"countersign/agent/egress"
	"countersign/approvers"
)

// The gateway is an OAuth 2.1 resource server (RFC 9728). The gateway accepts access tokens (RFC 9068) that an
// authorization server has issued for the gateway. There are three kinds of tokens:
//
//   - the client's own token: its claim sub is the client's subject. Such a token does not prove that the client acts
//     for a person.
//   - the token of a person for whom the client acts (RFC 8693): its claim "act" contains the client's subject as
//     "sub".
//   - the token of a person who has signed in with the client (the authorization code grant): its claim client_id or azp
//     is the client's id, and its claim sub is the person.
//
// In the tokens of people, the claim that the policy names has the person's Slack user id. The person with this id is a
// requester and can't approve.

// Limits of tokens and keys.
const (
	maxToken    = 8 << 10
	tokenLeeway = 30 * time.Second // tolerated difference between clocks
	keysFresh   = time.Hour        // age after which an issuer's keys are read again
	keysStale   = 6 * time.Hour    // maximum age of the keys if the issuer is unreachable
	keysPause   = 30 * time.Second // minimum time between two reads of an issuer's keys, even if tokens name unknown keys
	keysWithin  = 10 * time.Second // time limit for a read of the keys
	maxKeys     = 1 << 20          // maximum size of a document of an issuer, in bytes
)

// tokenTypes lists the permitted values of typ in the header of an access token.
var tokenTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// tokens checks OAuth access tokens. tokens is safe for concurrent use.
type tokens struct {
	resource string // the gateway's identifier, which a token's audience must contain
	now      func() time.Time
	mu       sync.Mutex
	issuers  map[string]*issuerKeys // by the issuer and its permitted hosts
}

// tokenClaims has the claims that the gateway reads in addition to the registered claims.
type tokenClaims struct {
	jwt.Claims
	Act *struct {
		Subject string `json:"sub"`
		Issuer  string `json:"iss"`
	} `json:"act"`
	ClientID     string          `json:"client_id"`
	Authorized   string          `json:"azp"` // the client's id in the tokens of issuers that don't use client_id
	Confirmation json.RawMessage `json:"cnf"`
}

// kindOf returns how a client's token can be used: only by the client, or for a person. If the token does not belong to
// the client, kindOf returns notTheirs.
func (c tokenClaims) kindOf(o *approvers.OAuth) tokenKind {
	switch {
	case o == nil || o.Issuer != c.Issuer:
		return notTheirs
	case c.Act != nil: // the token names the agent that uses it, so only the subject of this agent counts
		if o.Subject != "" && c.Act.Subject == o.Subject {
			return forPerson
		}
	case o.Subject != "" && c.Subject == o.Subject:
		if id := c.client(); o.ClientID == "" || id == "" || id == o.ClientID || id == o.Subject {
			return clientsOwn
		} // otherwise the token was issued to another client, and its subject only has the same name
	case o.ClientID != "" && c.client() == o.ClientID:
		return forPerson
	}
	return notTheirs
}

// client returns the id of the client to which the token was issued, or "".
func (c tokenClaims) client() string { return cmp.Or(c.ClientID, c.Authorized) }

// clientIn returns the policy's client to which the token belongs. The client to which the token was issued comes first,
// because the subject may be a person with the same name as another client.
func (c tokenClaims) clientIn(p *approvers.Policy) (approvers.Client, bool) {
	i := slices.IndexFunc(p.Clients, func(client approvers.Client) bool {
		return c.Act == nil && c.kindOf(client.OAuth) != notTheirs && c.client() == client.OAuth.ClientID
	})
	if i < 0 {
		i = slices.IndexFunc(p.Clients, func(client approvers.Client) bool { return c.kindOf(client.OAuth) != notTheirs })
	}
	if i < 0 {
		return approvers.Client{}, false
	}
	return p.Clients[i], true
}

type tokenKind int

const (
	notTheirs  tokenKind = iota
	clientsOwn           // the client's own token
	forPerson            // the token of a person for whom the client acts, or who has signed in with the client
)

// errToken means that a token is refused. Only the log gives the reason.
var errToken = errors.New("the token is refused")

func refusedToken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errToken, fmt.Sprintf(format, args...))
}

// clientOf returns the client to which a token belongs, and the person for whom the client acts.
func (t *tokens) clientOf(ctx context.Context, p *approvers.Policy, token string) (approvers.Client, error) {
	none := approvers.Client{}
	var algorithms []jose.SignatureAlgorithm
	for _, c := range p.Clients {
		if c.OAuth != nil {
			algorithms = append(algorithms, jose.SignatureAlgorithm(c.OAuth.Algorithm))
		}
	}
	switch {
	case len(algorithms) == 0:
		return none, refusedToken("the policy has no client with OAuth")
	case t.resource == "":
		return none, refusedToken("COUNTERSIGN_GATEWAY_URL is not set, so no token can be for this gateway")
	case len(token) > maxToken:
		return none, refusedToken("it is too long")
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return none, refusedToken("it is not a JWT with an algorithm that the policy allows")
	}
	header := parsed.Headers[0]
	if kind, _ := header.ExtraHeaders[jose.HeaderType].(string); !slices.Contains(tokenTypes, strings.ToLower(kind)) {
		return none, refusedToken("its typ is not that of an access token")
	}
	var unproven tokenClaims
	if err := parsed.UnsafeClaimsWithoutVerification(&unproven); err != nil {
		return none, refusedToken("its claims can't be read")
	}
	client, ok := unproven.clientIn(p)
	if !ok {
		return none, refusedToken("no client has this issuer, and this subject or client_id")
	}
	if header.Algorithm != client.OAuth.Algorithm {
		return none, refusedToken("it is signed by %s instead of %s", header.Algorithm, client.OAuth.Algorithm)
	}
	keys, err := t.keysOf(*client.OAuth).find(ctx, header.KeyID)
	if err != nil {
		return none, err
	}
	var claims tokenClaims
	var all map[string]any
	if !slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool {
		claims, all = tokenClaims{}, nil
		return (k.Algorithm == "" || k.Algorithm == header.Algorithm) && parsed.Claims(k.Key, &claims, &all) == nil
	}) {
		return none, refusedToken("its signature is not that of a key of the issuer")
	}
	return t.actsFor(client, claims, all)
}

// actsFor checks the claims of a token whose signature is valid. If it is the token of a person, actsFor adds the person
// to the client.
func (t *tokens) actsFor(client approvers.Client, claims tokenClaims, all map[string]any) (approvers.Client, error) {
	none := approvers.Client{}
	switch err := claims.ValidateWithLeeway(jwt.Expected{Issuer: client.OAuth.Issuer, AnyAudience: jwt.Audience{t.resource, mcpEndpoint(t.resource)}, Time: t.now()}, tokenLeeway); {
	case err != nil:
		return none, refusedToken("%v", err)
	case claims.Expiry == nil:
		return none, refusedToken("it does not expire")
	case claims.Subject == "":
		return none, refusedToken("it has no sub")
	case len(claims.Confirmation) > 0:
		return none, refusedToken("it is bound to a key of its sender, which can't be checked here")
	}
	client.Until = claims.Expiry.Time()
	switch kind := claims.kindOf(client.OAuth); {
	case kind == notTheirs:
		return none, refusedToken("it is not a token of this client")
	case kind == clientsOwn:
		return client, nil
	case claims.Act != nil && claims.Act.Issuer != "" && claims.Act.Issuer != client.OAuth.Issuer:
		// Another issuer may give the same sub to another agent.
		return none, refusedToken("its act is about an agent of another issuer")
	case client.OAuth.Person == "":
		return none, refusedToken("the client acts for a person, and the policy names no claim with that person")
	}
	person, _ := all[client.OAuth.Person].(string)
	if !slackUser.MatchString(person) {
		return none, refusedToken("the claim %s is not the id of a Slack user", client.OAuth.Person)
	}
	client.ActsFor = person
	return client, nil
}

// keysOf returns the public keys of the issuer of a client's tokens.
func (t *tokens) keysOf(o approvers.OAuth) *issuerKeys {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := strings.Join(append([]string{o.Issuer}, o.Allow...), "\n")
	k := t.issuers[key]
	if k == nil {
		k = &issuerKeys{issuer: o.Issuer, allow: o.Allow, now: t.now}
		t.issuers[key] = k
	}
	return k
}

// issuerKeys are the public keys of an issuer.
type issuerKeys struct {
	issuer string
	allow  []string
	now    func() time.Time

	reading sync.Mutex // held while the keys are read, so that they are read once

	mu    sync.Mutex // protects the fields below
	keys  []jose.JSONWebKey
	read  time.Time // time of the last successful read
	tried time.Time // time of the last read, successful or not
	err   error     // error of the last read
}

// find returns the keys that may have signed a token. These are the keys with the token's key id. If the token has no
// key id, find returns all keys. If the keys are old or the key id is unknown, find reads the keys from the issuer, at
// most once per keysPause. If the keys are not old, a token with a known key id causes no read.
func (k *issuerKeys) find(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	if k.outdated(id) {
		k.reading.Lock()
		if k.outdated(id) {
			// The read continues when this caller disconnects, because other callers need the keys.
			keys, err := k.fetch(context.WithoutCancel(ctx))
			k.mu.Lock()
			if k.tried, k.err = k.now(), err; err == nil {
				k.keys, k.read = keys, k.tried
			}
			k.mu.Unlock()
		}
		k.reading.Unlock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.matching(id)
	switch {
	case k.read.IsZero() || k.now().Sub(k.read) >= keysStale:
		return nil, fmt.Errorf("the keys of %s can't be read: %w", k.issuer, k.err)
	case len(found) == 0:
		return nil, refusedToken("its issuer has no such key")
	}
	return found, nil
}

// outdated reports whether the keys must be read from the issuer before a token with this key id is checked.
func (k *issuerKeys) outdated(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	return (len(k.matching(id)) == 0 || now.Sub(k.read) >= keysFresh) && now.Sub(k.tried) >= keysPause
}

// CheckIssuer checks that an issuer's keys can be read.
func CheckIssuer(ctx context.Context, o approvers.OAuth) error {
	_, err := (&issuerKeys{issuer: o.Issuer, allow: o.Allow}).fetch(ctx)
	return err
}

// matching returns the keys whose key id is the parameter id. For an empty id, matching returns all keys. The caller
// must hold mu.
func (k *issuerKeys) matching(id string) []jose.JSONWebKey {
	if id == "" {
		return k.keys
	}
	var out []jose.JSONWebKey
	for _, key := range k.keys {
		if key.KeyID == id {
			out = append(out, key)
		}
	}
	return out
}

// fetch reads the issuer's keys from the address in the issuer's metadata (OpenID Connect Discovery, or RFC 8414).
func (k *issuerKeys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(ctx, keysWithin)
	defer cancel()
	guard, err := egress.New(k.allow...)
	if err != nil {
		return nil, err
	}
	client := guard.Client(egress.Options{MaxBody: maxKeys})
	defer client.CloseIdleConnections()
	issuer, err := url.Parse(k.issuer)
	if err != nil {
		return nil, errors.New("the issuer is not a URL")
	}
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	path := strings.TrimSuffix(issuer.Path, "/")
	err = getJSON(ctx, client, issuer.Scheme+"://"+issuer.Host+path+"/.well-known/openid-configuration", &about)
	if err != nil {
		err = getJSON(ctx, client, issuer.Scheme+"://"+issuer.Host+"/.well-known/oauth-authorization-server"+path, &about)
	}
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(about.Keys)
	switch {
	case about.Issuer != k.issuer:
		return nil, errors.New("its metadata is about another issuer")
	case err != nil || at.Scheme != "https" && at.Scheme != issuer.Scheme:
		return nil, errors.New("its metadata has no https jwks_uri")
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := getJSON(ctx, client, about.Keys, &set); err != nil {
		return nil, err
	}
	var usable []jose.JSONWebKey
	for _, raw := range set.Keys {
		// An unreadable key, such as one of a new kind, does not affect the others (RFC 7517, section 5).
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			usable = append(usable, key)
		}
	}
	if len(usable) == 0 {
		return nil, errors.New("it has no public signing keys")
	}
	return usable, nil
}

// getJSON reads a JSON document.
func getJSON(ctx context.Context, client *http.Client, address string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("its URL can't be used")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return errors.New(egress.Sentence(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return errors.New(egress.Sentence(err))
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it responds with status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(to); err != nil {
		return errors.New("its response is not the expected JSON")
	}
	return nil
}

// resourcePath is the path of the metadata of RFC 9728.
const resourcePath = "/.well-known/oauth-protected-resource"

// MCPPath is the path of the MCP endpoint, below the gateway's address. MCP clients take the address of this endpoint
// for the resource, and get tokens for it.
const MCPPath = "/mcp"

// mcpEndpoint returns the address of the MCP endpoint of a gateway. Some gateways have this address as their own, because
// earlier versions had no metadata for the endpoint.
func mcpEndpoint(resource string) string {
	if strings.HasSuffix(resource, MCPPath) {
		return resource
	}
	return strings.TrimSuffix(resource, "/") + MCPPath
}

// resource returns the resource to which a path belongs: the MCP endpoint, or the gateway. If the gateway has no public
// address, resource returns "".
func (g *Gateway) resource(path string) string {
	if g.Resource != "" && strings.HasSuffix(path, MCPPath) {
		return mcpEndpoint(g.Resource)
	}
	return g.Resource
}

// resourceMetadata returns the address of a resource's metadata. The well-known path comes before the resource's own
// path.
func resourceMetadata(resource string) string {
	u, err := url.Parse(resource)
	if err != nil || resource == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + resourcePath + strings.TrimSuffix(u.EscapedPath(), "/")
}

// metadata serves the list of authorization servers that issue tokens for the gateway (RFC 9728).
func (g *Gateway) metadata(w http.ResponseWriter, r *http.Request) error {
	issuers := []string{}
	for _, c := range g.Policy().Clients {
		if c.OAuth != nil && !slices.Contains(issuers, c.OAuth.Issuer) {
			issuers = append(issuers, c.OAuth.Issuer)
		}
	}
	if g.Resource == "" || len(issuers) == 0 {
		return problem{name: "not_found", status: http.StatusNotFound, title: "There is nothing at this address."}
	}
	slices.Sort(issuers)
	body, err := json.Marshal(map[string]any{
		"resource": g.resource(r.URL.Path), "authorization_servers": issuers, "bearer_methods_supported": []string{"header"}, "resource_name": "Countersign",
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return sent(err)
}
