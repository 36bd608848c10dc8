package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// apiError is an error answer of the service.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

func fail(status int, kind, code, param, message string) *apiError {
	e := &apiError{status: status, Message: message, Type: kind}
	if code != "" {
		e.Code = &code
	}
	if param != "" {
		e.Param = &param
	}
	return e
}

// invalid returns the error for a faulty request. A faulty request fails each time it is sent.
func invalid(param, code, format string, args ...any) *apiError {
	return fail(http.StatusBadRequest, "invalid_request_error", code, param, fmt.Sprintf(format, args...))
}

func (e *apiError) write(w http.ResponseWriter) {
	writeJSON(w, e.status, map[string]*apiError{"error": e})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic("scriptedmodel: an answer that can't be written: " + err.Error()) // answers hold plain values only
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // an error means that the client went away
}
