package scriptedmodel

import (
	"context"
	"fmt"
	"sync"
)

// Script answers with exact replies. Each reply is used once, in order. A Script is safe for concurrent use.
type Script struct {
	mu      sync.Mutex
	replies []Reply
	given   int
}

// NewScript returns a script with these replies.
func NewScript(replies ...Reply) *Script { return &Script{replies: replies} }

// Add appends replies.
func (s *Script) Add(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Left returns how many replies have not been used.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replies)
}

// Respond returns the first reply that has no When, or whose When accepts the request. If there is no such reply,
// Respond returns an error.
func (s *Script) Respond(_ context.Context, request Request) (Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, reply := range s.replies {
		if reply.When == nil || reply.When(request) {
			s.replies = append(s.replies[:i:i], s.replies[i+1:]...)
			s.given++
			return reply, nil
		}
	}
	return Reply{}, fmt.Errorf("the script has no reply for this request (%d given, %d left that wait for another one)", s.given, len(s.replies))
}
