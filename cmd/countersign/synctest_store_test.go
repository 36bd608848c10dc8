package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"countersign/approvers/workflow/invariants"
	"countersign/store"
)

func (b *synctestHarness) view(fn func(store.Reader) error) {
	b.Helper()
	b.ok(b.db.View(context.Background(), fn))
}

// allTurns lists the turns of people's messages in all conversations.
func (b *synctestHarness) allTurns(r store.Reader) (turns []string) {
	conversations, err := r.ConversationsBefore(time.Now().Add(time.Hour), 100_000)
	b.ok(err)
	for _, c := range conversations {
		messages, err := r.Messages(c.ID, 0)
		b.ok(err)
		for _, m := range messages {
			if m.Turn != "" && m.Role == store.RoleUser {
				turns = append(turns, m.Turn)
			}
		}
	}
	return turns
}

// outbox lists the outbox messages about turns, calls, requests and runs.
func (b *synctestHarness) outbox() (out []store.OutboxMessage) {
	b.Helper()
	b.view(func(r store.Reader) error {
		out = nil
		for _, turn := range b.allTurns(r) {
			of, err := r.OutboxMessagesOf(turn)
			if err != nil {
				return err
			}
			out = append(out, of...)
			calls, err := r.Calls(turn)
			if err != nil {
				return err
			}
			for _, c := range calls {
				for _, ref := range []string{c.Request, c.Execution, c.ID} {
					if ref == "" {
						continue
					}
					of, err := r.OutboxMessagesOf(ref)
					if err != nil {
						return err
					}
					out = append(out, of...)
				}
			}
		}
		return nil
	})
	return out
}

// The method "books" compares the store's records with each other.
func (b *synctestHarness) books() {
	b.Helper()
	b.view(func(r store.Reader) error {
		if err := invariants.Faults(r, b.allTurns(r)); err != nil {
			b.Errorf("the invariants: %v", err)
		}
		return nil
	})
}

// lineLog collects the lines of the bot's log.
type lineLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimSpace(string(p)))
	return len(p), nil
}

func (l *lineLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// The method "with" lists the lines that contain the parameter words as it is.
func (l *lineLog) with(words string) (out []string) {
	for _, line := range l.all() {
		if strings.Contains(line, words) {
			out = append(out, line)
		}
	}
	return out
}
