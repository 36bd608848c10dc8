package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/slackapi"
	"countersign/store"
)

// Identities asks Slack who a person is now: for a click, for a command, and for a run under a grant. Identities also
// reads the person's time zone, and the profile that the model receives. Identities only looks people up: it decides
// nothing, and writes nothing to the store or to Slack.
type Identities struct {
	*core
	profiles *directory.Cache[slack.User] // the profiles that the model receives
}

func newIdentities(k *core) *Identities {
	return &Identities{core: k, profiles: directory.NewCache[slack.User](k.Now, directory.IdentityTTL)}
}

// profile is the information about a person that the model receives.
type profile struct {
	Name      string `json:"name"`
	FullName  string `json:"full_name,omitempty"`
	Title     string `json:"title,omitempty"`
	TimeZone  string `json:"time_zone,omitempty"`
	LocalTime string `json:"local_time,omitempty"`
	Locale    string `json:"locale,omitempty"`
}

// About returns Slack's information about a person as JSON: name, title, time zone and language. About omits e-mail
// addresses and phone numbers.
func (b *Identities) About(ctx context.Context, who approvers.PersonID) (string, error) {
	if who == "" {
		return "", fmt.Errorf("no person asked for this call")
	}
	u, err := b.profiles.Get(ctx, who.User(), false, func() (slack.User, error) {
		u, err := b.api.GetUserInfoContext(ctx, who.User(), slack.GetUserInfoOptionIncludeLocale(true))
		if err != nil {
			return slack.User{}, fmt.Errorf("users.info: %w", slackapi.WithDelay(err))
		}
		return *u, nil
	})
	if err != nil {
		b.Log.WarnContext(ctx, "Slack did not give the profile of the person who asked", "user", who.User(), "error", err)
		return "", fmt.Errorf("Slack could not be asked about the person just now")
	}
	p := profile{
		Name: directory.CalledName(u), FullName: u.Profile.RealName, Title: strings.TrimSpace(u.Profile.Title), TimeZone: u.TZ, Locale: u.Locale,
	}
	if zone, err := time.LoadLocation(u.TZ); err == nil && u.TZ != "" {
		p.LocalTime = b.Now().In(zone).Format("Monday, 2 January 2006, 15:04")
	}
	out, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("profile: %w", err)
	}
	return string(out), nil
}

// reader returns a person's time zone and locale. If Slack does not provide the time zone, times are in UTC.
func (b *Identities) reader(ctx context.Context, user string) block.Reader {
	u, err := b.users.User(ctx, user, false)
	if err != nil {
		return block.Reader{}
	}
	return block.Reader{Zone: block.ZoneOf(u), Locale: u.Locale}
}

// known is like reader, but uses only Slack's recent answers, and makes no call.
func (b *Identities) known(user string) block.Reader {
	u, ok := b.users.Known(user)
	if !ok {
		return block.Reader{}
	}
	return block.Reader{Zone: block.ZoneOf(u), Locale: u.Locale}
}

// maxNamesAsked is the maximum number of mentioned people about whom the bot asks Slack for one message.
const maxNamesAsked = 20

// namer returns a function for one message that returns the name of a mentioned person. If Slack does not give the
// name, the function returns the user id, so the message is not lost. A message may mention hundreds of people, so the
// function asks Slack only about some of them, and with the lowest priority.
func (b *Identities) namer(ctx context.Context) func(user string) string {
	ctx = slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityTransient})
	asked := 0
	return func(user string) string {
		u, known := b.users.Known(user)
		if !known {
			if asked++; asked > maxNamesAsked {
				return user
			}
			var err error
			if u, err = b.users.User(ctx, user, false); err != nil {
				return user
			}
		}
		return directory.CalledName(u)
	}
}

// member returns the identity of a person who acts. The identity includes those of the person's user groups that the policy's roles
// name.
func (b *Identities) member(ctx context.Context, user string, p *approvers.Policy) (approvers.Identity, error) {
	var groups []string
	for _, role := range p.Approvers {
		groups = append(groups, role.Groups()...)
	}
	return b.users.IdentifyActor(ctx, user, groups, false)
}

// authority looks up the person who clicked. The identity includes the user groups that can give authority over the
// target. For a change of arguments, authority uses no cached answer, because the change may raise the risk.
func (b *Identities) authority(ctx context.Context, user string, target form.ClickTarget, action string) (approvers.Identity, error) {
	switch {
	case target.Request != nil && action == control.ActModify:
		return b.users.Clicker(ctx, user, target.Policy, target.Request.Tool, approvers.Critical, target.Request)
	case target.Request != nil:
		return b.users.Clicker(ctx, user, target.Policy, target.Request.Tool, directory.IdentityRisk(target.Policy, target.Request), target.Request)
	case target.Execution != nil:
		return b.users.Clicker(ctx, user, target.Policy, target.Execution.Tool, approvers.Critical, nil)
	case target.Grant != nil:
		return b.users.Clicker(ctx, user, target.Policy, target.Grant.Tool, approvers.Critical, nil)
	case target.Message.Kind == store.OutboxBundle:
		return b.identifyClickerOfAll(ctx, user, target)
	case target.Message.Kind == store.OutboxPause:
		return b.pauser(ctx, user, target.Policy)
	}
	return b.users.Who(ctx, user, false)
}

// identifyClickerOfAll identifies a person who clicked a button for all calls of a bundle. The identity includes the
// user groups that can give authority over each call.
func (b *Identities) identifyClickerOfAll(ctx context.Context, user string, target form.ClickTarget) (approvers.Identity, error) {
	var requests []*approvers.Request
	for _, c := range target.Offered() {
		requests = append(requests, c.Request)
	}
	return b.users.ClickerOfAll(ctx, user, target.Policy, requests)
}

// pauser returns a person's current identity, with the user groups that may pause. pauser uses no cached answer of
// Slack.
func (b *Identities) pauser(ctx context.Context, user string, p *approvers.Policy) (approvers.Identity, error) {
	var groups []string
	for _, name := range p.PausedBy {
		role, _ := p.Role(name)
		groups = append(groups, role.Groups()...)
	}
	return b.users.IdentifyActor(ctx, user, groups, true)
}

// identifyQuickly identifies a person while Slack waits for an acknowledgement. The result is used only for early
// feedback.
func (b *Identities) identifyQuickly(ctx context.Context, user string, r approvers.Request) (approvers.Identity, bool) {
	ctx, cancel := context.WithTimeout(ctx, lookUpWait)
	defer cancel()
	who, err := b.users.Clicker(ctx, user, b.Views.Policy(), r.Tool, approvers.Low, &r)
	return who, err == nil
}

// lookUpWait limits the lookup of a person while Slack waits for a form's acknowledgement.
const lookUpWait = time.Second

// GrantOwner returns the current identity of a grant's owner. GrantOwner is called for each run under the grant. If the
// risk is high or critical, GrantOwner does not use cached answers. The same rule applies to clicks.
func (b *Identities) GrantOwner(ctx context.Context, g approvers.Grant) (approvers.Identity, error) {
	policy := b.Views.Policy()
	tool, _ := policy.Tool(g.Tool, g.Agent)
	return b.users.Approver(ctx, g.By.User(), policy, g.Tool, tool.Risk, &approvers.Request{Agent: g.Agent})
}
