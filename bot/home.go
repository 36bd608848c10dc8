package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/bot/render"
	"countersign/bot/render/block"
	"countersign/bot/render/home"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/store"
)

// homeTabs draws people's Home tabs and publishes them. homeTabs also handles the events and clicks that open a tab or
// turn its pages. The buttons of the items on a tab belong to the handlers of clicks.
type homeTabs struct {
	*core
	identities  *Identities
	permissions *Permissions
	pending     *pendingItems
}

// opened handles the event that a person opened their Home tab, and requests an update of the tab.
func (b *homeTabs) opened(ctx context.Context, row store.Inbox, e event) error {
	err := b.Homes.Open(ctx, row.ID, e.userID(), "", 0)
	b.permissions.retryUnreached(ctx)
	return err
}

// homeOpened reports whether an event says that a person views their Home tab.
func (e event) homeOpened() bool {
	return e.Type == "app_home_opened" && (e.Tab == "home" || e.Tab == "") && e.userID() != ""
}

// turn shows another page of a section of a person's Home tab.
func (b *homeTabs) turn(ctx context.Context, d delivered, i interaction) error {
	part, page, _ := strings.Cut(i.Actions[0].Value, " ")
	n, err := strconv.Atoi(page)
	if _, known := home.PageRows[part]; !known && part != home.PartAll || err != nil || n < 0 {
		return fmt.Errorf("%w: the button names no page of a Home tab", errPayload)
	}
	if part == home.PartAll {
		part = ""
	}
	return b.Homes.Open(ctx, d.id, i.User.ID, part, n)
}

// show updates a person's Home tab in Slack if it is not current.
func (b *homeTabs) show(ctx context.Context, vm view.Model) error {
	s := vm.Message
	user := strings.TrimPrefix(s.To, store.ToUser)
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	tab, err := b.contentOf(ctx, user, vm)
	if err != nil {
		return err
	}
	tab.Version = b.Version
	v := wording.View{Model: vm, WorkspaceURL: me.URL, Reader: b.identities.reader(ctx, user)}
	still := v
	still.Message.Posts = 0
	drawn, same, err := render.DrawHome(still, *tab)
	if err != nil {
		return err
	}
	shows, err := json.Marshal(drawn.Shows) // a decision needs the stage that was shown, also if the tab looks the same
	if err != nil {
		return fmt.Errorf("encode the requests on a Home tab: %w", err)
	}
	sum := sha256.Sum256(append(same, shows...))
	looks := hex.EncodeToString(sum[:])
	if s.TS != "" && looks == s.Home.ViewHash {
		return b.Homes.Unchanged(ctx, s)
	}
	d, _, err := render.DrawHome(v, *tab)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	var shown *slack.ViewResponse
	m, whole, err := b.refused.inSimplerForms(ctx, d.Messages[0], block.SectionsOnly, func(m block.Message) (err error) {
		shown, err = b.api.PublishViewContext(ctx, slack.PublishViewContextRequest{
			UserID: user, View: slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: m.Blocks}},
		})
		return err
	})
	if slackapi.IsRefused(err) || hasNoMethod(ctx, err) {
		b.Log.WarnContext(ctx, "Slack does not show a Home tab; is the Home tab switched on in the app's settings?",
			"message", string(s.Kind), "user", user, "cause", slackapi.Explain(err))
		return b.Homes.Refused(ctx, s, slackapi.Explain(err))
	}
	if err != nil {
		return fmt.Errorf("views.publish: %w", slackapi.WithDelay(err))
	}
	d = d.With(0, m, whole)
	body, err := d.Body()
	if err != nil {
		return err
	}
	s.TS = shown.ID
	return b.Homes.Shown(ctx, s, workflow.SentMessage{Body: body, Shows: d.Shows}, looks)
}

// contentOf reads the content of a person's Home tab.
func (b *homeTabs) contentOf(ctx context.Context, user string, vm view.Model) (*home.Tab, error) {
	at := vm.Message.Home
	if at.Idle {
		return &home.Tab{}, nil
	}
	who, all, more, err := b.pending.readFor(ctx, user, vm.Policy)
	if err != nil {
		return nil, err
	}
	tab := &home.Tab{Who: who, More: more}
	theirs, own := selectPending(all, who, vm.Policy)
	if tab.Waiting, err = b.locate(ctx, home.Paginate(theirs, at.Page(home.PartWaiting), home.PageRows[home.PartWaiting])); err != nil {
		return nil, err
	}
	if tab.Asked, err = b.locate(ctx, home.Paginate(own, at.Page(home.PartAsked), home.PageRows[home.PartAsked])); err != nil {
		return nil, err
	}
	if tab.Recent, err = b.pastRequests(ctx, who.ID, at.Page(home.PartRecent), home.PageRows[home.PartRecent]); err != nil {
		return nil, err
	}
	if tab.Away, err = b.Views.Absence(ctx, who.ID); err != nil {
		return nil, err
	}
	if tab.StandsInFor, err = b.Views.StandsInFor(ctx, who.ID); err != nil {
		return nil, err
	}
	grants, err := b.Views.Grants(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	grants = slices.DeleteFunc(grants, func(g view.ListedGrant) bool {
		_, no := g.Grant.Revoke(approvers.DecisionContext{Policy: vm.Policy, Now: vm.Now}, who)
		return no != nil
	})
	tab.Grants = home.Paginate(grants, at.Page(home.PartGrants), home.PageRows[home.PartGrants])
	return tab, nil
}

// locate looks up the conversation and the outbox messages of each item on a page.
func (b *homeTabs) locate(ctx context.Context, of home.Rows[view.PendingItem]) (home.Rows[home.Row], error) {
	out := home.Rows[home.Row]{Page: of.Page, Pages: of.Pages, Total: of.Total}
	for _, u := range of.List {
		conv, messages, err := b.Views.Locate(ctx, u)
		if err != nil {
			return out, err
		}
		out.List = append(out.List, home.Row{PendingItem: u, Conversation: conv, Messages: messages})
	}
	return out, nil
}

// maxPast is the maximum number of requests in a person's history on the Home tab.
const maxPast = 100

// pastRequests returns a page of a person's past requests, newest first. These are the person's requests that are not
// pending, and the requests that the person has decided.
func (b *homeTabs) pastRequests(ctx context.Context, who approvers.PersonID, page, size int) (home.Rows[approvers.Request], error) {
	if who == "" {
		return home.Rows[approvers.Request]{Pages: 1}, nil
	}
	list, err := b.Views.RequestsOf(ctx, who, store.RequestCursor{}, maxPast)
	if err != nil {
		return home.Rows[approvers.Request]{}, err
	}
	list = slices.DeleteFunc(list, func(r approvers.Request) bool { return r.State == approvers.Pending && !home.TookPart(r, who) })
	return home.Paginate(list, page, size), nil
}
