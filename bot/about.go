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
	"countersign/bot/slackapi"
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

// About returns what Slack knows about a person, as JSON: name, title, time zone and language. It omits e-mail
// addresses and phone numbers.
func (b *Bot) About(ctx context.Context, who approvers.PersonID) (string, error) {
	if who == "" {
		return "", fmt.Errorf("nobody in particular asked for this")
	}
	u, err := b.profiles.Get(who.User(), false, func() (slack.User, error) {
		u, err := b.api.GetUserInfoContext(ctx, who.User(), slack.GetUserInfoOptionIncludeLocale(true))
		if err != nil {
			return slack.User{}, fmt.Errorf("users.info: %w", slackapi.WithDelay(err))
		}
		return *u, nil
	})
	if err != nil {
		b.Log.Warn("Slack did not say who asked", "user", who.User(), "error", err)
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
