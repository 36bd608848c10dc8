package bot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/bot/directory"
	"countersign/bot/render"
	"countersign/bot/render/block"
	"countersign/bot/render/card"
	"countersign/bot/render/thread"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/internal/redact"
	"countersign/internal/tracing"
	"countersign/store"
)

// Display makes Slack show the outbox messages and the progress of runs. Display serializes the work on each outbox
// message. Display records each version of a message that Slack showed, but not the versions that only add the progress
// of a run.
type Display struct {
	*core
	identities  *Identities
	permissions *Permissions
	posts       *posts
	drafts      *Drafts
	statuses    *Statuses
	homes       *homeTabs
	access      *channelAccess
	progress    *runProgresses
	shows       keyed
}

// Show makes Slack show the current state of an outbox message. After a temporary failure, Show returns an error, and
// the scheduler retries. If Slack refuses permanently, the message is marked unreachable. If the message can be shown
// in another place, such as direct messages, the bot shows it there.
func (b *Display) Show(ctx context.Context, t store.Timer) error {
	retries := b.permissions.retries.Load()
	vm, err := b.Views.Message(ctx, t.Ref)
	if err == nil {
		vm, err = b.drafts.await(ctx, vm)
	}
	if errors.Is(err, store.ErrNotFound) {
		return b.Outbox.Unreachable(ctx, t.Ref, "what it shows is gone", "")
	}
	if err != nil {
		return err
	}
	s := vm.Message
	traced(ctx, vm, "show "+string(s.Kind))
	ctx = toShow(ctx, vm, t)
	switch {
	case s.State == store.OutboxUnreachable:
		if err := b.remove(ctx, s); err != nil {
			return err
		}
		return b.Outbox.Unreachable(ctx, s.ID, s.LastError, "")
	case s.State == store.OutboxRemoved, s.State == store.OutboxLost: // the Slack message is already removed or lost
		return workflow.ErrNotDue
	case strings.HasPrefix(s.To, store.ToRole), strings.HasPrefix(s.To, store.ToGroup):
		return b.expand(ctx, vm, retries)
	case s.Kind == store.OutboxHome:
		return b.homes.show(ctx, vm)
	}
	err = b.showAlone(ctx, vm)
	if slackapi.IsPutOff(err) && s.Kind == store.OutboxStep && s.TS == "" { // until the step's message is posted, the thread's status shows the step
		b.statuses.show(ctx, s.Ref, false)
	}
	if code := slackapi.ErrorCode(err); slackapi.IsUnreachable(code) || isRefusedRepeatedly(ctx, err) {
		if code == errNoThread.Err && strings.HasPrefix(s.To, store.ToConversation) {
			if err := b.Intake.ThreadGone(ctx, vm.Conversation.ID); err != nil {
				return err
			}
		}
		lost, asked := b.access.lostChannel(ctx, vm, code)
		if asked != nil {
			return asked
		}
		err = b.Outbox.Unreachable(ctx, s.ID, slackapi.Explain(err), lost)
		b.permissions.afterRefusal(ctx, retries)
	}
	if err == nil {
		b.posts.unconfirmed.recorded(s.ID)
		if affectsStatus(vm) {
			b.statuses.show(ctx, s.Ref, s.TS == "" || s.Drafted)
		}
	}
	return err
}

// expand looks up the members of a role or group. Each member gets a copy of the message. If Slack refuses to name the
// members, the message is marked unreachable. retries is the number of retries before the look-up (see afterRefusal).
func (b *Display) expand(ctx context.Context, s view.Model, retries int64) error {
	if s.Message.State == store.OutboxExpanded {
		return b.Outbox.Expand(ctx, s.Message.ID, []approvers.Identity{{}}) // this call only clears the timer
	}
	members, err := b.membersAt(ctx, s)
	switch {
	case errors.Is(err, errNoRole):
		return b.Outbox.Unreachable(ctx, s.Message.ID, redact.Error(err), "")
	case slackapi.IsRefused(err) && !slackapi.IsTokenRefusal(slackapi.ErrorCode(err)): // Slack does not say who the members are
		err = b.Outbox.Unreachable(ctx, s.Message.ID, slackapi.Explain(err), "")
		b.permissions.afterRefusal(ctx, retries)
		return err
	case err != nil:
		return err
	}
	return b.Outbox.Expand(ctx, s.Message.ID, members)
}

var errNoRole = errors.New("the policy has no such approver any more")

