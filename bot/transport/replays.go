package transport

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// signatureLives is how long a signed request may be accepted after its first arrival. When the request first arrives,
// its timestamp may be up to five minutes in the future. A request is accepted until its timestamp is five minutes old.
const signatureLives = 10 * time.Minute

// requestName identifies a request by all data that its signature covers. requestName does not include the signature
// itself, because the same signature can have several spellings.
type requestName [sha256.Size]byte

func nameOf(r *http.Request, body []byte) requestName {
	h := sha256.New()
	fmt.Fprintf(h, "%s:", r.Header.Get("X-Slack-Request-Timestamp"))
	h.Write(body)
	return requestName(h.Sum(nil))
}

// replays keeps the requests of at least the last ten minutes. A new process begins without kept requests, but the
// handler recognises deliveries that an earlier process acknowledged.
type replays struct {
	mu    sync.Mutex
	seen  [2]map[requestName]bool // the kept requests in two halves, the newer half first
	since time.Time               // start of the newer half
}

// first reports whether a request is new, and keeps it.
func (p *replays) first(name requestName, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[0] == nil || now.Sub(p.since) >= signatureLives {
		p.seen[1], p.seen[0], p.since = p.seen[0], map[requestName]bool{}, now
	}
	if p.seen[0][name] || p.seen[1][name] {
		return false
	}
	p.seen[0][name] = true
	return true
}
