package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/demo/workspace/wire"
)

// Controls causes events from outside of the workspace: faults, broken sockets, and changes that an administrator,
// another organization or Slack makes. Programs and tests call the exported methods, and scripts send POST /faults.
type Controls struct {
	*core
	accounts   *accounts
	channels   *channels
	rotation   *rotation
	scopes     *scopes
	events     *events
	quietTimes *quietTimes
	groups     *userGroups
	messages   *messages
	users      *users
	views      *views
	webAPI     *webAPI
}

// Inject switches a fault on.
func (ctl *Controls) Inject(f Fault) error {
	if err := f.validate(ctl.webAPI.methods); err != nil {
		return err
	}
	ctl.webAPI.faults.add(f)
	return nil
}

// ClearFaults switches off all faults and the rate limits.
func (ctl *Controls) ClearFaults() {
	ctl.webAPI.faults.clear()
	ctl.webAPI.rates.set(false)
}

// IssueRefreshToken creates a new refresh token of an app with token rotation, as Slack does when an administrator
// installs the app again.
func (ctl *Controls) IssueRefreshToken() string {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	return ctl.rotation.newRefreshToken()
}

// RevokeRefreshTokens revokes all refresh tokens.
func (ctl *Controls) RevokeRefreshTokens() {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	clear(ctl.rotation.refresh)
}

// ExpireTokens ends all bot tokens of an app with token rotation before their time.
func (ctl *Controls) ExpireTokens() {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	for i := range ctl.rotation.issued {
		ctl.rotation.issued[i].expires = ctl.cfg.Now()
	}
}

// SetRealRates turns Slack's published rate limits on or off.
func (ctl *Controls) SetRealRates(on bool) { ctl.webAPI.rates.set(on) }

// DropSockets breaks every socket, like a network failure.
func (ctl *Controls) DropSockets() { ctl.hub.Drop() }

// Disconnect asks the app to reconnect, as Slack does every few hours. reason is refresh_requested, warning or
// link_disabled.
func (ctl *Controls) Disconnect(reason string) error {
	if !slices.Contains([]string{"refresh_requested", "warning", "link_disabled"}, reason) {
		return fmt.Errorf("there is no reason %q to disconnect: use refresh_requested, warning or link_disabled", reason)
	}
	ctl.hub.Disconnect(reason)
	return nil
}

// Refresh asks the app to reconnect its oldest socket. In Slack, too, an app's sockets are reconnected one after the
// other.
func (ctl *Controls) Refresh() {
	ctl.hub.Refresh()
}

// Sockets returns the number of the app's open sockets.
func (ctl *Controls) Sockets() int { return ctl.hub.Sockets() }

// Delivered counts the attempts of deliveries to the app so far, and reports whether the app has acknowledged all
// deliveries. Delivered ignores deliveries that wait for another attempt after a fault.
func (ctl *Controls) Delivered() (sent int, all bool) {
	sent, pending := ctl.hub.Delivered()
	return sent, pending == 0
}

// Introduce replaces the seed's hint for new users. Call Introduce before the workspace is served.
func (ctl *Controls) Introduce(hint SeedHint) { ctl.cfg.Seed.Hint = hint }

// SetRequestURLs switches the app to requests over HTTP, like the app's settings page in Slack. The zero value switches
// to Socket Mode. A URL for events must first answer a challenge. If the challenge fails, SetRequestURLs changes
// nothing.
func (ctl *Controls) SetRequestURLs(ctx context.Context, urls delivery.RequestURLs) error {
	if err := urls.Validate(); err != nil {
		return err
	}
	if urls.Any() && ctl.app.SigningSecret == "" {
		return errors.New("the app has no signing secret; give it one in the seed (app: signing_secret)")
	}
	if urls.Events != "" {
		if err := ctl.hub.Challenge(ctx, urls.Events); err != nil {
			return fmt.Errorf("the URL for events was not verified: %w", err)
		}
	}
	ctl.hub.Use(urls)
	return nil
}

// postRequestURLs is POST /app/request_urls.
func (ctl *Controls) postRequestURLs(p *personCall) (object, *apiError) {
	var urls delivery.RequestURLs
	err := rebind(p.values, &urls)
	if err == nil {
		err = ctl.SetRequestURLs(p.r.Context(), urls)
	}
	if err != nil {
		return nil, refuse("invalid_request_url", err.Error())
	}
	return object{"request_urls": urls}, nil
}

