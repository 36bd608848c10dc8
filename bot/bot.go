package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
	"countersign/bot/transport"
)

// Config configures a bot. BotToken, Workflow, Tools and Log are required. Socket Mode also needs AppToken; delivery
// over HTTP needs Listen and SigningSecret.
type Config struct {
	Workflow
	BotToken string // xoxb-…
	AppToken string // xapp-…, for Socket Mode
	// Listen opens the listener for Slack's requests over HTTP. If Listen is nil, the bot uses Socket Mode.
	Listen        func() (net.Listener, error)
	SigningSecret string         // secret with which Slack signs its requests over HTTP
	APIURL        string         // Web API base URL with its final slash; empty: Slack's
	Tools         workflow.Tools // describes the tools, for example for the forms of Modify…
	// Admits validates a filled-in form against its schema. The form shows the returned error. If Admits is nil, any
	// object is valid.
	Admits func(schema, values json.RawMessage) error
	// Version is the program's version for the Home tab. If Version is empty, the Home tab shows no version.
	Version string
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
	HTTP    *http.Client     // nil: a client with a timeout. Sockets use the proxy of this client, too
	// Share returns the number of processes that share Slack's rate limits. Other processes send messages with
	// Workflow.Tell. The result hears is the time at which this process began to receive these messages, or zero if it
	// does not receive them. If Share is nil, this process is the only one.
	Share func() (processes int, hears time.Time)
	// Unlimited disables Slack's published rate limits, for a local workspace. Then the bot waits only after Slack has
	// rejected a call because of a rate limit.
	Unlimited bool
	Count     func(context.Context, slackapi.Call) // is called for each call to the Web API; may be nil
	// Reread is called after Slack has refused a secret. Reread looks for new secrets, passes them to Renew, and
	// reports whether there were any. If Reread is nil, the secrets never change.
	Reread func(context.Context) bool
	// Expired is called when Slack refuses a call because the bot token is no longer valid. If the app has no token
	// rotation, Expired is nil.
	Expired func()
	// CountRequest is called with the status of each response over HTTP; may be nil.
	CountRequest func(status int)
}

// Bot connects Slack with the workflow. Bot has one part for each concern. Bot itself only starts, checks and stops
// these parts. Bot is safe for concurrent use.
type Bot struct {
	*core
	Receiver     *Receiver     // stores Slack's deliveries
	Inbox        *Inbox        // handles the stored deliveries
	Gaps         *Gaps         // finds gaps, in which nothing was received, and reads their messages
	Display      *Display      // shows outbox messages, and the progress of runs
	Drafts       *Drafts       // show the model's text while the model writes it
	Statuses     *Statuses     // shows the statuses under threads
	Leftovers    *Leftovers    // deletes messages later if Slack refused the deletion
	Identities   *Identities   // asks Slack who a person is
	Availability *Availability // asks Slack who can be reached
	Permissions  *Permissions  // compares the scopes of the bot token with the needed scopes
	Replicas     *Replicas     // shares Slack's limits with the other processes
	access       *channelAccess
	transport    transport.Transport
}

// New returns a bot. New makes no calls.
func New(c Config) *Bot {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Admits == nil {
		c.Admits = func(json.RawMessage, json.RawMessage) error { return nil }
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: 20 * time.Second}
	}
	if c.APIURL == "" {
		c.APIURL = slack.APIURL
	}
	c.APIURL = strings.TrimSuffix(c.APIURL, "/") + "/"
	k := &core{Config: c, refused: newRefusedBySlack(c)}
	b := &Bot{core: k, Permissions: newPermissions(k), Replicas: &Replicas{core: k}, Leftovers: &Leftovers{core: k}}
	k.secrets.Store(&Secrets{BotToken: c.BotToken, AppToken: c.AppToken, SigningSecret: c.SigningSecret})
	k.api = slackapi.New(slackapi.Options{
		BotToken: c.BotToken, AppToken: c.AppToken, URL: c.APIURL, HTTP: c.HTTP, Unlimited: c.Unlimited, Share: c.Share, Count: c.Count, Log: c.Log,
		Recovered: func() {
			b.transport.Retry()
			b.Wake()
		},
		Rescoped: b.Permissions.rescoped, Expired: c.Expired, Tell: b.Replicas.tell,
	})
	k.users = directory.NewUsers(directory.UsersOptions{
		API: k.api.Client, Self: k.whoAmI, Log: c.Log, Now: c.Now,
		CountsEmail: func(address string) bool { return k.Views.Policy().CountsEmail(address) },
	})
	k.channels = directory.NewChannels(k.api.Client, c.Now)
	b.assemble()
	return b
}

