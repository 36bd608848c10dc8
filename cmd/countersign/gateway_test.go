package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"countersign/agent/gateway"
	"countersign/config/check"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit/npm"
	"countersign/internal/testkit/pgserver"
)

// These are the tokens of the clients of the gateway tests.
const (
	ciToken    = "cs_the-token-of-ci"
	otherToken = "cs_the-token-of-other"
)

// gatewayClients is the part of the policy file with the clients of the gateway tests. Sam owns the client "ci". Teo,
// the Team Lead, owns the client "other".
var gatewayClients = fmt.Sprintf(`
clients:
  ci: {title: CI bot, token: "sha256:%s", agent: support, owner: U0100, tools: [issue_refund, search_orders, deploy, send_email], caps: {pending: 6}}
  other: {token: "sha256:%s", agent: support, owner: U0002, tools: ["*"]}
`, tokenHash(ciToken), tokenHash(otherToken))

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// caller is another agent. caller checks each answer against the OpenAPI description that the gateway serves.
type caller struct {
	*testing.T
	base, token string
	router      routers.Router
}

// openGateway starts a bot with a gateway. The bot's policy contains gatewayClients. The functions in change can change
// the text of the policy.
func openGateway(t *testing.T, change ...func(policy string) string) (*processHarness, *program, caller) {
	t.Helper()
	p := openProcessHarness(t)
	policy, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	withClients := string(policy)
	if i := strings.Index(withClients, "\nclients:"); i >= 0 {
		t.Fatal("the policy of the documentation has clients already")
	}
	withClients += gatewayClients
	for _, f := range change {
		withClients = f(withClients)
	}
	write(t, p.policy(), []byte(withClients))
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0")
	bot, _ := p.serve()
	return p, bot, openCaller(t, "http://"+bot.says(`countersign is up.* gateway=(\S+)`), ciToken)
}

