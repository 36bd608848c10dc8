package workflow

import (
	"strconv"
	"sync"

	"countersign/approvers"
)

// People can click on a decided card any number of times, but their clicks must not fill the store. So each of the
// first denialsKept denials of a kind gets an audit record. After these, a denial gets an audit record only if its
// number is a power of ten.

// denialsKept is the number of denials that get a record of their own. The workflow counts denials separately for each
// person, reason and audit chain.
const denialsKept = 5

// factTimes is the fact that holds the number of attempts, in an audit record that covers several denials.
const factTimes = "times"

// denial is a kind of denied attempt.
type denial struct{ chain, actor, user, what, code string }

// denials caches the number of denied attempts of each kind. A count that is not in the cache is read from the audit.
type denials struct {
	mu    sync.Mutex
	times map[denial]int
}

// mostDenials is the maximum number of cached counts.
const mostDenials = 10_000

func (d *denials) known(x denial) (int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, known := d.times[x]
	return n, known
}

// d.came stores the new counts of a committed transaction in the cache.
func (d *denials) came(all map[denial]int) {
	if len(all) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.times == nil || len(d.times) >= mostDenials {
		d.times = map[denial]int{}
	}
	for x, n := range all {
		d.times[x] = max(d.times[x], n)
	}
}

// numberDenial counts a denied attempt. n is the number of attempts of this kind, including this attempt. If the
// attempt gets an audit record, recorded is true.
func (t *tx) numberDenial(x denial) (n int, recorded bool, err error) {
	n, counted := t.denials[x]
	if !counted {
		n, counted = t.w.denials.known(x)
	}
	if !counted {
		if n, err = t.denialsIn(x); err != nil {
			return 0, false, err
		}
	}
	n++
	t.denials[x] = n
	return n, n <= denialsKept || powerOfTen(n), nil
}

func powerOfTen(n int) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// denialsIn returns the number of attempts of a kind, according to the records of an audit chain.
func (t *tx) denialsIn(x denial) (int, error) {
	records, err := t.Audit(x.chain)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, a := range records {
		f := a.Facts
		if a.Kind != approvers.AuditDenied || string(a.Actor) != x.actor || f["user"] != x.user || f["kind"] != x.what || f["code"] != x.code {
			continue
		}
		n++
		if times, err := strconv.Atoi(f[factTimes]); err == nil {
			n = max(n, times)
		}
	}
	return n, nil
}
