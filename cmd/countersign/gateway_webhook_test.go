package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// delivered is one message that the webhook's receiver got.
type delivered struct{ id, body string }

// The bot is killed after a receiver got a message and before the receiver answered. The next process sends the message
// again once, with the same id. If the policy does not allow a receiver on this machine, the receiver gets nothing, and
// /readyz reports the refused webhook. A request can't name a receiver.
func TestGatewayWebhook(t *testing.T) {
	t.Parallel()
	got, answer := make(chan delivered, 10), make(chan int, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- delivered{r.Header.Get("webhook-id"), string(body)}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		case <-r.Context().Done(): // the bot was killed
		}
	}))
	defer receiver.Close()
	refused := 0
	notAllowed := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { refused++ }))
	defer notAllowed.Close()

	p := openProcessHarness(t)
	policy, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	clients := strings.Replace(gatewayClients, "caps: {pending: 6}}", fmt.Sprintf(`caps: {pending: 6}, webhook: {url: %q, secret: "${CI_WEBHOOK}", allow: ["127.0.0.1"]}}`, receiver.URL), 1)
	clients = strings.Replace(clients, `tools: ["*"]}`, fmt.Sprintf(`tools: ["*"], webhook: {url: %q, secret: "${CI_WEBHOOK}"}}`, notAllowed.URL), 1)
	write(t, p.policy(), append(policy, clients...))
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0", "CI_WEBHOOK=whsec_bmV3LXNlY3JldC1mb3ItdGhlLXJlY2VpdmVyLW9mLWNp")
	bot, _ := p.serve()
	ci := openCaller(t, "http://"+bot.says(`countersign is up.* gateway=(\S+)`), ciToken)
	if r := ci.wants(ci.ask("c", refund+`,"callback":"`+receiver.URL+`"}`), http.StatusBadRequest, "invalid_request"); !strings.Contains(r.Original, "in the policy") {
		t.Errorf("a request with a callback is answered %s", r.Original)
	}
	id := ci.wants(ci.ask("1", refund+`}`), http.StatusAccepted, "pending").text("id")
	teo := p.watcher("teo")
	teo.clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	next := func() delivered {
		t.Helper()
		select {
		case m := <-got:
			return m
		case <-time.After(patience):
			t.Fatal("nothing was delivered")
			return delivered{}
		}
	}
	first := next()
	if !strings.Contains(first.body, `{"id":"`+id+`","status":"approved"}`) || !strings.Contains(first.body, `"request.decided"`) {
		t.Errorf("the receiver got %s", first.body)
	}
	_ = bot.end(syscall.SIGKILL)
	bot, admin := p.serve()
	if again := next(); again != first {
		t.Errorf("after the kill the receiver got %+v, and before it %+v", again, first)
	}
	answer <- http.StatusOK

	// The egress guard refuses the webhook of another client. At the same time, ci gets its next message.
	ci.base = "http://" + bot.says(`countersign is up.* gateway=(\S+)`)
	other := ci
	other.token = otherToken
	otherID := other.wants(other.ask("1", strings.Replace(refund, "49.99", "19.99", 1)+`}`), http.StatusAccepted, "pending").text("id")
	other.wants(other.do(http.MethodPost, "/v1/requests/"+otherID+"/withdraw", ""), http.StatusOK, "withdrawn")
	id = ci.wants(ci.ask("2", strings.Replace(refund, "49.99", "29.99", 1)+`}`), http.StatusAccepted, "pending").text("id")
	ci.wants(ci.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", ""), http.StatusOK, "withdrawn")
	if m := next(); !strings.Contains(m.body, `{"id":"`+id+`","status":"withdrawn"}`) {
		t.Errorf("the receiver got %s", m.body)
	}
	answer <- http.StatusNoContent
	bot.says(`(a delivery to a client's webhook failed.*is this machine)`)
	if _, report := get(t, admin+"/readyz?wait=5"); !strings.Contains(report, "webhooks: the webhook of other has failed since") {
		t.Errorf("/readyz says %s", report)
	}
	if refused > 0 {
		t.Errorf("the receiver that is not allowed got %d requests", refused)
	}
}
