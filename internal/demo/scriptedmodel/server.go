package scriptedmodel

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultModel is the model's name if Config.Models is empty.
const DefaultModel = "countersign-scripted"

// Config configures the service. The demo sets only Now.
type Config struct {
	Models        []string         // names of the models; empty: only DefaultModel
	APIKey        string           // empty: no key is asked for
	ContextTokens int              // maximum number of tokens of prompt and answer together; 0 means 32768
	Responder     Responder        // nil: Rules()
	Fault         Fault            // the fault of every answer that has no fault of its own
	Record        bool             // keep the requests, so that Requests returns them
	Now           func() time.Time // the clock for the creation time of answers; nil: time.Now
}

const (
	defaultContext = 32768
	largestBody    = 16 << 20
	mostRecorded   = 4096
)

// Server is the service. Server is an http.Handler and safe for concurrent use.
type Server struct {
	config Config
	mux    http.ServeMux

	mu       sync.Mutex
	faults   []Fault // one fault for each of the next requests
	requests []Request
}

var _ http.Handler = (*Server)(nil)

// New returns the service.
func New(config Config) *Server {
	if len(config.Models) == 0 {
		config.Models = []string{DefaultModel}
	}
	if config.ContextTokens == 0 {
		config.ContextTokens = defaultContext
	}
	if config.Responder == nil {
		config.Responder = Rules()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Server{config: config}
	s.mux.HandleFunc("GET /v1/models", s.listModels)
	s.mux.HandleFunc("GET /v1/models/{model}", s.showModel)
	s.mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.mux.HandleFunc("/v1/chat/completions", notAllowed)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		message := "Unknown request URL: " + r.Method + " " + r.URL.Path + ". This service has /v1/models and /v1/chat/completions."
		fail(http.StatusNotFound, "invalid_request_error", "unknown_url", "", message).write(w)
	})
	return s
}

// Inject sets faults for the next requests, one for each request in order. The injected faults replace the faults of
// the replies. A fault that replaces the answer (Status, Hang) does not use up a reply of a Script.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Requests returns the last valid completion requests, at most mostRecorded of them, oldest first. If Config.Record is
// false, the list is empty.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Request-Id", "req_"+rand.Text())
	if fault := s.authorize(r.Header.Get("Authorization")); fault != nil {
		fault.write(w)
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) authorize(header string) *apiError {
	if s.config.APIKey == "" {
		return nil
	}
	key, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || key == "" {
		return fail(http.StatusUnauthorized, "invalid_request_error", "", "", "You didn't provide an API key. Provide it in an Authorization header using Bearer auth (Authorization: Bearer YOUR_KEY).")
	}
	if subtle.ConstantTimeCompare([]byte(key), []byte(s.config.APIKey)) != 1 {
		return fail(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "", "Incorrect API key provided.")
	}
	return nil
}

func notAllowed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	fail(http.StatusMethodNotAllowed, "invalid_request_error", "method_not_supported", "", "Not allowed to "+r.Method+" on /v1/chat/completions. Use POST.").write(w)
}

type modelCard struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// modelCreated is an arbitrary fixed creation time of the model.
var modelCreated = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

func card(model string) modelCard {
	return modelCard{ID: model, Object: "model", Created: modelCreated, OwnedBy: "countersign"}
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	cards := make([]modelCard, len(s.config.Models))
	for i, model := range s.config.Models {
		cards[i] = card(model)
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": cards})
}

func (s *Server) showModel(w http.ResponseWriter, r *http.Request) {
	if fault := s.checkModel(r.PathValue("model")); fault != nil {
		fault.write(w)
		return
	}
	writeJSON(w, http.StatusOK, card(r.PathValue("model")))
}

func (s *Server) checkModel(model string) *apiError {
	if slices.Contains(s.config.Models, model) {
		return nil
	}
	return fail(http.StatusNotFound, "invalid_request_error", "model_not_found", "model", "The model `"+model+"` does not exist or you do not have access to it.")
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	request, fault := s.read(w, r)
	if fault != nil {
		fault.write(w)
		return
	}
	injected := s.note(request)
	if injected.before(r.Context(), w) {
		return
	}
	reply, err := s.config.Responder.Respond(r.Context(), request)
	if err != nil {
		if r.Context().Err() == nil {
			invalid("", "no_reply", "%v", err).write(w)
		}
		return
	}
	way := injected
	if injected == (Fault{}) {
		way = reply.Fault.or(s.config.Fault)
		if way.before(r.Context(), w) {
			return
		}
	}
	reply = way.apply(reply.finished().limited(request.MaxTokens))
	a := answer{id: "chatcmpl-" + rand.Text(), created: s.config.Now().Unix(), request: request, reply: reply, way: way}
	if request.Stream {
		a.stream(r.Context(), w)
		return
	}
	a.whole(w)
}

// read reads the request and checks it.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (Request, *apiError) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return Request{}, fail(http.StatusRequestEntityTooLarge, "invalid_request_error", "", "", "The request body is too large.")
		}
		return Request{}, invalid("", "", "The request body could not be read.")
	}
	request, fault := parse(data)
	if fault != nil {
		return request, fault
	}
	request.Header = r.Header.Clone()
	if fault := s.checkModel(request.Model); fault != nil {
		return request, fault
	}
	used := request.promptTokens()
	if used+request.MaxTokens > s.config.ContextTokens {
		return request, invalid("messages", "context_length_exceeded",
			"This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages and functions, %d in the completion). Please reduce the length of the messages, functions or completion.",
			s.config.ContextTokens, used+request.MaxTokens, used, request.MaxTokens)
	}
	return request, nil
}

// note records the request and takes the next injected fault.
func (s *Server) note(request Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Record {
		if len(s.requests) == mostRecorded {
			s.requests = slices.Delete(s.requests, 0, 1)
		}
		s.requests = append(s.requests, request)
	}
	if len(s.faults) == 0 {
		return Fault{}
	}
	fault := s.faults[0]
	s.faults = s.faults[1:]
	return fault
}
