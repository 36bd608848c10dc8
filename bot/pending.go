package bot

import (
	"context"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// pending lists what waits for whoever asks, and what they asked for, each with a link. Cards that somebody deleted are posted again.
func (b *Bot) pending(ctx context.Context, c command, _ string) (*page, error) {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return nil, err
	}
	policy := b.Desk.Policy()
	who, all, more, err := b.unsettledFor(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	list := waitingList{view: scene{Sight: desk.Sight{Policy: policy, Now: b.Now()}, url: me.URL, reader: b.reader(ctx, c.User)}, who: who}
	theirs, own := sorted(all, who, policy)
	var out []*prose
	pause, err := b.Desk.Paused(ctx)
	switch {
	case err != nil:
		return nil, err
	case pause.On:
		out = append(out, pausedBy(pause))
	}
	if len(theirs)+len(own) == 0 {
		out = append(out, say("Nothing waits for you, and nothing that you asked for waits for anybody."))
		return paragraph(append(out, list.unread(more)...)...), nil
	}
	for _, part := range []struct {
		title string
		of    []desk.Unsettled
		line  func(desk.Unsettled, store.Conversation, []store.Surface) *prose
	}{{"Waits for you:", theirs, list.toDecide}, {"You asked for:", own, list.askedFor}} {
		if len(part.of) == 0 {
			continue
		}
		out = append(out, new(prose).strong(part.title))
		for i, u := range part.of {
			if i == maxWaitingListed {
				out = append(out, say("… and "+itoa(len(part.of)-i)+" more; your Home tab has all of them."))
				break
			}
			line, err := b.listed(ctx, &list, u, part.line)
			if err != nil {
				return nil, err
			}
			out = append(out, line)
		}
	}
	if list.again > 0 {
		out = append(out, say(plural(list.again, "message")+" had been deleted, and comes again: write the command once more for the link."))
	}
	return paragraph(append(out, list.unread(more)...)...), nil
}

// unsettledFor reads all that waits, and says who somebody is that looks at it, with every user group that could give them a say. It reports whether there is
// more than it read.
func (b *Bot) unsettledFor(ctx context.Context, user string, p *approvers.Policy) (who approvers.Identity, all []desk.Unsettled, more bool, err error) {
	if who, err = b.member(ctx, user, p); err != nil {
		return who, nil, false, err
	}
	if all, more, err = b.Desk.Unsettled(ctx); err != nil {
		return who, nil, false, err
	}
	who, err = b.inStages(ctx, who, all)
	return who, all, more, err
}

// sorted picks from what waits what somebody can decide or answer now, and the requests that they asked for.
func sorted(all []desk.Unsettled, who approvers.Identity, p *approvers.Policy) (theirs, own []desk.Unsettled) {
	for _, u := range all {
		if decides(u, who, p) {
			theirs = append(theirs, u)
		}
		if u.Execution == nil && u.Request != nil && slices.Contains(u.Request.Facts.Requesters, who.ID) {
			own = append(own, u)
		}
	}
	return theirs, own
}

// inStages adds the user groups to somebody's identity that the stages of what waits ask for.
func (b *Bot) inStages(ctx context.Context, who approvers.Identity, all []desk.Unsettled) (approvers.Identity, error) {
	looked := map[string]bool{}
	for _, u := range all {
		if u.Request == nil || u.Request.Stage >= len(u.Request.Plan.Stages) {
			continue
		}
		group := u.Request.Plan.Stages[u.Request.Stage].Group
		if group == "" || looked[group] || slices.Contains(who.Groups, group) {
			continue
		}
		looked[group] = true
		members, err := b.groupMembers(ctx, group, false)
		if err != nil {
			return who, err
		}
		if members[who.ID.User()] {
			who.Groups = append(who.Groups, group)
		}
	}
	return who, nil
}

// listed is the line on one thing that waits, once it is certain that Slack shows what it leads to.
func (b *Bot) listed(ctx context.Context, list *waitingList, u desk.Unsettled, line func(desk.Unsettled, store.Conversation, []store.Surface) *prose) (*prose, error) {
	conv, surfaces, err := b.Desk.Whereabouts(ctx, u)
	if err != nil {
		return nil, err
	}
	for i, s := range surfaces {
		if s.State != store.SurfaceShown || strings.HasPrefix(s.To, "user:") && s.To != "user:"+list.who.ID.User() {
			continue // nobody's, or a colleague's copy
		}
		_, err := b.api.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: s.Channel, Ts: s.TS})
		if !vanished[errorCode(err)] {
			continue // it is there; or Slack can't say, and the link may lead nowhere
		}
		if err := b.Desk.Vanished(ctx, s); err != nil {
			return nil, err
		}
		surfaces[i].State = store.SurfaceVanished
	}
	again, err := b.Desk.PostAgain(ctx, surfaces)
	if err != nil {
		return nil, err
	}
	list.again += again
	return line(u, conv, surfaces), nil
}

