package workspace

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"countersign/internal/demo/workspace/delivery"
)

// Seed is the initial content of a workspace. A seed file is YAML (or JSON, which is valid YAML). The keys in the file
// are the names of the fields below. Unknown keys are errors.
type Seed struct {
	Team     SeedTeam      `yaml:"team" json:"team"`
	App      SeedApp       `yaml:"app" json:"app"`
	People   []SeedPerson  `yaml:"people" json:"people"`
	Groups   []SeedGroup   `yaml:"groups" json:"groups"`
	Channels []SeedChannel `yaml:"channels" json:"channels"`
	Hint     SeedHint      `yaml:"hint" json:"hint"`
}

// SeedHint is the page's hint for new users. Without a title, no hint is shown.
type SeedHint struct {
	Title   string   `yaml:"title" json:"title"`
	Lines   []string `yaml:"lines" json:"lines"`     // mrkdwn; text in `code` can be put into the composer with a click
	User    string   `yaml:"user" json:"user"`       // the person whose view a new user sees first
	Channel string   `yaml:"channel" json:"channel"` // the channel that a new user sees first
}

// SeedTeam is the workspace itself.
type SeedTeam struct {
	ID     string `yaml:"id" json:"id"`
	Name   string `yaml:"name" json:"name"`
	Domain string `yaml:"domain" json:"domain"`
}

// SeedApp is the app under test: its bot user, its tokens and the declarations of its manifest.
type SeedApp struct {
	ID        string   `yaml:"id" json:"id"`
	BotID     string   `yaml:"bot_id" json:"bot_id"`
	BotUser   string   `yaml:"bot_user" json:"bot_user"` // the bot's user id
	Name      string   `yaml:"name" json:"name"`
	BotTokens []string `yaml:"bot_tokens" json:"bot_tokens"` // xoxb-…
	AppTokens []string `yaml:"app_tokens" json:"app_tokens"` // xapp-…
	// Rotation switches token rotation on. The app gets its bot tokens from oauth.v2.access.
	Rotation SeedRotation `yaml:"rotation" json:"rotation"`
	// SigningSecret signs requests over HTTP. RequestURLs are the URLs of these requests. If all URLs are empty, the
	// app uses Socket Mode.
	SigningSecret string               `yaml:"signing_secret" json:"signing_secret"`
	RequestURLs   delivery.RequestURLs `yaml:"request_urls" json:"request_urls"`
	// Scopes are the scopes of the bot token. If Scopes is empty, the token has all scopes.
	Scopes []string `yaml:"scopes" json:"scopes"`
	// Events are the app's subscriptions, as in a manifest (app_mention, message.channels, …). If Events is empty, the
	// app is subscribed to all events that this workspace sends.
	Events    []string       `yaml:"events" json:"events"`
	Commands  []SeedCommand  `yaml:"commands" json:"commands"`
	Shortcuts []SeedShortcut `yaml:"shortcuts" json:"shortcuts"`
}

// SeedRotation has the credentials with which an app with token rotation gets its first bot token.
type SeedRotation struct {
	ClientID     string `yaml:"client_id" json:"client_id"`
	ClientSecret string `yaml:"client_secret" json:"client_secret"`
	RefreshToken string `yaml:"refresh_token" json:"refresh_token"` // xoxe-…
}

// SeedCommand is a slash command of the app, with the fields of a manifest.
type SeedCommand struct {
	Command     string `yaml:"command" json:"command"`
	Description string `yaml:"description" json:"description"`
	UsageHint   string `yaml:"usage_hint" json:"usage_hint"` // the arguments of the command, shown while a person types
	// ShouldEscape is the manifest's "escape channels, users, and links". With ShouldEscape, @kenji reaches the app as
	// <@U0004|kenji>. Without ShouldEscape, the app gets the text as the person typed it.
	ShouldEscape bool `yaml:"should_escape" json:"should_escape"`
}

