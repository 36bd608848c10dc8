package transport

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// senders tracks whether requests come from Slack or from somebody else.
type senders struct {
	mu       sync.Mutex
	last     time.Time // time of the last request from Slack
	refused  int       // number of requests with invalid signatures since the last request from Slack
	why      string    // the reason why the last of these requests was refused
	unlogged int       // number of refused requests that have not been logged
	logged   time.Time
}

// noteVerified records a request with a valid signature.
func (s *senders) noteVerified(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.refused = now, 0
}

// lastVerified returns the time of the last request from Slack. If there was no request, lastVerified returns zero.
func (s *senders) lastVerified() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// logAgain is the minimum time between two log lines about invalid requests, because anybody can send such requests.
const logAgain = time.Minute

// refuse records an invalid request. The function returns the number of invalid requests to report in the log now, or
// 0.
func (s *senders) refuse(now time.Time, why string) (log int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	s.why = why
	s.unlogged++
	if now.Sub(s.logged) < logAgain {
		return 0
	}
	log, s.logged, s.unlogged = s.unlogged, now, 0
	return log
}

// arriving returns an error if no request from Slack has come, or if requests were refused after the last request from
// Slack.
func (s *senders) arriving() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.refused > 0 && s.last.IsZero():
		return fmt.Errorf("no valid request from Slack yet; refused: %d, the last because %s", s.refused, s.why)
	case s.refused > 0:
		return fmt.Errorf("refused since Slack's last valid request: %d, the last because %s", s.refused, s.why)
	case s.last.IsZero():
		return errors.New("no request yet; Slack sends them to the Request URLs in the app's settings")
	}
	return nil
}
