package workspace

import (
	"encoding/json"
	"net/http"
)

// apiError is a refusal with Slack's code for it. Details are the sentences that Slack
// puts beside codes such as invalid_blocks.
type apiError struct {
	code    string
	details []string
	extra   object
}

func (e *apiError) Error() string { return e.code }

func refuse(code string, details ...string) *apiError {
	return &apiError{code: code, details: details}
}

// body is the answer Slack gives for the refusal.
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
	// The only errors left are the reader's: it has gone away.
	_ = enc.Encode(body)
}