// membersAt returns the people who get a message that is addressed to a role or a group.
func (b *Display) membersAt(ctx context.Context, s view.Model) ([]approvers.Identity, error) {
	if group, ok := strings.CutPrefix(s.Message.To, store.ToGroup); ok {
		return b.users.GroupUsers(ctx, group, groupFor(s), s.Policy)
	}
	role, ok := s.Policy.Role(strings.TrimPrefix(s.Message.To, store.ToRole))
	if !ok {
		return nil, errNoRole
	}
	return b.users.RoleUsers(ctx, role)
}

// showAlone shows an outbox message while it holds the message's lock.
func (b *Display) showAlone(ctx context.Context, vm view.Model) error {
	id := vm.Message.ID
	if err := b.shows.lock(ctx, id); err != nil {
		return err
	}
	defer b.shows.unlock(id)
	if vm.Message.Kind == store.OutboxStep && vm.Message.TS == "" { // an answer may have included the step meanwhile
		var err error
		if vm, err = b.Views.Message(ctx, id); err != nil {
			return err
		}
		if vm.Message.State != store.OutboxWanted {
			return workflow.ErrNotDue
		}
	}
	vm, done, err := b.includeSteps(ctx, vm)
	defer done()
	if err == nil {
		err = b.show(ctx, vm)
	}
	if err == nil {
		b.shows.markReplaced(id)
	}
	return err
}

// traced records the turn or request of the current work in the trace. The parameter name is the name of the work's
// span.
func traced(ctx context.Context, vm view.Model, name string) {
	to := tracing.Subject{Turn: vm.Turn.ID, Name: name}
	switch {
	case vm.Request != nil:
		to.Turn, to.Request = vm.Request.Turn, vm.Request.ID
	case vm.Execution != nil:
		to.Turn, to.Request = vm.Execution.Turn, vm.Execution.Request
	}
	tracing.Belongs(ctx, to)
}

// viewOf returns the view from which an outbox message is drawn.
func (b *Display) viewOf(ctx context.Context, vm view.Model) (wording.View, error) {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return wording.View{}, err
	}
	v := wording.View{Model: vm, WorkspaceURL: me.URL, Tool: wording.DescribeTool(b.Tools, vm), Mentions: b.cardMentions(ctx, me, vm)}
	if user, own := strings.CutPrefix(vm.Message.To, store.ToUser); own {
		v.Reader = b.identities.known(user)
	}
	return v, nil
}

func (b *Display) show(ctx context.Context, vm view.Model) error { //nolint:cyclop // one case for each answer of Slack
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	v, err := b.viewOf(ctx, vm)
	if err != nil {
		return err
	}
	d, _, err := render.Draw(v)
	if err != nil {
		return err
	}
	d = b.refused.simplest(ctx, d)
	body, err := d.Body()
	if err != nil {
		return err
	}
	s := vm.Message
	if err := b.remove(ctx, s); err != nil {
		return err
	}
	began := b.Now()
	if err := b.access.checkAudience(ctx, vm); err != nil {
		return err
	}
	if d.Expired {
		return b.expire(ctx, me, vm, d)
	}
	if _, more := b.shows.noted(s.ID); s.TS != "" && !more && workflow.Same(s, body) {
		return b.Outbox.Unchanged(ctx, s)
	}
	if s.TS != "" && !s.Drafted {
		ctx := context.WithoutCancel(ctx) // the change is completed and recorded even if the process stops, because people may already click on the new version
		if d, err = b.posts.change(ctx, vm, d); err != nil {
			return b.notChanged(ctx, s, err)
		}
		return b.recordShown(ctx, s, d, began)
	}
	at, err := b.destinationOf(ctx, vm, false)
	if err != nil {
		return err
	}
	sent, err := b.posts.find(ctx, me, s, d, at)
	if err != nil {
		return err
	}
	if isFile := s.Kind == store.OutboxFile || s.Kind == store.OutboxAttachment; isFile && len(sent) == 0 {
		ctx := context.WithoutCancel(ctx)
		if done, err := b.posts.uploaded(ctx, vm, at); err != nil {
			return err
		} else if done {
			if s.Kind == store.OutboxAttachment {
				if body, err = thread.UploadOf(vm).Body(); err != nil {
					return err
				}
			}
			return b.Outbox.Delivered(ctx, s, workflow.SentMessage{Body: body, Began: began})
		}
	}
	if s.TS != "" { // the draft's message becomes the first message of the answer
		sent = maps.Clone(sent)
		if sent == nil {
			sent = map[int]string{}
		}
		sent[0] = s.TS
	}
	if err := ctx.Err(); err != nil { // another replica may have taken over the message during the search
		return err
	}
	ctx = context.WithoutCancel(ctx)
	shown, d, err := b.posts.post(ctx, s, d, at, sent)
	if strings.HasPrefix(s.To, store.ToUser) && slackapi.IsChannelLost(slackapi.ErrorCode(err)) { // Slack has given the direct messages another channel
		if at, err = b.destinationOf(ctx, vm, true); err == nil {
			shown, d, err = b.posts.post(ctx, s, d, at, nil)
		}
	}
	if s.TS != "" && isFixed(ctx, s, err) {
		return b.Outbox.Replace(ctx, s)
	}
	if err != nil {
		return err
	}
	return b.recordShown(ctx, shown, d, began)
}

