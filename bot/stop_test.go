package bot

import (
	"errors"
	"net/http"
	"path"
	"sync"
	"testing"

	"countersign/store"
	"countersign/store/bolt"
)

// holder holds the answers to posts back until it is released, or the call is given up.
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

// The bot is stopped while Slack answers a post: what was begun is ended and recorded, so that the next process need
// not look for the message, and a click on it meanwhile counts.
func TestStoppedWhilePosting(t *testing.T) {
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
		t.Error("what Slack had taken when the bot was stopped is not recorded")
	}
	h.start()
}
