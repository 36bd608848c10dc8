// Package fakegateway is a fake gateway for tests of the gateway's callers. The fake gateway has no policy and no
// people, so the test itself decides requests. The fake gateway checks each request and each answer against the
// gateway's OpenAPI description. Therefore both the tested caller and the fake gateway follow this description.
package fakegateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-json-experiment/json/jsontext"
)

// Token is the token of the fake gateway's only caller.
const Token = "csgw_0123456789abcdefghijklmnopqrstuvwxyz"

// Audience is the audience of the receipts.
const Audience = "laptop"

// Gateway is the fake gateway.
type Gateway struct {
	URL string

	t      testing.TB
	router routers.Router
	key    ed25519.PrivateKey

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	requests []*Request
	decide   func(*Request)
	fault    func(http.ResponseWriter, *http.Request) bool
	log      []string
}

// Request is a request as the fake gateway stores it.
type Request struct {
	ID, Key   string
	Mode      string
	Tool      string
	Args      string // the bytes that were sent
	Accepts   []string
	Summary   string
	State     string
	Fields    map[string]any // the answer, without the fields that the gateway derives from the fields below
	Status    string
	Edited    string // the arguments as an approver changed them
	Reason    string
	Automatic bool
	Outcome   string // status and text of the report
	Earlier   string // id of the run before people asked for the call again
	Late      string // status of a report about the earlier run
	Withdrawn string // the reason for the withdrawal
	Questions []map[string]any

	Disposition string // the disposition in the answer; empty: none
	Lost        bool   // the gateway has lost the records of the approval, so the answer has no decision

	body string
}

var descriptions sync.Map // the router of each description, by path; reading a description takes longer than most tests

// New starts a gateway. description is the path of the OpenAPI description.
func New(t testing.TB, description string) *Gateway {
	t.Helper()
	read, _ := descriptions.LoadOrStore(description, sync.OnceValues(func() (routers.Router, error) {
		doc, err := openapi3.NewLoader().LoadFromFile(description)
		if err != nil {
			return nil, err
		}
		return legacy.NewRouter(doc)
	}))
	router, err := read.(func() (routers.Router, error))()
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{t: t, router: router, changed: make(chan struct{}), key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}
	server := httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.URL = server.URL
	return g
}

// OnAsk sets the function that is called for each new request, before the request is answered. Without this function,
// requests stay pending.
func (g *Gateway) OnAsk(decide func(*Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decide = decide
}

// Fault sets a function that can answer in place of the gateway. The function returns true if it has answered.
func (g *Gateway) Fault(fault func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = fault
}

// Change changes a request, and notifies all callers that wait for the request.
func (g *Gateway) Change(id string, change func(*Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g.find(id))
	g.wake()
}

// Requests returns copies of all requests.
func (g *Gateway) Requests() []Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []Request
	for _, r := range g.requests {
		x := *r
		x.Questions = nil
		for _, q := range r.Questions { // each map is copied, because an answer changes it
			x.Questions = append(x.Questions, maps.Clone(q))
		}
		list = append(list, x)
	}
	return list
}

// Log returns the method and path of each request so far.
func (g *Gateway) Log() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.log...)
}

// Await waits until a condition holds for the requests.
func (g *Gateway) Await(what string, holds func([]Request) bool) []Request {
	g.t.Helper()
	end := time.After(30 * time.Second)
	for {
		g.mu.Lock()
		changed := g.changed
		g.mu.Unlock()
		if list := g.Requests(); holds(list) {
			return list
		}
		select {
		case <-changed:
		case <-end:
			g.t.Fatalf("it never happens that %s: %+v", what, g.Requests())
		}
	}
}

func (g *Gateway) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *Gateway) find(id string) *Request {
	for _, r := range g.requests {
		if r.ID == id {
			return r
		}
	}
	return &Request{}
}

// Hash returns the hash of arguments.
func Hash(args string) string {
	sum := sha256.Sum256([]byte(args))
	return hex.EncodeToString(sum[:])
}

func (g *Gateway) serve(w http.ResponseWriter, req *http.Request) {
	g.mu.Lock()
	g.log = append(g.log, req.Method+" "+req.URL.Path)
	g.wake()
	fault := g.fault
	g.mu.Unlock()
	if fault != nil && fault(w, req) {
		return
	}
	route, params, err := g.router.FindRoute(req)
	if err != nil {
		g.t.Errorf("%s %s is not in the description: %v", req.Method, req.URL, err)
		http.NotFound(w, req)
		return
	}
	body, _ := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
		g.t.Errorf("the caller's request is not valid: %v\n%s %s\n%s", err, req.Method, req.URL, body)
	}
	if len(body) > 0 && !jsontext.Value(body).IsValid() { // for example, a text has only half of a surrogate pair
		g.t.Errorf("the caller's request is not strict JSON\n%s %s\n%s", req.Method, req.URL, body)
		Problem(w, http.StatusBadRequest, "invalid_request", "the body is not strict JSON")
		return
	}
	rec := httptest.NewRecorder()
	g.answer(rec, req, route.Operation.OperationID, params["id"], string(body))
	if req.Context().Err() != nil {
		return
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: rec.Code, Header: rec.Header(), Options: input.Options,
		Body: io.NopCloser(bytes.NewReader(rec.Body.Bytes())),
	}
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		g.t.Errorf("the fake's answer is not valid: %v\n%s %s\n%d %s", err, req.Method, req.URL, rec.Code, rec.Body)
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

