package workspace

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/demo/workspace/wire"
)

// core has the data that all parts of a workspace share: the configuration, the workspace's and the app's identity, and
// the timestamps. core also has the connections to the app (hub), to the browsers (feed) and to the data file (saver).
type core struct {
	cfg Config
	log *slog.Logger

	// mu protects the state of core and of all parts, because most calls change the state of several parts. webAPI takes
	// the lock for Slack's methods. The other methods that begin a piece of work take the lock themselves: handlers of
	// requests, and Controls. All other methods are called with the lock. The lock is never held during a wait, for
	// example for an acknowledgement or a slow reader.
	mu sync.Mutex

	team    SeedTeam
	app     SeedApp
	botUser *user
	lastTS  int64  // microseconds; never goes back
	botHost string // host under which the app last reached this server

	hub   *delivery.Hub
	feed  *feed
	saver *saver
}

// nextTS returns an unused timestamp. If the current time is already used, nextTS returns the microsecond after the
// last timestamp.
func (k *core) nextTS() string {
	k.lastTS = max(k.lastTS+1, k.cfg.Now().UnixMicro())
	return wire.FormatTS(k.lastTS)
}

// base returns the URL at which the sender of the request r reaches this server.
func (k *core) base(r *http.Request) string {
	if k.cfg.BaseURL != "" {
		return strings.TrimSuffix(k.cfg.BaseURL, "/")
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// appBase returns the URL at which the app last reached this server. If the app has not reached the server yet, appBase
// returns the URL at which the sender of the request r reaches this server.
func (k *core) appBase(r *http.Request) string {
	if k.botHost != "" {
		return k.botHost
	}
	return k.base(r)
}
