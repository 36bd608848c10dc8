// Package installation reads from Slack how the app is set up: its tokens, scopes, channels, people and user groups.
// The command doctor compares the result with the policy and with the needs of the bot.
package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
)

// Examiner reads from Slack how the app is set up, and changes nothing. Examiner opens no socket, because Slack would
// send events through the socket, and the running bot would miss these events.
type Examiner struct {
	api      *slack.Client
	http     *http.Client
	appToken string
	heads    *headers
	self     directory.Self
}

// New returns an examiner with the given tokens. An empty apiURL means Slack's address.
func New(botToken, appToken, apiURL string) *Examiner {
	if apiURL == "" {
		apiURL = slack.APIURL
	}
	e := &Examiner{appToken: appToken, heads: new(headers)}
	e.http = &http.Client{Timeout: 20 * time.Second, Transport: e.heads}
	e.api = slack.New(botToken, slack.OptionHTTPClient(e.http), slack.OptionAppLevelToken(appToken), slack.OptionAPIURL(strings.TrimSuffix(apiURL, "/")+"/"),
		slack.OptionRetry(maxAsked))
	return e
}

// maxAsked is the maximum number of retries of a call that Slack's rate limit delays. Slack may delay calls, because
// the examiner and the running bot share the rate limits.
const maxAsked = 5

// headers records the response headers of Slack.
type headers struct {
	mu     sync.Mutex
	scopes []string
	skew   time.Duration // how far this machine's clock is ahead of Slack's
	dated  bool
}

// RoundTrip makes a call and records the headers of its response.
func (t *headers) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if granted := slackapi.GrantedScopes(req, resp); granted != nil {
		t.scopes = granted
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && !t.dated {
		took := time.Since(began)
		t.skew, t.dated = began.Add(took/2).Sub(date.Add(time.Second/2)), true // the Date header has whole seconds
	}
	return resp, nil
}

// App describes the installed app.
type App struct {
	Team, TeamID string
	Enterprise   string // the id of the workspace's enterprise; empty: there is none
	User, UserID string // the bot's own name and user id
	ID           string // the app's id; empty if Slack does not provide it
	Scopes       []string
	Skew         time.Duration // how far this machine's clock is ahead of Slack's
	Dated        bool          // Skew is known, because Slack's response had a date
	Took         time.Duration // duration of one call
}

// App asks Slack who the bot is and which scopes it has.
func (e *Examiner) App(ctx context.Context) (App, error) {
	began := time.Now()
	a, err := e.api.AuthTestContext(ctx)
	if err != nil {
		return App{}, err
	}
	in := App{Team: a.Team, TeamID: a.TeamID, Enterprise: a.EnterpriseID, User: a.User, UserID: a.UserID, Took: time.Since(began)}
	e.self = directory.Self{User: a.UserID, Bot: a.BotID, Team: a.TeamID, Enterprise: a.EnterpriseID}
	if b, err := e.api.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: a.BotID}); err == nil {
		in.ID = b.AppID
	}
	e.heads.mu.Lock()
	defer e.heads.mu.Unlock()
	in.Scopes, in.Skew, in.Dated = e.heads.scopes, e.heads.skew, e.heads.dated
	return in, nil
}

// TokenApp returns the ID of the app that the app-level token belongs to. The ID is part of the token.
func (e *Examiner) TokenApp() string {
	parts := strings.Split(e.appToken, "-")
	if len(parts) < 4 || !strings.HasPrefix(parts[2], "A") {
		return ""
	}
	return parts[2]
}

// Socket requests the address of a socket, and checks that the host of the address can be reached. Socket does not open
// the socket.
func (e *Examiner) Socket(ctx context.Context) error {
	_, address, err := e.api.StartSocketModeContext(ctx)
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("parse the URL of the socket: %w", err)
	}
	at := "https://" + u.Host + "/"
	if u.Scheme == "ws" {
		at = "http://" + u.Host + "/"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSocketHost, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10)) // any response shows that the host can be reached
	return resp.Body.Close()
}

// ErrSocketHost says that the host of Slack's sockets can't be reached.
var ErrSocketHost = errors.New("the host of Slack's sockets can't be reached")

// Channel is a channel that the bot can see.
type Channel struct {
	ID, Name                          string
	Private, Member, Archived, Shared bool
}

// Channels returns all channels that the bot can see, including archived ones.
func (e *Examiner) Channels(ctx context.Context) ([]Channel, error) {
	var out []Channel
	query := slack.GetConversationsParameters{Limit: 1000, Types: []string{"public_channel", "private_channel"}}
	err := directory.EachChannel(ctx, e.api, query, func(c slack.Channel) {
		out = append(out, Channel{ID: c.ID, Name: c.Name, Private: c.IsPrivate, Member: c.IsMember, Archived: c.IsArchived, Shared: c.IsExtShared || c.IsPendingExtShared})
	})
	return out, err
}

// Person returns a user's identity. The identity of an unknown user has no ID. Only a confirmed e-mail address is
// included.
func (e *Examiner) Person(ctx context.Context, user string) (approvers.Identity, error) {
	u, err := e.api.GetUserInfoContext(ctx, user)
	return e.identified(u, err)
}

// PersonAt returns the identity for an e-mail address. Slack does not find deactivated accounts by e-mail address.
func (e *Examiner) PersonAt(ctx context.Context, email string) (approvers.Identity, error) {
	u, err := e.api.GetUserByEmailContext(ctx, email)
	return e.identified(u, err)
}

func (e *Examiner) identified(u *slack.User, err error) (approvers.Identity, error) {
	switch slackapi.ErrorCode(err) {
	case "user_not_found", "user_not_visible", "users_not_found":
		return approvers.Identity{}, nil
	}
	if err != nil {
		return approvers.Identity{}, err
	}
	who := directory.Identity(e.self, *u)
	if !u.IsEmailConfirmed {
		who.Email = ""
	}
	return who, nil
}

// Groups returns all user groups, by id and by handle.
func (e *Examiner) Groups(ctx context.Context) (map[string]directory.Group, error) {
	return directory.Groups(ctx, e.api)
}

// Members returns the IDs of a user group's members.
func (e *Examiner) Members(ctx context.Context, g directory.Group) ([]string, error) {
	return g.MembersFrom(ctx, e.api)
}

// RefusesToken reports whether an error says that Slack refuses the token permanently.
func RefusesToken(err error) bool { return slackapi.IsTokenRefusal(slackapi.ErrorCode(err)) }

// SlackCode returns Slack's code in an error, such as missing_scope. The code is empty for an error that is not a
// response of Slack. scope is the missing scope.
func SlackCode(err error) (code, scope string) {
	var answer slack.SlackErrorResponse
	if !errors.As(err, &answer) {
		return "", ""
	}
	return answer.Err, answer.Needed
}
