package workflow

import (
	"strconv"
	"sync"

	"countersign/approvers"
)

// People can click on a decided card any number of times, but their clicks must not fill the store. So the history has
// a record for each of the first denials of a kind. After that, the history records only the denials whose number is a
// power of ten.

// denialsKept is the number of denials with a record of their own, for each person, reason and chain.
const denialsKept = 5

// factTimes is the name of the fact with the number of attempts, in a record that covers several denials.
const factTimes = "times"

// denial is a kind of denied attempt.
type denial struct{ chain, actor, user, what, code string }

// denials counts attempts since the process started. Earlier attempts are counted from the history.
type denials struct {
	mu    sync.Mutex
	times map[denial]int
}

// mostDenials limits the cached counts. Dropped counts are read from the history again.
const mostDenials = 10_000

func (d *denials) known(x denial) (int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, known := d.times[x]
	return n, known
}

// came stores the counts of attempts after their transaction is committed.
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

// countDenial returns the number of this attempt among attempts of its kind. It also returns whether the attempt gets a
// record.
func (t *tx) countDenial(x denial) (n int, recorded bool, err error) {
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

// denialsIn counts the attempts of a kind that a chain records.
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