// openCaller reads the gateway's OpenAPI description.
func openCaller(t *testing.T, base, token string) caller {
	t.Helper()
	status, text := get(t, base+"/v1/openapi.json")
	if status != http.StatusOK {
		t.Fatalf("the description: %d", status)
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err != nil {
		t.Fatalf("the description: %v", err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the description: %v", err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return caller{t, base, token, router}
}

type gatewayReply struct {
	Status   int
	Header   http.Header
	Body     map[string]any
	Original string
}

func (r gatewayReply) text(name string) string {
	s, _ := r.Body[name].(string)
	return s
}

// problem returns the last part of the problem's type.
func (r gatewayReply) problem() string {
	return strings.TrimPrefix(r.text("type"), "urn:countersign:problem:")
}

// do sends a request, and checks the answer against the gateway's OpenAPI description.
func (c caller) do(method, path, body string, header ...string) gatewayReply {
	c.Helper()
	r, err := c.send(method, path, body, header...)
	if err != nil {
		c.Fatal(err)
	}
	return r
}

func (c caller) send(method, path, body string, header ...string) (gatewayReply, error) {
	req, err := http.NewRequestWithContext(c.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		return gatewayReply{}, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return gatewayReply{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return gatewayReply{}, err
	}
	out := gatewayReply{Status: resp.StatusCode, Header: resp.Header, Original: string(raw)}
	_ = json.Unmarshal(raw, &out.Body) // an event stream is not JSON
	return out, c.described(req, resp, raw)
}

// described compares an answer with the gateway's OpenAPI description.
func (c caller) described(req *http.Request, resp *http.Response, body []byte) error {
	route, params, err := c.router.FindRoute(req)
	var missing *routers.RouteError
	if errors.As(err, &missing) {
		return nil // an address that is not described
	}
	if err != nil {
		return err
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route}
	err = openapi3filter.ValidateResponse(req.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		return fmt.Errorf("%s %s answers %d %s, which is not as described: %w", req.Method, req.URL.Path, resp.StatusCode, body, err)
	}
	return nil
}

func (c caller) ask(key, body string) gatewayReply {
	c.Helper()
	return c.do(http.MethodPost, "/v1/requests", body, "Idempotency-Key", key)
}

// The method "wants" checks the HTTP status and the request's state in an answer.
func (c caller) wants(r gatewayReply, status int, state string) gatewayReply {
	c.Helper()
	got := r.text("status")
	if r.Status >= 400 {
		got = r.problem()
	}
	if r.Status != status || got != state {
		c.Fatalf("the answer is %d %s, want %d %s: %s", r.Status, got, status, state, r.Original)
	}
	return r
}

const refund = `{"mode":"decide","tool":"issue_refund","args":{"order_id":"ORD-123", "amount":49.99,"currency":"USD","reason":"broken"},"summary":"It arrived broken","state":"s-1"`

// In the mode decide, the HTTP gateway follows its OpenAPI description from the request to the outcome. Real clicks
// decide the requests.
func TestGatewayDecide(t *testing.T) {
	t.Parallel()
	p, bot, ci := openGateway(t)
	teo := p.watcher("teo")

	first := ci.wants(ci.ask("call-1", refund+`}`), http.StatusAccepted, "pending")
	id := first.text("id")
	args := `{"order_id":"ORD-123", "amount":49.99,"currency":"USD","reason":"broken"}` // the space must be kept
	if first.text("args_sha256") != tokenHash(args) || fmt.Sprint(first.Body["waits_for"]) != "[Team Lead]" || first.text("expires_at") == "" || first.text("state") != "s-1" {
		t.Errorf("a new request is %s", first.Original)
	}
	launch(t, p.dir, p.env, "pending").says(`(asked by CI bot \(caller:ci\) in the client ci,)`)
	if again := ci.wants(ci.ask("call-1", refund+`}`), http.StatusAccepted, "pending"); again.text("id") != id || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repetition is %s %v", again.Original, again.Header)
	}
	ci.wants(ci.ask("call-1", refund+`,"wait":1}`), http.StatusUnprocessableEntity, "key_reused")
	ci.wants(ci.do(http.MethodPost, "/v1/requests", refund+`}`), http.StatusBadRequest, "no_key")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/claim", `{"args_sha256":"`+tokenHash(args)+`"}`), http.StatusConflict, "not_approved")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/outcome", `{"status":"succeeded"}`), http.StatusConflict, "not_claimed")

	stranger := ci
	stranger.token = ""
	if r := stranger.wants(stranger.do(http.MethodGet, "/v1/requests/"+id, ""), http.StatusUnauthorized, "unauthorized"); r.Header.Get("WWW-Authenticate") == "" {
		t.Error("a 401 has no WWW-Authenticate")
	}
	stranger.token = otherToken
	for _, path := range []string{"", "/claim", "/outcome", "/withdraw", "/answer"} {
		method, body := http.MethodPost, map[string]string{"/claim": `{"args_sha256":"` + tokenHash(args) + `"}`, "/outcome": `{"status":"failed"}`, "/answer": `{"question":0,"text":"x"}`}[path]
		if path == "" {
			method = http.MethodGet
		}
		stranger.wants(stranger.do(method, "/v1/requests/"+id+path, body), http.StatusNotFound, "not_found")
	}

	card := teo.sees("countersign", "", "Refund of $49.99 for order ORD-123", "CI bot", "runs this itself; Countersign can't stop it", "It arrived broken")
	if strings.Contains(card.Text+string(card.Blocks), "Modify…") {
		t.Error("the card offers an edit that the caller can't use")
	}
	decided := make(chan gatewayReply, 1)
	go func() {
		r, err := ci.send(http.MethodGet, "/v1/requests/"+id+"?wait=55", "")
		if err != nil {
			t.Error(err)
		}
		decided <- r
	}()
	teo.clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	approved := ci.wants(<-decided, http.StatusOK, "approved")
	ci.verify(approved.text("receipt"), id, approved.text("run"), args)
	if by := fmt.Sprint(approved.Body["decision"]); !strings.Contains(by, "Team Lead") || strings.Contains(approved.Original, "U0002") || strings.Contains(approved.Original, "Teo") {
		t.Errorf("the decision is %s", approved.Original)
	}

	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/claim", `{"args_sha256":"`+tokenHash("{}")+`"}`), http.StatusConflict, "other_arguments")
	claim := func() gatewayReply {
		return ci.do(http.MethodPost, "/v1/requests/"+id+"/claim", `{"args_sha256":"`+tokenHash(args)+`"}`)
	}
	ci.wants(claim(), http.StatusOK, "running")
	ci.wants(claim(), http.StatusConflict, "already_claimed")

	// The bot restarts while the caller runs the approved call. The restart does not affect the call.
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Fatalf("asked to stop, the bot ended with %v", err)
	}
	bot, _ = p.serve()
	ci.base = "http://" + bot.says(`countersign is up.* gateway=(\S+)`)
	ci.wants(ci.do(http.MethodGet, "/v1/requests/"+id, ""), http.StatusOK, "running")
	ci.wants(claim(), http.StatusConflict, "already_claimed")

	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/outcome", `{"status":"failed","run":"exec_none"}`), http.StatusConflict, "not_claimed")
	report := `{"status":"succeeded","text":"refund re_1","run":"` + approved.text("run") + `"}`
	done := ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/outcome", report), http.StatusOK, "succeeded")
	if done.text("disposition") != "approved-executed" || done.text("result") != "refund re_1" {
		t.Errorf("the end is %s", done.Original)
	}
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/outcome", `{"status":"succeeded","text":"refund re_1"}`), http.StatusOK, "succeeded")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/outcome", `{"status":"failed"}`), http.StatusConflict, "outcome_known")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", ""), http.StatusConflict, "already_over")
	teo.sees("countersign", "", "Refund of $49.99 for order ORD-123", "The client ci says", "it ran", "refund re_1")
}