func (g *Gateway) answer(w *httptest.ResponseRecorder, req *http.Request, operation, id, body string) {
	if operation == "getKeys" {
		send(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
			"kty": "OKP", "crv": "Ed25519", "kid": "k1", "alg": "EdDSA", "use": "sig",
			"x": base64.RawURLEncoding.EncodeToString(g.key.Public().(ed25519.PublicKey)),
		}}})
		return
	}
	if req.Header.Get("Authorization") != "Bearer "+Token {
		w.Header().Set("WWW-Authenticate", "Bearer")
		Problem(w, http.StatusUnauthorized, "unauthorized", "there is no client with this token")
		return
	}
	if operation == "getRequest" {
		g.get(w, req, id)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if operation == "createRequest" {
		g.create(w, req, body)
		return
	}
	r := g.find(id)
	if r.ID == "" {
		Problem(w, http.StatusNotFound, "not_found", "there is no such request")
		return
	}
	defer g.wake()
	var in struct {
		Hash     string `json:"args_sha256"`
		Status   string `json:"status"`
		Text     string `json:"text"`
		Reason   string `json:"reason"`
		Question int    `json:"question"`
		Run      string `json:"run"`
	}
	if err := json.Unmarshal([]byte(cmp.Or(body, "{}")), &in); err != nil {
		g.t.Errorf("%s: %v", body, err)
	}
	switch operation {
	case "claimRequest":
		if !claim(w, r, in.Hash) {
			return
		}
	case "reportOutcome":
		if r.Status != "running" && r.Outcome == "" && r.Disposition != "outcome-unknown" {
			Problem(w, http.StatusConflict, "not_claimed", "the approval was not claimed")
			return
		}
		if in.Run != "" && in.Run == r.Earlier {
			r.Late = in.Status
			break
		}
		if in.Run != r.Run() {
			g.t.Errorf("the report is about the run %q, and %s has the run %q", in.Run, r.ID, r.Run())
		}
		r.Status, r.Outcome = in.Status, strings.TrimSpace(in.Status+" "+in.Text)
	case "withdrawRequest":
		if r.Status != "pending" && r.Status != "approved" && r.Status != "withdrawn" {
			Problem(w, http.StatusConflict, "already_over", "the request is "+r.Status)
			return
		}
		r.Status, r.Withdrawn = "withdrawn", in.Reason
	case "answerQuestion":
		if in.Question >= len(r.Questions) {
			Problem(w, http.StatusConflict, "no_question", "there is no such question")
			return
		}
		r.Questions[in.Question]["answer"] = in.Text
	}
	g.send(w, http.StatusOK, r)
}

// claim claims the approval of a request, or sends the problem.
func claim(w *httptest.ResponseRecorder, r *Request, hash string) bool {
	switch {
	case r.Status == "running" || r.Outcome != "":
		Problem(w, http.StatusConflict, "already_claimed", "the approval was used up")
	case r.Status != "approved":
		Problem(w, http.StatusConflict, "not_approved", "the request is "+r.Status)
	case hash != Hash(r.current()):
		Problem(w, http.StatusConflict, "other_arguments", "the hash is that of other arguments")
	default:
		r.Status = "running"
		return true
	}
	return false
}

