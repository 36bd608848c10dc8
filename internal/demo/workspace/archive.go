package workspace

// archiving archives, unarchives and deletes channels.
type archiving struct {
	*core
	channels *channels
	events   *events
}

// archiveAs is POST /people/{user}/archive.
func (a *archiving) archiveAs(p *personCall) (object, *apiError) {
	return a.changeChannel(p, func(u *user, ch *channel) *apiError {
		if ch.Archived {
			return refuse("already_archived")
		}
		ch.Archived = true
		a.events.sendChannelEvent(ch, "archive", object{"user": u.ID, "is_moved": 0})
		return nil
	})
}

// unarchiveAs is POST /people/{user}/unarchive. As in Slack, the person who unarchives a public channel is its only
// member afterwards, so people must invite the app. A private channel keeps its members.
func (a *archiving) unarchiveAs(p *personCall) (object, *apiError) {
	return a.changeChannel(p, func(u *user, ch *channel) *apiError {
		if !ch.Archived {
			return refuse("not_archived")
		}
		if ch.Archived = false; !ch.Private {
			ch.Members = []string{u.ID}
		}
		by := "user"
		if ch.Private { // Slack has two names for this field
			by = "actor_id"
		}
		a.events.sendChannelEvent(ch, "unarchive", object{by: u.ID})
		return nil
	})
}

// deleteChannelAs is POST /people/{user}/delete_channel, for admins only.
func (a *archiving) deleteChannelAs(p *personCall) (object, *apiError) {
	return a.changeChannel(p, func(u *user, ch *channel) *apiError {
		if !u.Admin {
			return refuse("not_an_admin")
		}
		a.channels.remove(ch)
		a.events.sendChannelEvent(ch, "deleted", object{})
		return nil
	})
}

func (a *archiving) changeChannel(p *personCall, change func(*user, *channel) *apiError) (object, *apiError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ch, failed := a.channels.inChannelToChange(p, "cant_archive_general")
	if failed != nil {
		return nil, failed
	}
	if failed := change(u, ch); failed != nil {
		return nil, failed
	}
	return object{"channel": ch.ID}, nil
}
