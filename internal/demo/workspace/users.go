package workspace

import (
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // people's time zones must resolve even on machines without a time zone database
)

// user is an account in the workspace. The bot user has an account, too.
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

// loadZone resolves an IANA name. An empty name means UTC. The machine's own zone ("Local") is an error.
func loadZone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		name = "no/such/zone"
	}
	return time.LoadLocation(name)
}

// zone returns the person's time zone.
func (u *user) zone() *time.Location {
	if loc, err := loadZone(u.TZ); err == nil {
		return loc
	}
	return time.UTC
}

// The method "shown" returns the name of the user that people see.
func (u *user) shown() string {
	if u.DisplayName != "" {
		return u.DisplayName
	}
	return u.RealName
}

// person reports whether the account belongs to a person and not to a bot.
func (u *user) person() bool { return !u.Bot }

// json returns the user in the form of users.info. The offset of the time zone is the offset at the time now.
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

// zoneNames holds Slack's names of time zones, by abbreviation. If different continents use one abbreviation for
// different zones, the key begins with the continent.
var zoneNames = map[string]string{
	"UTC": "Coordinated Universal Time", "GMT": "Greenwich Mean Time", "BST": "British Summer Time",
	"WET": "Western European Time", "WEST": "Western European Summer Time", "CET": "Central European Time", "CEST": "Central European Summer Time",
	"EET": "Eastern European Time", "EEST": "Eastern European Summer Time", "MSK": "Moscow Standard Time", "Europe/IST": "Irish Standard Time",
	"PST": "Pacific Standard Time", "PDT": "Pacific Daylight Time", "MST": "Mountain Standard Time", "MDT": "Mountain Daylight Time",
	"CST": "Central Standard Time", "CDT": "Central Daylight Time", "EST": "Eastern Standard Time", "EDT": "Eastern Daylight Time",
	"AST": "Atlantic Standard Time", "ADT": "Atlantic Daylight Time", "NST": "Newfoundland Standard Time", "NDT": "Newfoundland Daylight Time",
	"AKST": "Alaska Standard Time", "AKDT": "Alaska Daylight Time", "HST": "Hawaii-Aleutian Standard Time",
	"Asia/IST": "India Standard Time", "JST": "Japan Standard Time", "KST": "Korean Standard Time", "Asia/CST": "China Standard Time",
	"HKT": "Hong Kong Standard Time", "PKT": "Pakistan Standard Time", "SAST": "South Africa Standard Time", "EAT": "East Africa Time", "WAT": "West Africa Time",
	"AEST": "Australian Eastern Standard Time", "AEDT": "Australian Eastern Daylight Time", "ACST": "Australian Central Standard Time",
	"ACDT": "Australian Central Daylight Time", "AWST": "Australian Western Standard Time", "NZST": "New Zealand Standard Time", "NZDT": "New Zealand Daylight Time",
}

// zoneLabel returns the tz_label of a time: "Pacific Daylight Time", or GMT+04:00 if the zone has no name.
func zoneLabel(t time.Time) string {
	abbreviation, _ := t.Zone()
	continent, _, _ := strings.Cut(t.Location().String(), "/")
	for _, key := range []string{continent + "/" + abbreviation, abbreviation} {
		if name := zoneNames[key]; name != "" {
			return name
		}
	}
	return t.Format("GMT-07:00")
}

// accounts holds the accounts of people and bots.
type accounts struct {
	*core
	byID map[string]*user
	ids  []string // ids of the accounts, in the order of the seed
}

// anyone returns a user by id or name.
func (a *accounts) anyone(name string) (*user, *apiError) {
	if u := a.byID[name]; u != nil {
		return u, nil
	}
	name = strings.TrimPrefix(name, "@")
	for _, id := range a.ids {
		if u := a.byID[id]; strings.EqualFold(u.Name, name) {
			return u, nil
		}
	}
	return nil, refuse("user_not_found")
}

func (a *accounts) add(u *user) {
	a.byID[u.ID] = u
	a.ids = append(a.ids, u.ID)
}

// The method "me" returns the acting person. The account must be active, and must not be a bot's account.
func (a *accounts) me(p *personCall) (*user, *apiError) {
	u, failed := a.anyone(p.r.PathValue("user"))
	switch {
	case failed != nil:
		return nil, failed
	case u.Bot:
		return nil, refuse("user_is_bot")
	case u.Deleted:
		return nil, refuse("account_inactive")
	}
	return u, nil
}

// users answers Slack's methods about accounts. An e-mail address requires a scope.
type users struct {
	*core
	accounts *accounts
	scopes   *scopes
}

// info is users.info.
func (us *users) info(c *call) (object, *apiError) {
	id := c.text("user")
	if id == "" {
		return nil, refuse("invalid_arguments", "missing required field: user [json-pointer:/user]")
	}
	u := us.accounts.byID[id]
	if u == nil {
		return nil, refuse("user_not_found")
	}
	return object{"user": us.withLocale(c, u)}, nil
}

// withLocale adds the locale if the call asks for it.
func (us *users) withLocale(c *call, u *user) object {
	out := us.forApp(u)
	if c.flag("include_locale") {
		out["locale"] = u.Locale
	}
	return out
}

// forApp returns a user as the app may see it. If the app may not read e-mail addresses, the result has no e-mail
// address.
func (us *users) forApp(u *user) object {
	out := u.json(us.cfg.Now())
	if len(us.scopes.list()) > 0 && !slices.Contains(us.scopes.list(), "users:read.email") {
		delete(out["profile"].(object), "email")
	}
	return out
}

// list is users.list, with cursors.
func (us *users) list(c *call) (object, *apiError) {
	ids, next, failed := cutPage(c, us.accounts.ids, 1000, 1000)
	if failed != nil {
		return nil, failed
	}
	members := make([]object, len(ids))
	for i, id := range ids {
		members[i] = us.withLocale(c, us.accounts.byID[id])
	}
	return object{"members": members, "cache_ts": us.cfg.Now().Unix(), "response_metadata": object{"next_cursor": next}}, nil
}

// lookupByEmail is users.lookupByEmail. As in Slack, lookupByEmail does not find deactivated people.
func (us *users) lookupByEmail(c *call) (object, *apiError) {
	email := strings.TrimSpace(c.text("email"))
	for _, id := range us.accounts.ids {
		if u := us.accounts.byID[id]; email != "" && strings.EqualFold(u.Email, email) && !u.Deleted && u.Team == us.team.ID {
			return object{"user": us.forApp(u)}, nil
		}
	}
	return nil, refuse("users_not_found")
}

// getPresence is users.getPresence.
func (us *users) getPresence(c *call) (object, *apiError) {
	u := us.accounts.byID[c.text("user")]
	switch {
	case u == nil:
		return nil, refuse("user_not_found")
	case u.Deleted:
		return object{"presence": "away"}, nil
	}
	return object{"presence": "active"}, nil
}
