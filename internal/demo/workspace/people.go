package workspace

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// routePeople is the API of the page, of tests and of scripts: docs/workspace.md.
func (s *Server) routePeople(mux *http.ServeMux) {
	handle := func(pattern string, run func(p *personCall) (object, *apiError)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.servePerson(w, r, run) })
	}
	handle("GET /people", s.getPeople)
	handle("GET /people/{user}/channels", s.getChannels)
	handle("GET /people/{user}/channels/{channel}/messages", s.getMessages)
	handle("POST /people/{user}/messages", s.say)
	handle("POST /people/{user}/actions", s.act)
	handle("GET /people/{user}/views", s.getViews)
	handle("POST /people/{user}/views/{view}/submit", s.submitView)
	handle("POST /people/{user}/views/{view}/close", s.closeView)
	handle("POST /people/{user}/commands", s.runCommand)
	handle("POST /people/{user}/shortcuts", s.runShortcut)
	handle("GET /people/{user}/home", s.openHome)
	handle("POST /people/{user}/options", s.suggest)
	handle("POST /people/{user}/reactions", s.reactAs)
	handle("POST /people/{user}/edit", s.editOwn)
	handle("POST /people/{user}/delete", s.deleteAs)
	handle("POST /people/{user}/join", s.joinAs)
	handle("POST /people/{user}/invite", s.invite)
	handle("POST /people/{user}/leave", s.leaveAs)
	handle("POST /people/{user}/remove", s.removeAs)
	handle("POST /people/{user}/archive", s.archiveAs)
	handle("POST /people/{user}/unarchive", s.unarchiveAs)
	handle("POST /people/{user}/delete_channel", s.deleteChannelAs)
	handle("POST /people/{user}/snooze", s.snoozeAs)
	handle("POST /people/{user}/agent_threads", s.startThread)
	handle("POST /people/{user}/looks", s.look)
	handle("POST /people/{user}/stop", s.stopAgent)
	handle("POST /app/request_urls", s.postRequestURLs)
	handle("GET /faults", s.getFaults)
	handle("POST /faults", s.postFault)
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		if s.foreign(r) {
			writePeople(w, nil, refuse("foreign_origin"))
			return
		}
		s.serveEvents(w, r)
	})
}

// personCall is one request by a person. Its handler takes the lock itself: some wait
// for the app in between.
type personCall struct {
	arguments
	r *http.Request
}

// foreign tells requests that another web site's page makes. The workspace knows no
// passwords, so such a page could otherwise act for everybody. A browser must have come
// by an address or localhost: a name could be another site's that points here.
func (s *Server) foreign(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin == "" && site == "" {
		return false // no browser
	}
	if site != "" && site != "same-origin" && site != "none" {
		return true
	}
	if u, err := url.Parse(origin); origin != "" && (err != nil || u.Host != r.Host) {
		return true
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if net.ParseIP(strings.Trim(name, "[]")) != nil || name == "localhost" {
		return false
	}
	own, err := url.Parse(s.cfg.BaseURL)
	return err != nil || own.Host != r.Host
}

func (s *Server) servePerson(w http.ResponseWriter, r *http.Request, run func(*personCall) (object, *apiError)) {
	if s.foreign(r) {
		writePeople(w, nil, refuse("foreign_origin"))
		return
	}
	call := &personCall{arguments: arguments{values: object{}}, r: r}
	for key, vals := range r.URL.Query() {
		call.values[key] = vals[0]
	}
	if r.Method == http.MethodPost {
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			writePeople(w, nil, refuse("too_large"))
			return
		}
		if len(strings.TrimSpace(string(raw))) > 0 {
			decoded, err := wire.Decode(raw)
			body, ok := decoded.(object)
			if err != nil || !ok {
				writePeople(w, nil, refuse("invalid_json"))
				return
			}
			for key, value := range body {
				call.values[key] = value
			}
		}
	}
	w.Header().Set("Date", s.cfg.Now().UTC().Format(http.TimeFormat)) // the page goes by the workspace's clock
	body, failed := run(call)
	if failed == nil && r.Method == http.MethodPost {
		s.saver.touch()
	}
	writePeople(w, body, failed)
}

