package directory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
)

// IdentityTTL is how long Slack's answer about a person or a group is cached. Events invalidate the answer sooner.
const IdentityTTL = time.Minute

// lostTTL is the lifetime of an entry of the cache Users.lost. An entry says whether an account was deactivated, or was
// a guest's account.
const lostTTL = 30 * 24 * time.Hour

// Users looks up the identities of people. Users asks Slack, or uses Slack's recent answers. Users is safe for
// concurrent use.
type Users struct {
	api         *slack.Client
	self        func(context.Context) (Self, error) // returns the bot's identity in its workspace
	countsEmail func(string) bool                   // whether an e-mail address can identify a member
	log         *slog.Logger
	now         func() time.Time

	users   *Cache[slack.User]
	groups  *Cache[map[string]Group] // all groups, by id and by handle
	members *Cache[[]string]         // members by group id; only for groups with too many members for the list of all groups
	quiet   *Cache[slack.DNDStatus]
	lost    *Cache[bool] // for each user, whether the account was deactivated or a guest's account at the last look-up
	guests  *Cache[bool] // guests about whom an event was stored
}

// UsersOptions configure Users. All fields are required.
type UsersOptions struct {
	API         *slack.Client
	Self        func(context.Context) (Self, error) // returns the bot's identity in its workspace
	CountsEmail func(string) bool                   // whether an e-mail address can identify a member
	Log         *slog.Logger
	Now         func() time.Time
}

func NewUsers(s UsersOptions) *Users {
	d := &Users{
		api: s.API, self: s.Self, countsEmail: s.CountsEmail, log: s.Log, now: s.Now,
		users: NewCache[slack.User](s.Now, IdentityTTL), groups: NewCache[map[string]Group](s.Now, IdentityTTL),
		members: NewCache[[]string](s.Now, IdentityTTL), quiet: NewCache[slack.DNDStatus](s.Now, IdentityTTL), lost: NewCache[bool](s.Now, lostTTL),
		guests: NewCache[bool](s.Now, lostTTL),
	}
	d.groups.patience, d.members.patience = groupPatience, groupPatience
	return d
}

// Who returns the current identity of a user. If fresh is set, Who does not use the cached answer. The identity of an
// unknown user has no ID.
func (d *Users) Who(ctx context.Context, user string, fresh bool) (approvers.Identity, error) {
	me, err := d.self(ctx)
	if err != nil {
		return approvers.Identity{}, err
	}
	if user == "" {
		return approvers.Identity{}, nil
	}
	u, err := d.User(ctx, user, fresh)
	switch slackapi.ErrorCode(err) {
	case "user_not_found", "user_not_visible", "users_not_found":
		return approvers.Identity{}, nil
	}
	if err != nil {
		return approvers.Identity{}, err
	}
	who := Identity(me, u)
	if !u.IsEmailConfirmed || !d.countsEmail(who.Email) {
		who.Email = ""
	}
	return who, nil
}

// ErrAboutAnother says that Slack answered with the record of another user. Such an answer is not used.
var ErrAboutAnother = errors.New("users.info: Slack's answer is about somebody else")

// User returns Slack's record of a user. If fresh is set, User does not use the cached answer.
func (d *Users) User(ctx context.Context, user string, fresh bool) (slack.User, error) {
	return d.users.Get(ctx, user, fresh, func() (slack.User, error) {
		u, err := d.api.GetUserInfoContext(ctx, user)
		if err != nil {
			return slack.User{}, fmt.Errorf("users.info: %w", slackapi.WithDelay(err))
		}
		if u.ID != user && (u.Enterprise.ID == "" || u.Enterprise.ID != user) {
			return slack.User{}, ErrAboutAnother
		}
		d.lost.put(user, u.Deleted || u.IsRestricted || u.IsUltraRestricted)
		return *u, nil
	})
}

// WasLost reports whether an account was deactivated, or was a guest's account, at the last look-up. WasLost makes no
// call.
func (d *Users) WasLost(user string) bool {
	lost, _ := d.lost.peek(user)
	return lost
}

// WasLookedUp reports whether Users has asked Slack about an account in the last 30 days. WasLookedUp makes no call.
func (d *Users) WasLookedUp(user string) bool {
	_, known := d.lost.peek(user)
	return known
}

// ForgetLost makes WasLost report false until the next look-up.
func (d *Users) ForgetLost(user string) { d.lost.forget(user) }

// NoteGuest records whether the last stored event about an account says that it is a guest's account.
func (d *Users) NoteGuest(user string, guest bool) {
	if guest {
		d.guests.put(user, true)
	} else {
		d.guests.forget(user)
	}
}

// IsNotedGuest reports what NoteGuest recorded.
func (d *Users) IsNotedGuest(user string) bool {
	guest, _ := d.guests.peek(user)
	return guest
}

// Identity derives a person's identity from Slack's record of the person.
func Identity(me Self, u slack.User) approvers.Identity {
	home, mine, id, local := u.TeamID, me.Team, u.ID, ""
	if me.Enterprise != "" {
		mine = me.Enterprise
		if u.Enterprise.EnterpriseID != "" {
			home = u.Enterprise.EnterpriseID
		} else if u.TeamID == me.Team {
			home = me.Enterprise
		}
		if u.Enterprise.ID != "" && u.Enterprise.ID != u.ID { // a person has one id in the enterprise, the same in all workspaces
			id, local = u.Enterprise.ID, u.ID
		}
	}
	return approvers.Identity{
		ID:      approvers.Who(home, id),
		Local:   local,
		Name:    CalledName(u),
		Email:   strings.ToLower(u.Profile.Email),
		Deleted: u.Deleted,
		Guest:   u.IsRestricted || u.IsUltraRestricted,
		Foreign: u.IsStranger || home != mine,
		Bot:     u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || u.ID == Slackbot,
	}
}

// CalledName returns the name that Slack shows for a person.
func CalledName(u slack.User) string {
	for _, n := range []string{u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name} {
		if n != "" {
			return n
		}
	}
	return u.ID
}

// Known returns Slack's record of a user if it was read recently. Known makes no call.
func (d *Users) Known(user string) (slack.User, bool) { return d.users.peek(user) }

// Forget clears the caches of Slack's answers. Forget keeps the record of deactivated accounts and of guests' accounts
// (WasLost).
func (d *Users) Forget() {
	d.users.forget("")
	d.groups.forget("")
	d.members.forget("")
	d.quiet.forget("")
}

// Barred reports whether a person may not use the bot at all, whatever their roles are.
func Barred(who approvers.Identity) bool {
	return who.ID == "" || who.Foreign || who.Guest || who.Bot || who.Deleted
}

// Slackbot is the user id of Slackbot. The constant is needed, because Slack's API reports Slackbot as a person.
const Slackbot = "USLACKBOT"

// Self identifies the bot in its workspace.
type Self struct {
	User       string // the bot's own user id
	Bot        string
	App        string // the app's id; empty if Slack does not provide it
	Team       string
	Enterprise string
	URL        string // URL of the workspace, with its final slash
}
