package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
)

// storedTask writes the calls of the history as fixtures, in JSON.
var storedTask = task[none]{"check stored", true, func(ctx context.Context, w taskEnv, _ none) error {
	calls, err := storedFixtures(ctx, w.store)
	if left := new(audit.Unread); err != nil && !errors.As(err, &left) {
		return cli.CouldNot("the history can't be read: %w", err)
	}
	return errors.Join(json.NewEncoder(w.out).Encode(calls), historyError(err))
}}

// storedFixtures returns a fixture for each call in the history, with the plan of that time. Calls with damaged rows are
// left out: the error is then an *audit.Unread, returned with the fixtures of all others.
func storedFixtures(ctx context.Context, s store.Store) ([]config.Fixture, error) {
	firsts := map[string]approvers.AuditRecord{} // by call: one over its automatic limit was proposed again, to people
	var left audit.Unread
	err := left.Take(audit.EachChain(ctx, s, func(records []approvers.AuditRecord) error {
		first := records[0]
		call := first.Facts["call"]
		if first.Kind != approvers.AuditProposed || first.Facts["verdict"] == "error" || call == "" {
			return nil
		}
		if other, again := firsts[call]; !again || first.At.Before(other.At) {
			firsts[call] = first
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	out := []config.Fixture{}
	for _, first := range firsts {
		x, err := storedFixture(ctx, s, first)
		if errors.Is(err, store.ErrNotFound) {
			continue // the call or its conversation was erased; the record stays
		}
		if errors.Is(err, store.ErrDamaged) {
			if err := left.Add(err); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b config.Fixture) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, left.Err()
}

func storedFixture(ctx context.Context, s store.Store, proposed approvers.AuditRecord) (config.Fixture, error) {
	var x config.Fixture
	err := s.View(ctx, func(r store.Reader) error {
		call, err := r.Call(proposed.Facts["call"])
		if err != nil {
			return err
		}
		if f := proposed.Facts; call.Args == "{}" && approvers.Digest(f["execution"], call.Tool, f["tool_hash"], []byte(call.Args)) != f["digest"] {
			return store.ErrNotFound // erased: the arguments are unknown
		}
		turn, err := r.Turn(call.Turn)
		if err != nil {
			return err
		}
		conv, err := r.Conversation(call.Conversation)
		if err != nil {
			return err
		}
		x = config.Fixture{
			Tool: call.Tool, Args: []byte(call.Args), Agent: turn.Agent, Channel: conv.Channel, DM: conv.DM, At: proposed.At,
			Expect: planned(proposed.Facts),
		}
		x.Requesters, x.Authors, err = spoke(r, call, turn)
		return err
	})
	asker := "nobody"
	if n := len(x.Requesters); n > 0 {
		asker = x.Requesters[n-1]
	}
	x.Name = proposed.At.UTC().Format(time.DateTime) + " for " + asker + ": " + short(string(x.Args), 80)
	return x, err
}

// spoke returns the requesters of a call, the last one last, and the authors of the model's input. For a call without a
// request the authors are not stored; then everybody counts who had written in the conversation by then.
func spoke(r store.Reader, call store.Call, turn approvers.Turn) (requesters, authors []string, err error) {
	messages, err := r.Messages(call.Conversation, 0)
	if err != nil {
		return nil, nil, err
	}
	var asker string
	for _, m := range messages {
		switch {
		case m.Author == "":
		case m.Turn == turn.ID:
			asker = m.Author.User()
		case m.At.Before(turn.CreatedAt):
			authors = append(authors, m.Author.User())
		}
	}
	for _, p := range turn.Requesters {
		if u := p.User(); u != asker {
			requesters = append(requesters, u)
		}
	}
	if asker != "" {
		requesters = append(requesters, asker)
	}
	if call.Request == "" {
		return requesters, authors, nil
	}
	req, err := r.Request(call.Request)
	if err != nil {
		return nil, nil, err
	}
	authors = nil
	for _, p := range req.Facts.Authors {
		authors = append(authors, p.User())
	}
	return requesters, authors, nil
}

// planned returns the plan in a proposed record.
func planned(facts map[string]string) config.Expectation {
	e := config.Expectation{Verdict: facts["verdict"]}
	if risk, err := approvers.ParseRisk(facts["risk"]); err == nil {
		e.Risk = risk
	}
	for _, stage := range strings.Split(facts["stages"], ",") {
		if stage != "" {
			e.Who = append(e.Who, stage)
		}
	}
	return e
}

// short shortens a text for one line.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
