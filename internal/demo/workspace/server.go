package workspace

import (
	"fmt"
	"net/http"
	"time"

	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/demo/workspace/page"
)

// object is decoded JSON. A stored object is never changed in place. Instead, a changed copy replaces the object.
type object = map[string]any

// Server is one workspace. The state is in memory, and each part of the server holds its own state. Server itself only
// creates the parts, and routes requests to them.
type Server struct {
	*core
	*Controls

	accounts *accounts
	channels *channels
	rotation *rotation
	scopes   *scopes
	events   *events

	quietTimes *quietTimes
	groups     *userGroups
	notation   *notation
	contents   *contentReader
	messages   *messages
	reading    *reading
	membership *membership
	archiving  *archiving

	conversations *conversations
	chat          *chat
	streams       *streams
	assistant     *assistant
	reactions     *reactions
	files         *files
	identity      *identity
	users         *users

	triggers     *triggers
	views        *views
	responseURLs *responseURLs
	interactions *interactions
	actions      *actionHandler
	commands     *commands
	forms        *forms
	writing      *writing
	sockets      *sockets

	webAPI    *webAPI
	peopleAPI *peopleAPI
	dataFile  *dataFile
	mux       *http.ServeMux
}

// New starts a workspace. New fails if the seed is invalid or the data file can't be read.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Seed.Validate(); err != nil {
		return nil, fmt.Errorf("workspace seed: %w", err)
	}
	faults := newFaults()
	k := &core{
		cfg: cfg, log: cfg.Log, team: cfg.Seed.Team, app: cfg.Seed.App, feed: newFeed(),
		hub: delivery.New(delivery.Config{
			App: cfg.App, URLs: cfg.Seed.App.RequestURLs, SigningSecret: cfg.Seed.App.SigningSecret, HTTP: cfg.HTTP,
			AckTimeout: cfg.AckTimeout, RetryDelays: cfg.RetryDelays, PingInterval: cfg.PingInterval, Pick: cfg.Pick,
			Faults: faults, Mishaps: cfg.Mishaps, Log: cfg.Log,
		}),
	}
	s := &Server{core: k}
	s.assemble(faults)
	loaded, err := s.dataFile.load()
	if err != nil {
		return nil, err
	}
	if !loaded {
		s.dataFile.fill(cfg.Seed)
	}
	s.dataFile.index()
	s.saver = newSaver(cfg, s.dataFile.snapshot)
	s.mux = s.routes()
	return s, nil
}

// assemble creates the parts of the workspace. A part uses only parts that are created before it, so there are no
// cyclic references.
func (s *Server) assemble(faults *faults) {
	k := s.core
	s.accounts = &accounts{core: k, byID: map[string]*user{}}
	s.channels = &channels{core: k, accounts: s.accounts, byID: map[string]*channel{}, dms: map[[2]string]string{}}
	s.rotation = newRotation(k)
	s.scopes = &scopes{core: k, channels: s.channels, rotation: s.rotation}
	s.events = &events{core: k, channels: s.channels, scopes: s.scopes}

	s.quietTimes = &quietTimes{core: k, accounts: s.accounts, events: s.events}
	s.groups = &userGroups{core: k, events: s.events}
	s.notation = &notation{accounts: s.accounts, channels: s.channels, groups: s.groups}
	s.contents = &contentReader{channels: s.channels}
	s.messages = &messages{core: k, channels: s.channels, events: s.events}
	s.reading = &reading{core: k, accounts: s.accounts, channels: s.channels, groups: s.groups, quietTimes: s.quietTimes}
	s.membership = &membership{
		core: k, accounts: s.accounts, channels: s.channels, events: s.events, messages: s.messages, reading: s.reading,
	}
	s.archiving = &archiving{core: k, channels: s.channels, events: s.events}

	s.conversations = &conversations{core: k, accounts: s.accounts, channels: s.channels, membership: s.membership}
	s.chat = &chat{core: k, accounts: s.accounts, channels: s.channels, contents: s.contents, messages: s.messages}
	s.streams = &streams{core: k, accounts: s.accounts, channels: s.channels, contents: s.contents, messages: s.messages}
	s.assistant = &assistant{core: k, accounts: s.accounts, channels: s.channels, events: s.events, messages: s.messages}
	s.reactions = &reactions{core: k, channels: s.channels, events: s.events}
	s.files = &files{core: k, channels: s.channels, contents: s.contents, messages: s.messages, byID: map[string]*file{}}
	s.identity = &identity{core: k, accounts: s.accounts}
	s.users = &users{core: k, accounts: s.accounts, scopes: s.scopes}

	s.triggers = &triggers{core: k, live: newShortLived[*trigger]()}
	s.views = &views{
		core: k, accounts: s.accounts, channels: s.channels, events: s.events, triggers: s.triggers,
		homes: map[string]*view{}, stacks: map[string][]*view{},
	}
	s.responseURLs = &responseURLs{
		core: k, channels: s.channels, contents: s.contents, messages: s.messages, live: newShortLived[*responseURL](),
	}
	s.interactions = &interactions{core: k, responseURLs: s.responseURLs}
	s.actions = &actionHandler{
		core: k, accounts: s.accounts, channels: s.channels, messages: s.messages, triggers: s.triggers, views: s.views, interactions: s.interactions,
		offered: map[string][]object{},
	}
	s.commands = &commands{
		core: k, accounts: s.accounts, channels: s.channels, notation: s.notation, contents: s.contents, messages: s.messages, triggers: s.triggers,
		responseURLs: s.responseURLs, interactions: s.interactions,
	}
	s.forms = &forms{
		core: k, accounts: s.accounts, channels: s.channels, triggers: s.triggers, views: s.views, responseURLs: s.responseURLs,
		interactions: s.interactions, actions: s.actions,
	}
	s.writing = &writing{core: k, channels: s.channels, events: s.events, notation: s.notation, messages: s.messages, files: s.files}
	s.sockets = &sockets{core: k, tickets: map[string]time.Time{}}

	s.webAPI = &webAPI{core: k, scopes: s.scopes, faults: faults, rates: newRates(k.cfg.RealRates), methods: s.methods()}
	s.Controls = &Controls{
		core: k, accounts: s.accounts, channels: s.channels, rotation: s.rotation, scopes: s.scopes, events: s.events, quietTimes: s.quietTimes, groups: s.groups,
		messages: s.messages, users: s.users, views: s.views, webAPI: s.webAPI,
	}
	s.peopleAPI = &peopleAPI{core: k, accounts: s.accounts}
	s.dataFile = &dataFile{core: k, accounts: s.accounts, channels: s.channels, groups: s.groups, messages: s.messages, files: s.files, views: s.views}
}

// Close stops every delivery, closes the sockets and the streams to browsers, and writes the data file. Close returns
// when all goroutines of the server have ended. Call Close before http.Server.Shutdown, because Shutdown waits for the
// browsers' streams.
func (s *Server) Close() error {
	s.hub.Close()
	s.feed.close()
	return s.saver.close()
}

// Handler serves everything: Slack's API, the sockets, the people's API and the page.
func (s *Server) Handler() http.Handler { return s.mux }

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.webAPI.serve)
	mux.HandleFunc("GET /link/", s.sockets.serve)
	mux.HandleFunc("POST /response/{id}", s.responseURLs.serve)
	mux.HandleFunc("/upload/{id}", s.files.serveUpload)
	mux.HandleFunc("GET /files/{id}/{name}", s.files.serveFile)
	mux.HandleFunc("GET /archives/{channel}/{p}", s.chat.servePermalink)
	s.routePeople(mux)
	mux.Handle("/", page.Handler())
	return mux
}
