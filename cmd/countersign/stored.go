package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
)

// storedTask writes the calls of the history as fixtures, in JSON.
var storedTask = task[none]{"check stored", true, func(ctx context.Context, w workplace, _ none) error {
	calls, err := storedFixtures(ctx, w.store)
	if err != nil {
		return err
	}
	return json.NewEncoder(w.out).Encode(calls)
}}

// storedFixtures makes a fixture of each call that the history holds, with what was planned for it then.
func storedFixtures(ctx context.Context, s store.Store) ([]config.Fixture, error) {
	firsts := map[string]approvers.AuditRecord{} // by call: one that used up its automatic runs was proposed again, to people
	err := eachChain(ctx, s, func(records []approvers.AuditRecord) error {
		first := records[0]
		call := first.Facts["call"]
		if first.Kind != approvers.AuditProposed || first.Facts["verdict"] == "error" || call == "" {
			return nil
		}
		if other, again := firsts[call]; !again || first.At.Before(other.At) {
			firsts[call] = first
		}
		return nil
	})
	if err != nil {
		return nil, couldNot("the history can't be read: %w", err)
	}
	var out []config.Fixture
	for _, first := range firsts {
		x, err := storedFixture(ctx, s, first)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was erased, or its conversation was; the record stays
		}
		if err != nil {
			return nil, couldNot("the history can't be read: %w", err)
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b config.Fixture) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

func storedFixture(ctx context.Context, s store.Store, proposed approvers.AuditRecord) (config.Fixture, error) {
	var x config.Fixture
	err := s.View(ctx, func(r store.Reader) error {
		call, err := r.Call(proposed.Facts["call"])
		if err != nil {
			return err
		}
		if f := proposed.Facts; call.Args == "{}" && approvers.Digest(f["execution"], call.Tool, f["tool_hash"], []byte(call.Args)) != f["digest"] {
			return store.ErrNotFound // erased: with which arguments it was called is not known any more
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

// spoke lists who led to a call, the last one last, and whose words the model was given. Where nobody was asked, those are not stored: everybody
// counts who had written in the conversation by then.
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

// planned is what a proposed record says was planned.
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

// short cuts a text for one line.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