// recordShown records an outbox message as Slack shows it.
func (b *Display) recordShown(ctx context.Context, s store.OutboxMessage, d block.Rendered, began time.Time) error {
	body, err := d.Body()
	if err != nil {
		return err
	}
	return b.Outbox.Delivered(ctx, s, workflow.SentMessage{Body: body, Shows: d.Shows, Began: began})
}

// notChanged handles a failed change of a message. If Slack refuses to change a message, the message would keep
// outdated buttons. Therefore such a message is deleted and posted again.
func (b *Display) notChanged(ctx context.Context, s store.OutboxMessage, err error) error {
	if code := slackapi.ErrorCode(err); slackapi.IsMessageLost(code) || slackapi.IsChannelLost(code) && !isFixed(ctx, s, err) {
		_, _, deleted := b.api.DeleteMessageContext(ctx, s.Channel, s.TS) // the answer to the deletion shows whether the message exists
		switch gone := slackapi.ErrorCode(deleted); {
		case slackapi.IsMessageLost(gone) && slackapi.IsMessageLost(code):
			return b.Outbox.MarkLost(ctx, s)
		case slackapi.IsChannelLost(code) && deleted != nil:
			return err
		case deleted != nil && !slackapi.IsRefused(deleted) && !hasNoMethod(ctx, deleted):
			return fmt.Errorf("chat.delete: %w", slackapi.WithDelay(deleted))
		}
	} else if !isFixed(ctx, s, err) {
		return err
	}
	b.Log.WarnContext(ctx, "a message can't be changed; it is posted again", "message", string(s.Kind), "request", s.Request, "cause", slackapi.Explain(err))
	return b.Outbox.Replace(ctx, s)
}

// isFixed reports whether an error says that Slack will not change a message. Slack may accept a new message in the
// same place.
func isFixed(ctx context.Context, s store.OutboxMessage, err error) bool {
	code := slackapi.ErrorCode(err)
	switch {
	case hasNoMethod(ctx, err):
		return true
	case slackapi.IsChannelLost(code):
		return strings.HasPrefix(s.To, store.ToUser) // in direct messages, the channel can be opened again
	}
	return slackapi.IsRefused(err) && (!slackapi.IsTokenRefusal(code) || code == "not_allowed_token_type") && code != "missing_scope" && code != errNoThread.Err
}

// remove deletes the previous Slack message of an outbox message, because Slack refuses edits of that message. The
// buttons of the old message have no effect. If Slack also refuses the deletion, the bot repeats the deletion later
// (Leftovers).
func (b *Display) remove(ctx context.Context, s store.OutboxMessage) error {
	if s.ReplacedTS == "" {
		return nil
	}
	_, _, err := b.api.DeleteMessageContext(ctx, s.Channel, s.ReplacedTS)
	switch code := slackapi.ErrorCode(err); {
	case err == nil, slackapi.IsMessageLost(code):
	case !slackapi.IsRefused(err) && !hasNoMethod(ctx, err):
		return fmt.Errorf("chat.delete: %w", slackapi.WithDelay(err))
	default:
		b.Log.WarnContext(ctx, "a message can neither be changed nor deleted; the deletion is tried again later", "message", string(s.Kind), "request", s.Request, "cause", slackapi.Explain(err))
		return b.Outbox.LeftOver(ctx, s.ID, s.Channel, s.ReplacedTS, slackapi.Explain(err))
	}
	return nil
}

