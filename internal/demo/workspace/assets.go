package workspace

import "net/http"

// servePermalink leads a message's link to its thread on the page.
func (s *Server) servePermalink(w http.ResponseWriter, r *http.Request) {
	p := r.PathValue("p")
	if len(p) < 8 || p[0] != 'p' {
		http.NotFound(w, r)
		return
	}
	ts := p[1:len(p)-6] + "." + p[len(p)-6:]
	if thread := r.URL.Query().Get("thread_ts"); thread != "" {
		ts = thread
	}
	s.mu.Lock()
	reader := s.readerOf(r.PathValue("channel"), ts)
	s.mu.Unlock()
	if reader == "" {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, "/#/"+reader+"/"+r.PathValue("channel")+"/"+ts, http.StatusFound)
}

// readerOf is the first person who can read a message: a link has to be opened as
// somebody.
func (s *Server) readerOf(channelID, ts string) string {
	ch := s.channels[channelID]
	if ch == nil || ch.byTS[ts] == nil {
		return ""
	}
	for _, id := range s.userIDs {
		if u := s.users[id]; ch.has(id) && u.person() && !u.Deleted {
			return id
		}
	}
	return ""
}
