package main

import (
	"context"
	"testing/synctest"
	"time"

	"countersign/store"
)

// rest lets all work finish without new faults, and checks the invariants.
func (s *simulation) rest() {
	s.rests++
	s.note("rest")
	s.quieten()
	s.comeToRest(false)
	s.checkBooks()
	s.checkRest()
	s.calm = false
	s.note("the rest is over")
}

// quieten ends all faults, and starts the bot if no bot runs.
func (s *simulation) quieten() {
	s.calm = true
	clear(s.down)
	if s.bot == nil {
		s.start()
		s.settle()
	}
}

// comeToRest lets the product work until three conditions hold: no work is in progress, no timer is due within a
// second, and no work is being retried. If atEnd is true, comeToRest also waits until no deadline remains. While
// comeToRest runs, no person acts.
func (s *simulation) comeToRest(atEnd bool) {
	for range 50_000 {
		s.settle()
		if s.violation != "" {
			return
		}
		if s.bot == nil {
			s.start()
			continue
		}
		if s.isPaused() && !s.operator.busy.Load() {
			s.operates()
			continue
		}
		_, waiting := s.gate.here()
		due, next := s.net.due()
		switch {
		case len(waiting) > 0:
			s.let(waiting[s.rnd.IntN(len(waiting))])
			time.Sleep(time.Millisecond)
			continue
		case len(due) > 0:
			s.deliver(due[0], "")
			time.Sleep(time.Millisecond)
			continue
		case !s.idle():
			time.Sleep(100 * time.Millisecond)
			continue
		case !next.IsZero() && time.Until(next) < 10*time.Second:
			time.Sleep(time.Until(next))
			continue
		}
		at := s.nextDue(atEnd)
		if at.IsZero() {
			return
		}
		time.Sleep(max(at.Sub(s.now()), 250*time.Millisecond)) // due work is already waiting at the gate
	}
	s.violate("it never comes to rest; what waits: %s", s.pending())
}

// nextDue returns the time of the next timer for which comeToRest waits. If there is no such timer, nextDue returns
// zero.
func (s *simulation) nextDue(atEnd bool) (next time.Time) {
	err := s.db.View(context.Background(), func(r store.Reader) error {
		for _, kind := range store.TimerKinds {
			timers, err := r.Timers(kind, 1000)
			if err != nil {
				return err
			}
			for _, t := range timers {
				waits := atEnd || t.Tries > 0 || kind == store.TimerThink || t.Due.Sub(s.now()) < time.Second
				if waits && (next.IsZero() || t.Due.Before(next)) {
					next = t.Due
				}
			}
		}
		return nil
	})
	if err != nil {
		s.violate("what is due next can't be read: %v", err)
	}
	return next
}

// end lets time pass until after all deadlines, checks the final state, and stops the bot.
func (s *simulation) end() {
	if s.violation == "" {
		s.quieten()
		s.comeToRest(true)
		s.checkBooks()
		s.checkRest()
		s.checkEnd()
	}
	s.calm = true
	if s.bot != nil {
		bot := s.bot
		s.shutDown()
		for range 1000 {
			synctest.Wait()
			looks, others := s.gate.here()
			for _, w := range append(looks, others...) {
				s.gate.let(w, lot{})
			}
			time.Sleep(time.Second)
			select {
			case <-bot.done:
			default:
				continue
			}
			break
		}
		bot.dead.Store(true)
	}
	for range 100 { // sleeping goroutines wake up and find that the process has ended
		s.gate.clear(nil)
		time.Sleep(time.Minute)
	}
	s.countKinds()
	if err := s.db.Check(context.Background()); err != nil {
		s.violate("the store's check: %v", err)
	}
	if err := s.db.Close(); err != nil {
		s.violate("the store does not close: %v", err)
	}
	if err := s.ws.Close(); err != nil {
		s.Error(err)
	}
}

// countKinds counts the audit records in the history by kind.
func (s *simulation) countKinds() {
	s.kinds = map[string]int{}
	err := s.db.View(context.Background(), func(r store.Reader) error {
		chains, err := r.AuditChains("", 100_000)
		for _, id := range chains {
			records, err := r.Audit(id)
			if err != nil {
				return err
			}
			for _, a := range records {
				kind := string(a.Kind)
				for _, fact := range []string{"kind", "state", "report", "what", "code"} {
					if a.Facts[fact] != "" {
						kind += "/" + a.Facts[fact]
					}
				}
				s.kinds[kind]++
			}
		}
		return err
	})
	if err != nil {
		s.violate("the history can't be read: %v", err)
	}
}

// pending lists the next timers of each kind, for a failure message.
func (s *simulation) pending() string {
	out := ""
	_ = s.db.View(context.Background(), func(r store.Reader) error {
		for _, kind := range store.TimerKinds {
			timers, err := r.Timers(kind, 5)
			if err != nil {
				return err
			}
			for _, t := range timers {
				out += string(t.Kind) + " " + t.Ref + " due " + t.Due.Sub(s.now()).String() + "\n"
			}
		}
		return nil
	})
	return out
}
