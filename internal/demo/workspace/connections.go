package workspace

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// ticketLives is how long the URL of apps.connections.open is valid.
const ticketLives = time.Minute

// sockets opens the app's sockets. Each socket needs a ticket.
type sockets struct {
	*core
	tickets map[string]time.Time // the time at which each ticket expires
}

// open is apps.connections.open.
func (s *sockets) open(c *call) (object, *apiError) {
	now := s.cfg.machine()
	for ticket, expires := range s.tickets {
		if now.After(expires) {
			delete(s.tickets, ticket)
		}
	}
	ticket := wire.NewSecret()
	s.tickets[ticket] = now.Add(ticketLives)
	query := url.Values{"ticket": {ticket}, "app_id": {s.app.ID}}
	out := object{"url": "ws" + strings.TrimPrefix(c.base, "http") + "/link/?" + query.Encode()}
	if s.hub.OverHTTP() { // as in Slack, the socket opens, but gets no deliveries
		out["response_metadata"] = object{"messages": []string{"[WARN] Socket Mode is not turned on."}}
	}
	return out, nil
}

// serve opens a socket for a ticket. A ticket can be used once.
func (s *sockets) serve(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	expires, known := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !known || s.cfg.machine().After(expires) {
		http.Error(w, "the ticket was used or is too old: call apps.connections.open again", http.StatusForbidden)
		return
	}
	s.hub.ServeSocket(w, r, object{
		"type": "hello", "connection_info": object{"app_id": s.app.ID},
		"debug_info": object{"host": "workspace", "started": s.cfg.Now().UTC().Format(time.RFC3339), "build_number": 1, "approximate_connection_time": 18060},
	})
}