// verify checks a receipt with only the published keys, as the receiver of a receipt does.
func (c caller) verify(receipt, id, run, args string) {
	c.Helper()
	_, text := get(c.T, c.base+"/.well-known/jwks.json")
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		c.Fatal(err)
	}
	token, err := jwt.ParseSigned(receipt, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		c.Fatalf("the receipt %q: %v", receipt, err)
	}
	var claims jwt.Claims
	var own gateway.ReceiptClaims
	if err := token.Claims(keys, &claims, &own); err != nil {
		c.Fatalf("the receipt %q: %v", receipt, err)
	}
	if err := claims.Validate(jwt.Expected{Issuer: "countersign", AnyAudience: jwt.Audience{"ci"}}); err != nil {
		c.Errorf("the receipt: %v", err)
	}
	if own.Request != id || own.ArgsHash != tokenHash(args) || own.Tool != "issue_refund" || own.Definition == "" || claims.ID != run || claims.Expiry == nil {
		c.Errorf("the receipt says %+v %+v", claims, own)
	}
	if token.Headers[0].ExtraHeaders["typ"] != gateway.ReceiptType {
		c.Errorf("the receipt's header is %+v", token.Headers[0])
	}
}

// The test covers the other outcomes of a request. These are a rejection, a withdrawal, a refusal, and a call of low
// risk. A rejection also applies to a later identical call. The test also covers a tool that only the caller has, and a
// tool that Countersign runs.
func TestGatewayEnds(t *testing.T) {
	t.Parallel()
	p, _, ci := openGateway(t)
	teo := p.watcher("teo")

	id := ci.wants(ci.ask("r-1", refund+`}`), http.StatusAccepted, "pending").text("id")
	teo.clicks("countersign", "", "Reject…", "Refund of $49.99 for order ORD-123")
	teo.fills("reason", "ask the warehouse first")
	rejected := ci.wants(ci.do(http.MethodGet, "/v1/requests/"+id+"?wait=55", ""), http.StatusOK, "rejected")
	if !strings.Contains(rejected.Original, "ask the warehouse first") || rejected.text("disposition") != "denied-not-executed" {
		t.Errorf("the rejection is %s", rejected.Original)
	}
	if again := ci.wants(ci.ask("r-2", refund+`}`), http.StatusOK, "rejected"); again.text("id") != id {
		t.Errorf("the identical call got another request: %s", again.Original)
	}
	ci.wants(ci.ask("r-3", strings.Replace(refund, "49.99", "39.99", 1)+`}`), http.StatusAccepted, "pending")

	id = ci.wants(ci.ask("w-1", strings.Replace(refund, "49.99", "29.99", 1)+`}`), http.StatusAccepted, "pending").text("id")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", `{"reason":"not needed"}`), http.StatusOK, "withdrawn")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", ""), http.StatusOK, "withdrawn")
	teo.sees("countersign", "", "Refund of $29.99", "Withdrawn by CI bot")

	low := ci.wants(ci.ask("l-1", `{"tool":"search_orders","args":{"query":"ORD-123"}}`), http.StatusOK, "approved")
	hash := low.text("args_sha256")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+low.text("id")+"/claim", `{"args_sha256":"`+hash+`"}`), http.StatusOK, "running")
	if ended := ci.wants(ci.do(http.MethodPost, "/v1/requests/"+low.text("id")+"/outcome", `{"status":"failed","text":"no"}`), http.StatusOK, "failed"); ended.text("disposition") != "execution-error" {
		t.Errorf("the failed search is %s", ended.Original)
	}
	low = ci.wants(ci.ask("l-2", `{"tool":"search_orders","args":{"query":"ORD-123"}}`), http.StatusOK, "approved")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+low.text("id")+"/claim", `{"args_sha256":"`+hash+`"}`), http.StatusOK, "running")
	for _, c := range [][2]string{{"unknown", "outcome-unknown"}, {"succeeded", "approved-executed"}} {
		ended := ci.wants(ci.do(http.MethodPost, "/v1/requests/"+low.text("id")+"/outcome", `{"status":"`+c[0]+`","text":"?"}`), http.StatusOK, c[0])
		if ended.text("disposition") != c[1] {
			t.Errorf("the outcome %s is %s", c[0], ended.Original)
		}
	}

	ran := ci.wants(ci.ask("e-1", `{"mode":"execute","tool":"search_orders","args":{"query":"ORD-123"},"wait":55}`), http.StatusOK, "succeeded")
	if !strings.Contains(ran.text("result"), "ORD-123") || ran.text("receipt") != "" {
		t.Errorf("the search is %s", ran.Original)
	}
	id = ci.wants(ci.ask("e-2", strings.Replace(strings.Replace(refund, "decide", "execute", 1), "49.99", "9.99", 1)+`}`), http.StatusAccepted, "pending").text("id")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/claim", `{"args_sha256":"`+hash+`"}`), http.StatusConflict, "wrong_mode")
	teo.clicks("countersign", "", "Approve", "Refund of $9.99")
	if ran := ci.wants(ci.do(http.MethodGet, "/v1/requests/"+id+"?wait=55", ""), http.StatusOK, "succeeded"); ran.text("disposition") != "approved-executed" {
		t.Errorf("the refund is %s", ran.Original)
	}

	ci.wants(ci.ask("t-1", `{"tool":"delete_account","args":{}}`), http.StatusForbidden, "tool_not_allowed")
	ci.wants(ci.ask("t-2", `{"mode":"execute","tool":"deploy","args":{}}`), http.StatusForbidden, "tool_not_allowed")
	ci.wants(ci.ask("a-1", `{"tool":"issue_refund","args":{"order_id":7}}`), http.StatusUnprocessableEntity, "invalid_arguments")
	own := ci.wants(ci.ask("d-1", `{"tool":"deploy","args":{"version":"1.4.2"},"on_behalf_of":"U0002"}`), http.StatusAccepted, "pending")
	if fmt.Sprint(own.Body["waits_for"]) != "[Finance Director]" { // an unknown tool is critical
		t.Errorf("a tool that only the caller knows waits: %s", own.Original)
	}

	// countersign check --replay can replay the calls of clients while the bot runs.
	if said := launch(t, p.dir, p.env, "check", "--replay", "stored").says(`(\d+ calls: .*)`); !strings.HasSuffix(said, " as planned then, 0 not") {
		t.Errorf("a replay of the history says %q", said)
	}
}

