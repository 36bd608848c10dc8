package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// trusted is how long an answer of Slack on a person or a group is used again. Events invalidate it sooner.
const trusted = time.Minute

// people remembers for a short while what Slack said of people and groups.
type people struct {
	api    *slack.Client
	users  *memory[slack.User]
	groups *memory[map[string]bool] // members by group id
	ids    *memory[map[string]string]
	quiet  *memory[slack.DNDStatus]
}

func newPeople(api *slack.Client, now func() time.Time) *people {
	return &people{
		api: api, users: newMemory[slack.User](now, trusted),
		groups: newMemory[map[string]bool](now, trusted), ids: newMemory[map[string]string](now, trusted),
		quiet: newMemory[slack.DNDStatus](now, trusted),
	}
}

// who says who a user is now. fresh asks Slack anew. Somebody whom Slack does not know has no ID.
func (b *Bot) who(ctx context.Context, user string, fresh bool) (approvers.Identity, error) {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return approvers.Identity{}, err
	}
	if user == "" {
		return approvers.Identity{}, nil
	}
	u, err := b.user(ctx, user, fresh)
	switch errorCode(err) {
	case "user_not_found", "user_not_visible", "users_not_found":
		return approvers.Identity{}, nil
	}
	if err != nil {
		return approvers.Identity{}, err
	}
	who := identity(me, u)
	if !u.IsEmailConfirmed || !b.Desk.Policy().CountsEmail(who.Email) {
		who.Email = ""
	}
	return who, nil
}

// errAboutAnother says that Slack's answer is not about whom it was asked. Nothing is concluded from it.
var errAboutAnother = errors.New("users.info: Slack's answer is about somebody else")

// user is Slack's record of a user. fresh asks anew.
func (b *Bot) user(ctx context.Context, user string, fresh bool) (slack.User, error) {
	return b.people.users.get(user, fresh, func() (slack.User, error) {
		u, err := b.api.GetUserInfoContext(ctx, user)
		if err != nil {
			return slack.User{}, fmt.Errorf("users.info: %w", slow(err))
		}
		if u.ID != user && (u.Enterprise.ID == "" || u.Enterprise.ID != user) {
			return slack.User{}, errAboutAnother
		}
		return *u, nil
	})
}

// identity is what Slack's user record says of a person.
func identity(me self, u slack.User) approvers.Identity {
	home, mine, id, local := u.TeamID, me.Team, u.ID, ""
	if me.Enterprise != "" {
		mine = me.Enterprise
		if u.Enterprise.EnterpriseID != "" {
			home = u.Enterprise.EnterpriseID
		} else if u.TeamID == me.Team {
			home = me.Enterprise
		}
		if u.Enterprise.ID != "" && u.Enterprise.ID != u.ID { // one person in several workspaces of an enterprise is one person
			id, local = u.Enterprise.ID, u.ID
		}
	}
	return approvers.Identity{
		ID:      approvers.Who(home, id),
		Local:   local,
		Name:    calledName(u),
		Email:   strings.ToLower(u.Profile.Email),
		Deleted: u.Deleted,
		Guest:   u.IsRestricted || u.IsUltraRestricted,
		Foreign: u.IsStranger || home != mine,
		Bot:     u.IsBot || u.IsAppUser || u.IsWorkflowBot || u.IsConnectorBot || u.ID == slackbot,
	}
}

// calledName is what Slack calls a person.
func calledName(u slack.User) string {
	for _, n := range []string{u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name} {
		if n != "" {
			return n
		}
	}
	return u.ID
}

// memory holds values for a while.
type memory[T any] struct {
	now  func() time.Time
	keep time.Duration
	mu   sync.Mutex
	held map[string]held[T]
	era  uint64 // rises when something is forgotten, so that an answer under way then is not kept
}

type held[T any] struct {
	v     T
	until time.Time
}

func newMemory[T any](now func() time.Time, keep time.Duration) *memory[T] {
	return &memory[T]{now: now, keep: keep, held: map[string]held[T]{}}
}

// maxHeld bounds a memory.
const maxHeld = 10_000

func (m *memory[T]) get(key string, fresh bool, ask func() (T, error)) (T, error) {
	m.mu.Lock()
	h, ok := m.held[key]
	era := m.era
	m.mu.Unlock()
	if ok && !fresh && m.now().Before(h.until) {
		return h.v, nil
	}
	v, err := ask()
	if err != nil {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.era == era {
		if len(m.held) >= maxHeld {
			clear(m.held)
		}
		m.held[key] = held[T]{v, m.now().Add(m.keep)}
	}
	return v, nil
}

// peek is a value that is held still.
func (m *memory[T]) peek(key string) (v T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.held[key]
	if !ok || !m.now().Before(h.until) {
		return v, false
	}
	return h.v, true
}

// forget drops one key, or all with an empty one.
func (m *memory[T]) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.era++
	if key == "" {
		clear(m.held)
		return
	}
	delete(m.held, key)
}
