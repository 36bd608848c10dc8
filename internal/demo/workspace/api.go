package workspace

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// tier is a method's rate limit, in calls per minute.
type tier int

const (
	tier2   tier = 20
	tier3   tier = 50
	tier4   tier = 100
	special tier = 600
)

// method is one Web API method. The caller of the function "run" holds the lock, unless the field "open" is true.
type method struct {
	run   func(c *call) (object, *apiError)
	scope string // required scope; alternatives are separated by |
	tier  tier
	app   bool // requires the app-level token instead of the bot's
	open  bool // runs without a token, and takes the lock itself

	noToken bool // the method needs no token, because the arguments identify the app
}

// call is one call to a method.
type call struct {
	arguments
	base          string // the URL by which the caller reaches this server
	lostEphemeral bool   // set by a fault: the ephemeral message is accepted but never shown
}

// methods returns the Web API methods by name.
func (s *Server) methods() map[string]method {
	return map[string]method{
		"api.test":        {run: apiTest, tier: special, open: true},
		"auth.test":       {run: s.identity.authTest, tier: special},
		"oauth.v2.access": {run: s.rotation.access, tier: tier4, noToken: true},

		"team.info": {run: s.identity.teamInfo, scope: "team:read", tier: tier3},
		"bots.info": {run: s.identity.botsInfo, scope: "users:read", tier: tier3},

		"apps.connections.open": {run: s.sockets.open, tier: tier2, app: true},

		"chat.postMessage":   {run: s.chat.postMessage, scope: "chat:write", tier: special},
		"chat.postEphemeral": {run: s.chat.postEphemeral, scope: "chat:write", tier: tier4},
		"chat.update":        {run: s.chat.updateMessage, scope: "chat:write", tier: tier3},
		"chat.delete":        {run: s.chat.deleteMessage, scope: "chat:write", tier: tier3},
		"chat.getPermalink":  {run: s.chat.getPermalink, tier: special},
		"chat.startStream":   {run: s.streams.startStream, scope: "chat:write", tier: tier2},
		"chat.appendStream":  {run: s.streams.appendStream, scope: "chat:write", tier: tier4},
		"chat.stopStream":    {run: s.streams.stopStream, scope: "chat:write", tier: tier2},

		"conversations.open":    {run: s.conversations.open, scope: "im:write|mpim:write", tier: tier3},
		"conversations.info":    {run: s.conversations.info, scope: "channels:read|groups:read|im:read|mpim:read", tier: tier3},
		"conversations.list":    {run: s.conversations.list, scope: "channels:read|groups:read|im:read|mpim:read", tier: tier2},
		"conversations.members": {run: s.conversations.members, scope: "channels:read|groups:read|im:read|mpim:read", tier: tier4},
		"conversations.history": {run: s.conversations.history, scope: "channels:history|groups:history|im:history|mpim:history", tier: tier3},
		"conversations.replies": {run: s.conversations.replies, scope: "channels:history|groups:history|im:history|mpim:history", tier: tier3},
		"conversations.join":    {run: s.conversations.join, scope: "channels:join", tier: tier3},
		"users.conversations":   {run: s.conversations.usersConversations, scope: "channels:read|groups:read|im:read|mpim:read", tier: tier3},

		"users.info":            {run: s.users.info, scope: "users:read", tier: tier4},
		"users.list":            {run: s.users.list, scope: "users:read", tier: tier2},
		"users.lookupByEmail":   {run: s.users.lookupByEmail, scope: "users:read.email", tier: tier3},
		"users.getPresence":     {run: s.users.getPresence, scope: "users:read", tier: tier3},
		"usergroups.list":       {run: s.groups.usergroupsList, scope: "usergroups:read", tier: tier2},
		"usergroups.users.list": {run: s.groups.usergroupsUsersList, scope: "usergroups:read", tier: tier2},
		"dnd.info":              {run: s.quietTimes.info, scope: "dnd:read", tier: tier3},
		"dnd.teamInfo":          {run: s.quietTimes.teamInfo, scope: "dnd:read", tier: tier2},

		"views.open":    {run: s.views.open, tier: tier4},
		"views.push":    {run: s.views.push, tier: tier4},
		"views.update":  {run: s.views.update, tier: tier4},
		"views.publish": {run: s.views.publish, tier: tier4},

		"assistant.threads.setStatus":           {run: s.assistant.setStatus, scope: "assistant:write|chat:write", tier: special},
		"assistant.threads.setTitle":            {run: s.assistant.setTitle, scope: "assistant:write|chat:write", tier: special},
		"assistant.threads.setSuggestedPrompts": {run: s.assistant.setSuggestedPrompts, scope: "assistant:write|chat:write", tier: special},

		"reactions.add":    {run: s.reactions.add, scope: "reactions:write", tier: tier3},
		"reactions.remove": {run: s.reactions.remove, scope: "reactions:write", tier: tier2},
		"reactions.get":    {run: s.reactions.get, scope: "reactions:read", tier: tier3},

		"files.getUploadURLExternal":   {run: s.files.getUploadURL, scope: "files:write", tier: tier4},
		"files.completeUploadExternal": {run: s.files.completeUpload, scope: "files:write", tier: tier4},
		"files.info":                   {run: s.files.info, scope: "files:read", tier: tier4},
	}
}