// The gateway refuses invalid requests, and requests beyond a limit. The gateway stores none of these requests.
func TestGatewayRefuses(t *testing.T) {
	t.Parallel()
	_, _, ci := openGateway(t)
	for body, want := range map[string]string{
		`{`:                                 "invalid_request",
		`[]`:                                "invalid_request",
		`{"tool":"issue_refund"}`:           "invalid_request",
		`{"args":{}}`:                       "invalid_request",
		`{"tool":"issue_refund","args":[]}`: "invalid_request",
		`{"tool":"issue_refund","args":{},"x":1}`:                            "invalid_request",
		`{"tool":"a","tool":"b","args":{}}`:                                  "invalid_request",
		`{"tool":"a","args":{"x":1,"x":2}}`:                                  "invalid_request",
		`{"tool":"a","args":{}}{}`:                                           "invalid_request",
		"{\"tool\":\"a\xff\",\"args\":{}}":                                   "invalid_request",
		`{"tool":"a","args":{},"mode":"both"}`:                               "invalid_request",
		`{"tool":"a","args":{},"wait":56}`:                                   "invalid_request",
		`{"tool":"a","args":{},"wait":1.5}`:                                  "invalid_request",
		`{"tool":"a","args":{},"accepts":[]}`:                                "invalid_request",
		`{"tool":"a","args":{},"accepts":["all"]}`:                           "invalid_request",
		`{"tool":"a","args":{},"on_behalf_of":"T0001/U0001"}`:                "invalid_request",
		`{"tool":"a","args":{},"state":"` + strings.Repeat("s", 4097) + `"}`: "invalid_request",
	} {
		ci.wants(ci.ask("k", body), http.StatusBadRequest, want)
	}
	ci.wants(ci.ask("k", `{"tool":"issue_refund","args":{"a":"`+strings.Repeat("x", 200<<10)+`"}}`), http.StatusRequestEntityTooLarge, "too_large")
	ci.wants(ci.ask("k", `{"tool":"issue_refund","args":{"amount":1,"AMOUNT":2}}`), http.StatusUnprocessableEntity, "invalid_arguments")
	ci.wants(ci.do(http.MethodPost, "/v1/requests", refund+`}`, "Idempotency-Key", "k", "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "not_json")
	ci.wants(ci.do(http.MethodPost, "/v1/requests", refund+`}`, "Idempotency-Key", strings.Repeat("k", 256)), http.StatusBadRequest, "invalid_request")
	ci.wants(ci.do(http.MethodGet, "/v1/requests/req_0?wait=x", ""), http.StatusBadRequest, "invalid_request")
	ci.wants(ci.do(http.MethodGet, "/v1/requests/req_0", ""), http.StatusNotFound, "not_found")
	ci.wants(ci.do(http.MethodGet, "/v2", ""), http.StatusNotFound, "not_found")
	for i := range 6 {
		ci.wants(ci.ask(fmt.Sprint("p-", i), strings.Replace(refund, "49.99", fmt.Sprint(i+1), 1)+`}`), http.StatusAccepted, "pending")
	}
	if r := ci.wants(ci.ask("p-7", refund+`}`), http.StatusTooManyRequests, "too_many_pending"); r.Header.Get("Retry-After") == "" {
		t.Error("a 429 has no Retry-After")
	}
}

// Sixteen identical requests at the same moment become one request. One of sixteen simultaneous claims succeeds.
func TestGatewayRaces(t *testing.T) {
	t.Parallel()
	p, _, ci := openGateway(t)
	const n = 16
	all := func(what func(i int) (gatewayReply, error)) []gatewayReply {
		out := make([]gatewayReply, n)
		var ends sync.WaitGroup
		for i := range n {
			ends.Go(func() {
				r, err := what(i)
				if err != nil {
					t.Error(err)
				}
				out[i] = r
			})
		}
		ends.Wait()
		return out
	}
	ids, fresh := map[string]bool{}, 0
	for _, r := range all(func(int) (gatewayReply, error) {
		return ci.send(http.MethodPost, "/v1/requests", refund+`}`, "Idempotency-Key", "same")
	}) {
		ids[ci.wants(r, http.StatusAccepted, "pending").text("id")] = true
		if r.Header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	if len(ids) != 1 || fresh != 1 {
		t.Fatalf("%d identical requests became %d, and %d were answered as new", n, len(ids), fresh)
	}
	id := ""
	for id = range ids {
	}
	p.watcher("teo").clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	hash := ci.wants(ci.do(http.MethodGet, "/v1/requests/"+id+"?wait=55", ""), http.StatusOK, "approved").text("args_sha256")
	claimed := 0
	for _, r := range all(func(int) (gatewayReply, error) {
		return ci.send(http.MethodPost, "/v1/requests/"+id+"/claim", `{"args_sha256":"`+hash+`"}`)
	}) {
		if r.Status == http.StatusOK {
			claimed++
		} else {
			ci.wants(r, http.StatusConflict, "already_claimed")
		}
	}
	if claimed != 1 {
		t.Errorf("%d of %d claims succeeded", claimed, n)
	}
}

// A stream has an event for each state of the request, and ends after the final state. A GET request with If-None-Match
// and a waiting time waits for the next change.
func TestGatewayStream(t *testing.T) {
	t.Parallel()
	p, _, ci := openGateway(t)
	first := ci.wants(ci.ask("s-1", refund+`}`), http.StatusAccepted, "pending")
	id, etag := first.text("id"), first.Header.Get("ETag")
	ci.wants(ci.do(http.MethodGet, "/v1/requests/"+id+"?wait=1", "", "If-None-Match", etag), http.StatusNotModified, "")
	events := make(chan string, 1)
	go func() {
		r, err := ci.send(http.MethodGet, "/v1/requests/"+id, "", "Accept", "text/event-stream")
		if err != nil {
			t.Error(err)
		}
		events <- r.Original
	}()
	changed := make(chan gatewayReply, 1)
	go func() {
		r, err := ci.send(http.MethodGet, "/v1/requests/"+id+"?wait=55", "", "If-None-Match", etag)
		if err != nil {
			t.Error(err)
		}
		changed <- r
	}()
	teo := p.watcher("teo")
	teo.clicks("countersign", "", "Details…", "Refund of $49.99 for order ORD-123")
	teo.clicksInForm("Ask…")
	teo.fills("reason", "Was it insured?")
	asked := ci.wants(<-changed, http.StatusOK, "pending")
	if !strings.Contains(asked.Original, `"questions":[{"question":0,"text":"Was it insured?","by":"Team Lead"}]`) {
		t.Errorf("the question reached the caller as %s", asked.Original)
	}
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/answer", `{"question":1,"text":"Yes"}`), http.StatusConflict, "no_question")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/answer", `{"question":0,"text":"Yes, by the carrier"}`), http.StatusOK, "pending")
	teo.sees("countersign", "", "Was it insured?", "Yes, by the carrier")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", ""), http.StatusOK, "withdrawn")
	select {
	case got := <-events:
		for _, want := range []string{"event: request\nid: ", `"status":"pending"`, "Yes, by the carrier", `"status":"withdrawn"`} {
			if !strings.Contains(got, want) {
				t.Errorf("the stream lacks %q: %s", want, got)
			}
		}
	case <-time.After(patience):
		t.Error("the stream does not end")
	}
}

// Two replicas work on one database. A request that is sent to one replica can be read, awaited and claimed at the
// other replica. Each replica can verify the receipts of both replicas. The webhook gets each message once.
func TestGatewayReplicas(t *testing.T) {
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	p := openProcessHarness(t)
	policy, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- string(body)
	}))
	defer receiver.Close()
	hook := fmt.Sprintf(`caps: {pending: 6}, webhook: {url: %q, secret: "${CI_WEBHOOK}", allow: ["127.0.0.1"]}}`, receiver.URL)
	write(t, p.policy(), append(policy, strings.Replace(gatewayClients, "caps: {pending: 6}}", hook, 1)...))
	p.env = append(p.env, "CI_WEBHOOK=whsec_bmV3LXNlY3JldC1mb3ItdGhlLXJlY2VpdmVyLW9mLWNp", "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0", "COUNTERSIGN_STORE="+server.URL("postgres"), "COUNTERSIGN_MIGRATE=auto", "COUNTERSIGN_POLICY="+p.policy(), "COUNTERSIGN_AUDIT_KEY="+filepath.Join(p.dir, "key"))
	var at [2]caller
	for i := range at {
		bot := launch(t, t.TempDir(), p.env, "serve")
		at[i] = openCaller(t, "http://"+bot.says(`countersign is up.* gateway=(\S+)`), ciToken)
		bot.says(`(connected to Slack)`)
	}
	id := at[0].wants(at[0].ask("k", refund+`}`), http.StatusAccepted, "pending").text("id")
	if again := at[1].wants(at[1].ask("k", refund+`}`), http.StatusAccepted, "pending"); again.text("id") != id {
		t.Errorf("the other replica made another request: %s", again.Original)
	}
	var decided [2]chan gatewayReply
	for i, c := range at {
		decided[i] = make(chan gatewayReply, 1)
		go func() {
			r, err := c.send(http.MethodGet, "/v1/requests/"+id+"?wait=55", "")
			if err != nil {
				t.Error(err)
			}
			decided[i] <- r
		}()
	}
	p.watcher("teo").clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	hash := ""
	for i, c := range at {
		approved := c.wants(<-decided[i], http.StatusOK, "approved")
		hash = approved.text("args_sha256")
		at[1-i].verify(approved.text("receipt"), id, approved.text("run"), `{"order_id":"ORD-123", "amount":49.99,"currency":"USD","reason":"broken"}`)
	}
	claimed := 0
	for i := range 8 {
		r := at[i%2].do(http.MethodPost, "/v1/requests/"+id+"/claim", `{"args_sha256":"`+hash+`"}`)
		if r.Status == http.StatusOK {
			claimed++
		}
	}
	if claimed != 1 {
		t.Errorf("%d claims succeeded", claimed)
	}
	at[1].wants(at[1].do(http.MethodPost, "/v1/requests/"+id+"/outcome", `{"status":"succeeded","text":"done"}`), http.StatusOK, "succeeded")
	at[0].wants(at[0].do(http.MethodGet, "/v1/requests/"+id, ""), http.StatusOK, "succeeded")
	for all := ""; !strings.Contains(all, `"execution.finished"`); {
		select {
		case one := <-told:
			if strings.Contains(all, one) {
				t.Errorf("told twice: %s", one)
			}
			all += one
		case <-time.After(patience):
			t.Fatalf("the webhook was told only %s", all)
		}
	}
}