// assemble creates the parts of the bot. A part only uses parts that are created before it, so parts can't use each
// other in a circle.
func (b *Bot) assemble() {
	k, permissions := b.core, b.Permissions

	// The parts that ask Slack about people and channels.
	identities := newIdentities(k)
	availability := &Availability{core: k, permissions: permissions, replicas: b.Replicas}
	access := &channelAccess{core: k, permissions: permissions}
	ephemeral := &ephemeral{core: k, identities: identities}
	pending := &pendingItems{core: k, identities: identities, permissions: permissions}

	// The parts that show messages.
	progress := new(runProgresses)
	posts := &posts{core: k}
	statuses := &Statuses{core: k, progress: progress}
	drafts := &Drafts{core: k, posts: posts}
	homes := &homeTabs{core: k, identities: identities, permissions: permissions, pending: pending}
	display := &Display{
		core: k, identities: identities, permissions: permissions, posts: posts, drafts: drafts, statuses: statuses, homes: homes, access: access,
		progress: progress,
	}

	// The handlers.
	modals := &modals{core: k, replicas: b.Replicas}
	targets := &targets{core: k}
	outcomes := &outcomes{core: k, identities: identities, ephemeral: ephemeral}
	pause := &pauseHandler{core: k, identities: identities, ephemeral: ephemeral, outcomes: outcomes}
	absence := &absenceHandler{core: k, identities: identities, ephemeral: ephemeral}
	grant := &grantHandler{core: k, identities: identities, ephemeral: ephemeral, outcomes: outcomes}
	forms := &formOpener{core: k, identities: identities, ephemeral: ephemeral, modals: modals, targets: targets, outcomes: outcomes}
	clicks := &clickHandler{
		core: k, identities: identities, ephemeral: ephemeral, posts: posts, homes: homes, modals: modals, targets: targets, outcomes: outcomes,
		forms: forms, pause: pause, absence: absence, grant: grant,
	}
	submissions := &submissionHandler{
		core: k, identities: identities, ephemeral: ephemeral, targets: targets, outcomes: outcomes, absence: absence, grant: grant,
	}
	explainer := &explainer{core: k, identities: identities, ephemeral: ephemeral, modals: modals}
	commands := &commandHandler{
		core: k, ephemeral: ephemeral, pending: pending, explainer: explainer, pause: pause, absence: absence, grant: grant,
	}
	viewed := new(viewedChannels)
	messages := &messageHandler{
		core: k, identities: identities, ephemeral: ephemeral, attachments: &attachments{core: k}, statuses: statuses, viewedChannels: viewed,
	}

	// The parts that receive.
	b.Inbox = &Inbox{
		core: k, ephemeral: ephemeral, messages: messages, clicks: clicks, submissions: submissions, commands: commands, explainer: explainer,
		homes: homes, access: access, availability: availability,
	}
	b.Receiver = &Receiver{core: k, ephemeral: ephemeral, modals: modals, submissions: submissions, viewedChannels: viewed}
	b.transport = newTransport(b)
	b.Gaps = &Gaps{core: k, transport: b.transport}

	b.Identities, b.Availability, b.access = identities, availability, access
	b.Display, b.Drafts, b.Statuses = display, drafts, statuses
}

// Team returns the id of the bot's organisation. This id is part of the identity of each person (see approvers.Who).
// The organisation is the enterprise or, without an enterprise, the workspace.
func (b *Bot) Team(ctx context.Context) (string, error) {
	me, err := b.whoAmI(ctx)
	if me.Enterprise != "" {
		return me.Enterprise, err
	}
	return me.Team, err
}

// Installation returns the installation of the Slack app to which the bot token belongs.
func (b *Bot) Installation(ctx context.Context) (settings.Installation, error) {
	me, err := b.whoAmI(ctx)
	return settings.Installation{Team: me.Team, Enterprise: me.Enterprise, App: me.App}, err
}

