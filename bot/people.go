package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/directory"
	"countersign/bot/render"
	"countersign/bot/slackapi"
	"countersign/store"
)

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
func (b *Bot) About(ctx context.Context, who approvers.PersonID) (string, error) {
	if who == "" {
		return "", fmt.Errorf("nobody in particular asked for this")
	}
	u, err := b.profiles.Get(ctx, who.User(), false, func() (slack.User, error) {
		u, err := b.api.GetUserInfoContext(ctx, who.User(), slack.GetUserInfoOptionIncludeLocale(true))
		if err != nil {
			return slack.User{}, fmt.Errorf("users.info: %w", slackapi.WithDelay(err))
		}
		return *u, nil
	})
	if err != nil {
		b.Log.Warn("Slack did not give the profile of the person who asked", "user", who.User(), "error", err)
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
func (b *Bot) reader(ctx context.Context, user string) render.Reader {
	u, err := b.users.User(ctx, user, false)
	if err != nil {
		return render.Reader{}
	}
	return render.Reader{Zone: render.ZoneOf(u), Locale: u.Locale}
}

// known is like reader, but uses only Slack's recent answers, and makes no call.
func (b *Bot) known(user string) render.Reader {
	u, ok := b.users.Known(user)
	if !ok {
		return render.Reader{}
	}
	return render.Reader{Zone: render.ZoneOf(u), Locale: u.Locale}
}

// cardMentions returns the people and groups that a pending card in a channel mentions. These are the members of the
// stage's roles that get their cards in this channel. Without mentions, nobody would notice the card. A person who is
// away is skipped. If the bot can't look up a person, it also skips this person, because a card with fewer mentions is
// better than no card.
func (b *Bot) cardMentions(ctx context.Context, s view.Model) []render.Mention {
	channel, shared := strings.CutPrefix(s.Message.To, store.ToChannel)
	r, waits := render.MentioningRequest(s)
	if !shared || !waits {
		return nil
	}
	away, err := b.Views.Away(ctx)
	if err != nil {
		b.Log.Warn("the recorded absences could not be read, so absent people are mentioned too", "request", r.ID, "error", err)
	}
	var out []render.Mention
	for _, name := range r.CurrentStage().Roles() {
		role, _ := s.Policy.Role(name)
		if role.Cards != channel {
			continue
		}
		for _, m := range role.Members {
			c, err := b.mentionOf(ctx, m)
			if err != nil {
				b.Log.Warn("somebody could not be mentioned on a card", "approver", role.Name, "request", r.ID, "error", err)
			}
			asked := slices.ContainsFunc(r.Plan.Requesters, func(p approvers.PersonID) bool { return p.User() == c.User })
			_, gone := away[c.User]
			if c != (render.Mention{}) && !asked && !gone && !slices.Contains(out, c) && len(out) < render.MaxMentions {
				out = append(out, c)
			}
		}
	}
	return out
}

func (b *Bot) mentionOf(ctx context.Context, m approvers.Member) (render.Mention, error) {
	switch m.Kind {
	case approvers.MemberUser:
		return render.Mention{User: m.Value}, nil
	case approvers.MemberGroup:
		id, err := b.users.GroupID(ctx, m.Value)
		return render.Mention{Group: id}, err
	}
	users, err := b.users.RoleUsers(ctx, approvers.Role{Members: []approvers.Member{m}})
	if err != nil || len(users) == 0 {
		return render.Mention{}, err
	}
	return render.Mention{User: users[0]}, nil
}
