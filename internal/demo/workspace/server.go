package workspace

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/demo/workspace/page"
)

// object is decoded JSON. A stored object is never changed in place. Instead, a changed copy replaces the object.
type object = map[string]any

// Server is one workspace. All of its state is in memory.
type Server struct {
	*core
	accounts *accounts
	channels *channels
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

	faults     *faults
	rates      *rates
	mux        *http.ServeMux
	webMethods map[string]method
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
	s := &Server{core: k, faults: faults, rates: newRates(cfg.RealRates)}
	s.assemble()
	loaded, err := s.load()
	if err != nil {
		return nil, err
	}
	if !loaded {
		s.fill(cfg.Seed)
	}
	s.index()
	s.saver = newSaver(cfg, s.snapshot)
	s.webMethods = s.methods()
	s.mux = s.routes()
	return s, nil
}

// assemble creates the parts of the workspace. A part only uses parts that are created before it, so parts can't use
// each other in a circle.
func (s *Server) assemble() {
	k := s.core
	s.accounts = &accounts{core: k, byID: map[string]*user{}}
	s.channels = &channels{core: k, accounts: s.accounts, byID: map[string]*channel{}, dms: map[[2]string]string{}}
	s.scopes = &scopes{core: k, channels: s.channels}
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
}

// Close stops every delivery, closes the sockets and the streams to browsers, and writes the data file. Close returns
// when all goroutines of the server have ended. Call Close before http.Server.Shutdown, because Shutdown waits for the
// browsers' streams.
func (s *Server) Close() error {
	s.hub.Close()
	s.feed.close()
	return s.saver.close()
}

// Delivered counts the deliveries to the app so far, and reports whether the app has acknowledged all of them.
// Delivered ignores deliveries that wait for another attempt after a fault.
func (s *Server) Delivered() (sent int, all bool) {
	sent, pending := s.hub.Delivered()
	return sent, pending == 0
}

// Handler serves everything: Slack's API, the sockets, the people's API and the page.
func (s *Server) Handler() http.Handler { return s.mux }

// fill fills an empty workspace from the seed.
func (s *Server) fill(seed Seed) {
	now := s.cfg.Now()
	for _, p := range seed.People {
		s.accounts.add(newUser(p, seed.Team.ID, now))
	}
	for _, g := range seed.Groups {
		s.groups.list = append(s.groups.list, &userGroup{ID: g.ID, Handle: g.Handle, Name: g.Name, Users: slices.Clone(g.Users), Updated: now.Unix()})
	}
	for _, c := range seed.Channels {
		ch := &channel{
			ID: c.ID, Name: c.Name, Topic: c.Topic, Purpose: c.Purpose, Private: c.Private, Archived: c.Archived,
			General: c.General, Shared: c.Shared, Members: slices.Clone(c.Members), Created: now.Unix(),
		}
		if len(ch.Members) > 0 {
			ch.Creator = ch.Members[0]
		}
		s.channels.add(ch)
	}
	s.lastTS = now.UnixMicro() - 1
}

// index restores the state that the data file does not contain: the bot user, the lookup tables, and the DMs with the
// bot.
func (s *Server) index() {
	now := s.cfg.Now()
	s.botUser = s.accounts.byID[s.app.BotUser]
	if s.botUser == nil {
		s.botUser = newUser(SeedPerson{ID: s.app.BotUser, Name: strings.ToLower(strings.ReplaceAll(s.app.Name, " ", "")), RealName: s.app.Name, Bot: true}, s.team.ID, now)
		s.accounts.add(s.botUser)
	}
	s.botUser.Bot, s.botUser.BotID, s.botUser.AppID = true, s.app.BotID, s.app.ID
	s.botUser.DisplayName, s.botUser.RealName = s.app.Name, s.app.Name
	for _, c := range s.channels.byID {
		c.index()
		for _, m := range c.Messages {
			if m.BotID == s.app.BotID {
				m.profile = s.messages.profile()
			}
		}
		if c.IM {
			s.channels.dms[pair(c.Members[0], c.other(c.Members[0]))] = c.ID
		}
	}
	for _, id := range s.accounts.ids {
		if u := s.accounts.byID[id]; u.person() && !u.Deleted && !u.Stranger {
			s.channels.openDM(u.ID, s.botUser.ID)
		}
	}
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("GET /link/", s.sockets.serve)
	mux.HandleFunc("POST /response/{id}", s.responseURLs.serve)
	mux.HandleFunc("/upload/{id}", s.files.serveUpload)
	mux.HandleFunc("GET /files/{id}/{name}", s.files.serveFile)
	mux.HandleFunc("GET /archives/{channel}/{p}", s.chat.servePermalink)
	s.routePeople(mux)
	mux.Handle("/", page.Handler())
	return mux
}
