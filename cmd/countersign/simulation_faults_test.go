package main

import "strings"

// The method "let" releases one goroutine from the gate. It decides at random how the goroutine's operation ends.
func (s *simulation) let(w *waiter) {
	v := s.drawFateOf(w)
	s.step("let %s%s", w.key(), v)
	s.gate.let(w, v)
}

func (v lot) String() string {
	out := ""
	if v.fault != "" {
		out = " but " + v.fault
	}
	if v.hold {
		out += ", held"
	}
	return out
}

// drawFateOf decides how the operation of a waiting goroutine ends. Most of its decisions are random.
func (s *simulation) drawFateOf(w *waiter) lot {
	switch w.kind {
	case atCommit:
		return s.drawCommit()
	case atSlack:
		s.slack++
		return s.drawSlack(w.what)
	case atModel:
		s.simulationCounts.model++
		return s.drawModel()
	case atTool:
		return s.drawTool(w.what)
	}
	return lot{}
}

func (s *simulation) drawCommit() lot {
	v := lot{hold: s.chance(12)}
	switch {
	case s.out("disk"):
		v.fault = faultFull
	case s.faulty(150):
		s.faults++
		v.fault = []string{faultFull, faultLost, faultDoubt}[s.rnd.IntN(3)]
	}
	return v
}

// refusals lists the errors with which Slack refuses calls, by method.
var refusals = map[string][]string{
	"chat.postMessage":   {"channel_not_found", "is_archived", "not_in_channel", "internal_error", "fatal_error"},
	"chat.update":        {"edit_window_closed", "internal_error"},
	"chat.postEphemeral": {"user_not_in_channel", "internal_error"},
	"views.open":         {"expired_trigger_id", "internal_error"},
	"views.update":       {"not_found", "internal_error"},
	"users.info":         {"internal_error"},
}

func (s *simulation) drawSlack(what string) lot {
	v := lot{hold: s.chance(6)}
	if s.out("slack") {
		v.fault = []string{faultServer, faultNoWay, faultHang}[s.rnd.IntN(3)]
		return v
	}
	if !s.faulty(14) {
		return v
	}
	s.faults++
	v.fault = []string{faultBusy, faultServer, faultNoWay, faultNoAnswer, faultNoAnswer, faultHang, faultRefused}[s.rnd.IntN(7)]
	switch v.fault {
	case faultBusy:
		v.more = 1 + s.rnd.IntN(40)
	case faultRefused:
		codes := []string{"internal_error"}
		for method, own := range refusals {
			if strings.Contains(what, method+" ") {
				codes = own
			}
		}
		v.more = codes[s.rnd.IntN(len(codes))]
	}
	return v
}

func (s *simulation) drawTool(what string) lot {
	v := lot{hold: s.chance(3)}
	if s.faulty(8) {
		s.faults++
		v.fault = []string{faultFails, faultTells, faultIdle, faultPanics, faultStuck, faultDeaf}[s.rnd.IntN(6)]
		if v.fault == faultDeaf && strings.Contains(what, "deaf") {
			v.fault = ""
		}
	}
	return v
}

// drawFate decides at random what happens to a delivery.
func (s *simulation) drawFate() string {
	if s.calm {
		return ""
	}
	return []string{"", "", "", "", "", "", "", "", "", "lost", "late", "twice", "unheard"}[s.rnd.IntN(13)]
}