// writePeople answers with 200, or with the status that suits the error.
func writePeople(w http.ResponseWriter, body object, failed *apiError) {
	if failed == nil {
		body["ok"] = true
		writeJSON(w, http.StatusOK, body)
		return
	}
	status := http.StatusBadRequest
	switch failed.code {
	case "account_inactive", "user_is_bot", "not_in_channel", "foreign_origin", "user_is_restricted", "not_yours", "is_archived", "not_an_admin":
		status = http.StatusForbidden
	case "user_not_found", "channel_not_found", "message_not_found", "view_not_found", "unknown_action", "thread_not_found", "unknown_command", "unknown_shortcut":
		status = http.StatusNotFound
	case "app_did_not_respond":
		status = http.StatusGatewayTimeout
	}
	out := object{"ok": false, "error": failed.code}
	maps.Copy(out, failed.extra)
	if len(failed.details) > 0 {
		out["details"] = failed.details // not "errors": those are a form's, by block
	}
	writeJSON(w, status, out)
}

// anyone finds a user by id or name.
func (s *Server) anyone(name string) (*user, *apiError) {
	if u := s.users[name]; u != nil {
		return u, nil
	}
	name = strings.TrimPrefix(name, "@")
	for _, id := range s.userIDs {
		if u := s.users[id]; strings.EqualFold(u.Name, name) {
			return u, nil
		}
	}
	return nil, refuse("user_not_found")
}

// me finds the person who acts: somebody with a working account of their own.
func (s *Server) me(p *personCall) (*user, *apiError) {
	u, failed := s.anyone(p.r.PathValue("user"))
	switch {
	case failed != nil:
		return nil, failed
	case u.Bot:
		return nil, refuse("user_is_bot")
	case u.Deleted:
		return nil, refuse("account_inactive")
	}
	return u, nil
}

// channelFor finds a channel as a person names it, if that person may see it: a channel
// that they are in, a public one unless they are a guest or a stranger, or the DM with
// somebody.
func (s *Server) channelFor(u *user, name string) (*channel, *apiError) {
	ch := s.channels[name]
	if ch == nil {
		ch = s.channelNamed(strings.TrimPrefix(name, "#"))
	}
	if ch == nil && !strings.HasPrefix(name, "#") {
		if other, failed := s.anyone(name); failed == nil {
			return s.dmFor(u, other)
		}
	}
	if ch == nil || !s.sees(u, ch) {
		return nil, refuse("channel_not_found")
	}
	return ch, nil
}

func (s *Server) dmFor(u, other *user) (*channel, *apiError) {
	if _, open := s.dms[pair(u.ID, other.ID)]; !open && other.Deleted {
		return nil, refuse("channel_not_found")
	}
	ch, created := s.openDM(u.ID, other.ID)
	if created {
		s.feed.send(change{Type: "channel", Channel: ch.ID, only: ch.Members})
	}
	return ch, nil
}

func (s *Server) sees(u *user, ch *channel) bool {
	return ch.has(u.ID) || (ch.kind() == "channel" && !u.Restricted && !u.Stranger)
}

// audience is who may hear of what happens in a channel; nil is everybody.
func (s *Server) audience(ch *channel) []string {
	if ch.kind() != "channel" {
		return ch.Members
	}
	out := make([]string, 0, len(s.userIDs))
	for _, id := range s.userIDs {
		if s.sees(s.users[id], ch) {
			out = append(out, id)
		}
	}
	return out
}

// memberChannel is channelFor for those who want to write or click.
func (s *Server) memberChannel(u *user, name string) (*channel, *apiError) {
	ch, failed := s.channelFor(u, name)
	switch {
	case failed != nil:
		return nil, failed
	case !ch.has(u.ID):
		return nil, refuse("not_in_channel")
	}
	return ch, nil
}

// shownMessage finds a message that a person sees, ephemerals included.
func (s *Server) shownMessage(u *user, ch *channel, ts string) (*message, *apiError) {
	if i := slices.IndexFunc(ch.ephemerals, func(m *message) bool { return m.TS == ts && m.EphemeralTo == u.ID }); i >= 0 {
		return ch.ephemerals[i], nil
	}
	if m := ch.byTS[ts]; m != nil {
		return m, nil
	}
	return nil, refuse("message_not_found")
}