// webAPI answers the calls to Slack's Web API.
type webAPI struct {
	*core
	scopes  *scopes
	faults  *faults
	rates   *rates
	methods map[string]method
}

// serve answers one Web API call. First, serve applies faults. Then serve checks the token, the scope and the
// rate, and runs the method.
func (a *webAPI) serve(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	name := r.PathValue("method")
	fault, faulty := a.faults.take(name)
	if faulty && a.faults.failBefore(w, r, fault) {
		return
	}
	body, failed := a.call(w, r, name, fault)
	if faulty && fault.Fault == FaultLostResponse {
		// The fault breaks the connection. The method has run, but the caller gets no answer.
		panic(http.ErrAbortHandler)
	}
	switch {
	case failed != nil && failed.code == "ratelimited":
		w.Header().Set("Retry-After", strconv.Itoa(failed.extra["retry_after"].(int)))
		writeJSON(w, http.StatusTooManyRequests, object{"ok": false, "error": "ratelimited"})
	case failed != nil:
		writeJSON(w, http.StatusOK, failed.body())
	default:
		body["ok"] = true
		writeJSON(w, http.StatusOK, body)
	}
}

func (a *webAPI) call(w http.ResponseWriter, r *http.Request, name string, fault Fault) (object, *apiError) {
	m, known := a.methods[name]
	if !known {
		return nil, &apiError{code: "unknown_method", extra: object{"req_method": name}}
	}
	args, failed := readArguments(r)
	if failed != nil {
		return nil, failed
	}
	c := &call{arguments: args, base: a.base(r)}
	if m.open {
		return m.run(c)
	}
	failed = a.authorize(m, args.token)
	if !m.app && !m.noToken && (failed == nil || failed.code == "missing_scope") {
		w.Header().Set("X-OAuth-Scopes", strings.Join(a.scopes.list(), ","))
		if m.scope != "" {
			w.Header().Set("X-Accepted-OAuth-Scopes", strings.ReplaceAll(m.scope, "|", ","))
		}
	}
	if failed != nil {
		return nil, failed
	}
	if wait := a.rates.wait(name, m.tier, args.text("channel"), a.cfg.Now()); wait > 0 {
		return nil, &apiError{code: "ratelimited", extra: object{"retry_after": wait}}
	}
	if fault.Fault == FaultError {
		return nil, refuse(fault.Error)
	}
	c.lostEphemeral = fault.Fault == FaultLostEphemeral

	a.mu.Lock()
	defer a.mu.Unlock()
	a.botHost = c.base
	if needed := a.scopes.kindsMissing(m, c); needed != "" {
		return nil, a.scopes.missing(needed)
	}
	body, failed := m.run(c)
	if failed == nil {
		a.saver.touch()
	}
	return body, failed
}

// authorize checks the token of a call.
func (a *webAPI) authorize(m method, token string) *apiError {
	if m.noToken {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scopes.authorize(m, token)
}

// apiError is a refusal with Slack's code. Details are the messages that Slack adds to codes such as invalid_blocks.
type apiError struct {
	code    string
	details []string
	extra   object
}

func (e *apiError) Error() string { return e.code }

func refuse(code string, details ...string) *apiError {
	return &apiError{code: code, details: details}
}

// body returns Slack's answer for the refusal.
func (e *apiError) body() object {
	out := object{"ok": false, "error": e.code}
	for k, v := range e.extra {
		out[k] = v
	}
	if len(e.details) > 0 {
		messages := make([]string, len(e.details))
		for i, d := range e.details {
			messages[i] = "[ERROR] " + d
		}
		out["errors"] = e.details
		out["response_metadata"] = object{"messages": messages}
	}
	return out
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// The error is ignored, because an error means that the client has disconnected.
	_ = enc.Encode(body)
}
