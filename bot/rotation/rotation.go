// Package rotation renews the bot token of an app that uses Slack's token rotation. Such a token expires after 12
// hours. The Keeper exchanges the refresh token for a new bot token and a new refresh token, and stores both,
// encrypted. One replica renews the token, and all replicas use the stored token.
package rotation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/bot/slackapi"
	"countersign/internal/redact"
	"countersign/store"
)

// App has the credentials of the app, which an operator gives to the bot.
type App struct {
	ClientID     string
	ClientSecret string
	RefreshToken string // the bot's first refresh token; after that, the bot uses the refresh tokens from Slack's answers
}

// Options configure a Keeper. App, Store and Log are required.
type Options struct {
	App     App
	Store   store.Store
	Replica store.Replica // nil: this process is the only one on the store
	Job     string        // the replica with the claim on this job renews the token
	URL     string        // base of the Web API, with its final slash; empty: Slack's
	HTTP    *http.Client  // nil: a client with a timeout
	Now     func() time.Time
	Log     *slog.Logger
}

// ErrRefused says that Slack permanently refuses to renew the bot token. The error says what to do.
var ErrRefused = errors.New("the bot token can't be renewed")

const (
	poll     = 30 * time.Second // the time between two reads of the stored token
	settled  = time.Minute      // Slack's answers about the previous token may arrive this long after a renewal
	patience = time.Minute      // the time that another replica has to renew the token

	claimTime = 15 * time.Second // how long a starting replica waits for the claim
	callTime  = 10 * time.Second // the time limit of a call to Slack, and of a transaction
)

// Keeper renews the bot token before it expires. Call Token first, then Run.
type Keeper struct {
	o    Options
	Use  func(ctx context.Context, token string) error // makes the running bot use a new token
	wake chan struct{}

	// Only Token and Run access these fields.
	used    string  // the bot token in use
	got     string  // the bot token from this process's last exchange
	unsaved *tokens // tokens from Slack that are not in the store yet
	alone   bool    // exchange the operator's new refresh token without the claim, because the other replicas may not have this token

	mu       sync.Mutex
	app      App
	refused  map[string]error // by digest: refresh tokens that Slack has refused
	expired  bool             // Slack says that the bot token has expired
	failures int              // number of failures since the last success
	next     time.Time        // the time of the next try after a failure
	failed   error            // the result of the last round
	current  tokens
}

// New returns a Keeper. New makes no call.
func New(o Options) *Keeper {
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: callTime}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.URL == "" {
		o.URL = slack.APIURL
	}
	if o.Replica == nil {
		o.Replica = store.Alone{}
	}
	return &Keeper{o: o, app: o.App, wake: make(chan struct{}, 1), refused: map[string]error{}}
}

// Token returns a valid bot token for the start of the bot. If the stored token is too old, or if Slack refuses it,
// Token renews the token. If another replica has the claim, Token waits until that replica has renewed the token. If
// Slack also refuses the token that Token has just got, the error wraps ErrRefused.
func (k *Keeper) Token(ctx context.Context) (string, error) {
	defer func() { k.alone = false }()
	for began, refused, problem := k.o.Now(), "", "the bot token is no longer valid"; ; {
		t, err := k.newest(ctx)
		if t.valid(k.o.Now()) {
			if t.Access != refused {
				code := k.refusal(ctx, t.Access)
				switch {
				case code == "":
					k.report(err)
					k.used = t.Access
					return t.Access, nil
				case t.Access == k.got:
					return "", fmt.Errorf("%w: Slack refuses the new bot token (%s). First check whether the app allows the bot's IP address. %s", ErrRefused, code, reinstall)
				}
				refused, problem = t.Access, fmt.Sprintf("Slack refuses the bot token (%s)", code)
				k.Expired()
				continue
			}
			k.Expired() // again, because Expired has no effect within a minute of a renewal
		}
		waited := k.o.Now().Sub(began)
		k.alone = waited > claimTime
		if err == nil && waited > patience {
			err = fmt.Errorf("%s, and the replica that should renew it does not", problem)
		}
		if err != nil {
			return "", err
		}
		if err := slackapi.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
	}
}

