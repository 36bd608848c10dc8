package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/bot/transport"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// Two replicas receive Slack's requests over HTTP behind a load balancer. Each delivery reaches both replicas: Slack
// repeats an event whose answer was lost, and the load balancer gives the repetition to the other replica. The load
// balancer itself sends clicks, forms and commands to both replicas at the same moment, because Slack sends them only
// once. The replicas accept every delivery, and handle each of them once.
func TestHTTPReplicas(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	p := openProcessHarness(t).overHTTP()
	balancer := &doublingBalancer{T: t, first: map[string]int{}, once: map[string]int{}}
	for range 2 {
		r := p.replicaOf(server.URL("postgres"), filepath.Join(p.dir, "key"))
		bot, _ := r.serve()
		balancer.replicas = append(balancer.replicas, "http://"+bot.httpAddress())
	}
	front := httptest.NewServer(balancer)
	defer front.Close()
	p.deliverTo(front.URL)

	sam, teo := p.watcher("sam"), p.watcher("teo")
	first := sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	teo.clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	sam.sees("#support", first, "I refunded $49.99")
	second := sam.says("#support", "", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	teo.clicks("countersign", "", "Reject…", "Refund of $20.00 for order ORD-131")
	teo.fills("reason", "Ask the carrier first.")
	sam.sees("#support", second, "Ask the carrier first.")
	if _, err := sam.Command(t.Context(), "#support", "/countersign", "pending"); err != nil {
		t.Fatal(err)
	}
	sam.wait("the answer to the command", func(ctx context.Context) (bool, error) {
		answers, err := sam.Ephemerals(ctx, "#support", "")
		return len(answers) > 0, err
	})

	db, err := postgres.Open(t.Context(), server.URL("postgres"), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := awaitHandled(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, c := range []struct {
		what, rows string
		want       int
	}{
		{"messages", "id LIKE 'message:%'", 2},
		{"clicks and forms", "kind = 'interaction'", balancer.sent(transport.InteractionsPath)},
		{"commands", "kind = 'command'", balancer.sent(transport.CommandsPath)},
	} {
		var rows int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM countersign.inbox WHERE "+c.rows).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if rows != c.want || rows == 0 {
			t.Errorf("%d %s were stored, want %d", rows, c.what, c.want)
		}
	}
	history := map[approvers.AuditKind]int{}
	err = db.View(t.Context(), func(r store.Reader) error {
		clear(history)
		return r.EachAuditRow(func(x approvers.AuditRow) error {
			a, err := approvers.ParseAuditRecord(x.Record)
			if strings.HasPrefix(a.Chain, "req_") { // automatic calls have other chains
				history[a.Kind]++
			}
			return err
		})
	})
	for kind, want := range map[approvers.AuditKind]int{approvers.AuditProposed: 2, approvers.AuditDecided: 2, approvers.AuditDenied: 0, approvers.AuditExecuted: 1} {
		if history[kind] != want {
			t.Errorf("the history has %d records %s, want %d", history[kind], kind, want)
		}
	}
	if err != nil {
		t.Error(err)
	}
	for thread, words := range map[string]string{first: "I refunded $49.99", second: "Ask the carrier first."} {
		messages, err := sam.Messages(t.Context(), "#support", thread)
		n := 0
		for _, m := range messages {
			if m.BotID != "" && strings.Contains(m.Text, words) {
				n++
			}
		}
		if err != nil || n != 1 {
			t.Errorf("%d messages say %q: %v", n, words, err)
		}
	}
	if answers, err := sam.Ephemerals(t.Context(), "#support", ""); err != nil || len(answers) != 1 {
		t.Errorf("the command has %d answers: %v", len(answers), err)
	}
}

// doublingBalancer is a load balancer that sends each delivery to two replicas.
type doublingBalancer struct {
	*testing.T
	replicas []string

	mu    sync.Mutex
	n     int
	first map[string]int // by the event: the replica that got its first delivery
	once  map[string]int // by path: the number of deliveries that Slack sends only once
}

func (b *doublingBalancer) sent(path string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.once[path]
}

func (b *doublingBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.Error(err)
	}
	b.mu.Lock()
	b.n++
	at := b.n % len(b.replicas)
	if r.URL.Path == transport.EventsPath && !bytes.Contains(body, []byte(`"url_verification"`)) {
		retried := r.Header.Get("X-Slack-Retry-Num") != ""
		if earlier, ok := b.first[string(body)]; retried && ok {
			at = (earlier + 1) % len(b.replicas)
		} else {
			b.first[string(body)] = at
		}
		b.mu.Unlock()
		answer := b.forward(at, r, body)
		if !retried {
			w.WriteHeader(http.StatusGatewayTimeout) // the answer is lost
			return
		}
		_, _ = w.Write(answer) // the workspace may be closed
		return
	}
	if r.URL.Path != transport.EventsPath {
		b.once[r.URL.Path]++
	}
	b.mu.Unlock()
	var both sync.WaitGroup
	var answer []byte
	both.Go(func() { answer = b.forward(at, r, body) })
	if r.URL.Path != transport.EventsPath {
		both.Go(func() { b.forward((at+1)%len(b.replicas), r, body) })
	}
	both.Wait()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // the workspace may be closed
}

// forward sends a request to a replica, and returns the answer. The replica must accept the request.
func (b *doublingBalancer) forward(at int, r *http.Request, body []byte) (answer []byte) {
	q, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, b.replicas[at]+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		b.Error(err)
		return nil
	}
	q.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(q)
	if err == nil {
		defer resp.Body.Close()
		answer, err = io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK {
			err = errors.Join(err, errors.New(resp.Status))
		}
	}
	if err != nil {
		b.Errorf("replica %d, %s: %v", at, r.URL.Path, err)
	}
	return answer
}
