package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"

	"countersign/bot/directory"
	"countersign/bot/slackapi"
)

// All parts of a bot share core: the configuration with the workflow, the client of the Web API, and the bot's
// identity. core also has Slack's answers about people and channels, and the features that Slack refuses. core handles
// no delivery and writes no message.
type core struct {
	Config
	api      *slackapi.Client
	secrets  atomic.Pointer[Secrets]
	renewing sync.Mutex // held while the secrets change
	self     fetchedOnce[directory.Self]
	users    *directory.Users
	channels *directory.Channels
	refused  *refusedBySlack
	side     sync.WaitGroup // tracks background work: loading views to open, notices to send, and progress to show
}

// whoAmI returns the bot's identity. After the first success, whoAmI does not read the identity from Slack again.
func (b *core) whoAmI(ctx context.Context) (directory.Self, error) {
	return b.self.get(func() (directory.Self, error) {
		a, err := b.api.AuthTestContext(ctx)
		if err != nil {
			return directory.Self{}, fmt.Errorf("auth.test: %w", slackapi.WithDelay(err))
		}
		if a.UserID == "" || a.TeamID == "" {
			return directory.Self{}, errors.New("auth.test: Slack did not say who the bot is; is SLACK_BOT_TOKEN a bot token (xoxb-…)?")
		}
		url := a.URL
		if url != "" && !strings.HasSuffix(url, "/") {
			url += "/"
		}
		app, err := b.appID(ctx, a.BotID)
		if err != nil {
			return directory.Self{}, err
		}
		return directory.Self{User: a.UserID, Bot: a.BotID, App: app, Team: a.TeamID, Enterprise: a.EnterpriseID, URL: url}, nil
	})
}

// appID returns the ID of a bot's app. The ID is empty if Slack, or a stand-in for it, does not provide it to this bot.
func (b *core) appID(ctx context.Context, bot string) (string, error) {
	info, err := b.api.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: bot})
	if err == nil {
		return info.AppID, nil
	}
	if slackapi.IsRefused(err) {
		return "", nil
	}
	return "", fmt.Errorf("bots.info: %w", slackapi.WithDelay(err))
}

// checkOrigin checks that a delivery is for the bot's own app, and from its own workspace or enterprise. Slack omits
// the workspace if the app is installed for a whole enterprise.
func (b *core) checkOrigin(ctx context.Context, o origin) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	if o.app != "" && me.App != "" && o.app != me.App {
		return errWorkspace
	}
	if slices.Contains(o.teams, me.Team) || me.Enterprise != "" && slices.Contains(o.enterprises, me.Enterprise) {
		return nil
	}
	return errWorkspace
}

// overHTTP reports whether Slack delivers over HTTP and not through Socket Mode.
func (b *core) overHTTP() bool { return b.Listen != nil }

// fetchedOnce keeps a value after the first successful fetch. After a failed fetch, the next call of get fetches the
// value again.
type fetchedOnce[T any] struct {
	fetching singleflight.Group
	v        atomic.Pointer[T]
}

func (o *fetchedOnce[T]) get(fetch func() (T, error)) (T, error) {
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

// known returns the value if it has been fetched. The function never waits.
func (o *fetchedOnce[T]) known() (v T, ok bool) {
	if p := o.v.Load(); p != nil {
		return *p, true
	}
	return v, false
}
