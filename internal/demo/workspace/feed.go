package workspace

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// feedQueue limits the changes that wait for one browser. If more changes wait, the browser is disconnected. The
// browser then reconnects and reads the complete state.
const feedQueue = 512

// change tells a browser which part of the state has changed. The browser then reads this part.
type change struct {
	Type     string `json:"type"`
	User     string `json:"user,omitempty"`
	Channel  string `json:"channel,omitempty"`
	TS       string `json:"ts,omitempty"`
	ThreadTS string `json:"thread_ts,omitempty"`

	only []string // the people who may get the change; nil: everybody
}

// feed sends changes to the connected browsers.
type feed struct {
	mu     sync.Mutex
	closed bool
	subs   map[*subscriber]bool
}

type subscriber struct {
	user string // the person for whom the browser gets changes; "": the browser gets all changes
	out  chan change
}

func newFeed() *feed { return &feed{subs: map[*subscriber]bool{}} }

func (f *feed) send(c change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subs {
		if sub.user != "" && c.only != nil && !slices.Contains(c.only, sub.user) {
			continue
		}
		select {
		case sub.out <- c:
		default:
			delete(f.subs, sub)
			close(sub.out)
		}
	}
}

func (f *feed) listen(user string) (*subscriber, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false
	}
	sub := &subscriber{user: user, out: make(chan change, feedQueue)}
	f.subs[sub] = true
	return sub, true
}

func (f *feed) leave(sub *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs[sub] {
		delete(f.subs, sub)
		close(sub.out)
	}
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for sub := range f.subs {
		delete(f.subs, sub)
		close(sub.out)
	}
}

// serveEvents is GET /events. It sends server-sent events until the browser disconnects.
func (pa *peopleAPI) serveEvents(w http.ResponseWriter, r *http.Request) {
	user := ""
	if name := r.URL.Query().Get("user"); name != "" {
		pa.mu.Lock()
		u, failed := pa.accounts.anyone(name)
		pa.mu.Unlock()
		if failed != nil {
			writePeople(w, nil, failed)
			return
		}
		user = u.ID
	}
	sub, ok := pa.feed.listen(user)
	if !ok {
		writeJSON(w, http.StatusServiceUnavailable, object{"ok": false, "error": "closing"})
		return
	}
	defer pa.feed.leave(sub)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprint(w, "retry: 500\n\n: listening\n\n")
	if out.Flush() != nil {
		return
	}
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			fmt.Fprint(w, ": alive\n\n")
		case c, open := <-sub.out:
			if !open {
				return
			}
			fmt.Fprintf(w, "data: %s\n\n", wire.Encode(c))
		}
		if out.Flush() != nil {
			return
		}
	}
}