// waitingList draws what waits, for one person.
type waitingList struct {
	view  scene
	who   approvers.Identity
	again int // messages that are posted again
}

// decides reports whether something waits for a person.
func decides(u desk.Unsettled, who approvers.Identity, p *approvers.Policy) bool {
	asked := slices.Contains(u.Turn.Requesters, who.ID)
	if u.Request == nil {
		return asked
	}
	_, denied := u.Request.Authority(p, who)
	if u.Execution != nil {
		return asked || denied == nil
	}
	said := func(d approvers.Decision) bool { return d.By == who.ID && !d.Fallen && d.Digest == u.Request.Digest }
	return u.Request.State == approvers.Pending && denied == nil && !slices.ContainsFunc(u.Request.Decisions, said)
}

// toDecide is the line on something that waits for the person.
func (l *waitingList) toDecide(u desk.Unsettled, conv store.Conversation, surfaces []store.Surface) *prose {
	var line *prose
	switch {
	case u.Execution != nil:
		line = say("❓ Did this happen? ").strong(clip(whatHappens(u.Call.Preview, u.Call.Tool), maxCallText))
	case u.Request == nil:
		return l.linked(say("💬 The agent asks you: ").strong(clip(oneLine(u.Call.Inquiry.Question), maxCallText)).say(", until ").at(u.Call.Inquiry.ExpiresAt, dayTime), conv, surfaces, "conversation:")
	default:
		line = say("✋ ").strong(clip(whatHappens(u.Request.Preview, u.Request.Tool), maxCallText)).say(", asked for by ").
			person(u.Request.Facts.Asker, u.Request.Facts.AskerName).say(", until ").at(u.Request.ExpiresAt, dayTime)
	}
	return l.linked(line, conv, surfaces, "user:", "channel:", "conversation:")
}

// askedFor is the line on something that the person asked for.
func (l *waitingList) askedFor(u desk.Unsettled, conv store.Conversation, surfaces []store.Surface) *prose {
	r := *u.Request
	line := say("✋ ").strong(clip(whatHappens(r.Preview, r.Tool), maxCallText))
	if r.State == approvers.Approved {
		return l.linked(line.say(", approved and about to run"), conv, surfaces, "conversation:", "user:")
	}
	line.say(", waits for "+l.view.waitsFor(r)+" until ").at(r.ExpiresAt, dayTime)
	return l.linked(line, conv, surfaces, "conversation:", "user:")
}

// linked adds a link to where Slack shows it.
func (l *waitingList) linked(line *prose, conv store.Conversation, surfaces []store.Surface, places ...string) *prose {
	if link := l.link(conv, surfaces, places...); link != "" {
		return line.say(" · ").link(link, "See it")
	}
	return line
}

// link leads to where Slack shows it: at the first of the kinds of place where it does; empty: nowhere that the person can open.
func (l *waitingList) link(conv store.Conversation, surfaces []store.Surface, places ...string) string {
	for _, place := range places {
		for _, s := range surfaces {
			shown := s.TS != "" && (s.State == store.SurfaceShown || s.State == store.SurfaceWanted)
			if !shown || !strings.HasPrefix(s.To, place) || place == "user:" && s.To != place+l.who.ID.User() {
				continue
			}
			thread := ""
			if place == "conversation:" {
				thread = conv.Thread
			}
			if link := l.view.permalink(s.Channel, s.TS, thread); link != "" {
				return link
			}
		}
	}
	return ""
}

// unread says that not all was looked through.
func (l *waitingList) unread(more bool) []*prose {
	if !more {
		return nil
	}
	return []*prose{say("So much waits that only the oldest was looked through.")}
}
