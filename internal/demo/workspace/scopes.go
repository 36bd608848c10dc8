package workspace

import (
	"slices"
	"strings"
	"sync/atomic"
)

// kindScope maps each kind of channel to the prefix of its scopes, as in channels:read and groups:history.
var kindScope = map[string]string{"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}

// scopes checks whether the scopes of the app's bot token cover a method or an event.
type scopes struct {
	*core
	channels *channels
	rotation *rotation
	granted  atomic.Pointer[[]string] // replaces the seed's scopes; see withhold
}

// withhold sets the scopes of the bot token: the seed's scopes without the given scopes.
func (s *scopes) withhold(scopes []string) {
	granted := slices.DeleteFunc(slices.Clone(s.app.Scopes), func(scope string) bool { return slices.Contains(scopes, scope) })
	s.granted.Store(&granted)
}

// list returns the scopes of the bot token. If the list is empty, the token may call every method.
func (s *scopes) list() []string {
	if granted := s.granted.Load(); granted != nil {
		return *granted
	}
	return s.app.Scopes
}

// kindsMissing returns the scope that a call lacks for its kind of channel. If a method accepts several scopes, each
// scope covers one kind of channel.
func (s *scopes) kindsMissing(m method, c *call) string {
	if len(s.list()) == 0 || !strings.HasPrefix(m.scope, "channels:") || !strings.Contains(m.scope, "|") {
		return ""
	}
	first, _, _ := strings.Cut(m.scope, "|")
	_, what, _ := strings.Cut(first, ":")
	var kinds []string
	if ch := s.channels.byID[c.text("channel")]; ch != nil {
		kinds = []string{ch.kind()}
	}
	for _, t := range c.words("types") {
		kinds = append(kinds, channelTypes[t])
	}
	for _, kind := range kinds {
		if scope := kindScope[kind] + ":" + what; kindScope[kind] != "" && !slices.Contains(s.list(), scope) {
			return scope
		}
	}
	return ""
}

// eventScopes holds the scopes required for events, by prefix of the event's name. The sign | separates alternatives.
// Events that are not listed require no scope.
var eventScopes = []struct{ name, scope string }{
	{"message.channels", "channels:history"}, {"message.groups", "groups:history"}, {"message.im", "im:history"}, {"message.mpim", "mpim:history"},
	{"app_mention", "app_mentions:read"}, {"channel_", "channels:read"}, {"group_", "groups:read"}, {"member_", "channels:read|groups:read"},
	{"user_", "users:read"}, {"team_join", "users:read"}, {"subteam_", "usergroups:read"}, {"dnd_", "dnd:read"}, {"reaction_", "reactions:read"},
}

// mayReceive reports whether the app has the scope for an event.
func (s *scopes) mayReceive(event string) bool {
	if len(s.list()) == 0 {
		return true
	}
	for _, e := range eventScopes {
		if strings.HasPrefix(event, e.name) {
			return slices.ContainsFunc(strings.Split(e.scope, "|"), func(scope string) bool { return slices.Contains(s.list(), scope) })
		}
	}
	return true
}

// authorize checks that the token belongs to the app, is of the kind that the method requires, and has the method's
// scope.
func (s *scopes) authorize(m method, token string) *apiError {
	ended, issued := s.rotation.refuses(token)
	isBot, isApp := issued || slices.Contains(s.app.BotTokens, token), slices.Contains(s.app.AppTokens, token)
	switch {
	case ended != "":
		return refuse(ended)
	case token == "":
		return refuse("not_authed")
	case !isBot && !isApp:
		return refuse("invalid_auth")
	case m.app != isApp:
		return refuse("not_allowed_token_type")
	case isApp || m.scope == "" || len(s.list()) == 0:
		return nil
	}
	for _, alternative := range strings.Split(m.scope, "|") {
		if slices.Contains(s.list(), alternative) {
			return nil
		}
	}
	needed, _, _ := strings.Cut(m.scope, "|")
	return s.missing(needed)
}

func (s *scopes) missing(needed string) *apiError {
	return &apiError{code: "missing_scope", extra: object{"needed": needed, "provided": strings.Join(s.list(), ",")}}
}