// refusal returns Slack's code if Slack refuses a bot token.
func (k *Keeper) refusal(ctx context.Context, token string) string {
	_, err := slack.New(token, slack.OptionHTTPClient(k.o.HTTP), slack.OptionAPIURL(k.o.URL)).AuthTestContext(ctx)
	if code := slackapi.ErrorCode(err); slackapi.IsTokenRefusal(code) {
		return code
	}
	return ""
}

// Run renews the token in time, and makes the bot use the stored token, until ctx ends. At its end, Run tries once more
// to store tokens that are not in the store yet.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		k.report(k.round(ctx))
		timer := time.NewTimer(k.pause())
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	if k.unsaved != nil {
		_, err := k.save(ctx)
		k.report(err)
	}
	return nil
}

// Expired tells the Keeper that Slack has refused a call because the bot token has expired.
func (k *Keeper) Expired() {
	k.mu.Lock()
	k.expired = true
	k.mu.Unlock()
	k.again()
}

// SetApp replaces the app's credentials.
func (k *Keeper) SetApp(app App) {
	k.mu.Lock()
	k.app, k.next, k.failures = app, time.Time{}, 0
	clear(k.refused)
	k.mu.Unlock()
	k.again()
}

// The method "again" starts the next round now.
func (k *Keeper) again() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Valid returns an error if the bot token has expired.
func (k *Keeper) Valid(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.current.valid(k.o.Now()) {
		return fmt.Errorf("the bot token expired at %s", formatTime(k.current.Expires))
	}
	return nil
}

// Renewed returns an error if the bot token was not renewed when the renewal was due.
func (k *Keeper) Renewed(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.failed != nil:
		return fmt.Errorf("%w. The bot token in use expires at %s", k.failed, formatTime(k.current.Expires))
	case k.o.Now().After(k.current.part(3, 4)):
		return fmt.Errorf("the bot token has not been renewed, and expires at %s", formatTime(k.current.Expires))
	}
	return nil
}

// Expires returns the time at which the bot token in use expires.
func (k *Keeper) Expires() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current.Expires
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// report records the result of a round. report logs an error only once.
func (k *Keeper) report(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil && (k.failed == nil || err.Error() != k.failed.Error()) {
		k.o.Log.Error("the bot token was not renewed", "error", redact.Error(err), "expires", formatTime(k.current.Expires))
	}
	k.failed = err
}

// pause returns the time until the next round.
func (k *Keeper) pause() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wait := k.next.Sub(k.o.Now()); wait > 0 {
		return wait
	}
	return poll
}

// round renews the token if that is due, and makes the bot use the newest token.
func (k *Keeper) round(ctx context.Context) error {
	t, err := k.newest(ctx)
	if t.Access == "" || t.Access == k.used {
		return err
	}
	if failed := k.Use(ctx, t.Access); failed != nil {
		return errors.Join(err, failed)
	}
	k.used = t.Access
	return err
}

// newest returns the newest tokens. If a renewal is due and this replica has the claim on the job, newest renews the
// tokens. The tokens may be valid even if err is not nil.
func (k *Keeper) newest(ctx context.Context) (t tokens, err error) {
	if t, err = k.renewed(ctx); t.Access != "" {
		k.mu.Lock()
		k.current = t
		k.mu.Unlock()
	}
	return t, err
}

func (k *Keeper) renewed(ctx context.Context) (tokens, error) {
	if k.unsaved != nil {
		return k.save(ctx)
	}
	t, err := k.read(ctx)
	if err != nil {
		return k.current, err
	}
	token, err := k.due(t)
	if token == "" {
		return t, err
	}
	_, leave, ok := k.o.Replica.Enter(ctx, k.o.Job)
	switch {
	case ok:
		defer leave()
	case !k.alone || token == t.Refresh:
		return t, nil
	}
	if t, err = k.read(ctx); err != nil { // another replica may have renewed the tokens
		return k.current, err
	}
	if token, err = k.due(t); token == "" {
		return t, err
	}
	if err := k.tryStore(ctx); err != nil {
		return t, err
	}
	fresh, err := k.exchange(ctx, token)
	if err == nil && token != t.Refresh && k.used != "" && (fresh.Team != t.Team || fresh.User != t.User) {
		err = fmt.Errorf("%w: SLACK_REFRESH_TOKEN belongs to another app or workspace", ErrRefused)
	}
	if err != nil {
		return t, k.fail(token, err)
	}
	fresh.Given, fresh.before = t.Given, t.Sealed
	if token != t.Refresh {
		fresh.Given = append(slices.Clone(t.Given), digest(token))
	}
	k.unsaved, k.got = &fresh, fresh.Access
	k.succeed()
	return k.save(ctx)
}

