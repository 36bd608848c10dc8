package workspace

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// routePeople adds the API for the page, tests and scripts (docs/workspace.md).
func (s *Server) routePeople(mux *http.ServeMux) {
	handle := func(pattern string, run func(p *personCall) (object, *apiError)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.peopleAPI.serve(w, r, run) })
	}
	handle("GET /people", s.reading.getPeople)
	handle("GET /people/{user}/channels", s.reading.getChannels)
	handle("GET /people/{user}/channels/{channel}/messages", s.reading.getMessages)
	handle("POST /people/{user}/messages", s.writing.say)
	handle("POST /people/{user}/actions", s.actions.act)
	handle("GET /people/{user}/views", s.forms.getViews)
	handle("POST /people/{user}/views/{view}/submit", s.forms.submit)
	handle("POST /people/{user}/views/{view}/close", s.forms.close)
	handle("POST /people/{user}/commands", s.commands.run)
	handle("POST /people/{user}/shortcuts", s.commands.runShortcut)
	handle("GET /people/{user}/home", s.views.openHome)
	handle("POST /people/{user}/options", s.actions.suggest)
	handle("POST /people/{user}/reactions", s.reactions.reactAs)
	handle("POST /people/{user}/edit", s.writing.editOwn)
	handle("POST /people/{user}/delete", s.writing.deleteAs)
	handle("POST /people/{user}/join", s.membership.joinAs)
	handle("POST /people/{user}/invite", s.membership.invite)
	handle("POST /people/{user}/leave", s.membership.leaveAs)
	handle("POST /people/{user}/remove", s.membership.removeAs)
	handle("POST /people/{user}/archive", s.archiving.archiveAs)
	handle("POST /people/{user}/unarchive", s.archiving.unarchiveAs)
	handle("POST /people/{user}/delete_channel", s.archiving.deleteChannelAs)
	handle("POST /people/{user}/snooze", s.quietTimes.snoozeAs)
	handle("POST /people/{user}/agent_threads", s.assistant.startThread)
	handle("POST /people/{user}/looks", s.assistant.look)
	handle("POST /people/{user}/stop", s.assistant.stopAgent)
	handle("POST /app/request_urls", s.postRequestURLs)
	handle("GET /faults", s.getFaults)
	handle("POST /faults", s.postFault)
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		if s.peopleAPI.foreign(r) {
			writePeople(w, nil, refuse("foreign_origin"))
			return
		}
		s.peopleAPI.serveEvents(w, r)
	})
}

// peopleAPI answers the requests that the page, tests and scripts send for a person.
type peopleAPI struct {
	*core
	accounts *accounts
}

// personCall is a request by a person. The handler of a personCall takes the lock itself, because some handlers must
// release the lock while they wait for the app.
type personCall struct {
	arguments
	r *http.Request
}

// The method "foreign" reports whether another website's page makes the request. The workspace has no passwords, so
// another website's page could act as any person. The browser must use an IP address, localhost, or the host in
// BaseURL. Any other host name could belong to another website, and could resolve to this machine.
func (pa *peopleAPI) foreign(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin == "" && site == "" {
		return false // the request is not from a browser
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
	own, err := url.Parse(pa.cfg.BaseURL)
	return err != nil || own.Host != r.Host
}

func (pa *peopleAPI) serve(w http.ResponseWriter, r *http.Request, run func(*personCall) (object, *apiError)) {
	if pa.foreign(r) {
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
	w.Header().Set("Date", pa.cfg.Now().UTC().Format(http.TimeFormat)) // the page uses the workspace's clock
	body, failed := run(call)
	if failed == nil && r.Method == http.MethodPost {
		pa.saver.touch()
	}
	writePeople(w, body, failed)
}

// writePeople answers with status 200, or with the status of the error.
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
		out["details"] = failed.details // not called "errors", because that field has a form's errors by block
	}
	writeJSON(w, status, out)
}
