package transport

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// recorder is a handler that records deliveries. A payload is a JSON string "LANE TEXT".
type recorder struct {
	hold map[string]chan struct{} // by payload: Receive waits until the channel is closed
	fail map[string]error         // by payload: the error that Receive returns
	says map[string]any           // by payload: the answer that Receive returns

	mu   sync.Mutex
	came []Delivery // the deliveries, in the order of the calls of Receive
}

func (r *recorder) Lane(d Delivery) string {
	lane, _, _ := strings.Cut(strings.Trim(string(d.Payload), `"`), " ")
	return lane
}

func (r *recorder) Receive(_ context.Context, d Delivery) (any, error) {
	r.mu.Lock()
	r.came = append(r.came, d)
	r.mu.Unlock()
	if hold := r.hold[string(d.Payload)]; hold != nil {
		<-hold
	}
	return r.says[string(d.Payload)], r.fail[string(d.Payload)]
}

// deliveries returns the deliveries that have come so far.
func (r *recorder) deliveries() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Delivery(nil), r.came...)
}

// payloads returns the payloads of the deliveries that have come so far.
func (r *recorder) payloads() string {
	var all []string
	for _, d := range r.deliveries() {
		all = append(all, string(d.Payload))
	}
	return strings.Join(all, " ")
}

func options(r *recorder) Options {
	return Options{Handler: r, Log: slog.New(slog.DiscardHandler), Now: time.Now}
}