// ErrToken says that Slack refuses a token permanently. An error that wraps ErrToken names the token, and says where to
// find the right token.
var ErrToken = errors.New("Slack refuses a token")

// Check verifies the tokens with Slack. The error of Check tells the operator what to do.
func (b *Bot) Check(ctx context.Context) error {
	_, err := b.whoAmI(ctx)
	if code := slackapi.ErrorCode(err); slackapi.IsTokenRefusal(code) {
		what := `Set SLACK_BOT_TOKEN to the Bot User OAuth Token of the app's "OAuth & Permissions" page`
		if b.Expired != nil {
			what = `Reinstall the app on its page "OAuth & Permissions", and set SLACK_REFRESH_TOKEN to the new refresh token`
		}
		return fmt.Errorf("%w: the bot token (%s). %s", ErrToken, code, what)
	}
	if err != nil {
		return fmt.Errorf("Slack cannot be reached; check the network, and SLACK_API_URL if it is set: %w", err)
	}
	if b.overHTTP() {
		return nil
	}
	if _, err := b.socketAddress(ctx); errors.Is(err, ErrToken) { // only requests an address; Run opens the connection
		return err
	}
	return nil
}

// socketAddress asks Slack for the address of a new socket.
func (b *Bot) socketAddress(ctx context.Context) (string, error) {
	_, address, err := b.api.StartSocketModeContext(ctx)
	if appToken(err) != nil && b.Reread != nil && b.Reread(ctx) {
		_, address, err = b.api.StartSocketModeContext(ctx)
	}
	if refused := appToken(err); refused != nil {
		return "", refused
	}
	return address, slackapi.WithDelay(err)
}

// appToken returns the error for an app token that Slack refuses. For every other error, appToken returns nil, because
// the error is temporary and the call is retried.
func appToken(err error) error {
	if code := slackapi.ErrorCode(err); slackapi.IsTokenRefusal(code) || code == "missing_scope" {
		return fmt.Errorf("%w: the app token (%s). Set SLACK_APP_TOKEN to an app-level token with the scope connections:write", ErrToken, code)
	}
	return nil
}

// newTransport returns the transport that the configuration chooses. The Receiver handles its deliveries.
func newTransport(b *Bot) transport.Transport {
	common := transport.Options{Handler: b.Receiver, Log: b.Log, Now: b.Now}
	if b.overHTTP() {
		return transport.NewHTTP(transport.HTTPOptions{Options: common, Listen: b.Listen, SigningSecret: func() string { return b.secrets.Load().SigningSecret }, Count: b.CountRequest})
	}
	refused := func(err error) bool { return errors.Is(err, ErrToken) }
	return transport.NewSocketMode(transport.SocketModeOptions{Options: common, Address: b.socketAddress, Final: refused, HTTP: b.HTTP})
}

// Run receives from Slack until ctx ends. Run receives over HTTP if Config.Listen is set, and otherwise through Socket
// Mode. Run returns early only if Slack refuses a token or the bot can't listen. While Slack can't be reached, Run
// retries.
func (b *Bot) Run(ctx context.Context) error {
	if err := b.Check(ctx); errors.Is(err, ErrToken) {
		return err
	}
	b.Gaps.begin(ctx)
	defer b.side.Wait()
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	b.side.Go(func() { b.api.Watch(watching) })
	b.side.Go(func() { b.access.lookUpCardChannels(watching) })
	b.side.Go(func() { b.Gaps.run(watching) })
	b.side.Go(func() { b.Permissions.watch(watching) })
	return b.transport.Run(ctx)
}

// Ready returns nil if the bot can receive from Slack, and Slack answers calls.
func (b *Bot) Ready(ctx context.Context) error { return cmp.Or(b.Available(ctx), b.Receiving(ctx)) }

// Available returns nil if Slack answers the bot's calls.
func (b *Bot) Available(context.Context) error { return b.api.Available() }

// Receiving returns nil if the bot can receive from Slack.
func (b *Bot) Receiving(context.Context) error { return b.transport.Ready() }

// Arriving returns an error if the bot is ready, but Slack's requests probably do not arrive.
func (b *Bot) Arriving() error { return b.transport.Arriving() }

// Worth reports whether calls to Slack may succeed now. The result is true if Slack answers calls, or if the circuit
// breaker permits a test call.
func (b *Bot) Worth() bool { return b.api.Worth() }
