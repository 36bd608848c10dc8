package bot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// intake tracks Slack's requests over HTTP.
type intake struct {
	mu       sync.Mutex
	isOpen   bool
	under    sync.WaitGroup // deliveries being stored
	last     time.Time      // time of the last request from Slack
	turned   int            // requests with invalid signatures since then
	why      string         // why the last of them was rejected
	untold   int            // how many of them have not been reported to the operator
	told     time.Time
	seen     [2]map[[sha256.Size]byte]bool // requests of about the last ten minutes, newer half first
	seenFrom time.Time                     // start of the newer half
}

// open starts accepting deliveries.
func (k *intake) open() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isOpen = true
}

// shut stops accepting deliveries, and waits for those under way.
func (k *intake) shut() {
	k.mu.Lock()
	k.isOpen = false
	k.mu.Unlock()
	k.under.Wait()
}

func (k *intake) listening() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isOpen
}

// enter reports whether a delivery is accepted. An accepted one must leave.
func (k *intake) enter() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isOpen {
		k.under.Add(1)
	}
	return k.isOpen
}

func (k *intake) leave() { k.under.Done() }

// verified records a request with a valid signature.
func (k *intake) verified(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.turned = now, 0
}

// complainAgain is the minimum time between reports to the operator about invalid requests, because anybody can send
// them.
const complainAgain = time.Minute

// refused records an invalid request. It returns how many of them to report to the operator now.
func (k *intake) refused(now time.Time, why string) (tell int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turned++
	k.why = why
	k.untold++
	if now.Sub(k.told) < complainAgain {
		return 0
	}
	tell, k.told, k.untold = k.untold, now, 0
	return tell
}

// signatureLives is how long a signed request may be accepted after it was first seen: its timestamp may be five
// minutes in the future, and five minutes old.
const signatureLives = 10 * time.Minute

// nameOf identifies a request by everything that the signature covers. The spelling of the signature itself does not
// matter.
func nameOf(r *http.Request, body []byte) (name [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%s:", r.Header.Get("X-Slack-Request-Timestamp"))
	h.Write(body)
	return [sha256.Size]byte(h.Sum(nil))
}

// first reports whether a request is new, and records it. A new process has seen none, but the store contains what an
// earlier process acknowledged.
func (k *intake) first(name [sha256.Size]byte, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen[0] == nil || now.Sub(k.seenFrom) >= signatureLives {
		k.seen[1], k.seen[0], k.seenFrom = k.seen[0], map[[sha256.Size]byte]bool{}, now
	}
	if k.seen[0][name] || k.seen[1][name] {
		return false
	}
	k.seen[0][name] = true
	return true
}

// Listening reports whether Slack's requests arrive, as far as the bot can know. A lack of requests may mean that
// nothing happened.
func (b *Bot) Listening() error {
	k := &b.intake
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.turned > 0 && k.last.IsZero():
		return fmt.Errorf("none of Slack's came yet; refused: %d, the last because %s", k.turned, k.why)
	case k.turned > 0:
		return fmt.Errorf("refused since the last one of Slack's: %d, the last because %s", k.turned, k.why)
	case k.last.IsZero():
		return errors.New("none came yet; Slack sends them to the Request URLs in the app's settings")
	}
	return nil
}
