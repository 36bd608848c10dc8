package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"countersign/internal/demo/scriptedmodel"
)

// newModel returns the model's handler. The answer is chosen at random when the gate releases the request.
func (s *simulation) newModel() http.Handler {
	return scriptedmodel.New(scriptedmodel.Config{ContextTokens: 1 << 20, Now: time.Now, Responder: scriptedmodel.ResponderFunc(s.respond)})
}

// drawModel decides at random how a request to the model ends.
func (s *simulation) drawModel() lot {
	v := lot{hold: s.chance(10)}
	var f scriptedmodel.Fault
	if s.faulty(12) {
		s.faults++
		switch s.rnd.IntN(9) {
		case 0:
			v.fault = faultNoWay
		case 1:
			v.fault = faultHang
		case 2:
			f.Status, f.RetryAfter = http.StatusTooManyRequests, time.Duration(s.rnd.IntN(90))*time.Second
		case 3:
			f.Status = http.StatusInternalServerError
		case 4:
			f.Cut, f.CutAfter, f.StreamError = true, s.rnd.IntN(12), s.chance(2)
		case 5:
			f.Cut, f.CutAfter, f.CutQuietly = true, s.rnd.IntN(12), true
		case 6:
			f.MalformedArguments, f.Interleave = true, true
		case 7:
			f.TruncatedArguments = true
		case 8:
			f.DuplicateIDs = true
		}
	}
	r := scriptedmodel.Reply{Fault: f}
	if s.out("model") {
		r.Fault.Status = http.StatusServiceUnavailable
	}
	if s.chance(2) || s.calm && s.chance(2) {
		s.answered++
		r.Content = fmt.Sprintf("This is answer a%d.", s.answered)
		v.more = r
		return v
	}
	for range 1 + s.rnd.IntN(3) {
		r.Calls = append(r.Calls, s.drawCall())
	}
	v.more = r
	return v
}

// drawCall chooses a tool call at random.
func (s *simulation) drawCall() scriptedmodel.Call {
	s.called++
	n := fmt.Sprintf("n%d", s.called)
	amount := []string{"5", "49.99", "120", "700.5"}[s.rnd.IntN(4)]
	tool := []string{
		toolFind, toolNote, toolNote, toolPing, toolDiscount, toolDiscount, toolRefund, toolRefund, toolRefund, toolClose, toolExport,
	}[s.rnd.IntN(11)]
	args := fmt.Sprintf(`{"n":%q,"amount":%s}`, n, amount)
	switch s.rnd.IntN(30) {
	case 0:
		args = fmt.Sprintf(`{"n":%q,"amount":%s,"text":%q}`, n, amount, strings.Repeat("a long story ", 400)) // more than a card shows
	case 1:
		args = fmt.Sprintf(`{"n":%q,"amount":%s,"N":"%s"}`, n, amount, n)
	case 2:
		tool = "nothing"
	case 3:
		return scriptedmodel.Call{Name: "ask_people", Arguments: `{"question":"Which one?","options":["This","That"]}`}
	case 4:
		return scriptedmodel.Call{Name: "about_the_asker", Arguments: `{}`}
	}
	return scriptedmodel.Call{Name: tool, Arguments: args}
}

// respond returns the model's answer, after the account has read the request.
func (s *simulation) respond(ctx context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	v, _ := ctx.Value(lotKey{}).(lot)
	reply := v.more.(scriptedmodel.Reply)
	s.modelGiven(r)
	var said []string
	for _, c := range reply.Calls {
		said = append(said, nonceIn(c.Arguments))
	}
	s.proposed(r, said)
	return reply, nil
}

var (
	callNonce    = regexp.MustCompile(`\bn[0-9]+\b`)
	messageNonce = regexp.MustCompile(`\bm[0-9]+\b`)
)

// nonceIn finds the number of a call in its arguments.
func nonceIn(args string) string { return callNonce.FindString(args) }