// SeedShortcut is a shortcut of the app. Type is global or message.
type SeedShortcut struct {
	Name       string `yaml:"name" json:"name"`
	CallbackID string `yaml:"callback_id" json:"callback_id"`
	Type       string `yaml:"type" json:"type"`
}

// SeedPerson is a member of the workspace, a person from another organization, or a bot.
type SeedPerson struct {
	ID          string `yaml:"id" json:"id"`
	Name        string `yaml:"name" json:"name"`           // the handle: ada
	RealName    string `yaml:"real_name" json:"real_name"` // the full name: Ada Okafor
	DisplayName string `yaml:"display_name" json:"display_name"`
	Title       string `yaml:"title" json:"title"`
	Email       string `yaml:"email" json:"email"`
	TZ          string `yaml:"tz" json:"tz"` // IANA name; UTC if empty
	Locale      string `yaml:"locale" json:"locale"`
	Team        string `yaml:"team" json:"team"` // the person's workspace; only for people of another workspace
	Admin       bool   `yaml:"admin" json:"admin"`
	Guest       bool   `yaml:"guest" json:"guest"`                               // multi-channel guest
	SingleGuest bool   `yaml:"single_channel_guest" json:"single_channel_guest"` // single-channel guest
	Deactivated bool   `yaml:"deactivated" json:"deactivated"`
	Stranger    bool   `yaml:"stranger" json:"stranger"` // from another organisation, in a shared channel
	Bot         bool   `yaml:"bot" json:"bot"`
}

// SeedGroup is a user group.
type SeedGroup struct {
	ID     string   `yaml:"id" json:"id"`
	Handle string   `yaml:"handle" json:"handle"`
	Name   string   `yaml:"name" json:"name"`
	Users  []string `yaml:"users" json:"users"`
}

// SeedChannel is a channel with its members (user ids).
type SeedChannel struct {
	ID       string   `yaml:"id" json:"id"`
	Name     string   `yaml:"name" json:"name"`
	Topic    string   `yaml:"topic" json:"topic"`
	Purpose  string   `yaml:"purpose" json:"purpose"`
	Private  bool     `yaml:"private" json:"private"`
	Archived bool     `yaml:"archived" json:"archived"`
	General  bool     `yaml:"general" json:"general"`
	Shared   bool     `yaml:"shared" json:"shared"` // shared with another organisation
	Members  []string `yaml:"members" json:"members"`
}

// ReadSeed reads a seed file. The error for invalid YAML has the line and the problem.
func ReadSeed(path string) (Seed, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Seed{}, fmt.Errorf("read seed: %w", err)
	}
	var seed Seed
	if err := yaml.UnmarshalWithOptions(raw, &seed, yaml.Strict()); err != nil {
		return Seed{}, fmt.Errorf("seed %s: %s", path, yaml.FormatError(err, false, true))
	}
	if err := seed.Validate(); err != nil {
		return Seed{}, fmt.Errorf("seed %s: %w", path, err)
	}
	return seed, nil
}