// destination is the channel and thread where an outbox message is posted.
type destination struct {
	channel string
	thread  string
}

// destinationOf returns where an outbox message is posted. If fresh is set, destinationOf opens the direct-message
// channel even if its id is cached.
func (b *Display) destinationOf(ctx context.Context, vm view.Model, fresh bool) (destination, error) {
	kind, where, _ := strings.Cut(vm.Message.To, ":")
	switch kind {
	case "conversation":
		if vm.Conversation.Gone { // Slack would post the message to the whole channel
			return destination{}, errNoThread
		}
		return destination{vm.Conversation.Channel, vm.Conversation.Thread}, nil
	case "channel":
		id, err := b.channels.ID(ctx, where)
		return destination{channel: id}, err
	case "user":
		id, err := b.channels.DirectMessages(ctx, where, fresh)
		return destination{channel: id}, err
	}
	return destination{}, fmt.Errorf("outbox message %s has the unknown address %q", vm.Message.ID, vm.Message.To)
}

// groupFor returns the request for which the members of a user group are looked up. If the message shows several
// requests, the result is the first of them.
func groupFor(s view.Model) *approvers.Request {
	switch {
	case s.Request != nil:
		return s.Request
	case s.CardQueue != nil:
		return &s.CardQueue.First[0]
	case len(s.Calls) > 0:
		return s.Calls[0].Request
	}
	return nil
}

// If Slack's rate limits have delayed the messages of earlier steps, the answer includes these steps. For each step,
// this saves up to two calls: the post of the step's message, and its update.

// includeSteps adds the postponed steps to an answer. The steps' messages are locked until done is called.
func (b *Display) includeSteps(ctx context.Context, answer view.Model) (vm view.Model, done func(), err error) {
	var taken []string
	done = func() {
		for _, id := range taken {
			b.shows.unlock(id)
		}
	}
	if s := answer.Message; s.Kind != store.OutboxAnswer || s.Posts > 0 {
		return answer, done, nil
	}
	steps, err := b.Views.Untold(ctx, answer.Message.Ref)
	if err != nil || len(steps) == 0 {
		return answer, done, err
	}
	var numbers []int
	for _, s := range steps {
		if _, doubtful := doubtOf(s, &b.posts.unconfirmed, b.Outbox); doubtful || !b.shows.tryLock(s.ID) {
			continue // the step may have been posted already
		}
		taken, numbers = append(taken, s.ID), append(numbers, s.Step)
	}
	if vm, err = b.Views.Answer(ctx, answer.Message.ID, numbers); err != nil {
		return answer, done, err
	}
	vm.Steps = slices.DeleteFunc(vm.Steps, func(s view.Step) bool { return !thread.IsBrief(s) })
	vm.Steps = vm.Steps[:min(len(vm.Steps), thread.MaxStepsTold)]
	vm.Message.Steps = nil
	for _, s := range vm.Steps {
		vm.Message.Steps = append(vm.Message.Steps, s.Step)
	}
	return vm, done, nil
}

// expire deletes the Slack message of an outbox message that has expired. If Slack does not allow the deletion, the bot
// changes the message into a notice of its expiry.
func (b *Display) expire(ctx context.Context, me directory.Self, vm view.Model, d block.Rendered) error {
	s := vm.Message
	if s.TS == "" {
		at, err := b.destinationOf(ctx, vm, false)
		if err != nil {
			return err
		}
		sent, err := b.posts.find(ctx, me, s, d, at)
		if err != nil {
			return err
		}
		s.Channel, s.TS = at.channel, sent[0]
		if s.TS != "" && s.Kind == store.OutboxReport { // the message was posted in time, but the store has no record of the post
			return b.recordShown(ctx, s, d, time.Time{})
		}
	}
	if s.TS == "" {
		return b.Outbox.Removed(ctx, s)
	}
	_, _, err := b.api.DeleteMessageContext(ctx, s.Channel, s.TS)
	switch code := slackapi.ErrorCode(err); {
	case err == nil, slackapi.IsMessageLost(code), slackapi.IsUnreachable(code):
	case !slackapi.IsRefused(err) && !hasNoMethod(ctx, err):
		return fmt.Errorf("chat.delete: %w", slackapi.WithDelay(err))
	default:
		b.Log.InfoContext(ctx, "a message can't be deleted; its text now says that it is over",
			"message", string(s.Kind), "request", s.Request, "conversation", vm.Conversation.ID, "cause", slackapi.Explain(err))
		if _, changed := b.posts.update(ctx, s, d); changed != nil && !slackapi.IsRefused(changed) && !hasNoMethod(ctx, changed) {
			return changed
		} else if changed != nil {
			if err := b.Outbox.LeftOver(ctx, s.ID, s.Channel, s.TS, slackapi.Explain(err)); err != nil {
				return err
			}
		}
	}
	return b.Outbox.Removed(ctx, s)
}

