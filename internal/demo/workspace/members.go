package workspace

import "slices"

// membership makes accounts members of channels, and removes them from channels.
type membership struct {
	*core
	accounts *accounts
	channels *channels
	events   *events
	messages *messages
	reading  *reading
}

// joinAs is POST /people/{user}/join, for public channels.
func (mb *membership) joinAs(p *personCall) (object, *apiError) {
	mb.mu.Lock()
	defer mb.mu.Unlock()
	u, failed := mb.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := mb.channels.channelFor(u, p.text("channel"))
	switch {
	case failed != nil:
		return nil, failed
	case ch.Archived:
		return nil, refuse("is_archived")
	case !ch.has(u.ID):
		mb.join(ch, u, "")
	}
	return object{"channel": mb.reading.channelSummary(u, ch)}, nil
}

// invite is POST /people/{user}/invite. People and bots can be invited into a channel that the person is in.
func (mb *membership) invite(p *personCall) (object, *apiError) {
	mb.mu.Lock()
	defer mb.mu.Unlock()
	u, ch, failed := mb.channels.inChannelToChange(p, "")
	if failed != nil {
		return nil, failed
	}
	joining, failed := mb.chosen(p, func(other *user) (bool, *apiError) {
		if other.Deleted {
			return false, refuse("user_disabled")
		}
		return !ch.has(other.ID), nil
	})
	if failed != nil {
		return nil, failed
	}
	for _, other := range joining {
		mb.join(ch, other, u.ID)
	}
	return object{"channel": mb.reading.channelSummary(u, ch)}, nil
}

// leaveAs is POST /people/{user}/leave.
func (mb *membership) leaveAs(p *personCall) (object, *apiError) {
	mb.mu.Lock()
	defer mb.mu.Unlock()
	u, ch, failed := mb.channels.inGroup(p, "cant_leave_general")
	if failed != nil {
		return nil, failed
	}
	mb.part(ch, u, "")
	return object{}, nil
}

// removeAs is POST /people/{user}/remove. People and bots can be removed from a channel that the person is in.
func (mb *membership) removeAs(p *personCall) (object, *apiError) {
	mb.mu.Lock()
	defer mb.mu.Unlock()
	u, ch, failed := mb.channels.inChannelToChange(p, "cant_kick_from_general")
	if failed != nil {
		return nil, failed
	}
	leaving, failed := mb.chosen(p, func(other *user) (bool, *apiError) {
		if other.ID == u.ID {
			return false, refuse("cant_kick_self")
		}
		return ch.has(other.ID), nil
	})
	if failed != nil {
		return nil, failed
	}
	for _, other := range leaving {
		mb.part(ch, other, u.ID)
	}
	return object{"channel": mb.reading.channelSummary(u, ch)}, nil
}

// The method "chosen" returns the users that a call names and that the function pick accepts.
func (mb *membership) chosen(p *personCall, pick func(*user) (bool, *apiError)) (picked []*user, failed *apiError) {
	for _, name := range p.words("users") {
		other, failed := mb.accounts.anyone(name)
		if failed != nil {
			return nil, failed
		}
		yes, failed := pick(other)
		if failed != nil {
			return nil, failed
		}
		if yes {
			picked = append(picked, other)
		}
	}
	return picked, nil
}

// The method "part" removes an account from a channel and notifies the app. If the app itself was removed, the app gets
// the event channel_left or group_left instead of member_left_channel, and then a direct message from Slackbot.
func (mb *membership) part(ch *channel, u *user, actor string) {
	hears := append(mb.channels.audience(ch), u.ID)
	ch.Members = slices.DeleteFunc(slices.Clone(ch.Members), func(id string) bool { return id == u.ID })
	mb.feed.send(change{Type: "channel", Channel: ch.ID, only: hears})
	if u == mb.botUser {
		mb.events.emit(ch.eventNamed("left"), object{"type": ch.eventNamed("left"), "channel": ch.ID, "actor_id": actor})
		now := mb.nextTS()
		mb.events.emit("message.im", object{
			"type": "message", "user": "USLACKBOT", "team": mb.team.ID, "channel": "DSLACKBOT", "channel_type": "im", "ts": now, "event_ts": now,
			"text": "You have been removed from #" + ch.Name + " by <@" + actor + ">",
		})
		return
	}
	if !ch.has(mb.botUser.ID) {
		return
	}
	kind := "C"
	if ch.Private {
		kind = "G"
	}
	mb.events.emit("member_left_channel", object{"type": "member_left_channel", "user": u.ID, "channel": ch.ID, "channel_type": kind, "team": u.Team})
}

// join makes an account a member of a channel, and notifies the app.
func (mb *membership) join(ch *channel, u *user, inviter string) {
	ch.Members = append(ch.Members, u.ID)
	mb.feed.send(change{Type: "channel", Channel: ch.ID, only: mb.channels.audience(ch)})
	if !ch.has(mb.botUser.ID) {
		return
	}
	kind := "C"
	if ch.Private {
		kind = "G"
	}
	event := object{"type": "member_joined_channel", "user": u.ID, "channel": ch.ID, "channel_type": kind, "team": u.Team}
	if inviter != "" {
		event["inviter"] = inviter
	}
	mb.events.emit("member_joined_channel", event)
	mb.messages.publish(ch, &message{TS: mb.nextTS(), Subtype: "channel_join", User: u.ID, Text: "<@" + u.ID + "> has joined the channel"})
}