var (
	channelName = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]+$`) // the length is checked separately: with {1,80} the compiled pattern would take five megabytes
	handle      = regexp.MustCompile(`^[a-z0-9._-]{1,40}$`)
)

// longestName is the greatest number of characters in a channel's name.
const longestName = 80

// Validate returns all problems of the seed.
func (s Seed) Validate() error { //nolint:cyclop // one check for each field
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	needID := func(what, id, prefixes string) {
		if id == "" || !strings.ContainsRune(prefixes, rune(id[0])) {
			bad("%s: the id %q must begin with one of %s", what, id, strings.Join(strings.Split(prefixes, ""), ", "))
		}
	}
	needID("team", s.Team.ID, "T")
	if s.Team.Name == "" {
		bad("team: name is missing")
	}
	needID("app", s.App.ID, "A")
	needID("app bot_id", s.App.BotID, "B")
	needID("app bot_user", s.App.BotUser, "UW")
	if s.App.Name == "" {
		bad("app: name is missing")
	}
	for _, t := range s.App.BotTokens {
		if !strings.HasPrefix(t, "xoxb-") {
			bad("app: a bot token must begin with xoxb-")
		}
	}
	for _, t := range s.App.AppTokens {
		if !strings.HasPrefix(t, "xapp-") {
			bad("app: an app token must begin with xapp-")
		}
	}
	if r := s.App.Rotation; r != (SeedRotation{}) {
		if r.ClientID == "" || r.ClientSecret == "" || !strings.HasPrefix(r.RefreshToken, "xoxe-") {
			bad("app: token rotation needs a client_id, a client_secret and a refresh_token that begins with xoxe-")
		}
		if len(s.App.BotTokens) > 0 {
			bad("app: an app with token rotation has no bot_tokens")
		}
	}
	for _, c := range s.App.Commands {
		if !strings.HasPrefix(c.Command, "/") || strings.ContainsAny(c.Command, " \t") {
			bad("command %q must begin with / and have no space", c.Command)
		}
	}
	for _, c := range s.App.Shortcuts {
		if c.CallbackID == "" || (c.Type != "global" && c.Type != "message") {
			bad("shortcut %q needs a callback_id and the type global or message", c.Name)
		}
	}

	if err := s.App.RequestURLs.Validate(); err != nil {
		bad("app: %w", err)
	}
	if s.App.RequestURLs.Any() && s.App.SigningSecret == "" {
		bad("app: requests over HTTP need a signing_secret")
	}
	known := map[string]bool{s.App.BotUser: true}
	names, emails := map[string]string{}, map[string]string{}
	for _, p := range s.People {
		needID("person "+p.Name, p.ID, "UW")
		if known[p.ID] {
			bad("person %s: the id is used twice", p.ID)
		}
		known[p.ID] = true
		if !handle.MatchString(p.Name) {
			bad("person %s: the name %q must be lower-case letters, digits, dots, dashes or underscores", p.ID, p.Name)
		} else if other, taken := names[p.Name]; taken {
			bad("person %s: the name %q is already %s's", p.ID, p.Name, other)
		}
		names[p.Name] = p.ID
		if p.Email != "" {
			mail := strings.ToLower(p.Email)
			if other, taken := emails[mail]; taken {
				bad("person %s: the e-mail address is already %s's", p.ID, other)
			}
			emails[mail] = p.ID
		}
		if _, err := loadZone(p.TZ); err != nil {
			bad("person %s: %q is not a time zone (write an IANA name such as Europe/Berlin)", p.ID, p.TZ)
		}
	}
	seen := map[string]bool{}
	for _, g := range s.Groups {
		needID("group "+g.Handle, g.ID, "S")
		if seen[g.ID] || seen["@"+g.Handle] {
			bad("group %s (%s): the id or handle is used twice", g.ID, g.Handle)
		}
		seen[g.ID], seen["@"+g.Handle] = true, true
		if !handle.MatchString(g.Handle) {
			bad("group %s: the handle %q must be lower-case letters, digits, dots, dashes or underscores", g.ID, g.Handle)
		}
		for _, u := range g.Users {
			if !known[u] {
				bad("group %s: there is no person %s", g.Handle, u)
			}
		}
	}
	for _, c := range s.Channels {
		needID("channel "+c.Name, c.ID, "CG")
		if seen[c.ID] || seen["#"+c.Name] {
			bad("channel %s (%s): the id or name is used twice", c.ID, c.Name)
		}
		seen[c.ID], seen["#"+c.Name] = true, true
		if !channelName.MatchString(c.Name) || utf8.RuneCountInString(c.Name) > longestName {
			bad("channel %s: the name %q must be lower-case, at most 80 characters, without spaces", c.ID, c.Name)
		}
		for _, u := range c.Members {
			if !known[u] {
				bad("channel %s: there is no person %s", c.Name, u)
			}
		}
	}
	if s.Hint.User != "" && !known[s.Hint.User] {
		bad("hint: there is no person %s", s.Hint.User)
	}
	if s.Hint.Channel != "" && !seen[s.Hint.Channel] {
		bad("hint: there is no channel %s", s.Hint.Channel)
	}
	return errors.Join(errs...)
}
