package bot

import (
	"errors"
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	"countersign/store"
	"countersign/store/bolt"
)

// The result of a search says nothing about posts during the search. The result says nothing about messages from before
// the search's lower time limit either.
func TestKnownPosts(t *testing.T) {
	t.Parallel()
	const place = "C1"
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	var p unconfirmedPosts
	look := func(since time.Time) {
		p.note(destination{channel: place}, historyScan{since: since, at: p.moment(), began: at(4), parts: map[round]map[int]string{{"s", 1}: {0: "1.1"}}})
	}
	takenOver := at(3)
	known := func(s store.OutboxMessage, ours bool) bool {
		d, doubtful := p.doubt(s, ours, takenOver)
		_, ok := p.known(s, nil, destination{channel: place}, d)
		return !doubtful || ok
	}
	expect := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: known %t, want %t", what, got, want)
		}
	}
	own, foreign := store.OutboxMessage{ID: "own", After: at(2)}, store.OutboxMessage{ID: "foreign", After: at(2)}
	expect("ours, never posted", known(own, true), true)
	expect("another process's, never looked for", known(foreign, false), false)
	look(at(1))
	expect("another process's, looked for", known(foreign, false), true)
	expect("another process's, older than what was looked at", known(store.OutboxMessage{ID: "foreign", After: at(0)}, false), false)
	takenOver = at(5)
	expect("another process's, from before a later takeover", known(foreign, false), false)
	takenOver = at(3)
	expect("another process's, of unknown age", known(store.OutboxMessage{ID: "foreign"}, false), false)
	p.underWay(own.ID)
	expect("posted since", known(own, true), false)
	look(at(1))
	p.underWay(own.ID)
	expect("looked for while it was under way", known(own, true), false)
	look(time.Time{})
	expect("looked for since, all of it", known(own, true), true)
	expect("of unknown age, and all of it was looked at", known(store.OutboxMessage{ID: "foreign"}, false), true)
	p.underWay(own.ID)
	p.recorded(own.ID)
	expect("recorded", known(own, true), true)
	if parts, _ := p.known(store.OutboxMessage{ID: "s", Round: 1}, nil, destination{channel: place}, doubt{}); parts[0] != "1.1" {
		t.Errorf("found %v", parts)
	}
	if parts, ok := p.known(store.OutboxMessage{ID: "s", Round: 2}, nil, destination{channel: place}, doubt{}); !ok || len(parts) != 0 {
		t.Errorf("a message of an earlier round was found: %v", parts)
	}
}

// holder delays the response to a post until the holder is released or the call is cancelled.
type holder struct {
	first   sync.Once
	posted  chan struct{}
	release chan struct{}
}

func (h *holder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || path.Base(req.URL.Path) != "chat.postMessage" {
		return resp, err
	}
	h.first.Do(func() { close(h.posted) })
	select {
	case <-h.release:
		return resp, nil
	case <-req.Context().Done():
		return nil, errors.Join(req.Context().Err(), resp.Body.Close())
	}
}

// If the bot is stopped while Slack answers a post, the post is completed and recorded. The next process need not
// search for the message. A click on the message before the next start counts.
func TestStoppedWhilePosting(t *testing.T) {
	t.Parallel()
	slack := &holder{posted: make(chan struct{}), release: make(chan struct{})}
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: slack} })
	h.says("sam", "#support", refundCall)
	<-slack.posted
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.stop()
	}()
	h.until("the bot lets go of its sockets", func() bool { return h.slack.Sockets() == 0 })
	close(slack.release)
	<-stopped
	s, err := bolt.Open(h.path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	posts := uint64(0)
	err = s.View(t.Context(), func(r store.Reader) error {
		requests, err := r.OpenRequests(store.RequestCursor{}, 2)
		if err != nil {
			return err
		}
		for _, ref := range []string{requests[0].ID, requests[0].Turn} {
			messages, err := r.OutboxMessagesOf(ref)
			if err != nil {
				return err
			}
			for _, s := range messages {
				posts += s.Posts
			}
		}
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if posts == 0 {
		t.Error("a post that Slack accepted while the bot was stopping is not recorded")
	}
	h.start()
}