// rankPriority maps the rank of an outbox message to the priority of its calls.
var rankPriority = map[store.Rank]slackapi.Priority{
	store.RankFirst: slackapi.PriorityFirst, store.RankPlain: slackapi.PriorityNormal, store.RankAnswer: slackapi.PriorityReply, store.RankLast: slackapi.PriorityLast,
}

// dueFor sets the priority of the calls that handle a due timer.
func dueFor(ctx context.Context, p slackapi.Priority, t store.Timer) context.Context {
	return slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: p, Retry: t.Tries > 0})
}

// toShow sets the priority of the calls that show an outbox message.
func toShow(ctx context.Context, s view.Model, t store.Timer) context.Context {
	e := slackapi.CallPriority{Priority: rankPriority[s.Message.Rank], Retry: t.Tries > 0, Flow: s.Flow()}
	if s.Message.Kind == store.OutboxStep && !s.Message.Drafted {
		open := s.Turn.State == approvers.TurnWaiting && s.Turn.Step == s.Message.Step
		e.WillChange = open && s.Message.TS == ""
		e.UsesReserved = !open && s.Message.TS != ""
		if open && s.Message.TS != "" {
			e.Priority = max(e.Priority, slackapi.PriorityTransient)
		}
	}
	e.UsesReserved = e.UsesReserved || s.Message.Drafted
	return slackapi.WithCallPriority(withTries(ctx, t.Tries), e)
}

// cardMentions returns the people and groups that a pending card in a channel mentions. These are the members of the
// stage's roles that get their cards in this channel. Without mentions, nobody would notice the card. People who are
// away, people who requested the call, and people who were deactivated or guests at the last look-up are skipped. If the
// bot can't look up a person, it also skips this person, because a card with fewer mentions is better than no card.
func (b *Display) cardMentions(ctx context.Context, me directory.Self, s view.Model) []wording.Mention {
	channel, shared := strings.CutPrefix(s.Message.To, store.ToChannel)
	r, waits := card.MentioningRequest(s)
	if !shared || !waits {
		return nil
	}
	away, err := b.Views.Away(ctx)
	if err != nil {
		b.Log.WarnContext(ctx, "the recorded absences could not be read, so absent people are mentioned too",
			"message", string(s.Message.Kind), "request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "error", err)
	}
	var out []wording.Mention
	for _, name := range r.CurrentStage().Roles() {
		role, _ := s.Policy.Role(name)
		if role.Cards != channel {
			continue
		}
		for _, m := range role.Members {
			if len(out) == card.MaxMentions {
				return out
			}
			c, err := b.mentionOf(ctx, m)
			if err != nil {
				b.Log.WarnContext(ctx, "somebody could not be mentioned on a card",
					"message", string(s.Message.Kind), "request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "approver", role.Name, "error", err)
			}
			user := c.User
			if me.Enterprise != "" { // requesters and absences have the ids in the enterprise
				if who, err := b.users.Who(ctx, c.User, false); err == nil && who.ID != "" {
					user = who.ID.User()
				}
			}
			asked := slices.ContainsFunc(r.Plan.Requesters, func(p approvers.PersonID) bool { return p.User() == user })
			_, gone := away[user]
			gone = gone || b.users.WasLost(c.User)
			if c != (wording.Mention{}) && !asked && !gone && !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

func (b *Display) mentionOf(ctx context.Context, m approvers.Member) (wording.Mention, error) {
	switch m.Kind {
	case approvers.MemberUser:
		return wording.Mention{User: m.Value}, nil
	case approvers.MemberGroup:
		id, err := b.users.GroupID(ctx, m.Value)
		return wording.Mention{Group: id}, err
	}
	users, err := b.users.RoleUsers(ctx, approvers.Role{Members: []approvers.Member{m}})
	if err != nil || len(users) == 0 {
		return wording.Mention{}, err
	}
	return wording.Mention{User: users[0].ID.User()}, nil
}