func (g *Gateway) create(w *httptest.ResponseRecorder, req *http.Request, body string) {
	key := req.Header.Get("Idempotency-Key")
	for _, r := range g.requests {
		switch {
		case r.Key != key:
		case r.body != body:
			Problem(w, http.StatusUnprocessableEntity, "key_reused", "the key was used with another body")
			return
		default:
			w.Header().Set("Idempotent-Replayed", "true")
			g.send(w, 0, r)
			return
		}
	}
	var in struct {
		Tool    string          `json:"tool"`
		Args    json.RawMessage `json:"args"`
		Accepts []string        `json:"accepts"`
		Summary string          `json:"summary"`
		State   string          `json:"state"`
		Mode    string          `json:"mode"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		g.t.Errorf("%s: %v", body, err)
	}
	r := &Request{
		ID: fmt.Sprintf("req_%d", len(g.requests)+1), Key: key, Mode: in.Mode, Tool: in.Tool, Args: string(in.Args), Accepts: in.Accepts, Summary: in.Summary, State: in.State,
		Status: "pending", body: body,
	}
	g.requests = append(g.requests, r)
	if g.decide != nil {
		g.decide(r)
	}
	g.wake()
	g.send(w, 0, r)
}

func (g *Gateway) get(w *httptest.ResponseRecorder, req *http.Request, id string) {
	seconds, _ := strconv.Atoi(req.URL.Query().Get("wait"))
	end := time.After(time.Duration(seconds) * time.Second)
	for {
		g.mu.Lock()
		r, changed := g.find(id), g.changed
		over := r.Status != "pending"
		if known := req.Header.Get("If-None-Match"); known != "" {
			over = known != r.etag()
		}
		if over || seconds == 0 {
			switch {
			case r.ID == "":
				Problem(w, http.StatusNotFound, "not_found", "there is no such request")
			case req.Header.Get("If-None-Match") == r.etag():
				w.Header().Set("ETag", r.etag())
				w.WriteHeader(http.StatusNotModified)
			default:
				g.send(w, http.StatusOK, r)
			}
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		select {
		case <-changed:
		case <-end:
			seconds = 0
		case <-req.Context().Done():
			return
		}
	}
}

// etag returns a tag that is different after each change of the request.
func (r *Request) etag() string {
	return fmt.Sprintf("%q", Hash(fmt.Sprint(r.Status, r.Lost, r.Edited, r.Reason, r.Outcome, r.Questions)))
}

// current returns the arguments as an approver changed them, or the original arguments.
func (r *Request) current() string {
	if r.Edited != "" {
		return r.Edited
	}
	return r.Args
}

// Run returns the id of the request's run. An approver's edit changes it.
func (r *Request) Run() string {
	return "exec_" + Hash(r.ID + r.current() + r.Earlier)[:8]
}

// Again starts another run of the call, as if people had asked for it again, and the caller had claimed it.
func (r *Request) Again() {
	r.Earlier = r.Run()
}

// send answers with a request, and keeps the exact bytes of edited arguments. If status is 0, send chooses 200 or 202.
func (g *Gateway) send(w *httptest.ResponseRecorder, status int, r *Request) {
	out := map[string]any{
		"id": r.ID, "status": r.Status, "mode": cmp.Or(r.Mode, "decide"), "tool": r.Tool, "args_sha256": Hash(r.current()), "created_at": "2026-11-26T10:00:00Z",
	}
	if out["mode"] == "decide" {
		out["run"] = r.Run()
	}
	switch {
	case r.Status == "pending":
		out["waits_for"], out["expires_at"] = []string{"Team Lead"}, "2026-11-27T10:00:00Z"
	case !r.Lost && slices.Contains([]string{"approved", "running", "succeeded", "failed", "unknown", "rejected"}, r.Status):
		decision := map[string]any{"type": "approve", "by": []any{map[string]any{"role": "Team Lead"}}}
		if r.Automatic {
			decision["automatic"], decision["by"] = true, []any{}
		}
		if r.Edited != "" {
			decision["type"], decision["args_json"] = "edit", r.Edited
		}
		if r.Status == "rejected" {
			decision["type"] = "reject"
		}
		if r.Reason != "" {
			decision["reason"] = r.Reason
		}
		out["decision"] = decision
		if r.Status == "approved" {
			out["receipt"], out["run_before"] = g.Receipt(r.Tool, r.current(), time.Now().Add(time.Hour)), "2026-11-27T11:00:00Z"
		}
	default:
		if r.Reason != "" {
			out["reason"] = r.Reason
		}
	}
	if r.Disposition != "" {
		out["disposition"] = r.Disposition
	}
	if r.State != "" {
		out["state"] = r.State
	}
	if len(r.Questions) > 0 {
		out["questions"] = r.Questions
	}
	if status == 0 {
		status = http.StatusOK
		if r.Status == "pending" {
			status = http.StatusAccepted
		}
	}
	if _, result, ok := strings.Cut(r.Outcome, " "); ok {
		out["result"] = result
	}
	w.Header().Set("ETag", r.etag())
	send(w, status, out)
	if r.Edited != "" {
		const begin = `"decision":{` // matches only the member decision, because quotation marks in texts are escaped
		w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), begin, begin+`"args":`+r.Edited+`,`, 1))
	}
}

// Receipt returns a signed receipt.
func (g *Gateway) Receipt(tool, args string, expires time.Time) string {
	encode := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	head := encode(map[string]string{"alg": "EdDSA", "kid": "k1", "typ": "countersign-receipt+jwt"}) + "." + encode(map[string]any{
		"aud": []string{Audience}, "request": "req_1", "tool": tool, "args_sha256": Hash(args), "exp": expires.Unix(), "jti": "req_1",
		"nbf": time.Now().Unix(),
	})
	return head + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(g.key, []byte(head)))
}

// Problem writes an error answer in the format of problem details (RFC 9457).
func Problem(w http.ResponseWriter, status int, name, detail string) {
	body, _ := json.Marshal(map[string]any{"type": "urn:countersign:problem:" + name, "title": http.StatusText(status), "status": status, "detail": detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(body)
}

// send writes JSON.
func send(w *httptest.ResponseRecorder, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // impossible, because v has only maps, lists, texts and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Body.Write(b.Bytes())
}
