package workspace

import (
	"strings"
	"time"
	_ "time/tzdata" // people's time zones must resolve on machines without a database
)

// object is decoded JSON. Once it is stored it is never changed in place: whoever
// changes something stores a new one.
type object = map[string]any

// user is somebody who can be met in the workspace, the bot user included.
type user struct {
	ID          string `json:"id"`
	Team        string `json:"team"`
	Name        string `json:"name"`
	RealName    string `json:"real_name"`
	DisplayName string `json:"display_name"`
	Title       string `json:"title"`
	Email       string `json:"email"`
	TZ          string `json:"tz"`
	Locale      string `json:"locale"`
	Admin       bool   `json:"admin"`
	Restricted  bool   `json:"restricted"`
	Ultra       bool   `json:"ultra"`
	Deleted     bool   `json:"deleted"`
	Stranger    bool   `json:"stranger"`
	Bot         bool   `json:"bot"`
	BotID       string `json:"bot_id"`
	AppID       string `json:"app_id"`
	Updated     int64  `json:"updated"`
	DND         quiet  `json:"dnd"`
}

func newUser(p SeedPerson, team string, now time.Time) *user {
	u := &user{
		ID: p.ID, Team: team, Name: p.Name, RealName: p.RealName, DisplayName: p.DisplayName, Title: p.Title,
		Email: p.Email, TZ: p.TZ, Locale: p.Locale, Admin: p.Admin,
		Restricted: p.Guest || p.SingleGuest, Ultra: p.SingleGuest,
		Deleted: p.Deactivated, Stranger: p.Stranger, Bot: p.Bot, Updated: now.Unix(),
	}
	if p.Team != "" {
		u.Team = p.Team
	}
	if u.RealName == "" {
		u.RealName = u.Name
	}
	if u.TZ == "" {
		u.TZ = "UTC"
	}
	if u.Locale == "" {
		u.Locale = "en-US"
	}
	return u
}

// loadZone resolves an IANA name; empty is UTC. The machine's own zone is no answer.
func loadZone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		name = "no/such/zone"
	}
	return time.LoadLocation(name)
}

// zone is the person's time zone.
func (u *user) zone() *time.Location {
	if loc, err := loadZone(u.TZ); err == nil {
		return loc
	}
	return time.UTC
}

// shown is the name that people see.
func (u *user) shown() string {
	if u.DisplayName != "" {
		return u.DisplayName
	}
	return u.RealName
}

// person tells a member of staff or guest from bots.
func (u *user) person() bool { return !u.Bot }

// json renders the user as users.info does at the time now.
func (u *user) json(now time.Time) object {
	_, offset := now.In(u.zone()).Zone()
	profile := object{
		"real_name": u.RealName, "real_name_normalized": u.RealName,
		"display_name": u.DisplayName, "display_name_normalized": u.DisplayName,
		"title": u.Title, "phone": "", "skype": "", "status_text": "", "status_emoji": "", "status_expiration": 0,
		"avatar_hash": "g" + strings.ToLower(u.ID), "team": u.Team,
		"first_name": firstWord(u.RealName), "last_name": lastWord(u.RealName),
	}
	if u.Email != "" {
		profile["email"] = u.Email
	}
	out := object{
		"id": u.ID, "team_id": u.Team, "name": u.Name, "real_name": u.RealName, "deleted": u.Deleted,
		"color": "9f69e7", "is_bot": u.Bot, "is_app_user": false, "is_admin": u.Admin, "is_owner": false,
		"is_primary_owner": false, "is_restricted": u.Restricted, "is_ultra_restricted": u.Ultra,
		"is_stranger": u.Stranger, "is_email_confirmed": u.Email != "", "has_2fa": false,
		"tz": u.TZ, "tz_label": zoneLabel(now.In(u.zone())), "tz_offset": offset,
		"updated": u.Updated, "who_can_share_contact_card": "EVERYONE", "profile": profile,
	}
	if u.BotID != "" {
		profile["bot_id"], profile["api_app_id"] = u.BotID, u.AppID
	}
	return out
}

func firstWord(s string) string {
	first, _, _ := strings.Cut(s, " ")
	return first
}

func lastWord(s string) string {
	if i := strings.LastIndexByte(s, ' '); i >= 0 {
		return s[i+1:]
	}
	return ""
}
