package bot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// intake is what the bot knows of Slack's requests over HTTP.
type intake struct {
	mu       sync.Mutex
	isOpen   bool
	under    sync.WaitGroup // deliveries that are being stored
	last     time.Time      // when the last request of Slack's came
	turned   int            // requests that claimed to be Slack's and were not, since then
	why      string         // the last of them was refused
	untold   int            // how many of them the operator was not told of
	told     time.Time
	seen     [2]map[[sha256.Size]byte]bool // requests of the last ten minutes or so, the newer ones first
	seenFrom time.Time                     // since when the newer ones are noted
}

// open lets deliveries in.
func (k *intake) open() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isOpen = true
}

// shut lets none in any more, and waits for those that are.
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

// enter reports whether a delivery is let in. One that is has to leave.
func (k *intake) enter() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isOpen {
		k.under.Add(1)
	}
	return k.isOpen
}

func (k *intake) leave() { k.under.Done() }

// verified notes that Slack's signature was on a request.
func (k *intake) verified(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.turned = now, 0
}

// complainAgain is how long the operator is not told again of requests that are not Slack's: anybody can send them.
const complainAgain = time.Minute

// refused notes a request that is not Slack's, and says of how many the operator is to be told now.
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

// signatureLives is how long a signed request may be taken in after it was first seen: its time may be five minutes ahead, and five minutes old.
const signatureLives = 10 * time.Minute

// nameOf names a request by all that Slack's signature is over, whatever the signature's own letters look like.
func nameOf(r *http.Request, body []byte) (name [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%s:", r.Header.Get("X-Slack-Request-Timestamp"))
	h.Write(body)
	return [sha256.Size]byte(h.Sum(nil))
}

// first reports whether a request was not seen before, and notes that it is now. A new process has seen none; what an earlier one acknowledged is in the store.
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

// Heard reports whether Slack's requests arrive, as far as the bot can know: that none came may mean that nothing happened.
func (b *Bot) Heard() error {
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
