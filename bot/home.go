package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/internal/redact"
	"countersign/store"
)

// The parts of a Home tab that have pages.
const (
	partWaiting = "waiting"
	partAsked   = "asked"
	partRecent  = "recent"
	partGrants  = "grants"
	partAll     = "all" // as it is when it is opened
)

// homeRows is how many rows each part of a Home tab shows at once. A view takes 100 blocks, of which these need some 90 at most.
var homeRows = map[string]int{partWaiting: 8, partAsked: 5, partRecent: 8, partGrants: 4}

// homeTab is what somebody's Home tab shows, read from the state.
type homeTab struct {
	who       approvers.Identity
	waiting   rows[homeRow]
	asked     rows[homeRow]
	recent    rows[approvers.Request]
	grants    rows[desk.GrantSight]
	more      bool // not all that waits was looked through
	away      approvers.Absence
	standsFor []approvers.Absence // of those for whom they stand in
}

// homeRow is one thing that waits.
type homeRow struct {
	desk.Unsettled
	conv     store.Conversation
	surfaces []store.Surface
}

// rows are those of a page, and where it is.
type rows[T any] struct {
	list        []T
	page, pages int
	total       int // 0: not counted
}

// cut picks a page of a list. One that is not there any more is the last one.
func cut[T any](list []T, page, size int) rows[T] {
	pages := max(1, (len(list)+size-1)/size)
	page = min(max(0, page), pages-1)
	return rows[T]{list: list[page*size : min(len(list), (page+1)*size)], page: page, pages: pages, total: len(list)}
}

// openedHome has somebody's Home tab shown as it is now.
func (b *Bot) openedHome(ctx context.Context, row store.Inbox, e event) error {
	return b.Desk.LookHome(ctx, row.ID, e.userID(), "", 0)
}

// homeOpened reports whether an event says that somebody looks at their Home tab.
func (e event) homeOpened() bool {
	return e.Type == "app_home_opened" && (e.Tab == "home" || e.Tab == "") && e.userID() != ""
}

// turnHome shows another page of a part of somebody's own Home tab.
func (b *Bot) turnHome(ctx context.Context, d delivered, i interaction) error {
	part, page, _ := strings.Cut(i.Actions[0].Value, " ")
	n, err := strconv.Atoi(page)
	if _, known := homeRows[part]; !known && part != partAll || err != nil || n < 0 {
		return fmt.Errorf("%w: no page of a Home tab there", errPayload)
	}
	if part == partAll {
		part = ""
	}
	return b.Desk.LookHome(ctx, d.id, i.User.ID, part, n)
}

// showHome makes Slack show somebody's Home tab as it is now, if it does not yet.
func (b *Bot) showHome(ctx context.Context, sight desk.Sight) error {
	s := sight.Surface
	user := strings.TrimPrefix(s.To, "user:")
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	tab, err := b.homeOf(ctx, user, sight)
	if err != nil {
		return err
	}
	view := scene{Sight: sight, url: me.URL, tab: tab, reader: b.reader(ctx, user)}
	still := view
	still.Surface.Posts = 0
	_, same, err := draw(still)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(same)
	looks := hex.EncodeToString(sum[:])
	if s.TS != "" && looks == s.Home.Looks {
		return b.Desk.HomeSame(ctx, s)
	}
	d, body, err := draw(view)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	shown, err := b.api.PublishViewContext(ctx, slack.PublishViewContextRequest{
		UserID: user, View: slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: d.messages[0].Blocks}},
	})
	if code := errorCode(err); code != "" && !failing(code) {
		b.Log.Warn("Slack does not show a Home tab; is the Home tab switched on in the app's settings?", "user", user, "cause", code)
		return b.Desk.HomeRefused(ctx, s, redact.Error(err))
	}
	if err != nil {
		return fmt.Errorf("views.publish: %w", slow(err))
	}
	s.TS = shown.ID
	return b.Desk.HomeShown(ctx, s, desk.Posted{Body: body, Shows: d.shows}, looks)
}

// homeOf reads what somebody's Home tab shows.
func (b *Bot) homeOf(ctx context.Context, user string, sight desk.Sight) (*homeTab, error) {
	at := sight.Surface.Home
	if at.Rests {
		return &homeTab{}, nil
	}
	who, all, more, err := b.unsettledFor(ctx, user, sight.Policy)
	if err != nil {
		return nil, err
	}
	tab := &homeTab{who: who, more: more}
	theirs, own := sorted(all, who, sight.Policy)
	if tab.waiting, err = b.located(ctx, cut(theirs, at.Page(partWaiting), homeRows[partWaiting])); err != nil {
		return nil, err
	}
	if tab.asked, err = b.located(ctx, cut(own, at.Page(partAsked), homeRows[partAsked])); err != nil {
		return nil, err
	}
	if tab.recent, err = b.past(ctx, who.ID, at.Page(partRecent), homeRows[partRecent]); err != nil {
		return nil, err
	}
	if tab.away, err = b.Desk.Absence(ctx, who.ID); err != nil {
		return nil, err
	}
	if tab.standsFor, err = b.Desk.StandsInFor(ctx, who.ID); err != nil {
		return nil, err
	}
	grants, err := b.Desk.Grants(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	grants = slices.DeleteFunc(grants, func(g desk.GrantSight) bool {
		_, no := g.Grant.Revoke(approvers.Deciding{Policy: sight.Policy, Now: sight.Now}, who)
		return no != nil
	})
	tab.grants = cut(grants, at.Page(partGrants), homeRows[partGrants])
	return tab, nil
}

// located finds where Slack shows what is on a page.
func (b *Bot) located(ctx context.Context, of rows[desk.Unsettled]) (rows[homeRow], error) {
	out := rows[homeRow]{page: of.page, pages: of.pages, total: of.total}
	for _, u := range of.list {
		conv, surfaces, err := b.Desk.Whereabouts(ctx, u)
		if err != nil {
			return out, err
		}
		out.list = append(out.list, homeRow{u, conv, surfaces})
	}
	return out, nil
}

// maxPast bounds how many requests of somebody's history can be turned through.
const maxPast = 100

// past reads a page of what somebody asked for or had a say in and is decided, newest first.
func (b *Bot) past(ctx context.Context, who approvers.PersonID, page, size int) (rows[approvers.Request], error) {
	if who == "" {
		return rows[approvers.Request]{pages: 1}, nil
	}
	list, err := b.Desk.Past(ctx, who, store.RequestCursor{}, maxPast)
	if err != nil {
		return rows[approvers.Request]{}, err
	}
	list = slices.DeleteFunc(list, func(r approvers.Request) bool { return r.State == approvers.Pending && !hadASay(r, who) })
	return cut(list, page, size), nil
}

// hadASay reports whether somebody decided about a request.
func hadASay(r approvers.Request, who approvers.PersonID) bool {
	return slices.ContainsFunc(r.Decisions, func(d approvers.Decision) bool { return d.By == who })
}
