package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"

	"countersign/approvers/desk"
)

// Config is what a bot works with. BotToken, Desk, Tools and Log are required, and AppToken for Socket Mode, or Listen and SigningSecret for Slack's requests
// over HTTP.
type Config struct {
	BotToken string // xoxb-…
	AppToken string // xapp-…, for Socket Mode
	// Listen opens where Slack's requests over HTTP come in. nil: Socket Mode.
	Listen        func() (net.Listener, error)
	SigningSecret string // with which Slack signs its requests over HTTP
	APIURL        string // Web API base with its final slash; empty: Slack's
	Desk          *desk.Desk
	Tools         desk.Tools // for the forms of Modify…
	Log           *slog.Logger
	Now           func() time.Time // nil: time.Now
	HTTP          *http.Client     // nil: one with a timeout. Sockets are dialled as it dials
	// Unlimited says that this Slack has no rate limits, as a local workspace: one is kept only once it has refused something because of it.
	Unlimited bool
	Count     func(Call) // is told of each call of the Web API; nil: nobody counts
	// CountRequest is told the status with which each request over HTTP was answered; nil: nobody counts.
	CountRequest func(status int)
}

// Bot is the Slack edge. It is safe for use by many goroutines.
type Bot struct {
	Config
	api      *slack.Client
	governor *governor
	self     once[self]
	people   *people
	places   *places
	// profiles are what the model may be told of people.
	profiles *memory[slack.User]
	forms    forms
	inOrder  clockwork
	// connected notes which connections to Slack are up.
	connected connections
	intake    intake         // of requests over HTTP
	side      sync.WaitGroup // loading views, and what is told beside a delivery, under way
	unheard   unheard
	posts     posts // whose fate is not recorded
	drafts    drafts
	readings  readings
	shows     keyed
	noStreams refusalNote
	noFiles   refusalNote
	statuses  statuses
	looks     looks
}

// New makes a bot. It talks to nobody yet.
func New(c Config) *Bot {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: 20 * time.Second}
	}
	if c.APIURL == "" {
		c.APIURL = slack.APIURL
	}
	c.APIURL = strings.TrimSuffix(c.APIURL, "/") + "/"
	b := &Bot{Config: c}
	b.governor = newGovernor(c)
	b.governor.contact.probe = func(ctx context.Context) error {
		_, err := b.api.AuthTestContext(withErrand(ctx, errand{probe: true}))
		return err
	}
	b.governor.contact.back = func() {
		b.connected.again()
		b.Desk.Wake()
	}
	governed := *c.HTTP
	governed.Transport = fitter{b.governor, c.Log}
	b.api = slack.New(c.BotToken, slack.OptionHTTPClient(&governed), slack.OptionAppLevelToken(c.AppToken), slack.OptionAPIURL(c.APIURL))
	b.people = newPeople(b.api, c.Now)
	b.places = newPlaces(b.api, c.Now)
	b.profiles = newMemory[slack.User](c.Now, trusted)
	return b
}

// self is who the bot is in its workspace.
type self struct {
	User       string // the bot's own user id
	Bot        string
	App        string // empty where Slack does not say
	Team       string
	Enterprise string
	URL        string // the workspace's, with its final slash
}

// whoAmI asks Slack once who the bot is.
func (b *Bot) whoAmI(ctx context.Context) (self, error) {
	return b.self.get(func() (self, error) {
		a, err := b.api.AuthTestContext(ctx)
		if err != nil {
			return self{}, fmt.Errorf("auth.test: %w", slow(err))
		}
		if a.UserID == "" || a.TeamID == "" {
			return self{}, errors.New("auth.test: Slack did not say who the bot is; is SLACK_BOT_TOKEN a bot token (xoxb-…)?")
		}
		url := a.URL
		if url != "" && !strings.HasSuffix(url, "/") {
			url += "/"
		}
		app, err := b.appID(ctx, a.BotID)
		if err != nil {
			return self{}, err
		}
		return self{User: a.UserID, Bot: a.BotID, App: app, Team: a.TeamID, Enterprise: a.EnterpriseID, URL: url}, nil
	})
}

// appID asks Slack whose app a bot is; empty where Slack does not say it to this bot.
func (b *Bot) appID(ctx context.Context, bot string) (string, error) {
	info, err := b.api.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: bot})
	if err == nil {
		return info.AppID, nil
	}
	if code := errorCode(err); code == "missing_scope" || code == "unknown_method" || code == "bot_not_found" {
		return "", nil
	}
	return "", fmt.Errorf("bots.info: %w", slow(err))
}

// ErrToken says that Slack refuses a token for good. The wrapping error says which, and where to find the right one.
var ErrToken = errors.New("Slack refuses a token")

// Check asks Slack whether the tokens are good. Its error says what to do.
func (b *Bot) Check(ctx context.Context) error {
	_, err := b.whoAmI(ctx)
	if code := errorCode(err); refusedTokens[code] {
		return fmt.Errorf("%w: the bot token (%s). Set SLACK_BOT_TOKEN to the Bot User OAuth Token of the app's \"OAuth & Permissions\" page", ErrToken, code)
	}
	if err != nil {
		return fmt.Errorf("Slack cannot be reached; check the network, and SLACK_API_URL if it is set: %w", err)
	}
	if b.overHTTP() {
		return nil
	}
	_, _, err = b.api.StartSocketModeContext(ctx) // only asks for an address; Run is who connects
	return appToken(err)
}

// appToken is the error of an app token that Slack refuses, or nil: what else may be wrong passes, and is tried again.
func appToken(err error) error {
	if code := errorCode(err); refusedTokens[code] || code == "missing_scope" {
		return fmt.Errorf("%w: the app token (%s). Set SLACK_APP_TOKEN to an app-level token with the scope connections:write", ErrToken, code)
	}
	return nil
}

// once holds a value that is fetched until it was fetched successfully.
type once[T any] struct {
	fetching singleflight.Group
	v        atomic.Pointer[T]
}

func (o *once[T]) get(fetch func() (T, error)) (T, error) {
	if v, ok := o.known(); ok {
		return v, nil
	}
	v, err, _ := o.fetching.Do("", func() (any, error) {
		v, err := fetch()
		if err == nil {
			o.v.Store(&v)
		}
		return v, err
	})
	return v.(T), err
}

// known is the value, if it was fetched already. It never waits.
func (o *once[T]) known() (v T, ok bool) {
	if p := o.v.Load(); p != nil {
		return *p, true
	}
	return v, false
}

// clockwork gives each delivery its own receipt time, in the order of arrival: timers of one lane are handled in order of it. A clock that
// was set back is followed: nothing that comes in may seem to come later than it does.
type clockwork struct {
	mu   sync.Mutex
	last time.Time
}

func (c *clockwork) next(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now = now.UTC().Truncate(time.Microsecond)
	if behind := c.last.Sub(now); behind >= 0 && behind < time.Second {
		now = c.last.Add(time.Microsecond)
	}
	c.last = now
	return now
}
