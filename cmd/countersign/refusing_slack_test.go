package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/store"
)

// refusalRule is one way in which Slack refuses. With such a rule, Slack refuses calls to some methods and does not
// carry them out.
type refusalRule struct {
	name    string
	methods []string // methods that are refused; a final * matches any ending
	kinds   []string // only calls with such a kind of block are refused; "any" is every block
	named   bool     // only calls with metadata are refused
	reason  bool     // Slack says which block it refuses
	code    string   // error code, with status 200; empty: see status and body
	status  int
	body    string
	lasts   time.Duration // 0: the refusal does not end
	bare    bool          // Slack drops the metadata of the messages that it shows
	unheard bool          // Slack carries out the calls, but the first answer for each message is lost
}

// The method "said" returns the words that the log must contain if such a refusal changed the messages that people see.
func (r refusalRule) said() string {
	switch {
	case r.code == "ratelimited", r.status == http.StatusTooManyRequests:
		return "Slack asks the bot to wait"
	case r.code != "":
		return r.code
	case r.status > 0:
		return fmt.Sprint(r.status)
	case r.body == "":
		return "it is empty"
	}
	return "it begins with"
}

func (r refusalRule) fits(method string) bool {
	return slices.ContainsFunc(r.methods, func(m string) bool {
		start, any := strings.CutSuffix(m, "*")
		return m == method || any && strings.HasPrefix(method, start)
	})
}

// refusingSlack is a handler in front of the workspace. It refuses calls according to a rule.
type refusingSlack struct {
	next   http.Handler
	kindOf func(message string) store.OutboxKind

	mu    sync.Mutex
	rule  refusalRule
	until time.Time
	lost  map[string]bool // outbox messages whose first answer was lost
	hits  []refused
}

// refused is one refused call.
type refused struct {
	method string
	kind   store.OutboxKind // kind of the outbox message that the call shows; empty: the call shows no outbox message
}

// kindShown returns the kind of the outbox message that a call shows.
func (p *refusingSlack) kindShown(method, outboxID string, form url.Values) store.OutboxKind {
	switch {
	case outboxID != "":
		return p.kindOf(outboxID)
	case method == "views.publish":
		return store.OutboxHome
	case strings.HasSuffix(method, "Stream"):
		return store.OutboxDraft
	case strings.HasPrefix(method, "files.") && strings.Contains(form.Get("filename")+form.Get("files"), "chart.txt"):
		return store.OutboxAttachment
	case strings.HasPrefix(method, "files."):
		return store.OutboxFile
	}
	return ""
}

// The method "refuses" sets the rule for all later calls.
func (p *refusingSlack) refuses(r refusalRule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule, p.until, p.lost = r, time.Time{}, map[string]bool{}
	if r.lasts > 0 {
		p.until = time.Now().Add(r.lasts)
	}
}

func (p *refusingSlack) counted() []refused {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hits)
}

// ServeHTTP answers a call.
func (p *refusingSlack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, ok := strings.CutPrefix(r.URL.Path, "/api/")
	if !ok {
		method = "response_url"
		if r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			p.next.ServeHTTP(w, r)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, kinds := argumentsOf(r, body)
	outboxID, _ := outboxIDOf(form)
	p.mu.Lock()
	rule := p.rule
	over := rule.name == "" || !p.until.IsZero() && time.Now().After(p.until)
	if !over && rule.unheard && outboxID != "" && rule.fits(method) && !p.lost[outboxID] {
		p.lost[outboxID] = true
		p.hits = append(p.hits, refused{method, p.kindShown(method, outboxID, form)})
		p.mu.Unlock()
		p.next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	at := slices.IndexFunc(kinds, func(kind string) bool { return slices.Contains(rule.kinds, kind) || slices.Contains(rule.kinds, "any") })
	refuses := !over && !rule.unheard && rule.fits(method) && (len(rule.kinds) == 0 || at >= 0) && (!rule.named || outboxID != "")
	if refuses {
		p.hits = append(p.hits, refused{method, p.kindShown(method, outboxID, form)})
	}
	p.mu.Unlock()
	if !refuses {
		p.pass(w, r, rule.bare && !over)
		return
	}
	switch {
	case rule.code != "":
		answer := map[string]any{"ok": false, "error": rule.code}
		if rule.reason && at >= 0 {
			answer["response_metadata"] = map[string]any{"messages": []string{fmt.Sprintf("[ERROR] unsupported type: %s [json-pointer:/blocks/%d/type]", kinds[at], at)}}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer)
	case rule.status > 0:
		if rule.status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "20")
		}
		http.Error(w, rule.body, rule.status)
	default:
		io.WriteString(w, rule.body)
	}
}

// pass passes a call to the workspace. If bare is true, pass removes the metadata from answers about conversations.
func (p *refusingSlack) pass(w http.ResponseWriter, r *http.Request, bare bool) {
	if !bare || !strings.HasPrefix(r.URL.Path, "/api/conversations.") {
		p.next.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	p.next.ServeHTTP(answer, r)
	var v any
	if json.Unmarshal(answer.Body.Bytes(), &v) == nil {
		answer.Body.Reset()
		json.NewEncoder(answer.Body).Encode(withoutMetadata(v))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

func withoutMetadata(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutMetadata(v[i])
		}
	case map[string]any:
		delete(v, "metadata")
		for k := range v {
			v[k] = withoutMetadata(v[k])
		}
	}
	return v
}

// argumentsOf returns the arguments of a call, and the kinds of its blocks.
func argumentsOf(r *http.Request, body []byte) (form url.Values, kinds []string) {
	var raw []byte
	form, _ = url.ParseQuery(string(body))
	if raw = []byte(form.Get("blocks")); strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var in struct {
			Blocks json.RawMessage
			View   struct{ Blocks json.RawMessage }
		}
		json.Unmarshal(body, &in)
		if raw = in.Blocks; len(in.View.Blocks) > 0 {
			raw = in.View.Blocks
		}
	}
	var chunks []struct{ Blocks json.RawMessage } // the chunks of a streamed message
	if json.Unmarshal([]byte(form.Get("chunks")), &chunks) == nil && len(chunks) > 0 {
		raw = chunks[0].Blocks
	}
	var blocks []struct{ Type string }
	json.Unmarshal(raw, &blocks)
	for _, b := range blocks {
		kinds = append(kinds, b.Type)
	}
	return form, kinds
}