// clicksInForm waits for a button in the form that a click opens. It then clicks the button, and waits for the next
// form.
func (w watcher) clicksInForm(label string) {
	w.Helper()
	w.wait(label+" in a form", func(ctx context.Context) (bool, error) {
		views, err := w.Views(ctx)
		if err != nil || len(views) == 0 {
			return false, err
		}
		top := views[len(views)-1]
		if e, ok := workspaceclient.Button(top.Blocks, label); ok {
			return w.PressIn(ctx, top, e) == nil, nil
		}
		return false, nil
	})
	w.wait("the form after "+label, func(ctx context.Context) (bool, error) {
		views, err := w.Views(ctx)
		if err != nil || len(views) == 0 {
			return false, err
		}
		top := views[len(views)-1]
		_, ok := workspaceclient.Input(top.Blocks, "reason")
		return ok && top.Submit != nil, nil
	})
}

// countersign client add prints a token and its hash.
func TestClientAdd(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printClient(&out, "ci", newToken())
	found := regexp.MustCompile(`(?s)\n  (cs_[\w-]{43})\n.*\n  ci:\n    token: "sha256:([0-9a-f]{64})"`).FindStringSubmatch(out.String())
	if found == nil || tokenHash(found[1]) != found[2] {
		t.Errorf("it printed %s", out.String())
	}
}

