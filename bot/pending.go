package bot

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/home"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/store"
)

// pendingItems reads the items that wait for a person, for the command and for the Home tab. If somebody deleted the
// message of an item, the command makes the bot post the message again.
type pendingItems struct {
	*core
	identities  *Identities
	permissions *Permissions
}

// list answers /countersign pending. The answer lists, with links, the items that wait for the person, and the
// person's own requests. The bot reposts deleted cards.
func (b *pendingItems) list(ctx context.Context, c command, _ string) (*block.Builder, error) {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return nil, err
	}
	b.permissions.retryUnreached(ctx)
	policy := b.Views.Policy()
	who, all, more, err := b.readFor(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	list := home.WaitingList{Policy: policy, WorkspaceURL: me.URL, Who: who}
	theirs, own := selectPending(all, who, policy)
	var out []*block.RichText
	pause, err := b.Views.Paused(ctx)
	switch {
	case err != nil:
		return nil, err
	case pause.On:
		out = append(out, wording.Paused(pause))
	}
	if len(theirs)+len(own) == 0 {
		out = append(out, block.Say("Nothing waits for you, and nothing that you asked for waits for anybody."))
		return block.Paragraph(append(out, list.UnreadNotes(more)...)...), nil
	}
	for _, part := range []struct {
		title string
		of    []view.PendingItem
		line  itemLine
	}{{"Waits for you:", theirs, list.DecideLine}, {"You asked for:", own, list.AskedLine}} {
		if len(part.of) == 0 {
			continue
		}
		out = append(out, new(block.RichText).Strong(part.title))
		for i, u := range part.of {
			if i == home.MaxWaitingListed {
				out = append(out, block.Say("… and "+strconv.Itoa(len(part.of)-i)+" more; your Home tab has all of them."))
				break
			}
			line, err := b.line(ctx, &list, u, part.line)
			if err != nil {
				return nil, err
			}
			out = append(out, line)
		}
	}
	if list.Again > 0 {
		out = append(out, block.Say(postedAgain(list.Again)))
	}
	return block.Paragraph(append(out, list.UnreadNotes(more)...)...), nil
}

// postedAgain returns the notice that deleted messages are being reposted.
func postedAgain(n int) string {
	if n == 1 {
		return "1 message had been deleted. It is being posted again: write the command once more for its link."
	}
	return block.Plural(n, "message") + " had been deleted. They are being posted again: write the command once more for their links."
}

// readFor returns the waiting items, and the person's identity with every relevant user group. The result "more" is
// true if readFor has not read all items.
func (b *pendingItems) readFor(ctx context.Context, user string, p *approvers.Policy) (who approvers.Identity, all []view.PendingItem, more bool, err error) {
	if who, err = b.identities.member(ctx, user, p); err != nil {
		return who, nil, false, err
	}
	if all, more, err = b.Views.PendingItems(ctx); err != nil {
		return who, nil, false, err
	}
	who, err = b.inStages(ctx, who, all)
	return who, all, more, err
}

// selectPending selects the items that a person can decide or answer now, and the person's own requests.
func selectPending(all []view.PendingItem, who approvers.Identity, p *approvers.Policy) (theirs, own []view.PendingItem) {
	for _, u := range all {
		if decides(u, who, p) {
			theirs = append(theirs, u)
		}
		if u.Execution == nil && u.Request != nil && who.Among(u.Request.Facts.Requesters, isCallers(u)) {
			own = append(own, u)
		}
	}
	return theirs, own
}

// inStages adds user groups to the identity. These are the person's groups that the stages of waiting items require.
func (b *pendingItems) inStages(ctx context.Context, who approvers.Identity, all []view.PendingItem) (approvers.Identity, error) {
	var groups []string
	for _, u := range all {
		if u.Request == nil || u.Request.Stage >= len(u.Request.Plan.Stages) {
			continue
		}
		group := u.Request.CurrentStage().Group
		if group != "" && !slices.Contains(groups, group) && !slices.Contains(who.Groups, group) {
			groups = append(groups, group)
		}
	}
	return b.users.AddGroups(ctx, who, who.ID.User(), groups, false)
}

// itemLine renders the line about one waiting item. The line can link to the item's conversation and messages.
type itemLine func(view.PendingItem, store.Conversation, []store.OutboxMessage) *block.RichText

// line returns the line about one waiting item. The function first verifies that Slack shows the linked message.
func (b *pendingItems) line(ctx context.Context, list *home.WaitingList, u view.PendingItem, line itemLine) (*block.RichText, error) {
	conv, messages, err := b.Views.Locate(ctx, u)
	if err != nil {
		return nil, err
	}
	for i, s := range messages {
		if s.State != store.OutboxShown || strings.HasPrefix(s.To, store.ToUser) && s.To != store.ToUser+list.Who.ID.User() {
			continue // the message is not shown, or is a colleague's copy
		}
		_, err := b.api.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: s.Channel, Ts: s.TS})
		if !slackapi.IsMessageLost(slackapi.ErrorCode(err)) {
			continue // the message exists, or Slack gave no answer and the link may be broken
		}
		if err := b.Outbox.MarkLost(ctx, s); err != nil {
			return nil, err
		}
		messages[i].State = store.OutboxLost
	}
	again, err := b.Outbox.RepostLost(ctx, messages)
	if err != nil {
		return nil, err
	}
	list.Again += again
	return line(u, conv, messages), nil
}

// isCallers reports whether a client of the gateway made the call of an item.
func isCallers(u view.PendingItem) bool { return u.Request != nil && u.Request.Facts.Caller != nil }

// decides reports whether an item waits for a person.
func decides(u view.PendingItem, who approvers.Identity, p *approvers.Policy) bool {
	asked := who.Among(u.Turn.Requesters, isCallers(u))
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