// due returns the refresh token with which the bot token must be renewed now. If no renewal is due, token is empty. If
// a renewal is due but impossible, token is empty, and err says why.
func (k *Keeper) due(t tokens) (token string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	if now.Before(k.next) {
		return "", k.failed
	}
	if given := digest(k.app.RefreshToken); !slices.Contains(t.Given, given) {
		if err = k.refused[given]; err == nil {
			return k.app.RefreshToken, nil
		}
	}
	age := now.Sub(t.Issued) // much less than 0 if the clock was set back
	if age.Abs() < settled {
		k.expired = false // the refused call had the previous token
	}
	switch {
	case t.Access != "" && !t.lost && !k.expired && age > -settled && now.Before(t.part(1, 2)):
		return "", err
	case t.Refresh != "" && k.refused[digest(t.Refresh)] == nil:
		return t.Refresh, nil
	case t.Refresh != "":
		return "", k.refused[digest(t.Refresh)]
	case err == nil:
		err = errUndecrypted
	}
	return "", err
}

// reinstall says what to do if a refresh token can't be used.
const reinstall = `Reinstall the app on its page "OAuth & Permissions", and set SLACK_REFRESH_TOKEN to the new refresh token`

var errUndecrypted = fmt.Errorf("%w: the stored token can't be decrypted, because SLACK_CLIENT_ID or SLACK_CLIENT_SECRET has changed. %s", ErrRefused, reinstall)

// fail records that Slack did not exchange a refresh token. A refused token is not tried again.
func (k *Keeper) fail(token string, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if errors.Is(err, ErrRefused) {
		k.refused[digest(token)] = err
		return err
	}
	k.failures = min(k.failures+1, 7)
	k.next = k.o.Now().Add(max(slackapi.RetryDelay(err), time.Second<<(k.failures-1))) // first soon, because Slack accepts a used refresh token for a short time
	return err
}

func (k *Keeper) succeed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failures, k.next, k.expired = 0, time.Time{}, false
}

// exchange gets a new bot token and a new refresh token from Slack. exchange continues when ctx ends, because the
// exchange uses the refresh token up.
func (k *Keeper) exchange(ctx context.Context, token string) (tokens, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	k.mu.Lock()
	app := k.app
	k.mu.Unlock()
	now := k.o.Now()
	r, err := slack.RefreshOAuthV2TokenContext(ctx, k.o.HTTP, app.ClientID, app.ClientSecret, token, slack.OAuthOptionAPIURL(k.o.URL))
	code := slackapi.ErrorCode(err)
	switch {
	case code == "bad_client_secret" || code == "invalid_client_id":
		return tokens{}, fmt.Errorf(`%w: Slack refuses SLACK_CLIENT_ID or SLACK_CLIENT_SECRET (%s). Copy both from the app's page "Basic Information"`, ErrRefused, code)
	case code == "invalid_refresh_token":
		return tokens{}, fmt.Errorf("%w: Slack refuses the refresh token (%s). %s", ErrRefused, code, reinstall)
	case err != nil:
		return tokens{}, fmt.Errorf("oauth.v2.access: %w", slackapi.WithDelay(err))
	case !strings.HasPrefix(r.AccessToken, "xoxe.xoxb-"):
		return tokens{}, fmt.Errorf("%w: SLACK_REFRESH_TOKEN is not the refresh token of the app's bot token. %s", ErrRefused, reinstall)
	case r.RefreshToken == "" || r.ExpiresIn <= 0:
		return tokens{}, errors.New("oauth.v2.access: Slack's answer has no refresh token or no expiry")
	}
	t := tokens{pair: pair{r.AccessToken, r.RefreshToken}}
	t.Team, t.User, t.Issued, t.Expires = r.Team.ID, r.BotUserID, now, now.Add(time.Duration(r.ExpiresIn)*time.Second)
	return t, nil
}