// Withhold removes scopes from the app, as if the app had been installed without them. A call of Withhold replaces the
// list of removed scopes. Therefore a call without arguments restores all scopes. As in Slack, the app gets no event.
func (ctl *Controls) Withhold(scopes ...string) {
	ctl.scopes.withhold(scopes)
}

// UserChange is a change of a person. A field that is nil changes nothing.
type UserChange struct {
	Deactivated *bool   `json:"deactivated,omitempty"`
	Guest       *bool   `json:"guest,omitempty"`
	SingleGuest *bool   `json:"single_channel_guest,omitempty"`
	Stranger    *bool   `json:"stranger,omitempty"`
	Team        *string `json:"team,omitempty"`
	Title       *string `json:"title,omitempty"`
	Email       *string `json:"email,omitempty"`
	TZ          *string `json:"tz,omitempty"`
	// The start and the end of do-not-disturb, and the end of a snooze, in Unix seconds.
	DNDStart    *int64 `json:"dnd_start,omitempty"`
	DNDEnd      *int64 `json:"dnd_end,omitempty"`
	SnoozeUntil *int64 `json:"snooze_until,omitempty"`
}

// ChangeUser changes a person and notifies the app (user_change, dnd_updated_user). As in Slack, a deactivated person
// leaves the user groups.
func (ctl *Controls) ChangeUser(id string, c UserChange) error {
	if c.TZ != nil {
		if _, err := loadZone(*c.TZ); err != nil {
			return fmt.Errorf("%q is not a time zone: write an IANA name such as Europe/Berlin", *c.TZ)
		}
	}
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	u := ctl.accounts.byID[id]
	if u == nil {
		return fmt.Errorf("there is no person %q", id)
	}
	before := *u
	setBool := func(to *bool, from *bool) {
		if from != nil {
			*to = *from
		}
	}
	setText := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	setTime := func(to *int64, from *int64) {
		if from != nil {
			*to = *from
		}
	}
	setBool(&u.Deleted, c.Deactivated)
	setBool(&u.Restricted, c.Guest)
	setBool(&u.Ultra, c.SingleGuest)
	u.Restricted = u.Restricted || u.Ultra
	setBool(&u.Stranger, c.Stranger)
	setText(&u.Team, c.Team)
	setText(&u.Title, c.Title)
	setText(&u.Email, c.Email)
	setText(&u.TZ, c.TZ)
	setTime(&u.DND.NextStart, c.DNDStart)
	setTime(&u.DND.NextEnd, c.DNDEnd)
	u.DND.Enabled = u.DND.NextEnd > u.DND.NextStart
	if c.SnoozeUntil != nil {
		ctl.quietTimes.snooze(u, *c.SnoozeUntil)
	}
	if u.DND != before.DND {
		ctl.quietTimes.send(u)
		before.DND = u.DND
	}
	if *u != before {
		now := ctl.cfg.Now()
		u.Updated = now.Unix()
		ctl.events.emit("user_change", object{"type": "user_change", "user": ctl.users.forApp(u), "cache_ts": now.Unix()})
	}
	if u.Deleted {
		ctl.views.discard(u.ID)
		for _, g := range ctl.groups.list {
			if slices.Contains(g.Users, u.ID) {
				ctl.groups.set(g, slices.DeleteFunc(slices.Clone(g.Users), func(id string) bool { return id == u.ID }))
			}
		}
	}
	ctl.feed.send(change{Type: "people", User: u.ID})
	ctl.saver.touch()
	return nil
}

// AddGroup adds a user group and notifies the app (subteam_created).
func (ctl *Controls) AddGroup(seed SeedGroup) {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	ctl.groups.add(&userGroup{ID: seed.ID, Handle: seed.Handle, Name: seed.Name, Users: slices.Clone(seed.Users), Updated: ctl.cfg.Now().Unix()})
}

// DisableGroup disables a user group (by id or handle), or enables the group again, and notifies the app
// (subteam_updated).
func (ctl *Controls) DisableGroup(group string, disabled bool) error {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	g, err := ctl.groups.named(group)
	if err != nil {
		return err
	}
	ctl.groups.disable(g, disabled)
	return nil
}