// A policy with the printed lines is valid, also if YAML could read the client's name as another type.
func TestClientAddQuotes(t *testing.T) {
	for _, name := range []string{"ci", "123", "true", "0x1F", "null", "1e3", "-", "_", "1_000", "no", "0o17", "-5"} {
		var out bytes.Buffer
		printClient(&out, name, newToken())
		_, lines, _ := strings.Cut(out.String(), "\nclients:\n")
		file, err := check.Parse("countersign.yaml", []byte(`version: 1
tools: {issue_refund: {risk: high}}
approvers: {lead: {title: Lead, members: [U0002], max_risk: critical, can_approve: ["*"]}}
agents: {support: {channels: ["#support"], prompt: Help., tools: ["*"]}}
clients:
`+lines))
		if err != nil || len(file.Policy.Clients) != 1 {
			t.Errorf("%s: %v\n%s", name, err, lines)
		}
	}
}

// A client that is generated from the served OpenAPI description asks, waits, claims, reports and withdraws. The
// compiler finds wrong uses of the client.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	node, tool := npm.Require(t, "a client that is generated from the gateway's OpenAPI description was")
	source := "../../agent/gateway/npmtest"
	modules := filepath.Join(npm.Installed(t, tool, source, "gateway"), "node_modules")
	p, _, ci := openGateway(t)
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(source, "testdata"))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`))
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GATE="+ci.base, "TOKEN="+ciToken)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("node_modules/openapi-typescript/bin/cli.js", ci.base+"/v1/openapi.json", "--default-non-nullable=false", "--output", "description.ts")
	run("node_modules/typescript/bin/tsc", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", "node", "program.ts")
	if t.Failed() {
		return
	}
	printed := make(chan string, 1)
	go func() { printed <- run("program.js") }()
	p.watcher("teo").clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	want := "approved Team Lead running urn:countersign:problem:already_claimed approved-executed withdrawn 1"
	if got := <-printed; got != want {
		t.Errorf("the program prints %q, want %q", got, want)
	}
}