// SetGroupUsers sets the members of a user group (by id or handle) and notifies the app (subteam_members_changed).
func (ctl *Controls) SetGroupUsers(group string, users []string) error {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	g, err := ctl.groups.named(group)
	if err != nil {
		return err
	}
	for _, id := range users {
		if ctl.accounts.byID[id] == nil {
			return fmt.Errorf("there is no person %q", id)
		}
	}
	ctl.groups.set(g, slices.Clone(users))
	return nil
}

// ShareChannel shares a channel with another organization, or ends the sharing, and notifies the app (channel_shared,
// channel_unshared).
func (ctl *Controls) ShareChannel(id string, shared bool) error {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	ch := ctl.channels.byID[id]
	if ch == nil || ch.IM || ch.MPIM {
		return fmt.Errorf("there is no channel %q", id)
	}
	if ch.Shared == shared {
		return nil
	}
	ch.Shared = shared
	now := ctl.cfg.Now()
	event := object{"type": "channel_shared", "connected_team_id": "T0999", "channel": id, "event_ts": fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)}
	if !shared {
		event["type"], event["previously_connected_team_id"], event["is_ext_shared"] = "channel_unshared", "T0999", false
		delete(event, "connected_team_id")
	}
	ctl.events.emit(event["type"].(string), event)
	ctl.feed.send(change{Type: "channel"})
	ctl.saver.touch()
	return nil
}

// Unfurl adds a link's preview to a message. The app gets a change event with unchanged text.
func (ctl *Controls) Unfurl(channel, ts, url string) error {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	ch, m, err := ctl.messages.stored(channel, ts)
	if err != nil {
		return err
	}
	before := *m
	m.Attachments = append(slices.Clone(m.Attachments), object{"id": len(m.Attachments) + 1, "from_url": url, "original_url": url, "fallback": url, "title": url})
	ctl.messages.changed(ch, &before, m)
	ctl.saver.touch()
	return nil
}

// Expire removes a message as the workspace's retention does. The app gets no event.
func (ctl *Controls) Expire(channel, ts string) error {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	ch, m, err := ctl.messages.stored(channel, ts)
	if err != nil {
		return err
	}
	ch.remove(m)
	ctl.feed.send(change{Type: "message_deleted", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: ctl.channels.audience(ch)})
	ctl.saver.touch()
	return nil
}

// getFaults is GET /faults: the remaining faults.
func (ctl *Controls) getFaults(*personCall) (object, *apiError) {
	return object{"faults": ctl.webAPI.faults.pending(), "real_rates": ctl.webAPI.rates.active(), "sockets": ctl.hub.Sockets()}, nil
}

// postFault is POST /faults. "fault" names a fault, or another change such as dropping all sockets.
func (ctl *Controls) postFault(p *personCall) (object, *apiError) {
	var err error
	switch name := p.text("fault"); name {
	case "clear":
		ctl.ClearFaults()
	case "real_rates":
		ctl.SetRealRates(!p.has("on") || p.flag("on"))
	case "retries":
		ctl.hub.Retry(!p.has("on") || p.flag("on"))
	case "drop_sockets":
		ctl.DropSockets()
	case "disconnect":
		reason := p.text("reason")
		if reason == "" {
			reason = "refresh_requested"
		}
		err = ctl.Disconnect(reason)
	case "user":
		var c UserChange
		if err = rebind(p.values["set"], &c); err == nil {
			err = ctl.ChangeUser(p.text("user"), c)
		}
	case "group":
		if p.has("disabled") {
			err = ctl.DisableGroup(p.text("group"), p.flag("disabled"))
		} else {
			err = ctl.SetGroupUsers(p.text("group"), p.words("users"))
		}
	case "share":
		err = ctl.ShareChannel(p.text("channel"), !p.has("on") || p.flag("on"))
	default:
		var f Fault
		if err = rebind(p.values, &f); err == nil {
			err = ctl.Inject(f)
		}
	}
	if err != nil {
		return nil, refuse("invalid_fault", err.Error())
	}
	return ctl.getFaults(p)
}

// rebind decodes JSON values into a struct. Unknown names are errors.
func rebind(v any, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(wire.Encode(v))))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
