package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// atHome is what the desk and Slack would give for Teo's Home tab.
func tabOf(who approvers.Identity, waiting ...approvers.Request) (scene, *homeTab) {
	sight := desk.Sight{
		Surface: store.Surface{ID: "s_1", Kind: store.SurfaceHome, Ref: "homes/U0002", To: "user:U0002", Posts: 2, Home: &store.Home{At: noon}},
		Policy:  testPolicy(), Now: noon,
	}
	tab := &homeTab{who: who, asked: cut[homeRow](nil, 0, 1), recent: cut[approvers.Request](nil, 0, 1), grants: cut[desk.GrantSight](nil, 0, 1)}
	var list []homeRow
	for i := range waiting {
		card := sightOf(waiting[i])
		row := homeRow{Unsettled: desk.Unsettled{Request: &waiting[i]}, conv: card.Conversation}
		row.surfaces = []store.Surface{{Kind: store.SurfaceCard, To: "channel:#support-approvals", State: store.SurfaceShown, Channel: "C0002", TS: "1772452900.000100"}}
		list = append(list, row)
	}
	tab.waiting = cut(list, 0, homeRows[partWaiting])
	return scene{Sight: sight, url: home, tab: tab, reader: reader{zone: time.FixedZone("CET", 3600), locale: "de-DE"}}, tab
}

func TestHomes(t *testing.T) {
	teo := approvers.Identity{ID: approvers.Who("T0001", "U0002"), Name: "Teo"}
	refund := testRequest(refundArgs)
	staged := testRequest(`{"user_id":"C-77","confirm":true}`)
	staged.ID, staged.Tool, staged.Preview, staged.Plan.Risk = "req_2", "cancel_account", "", approvers.Critical
	staged.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	long := testRequest(`{"order_id":"ORD-123","body":"` + strings.Repeat("日本語のとても長い文章。", 400) + `"}`)
	long.ID = "req_3"

	waiting, _ := tabOf(teo, refund, staged, long)

	full, tab := tabOf(teo, refund)
	tab.waiting.pages, tab.waiting.page, tab.waiting.total = 125, 1, 1000
	tab.more = true
	own := refund
	own.Facts.Requesters, own.Facts.Asker = []approvers.PersonID{teo.ID}, teo.ID
	tab.asked = cut([]homeRow{{Unsettled: desk.Unsettled{Request: &own}, conv: sightOf(own).Conversation}}, 0, 5)
	tab.recent = cut([]approvers.Request{
		approvedBy(closed(refund, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0),
		closed(own, approvers.Rejected, "U0003", "finance-director", "refunded already"), closed(refund, approvers.Expired, "", "", "nobody decided in time"),
		approvedBy(staged, "U0002", "Teo", "team-lead", 0),
	}, 0, 8)
	tab.away = approvers.Absence{Who: teo.ID, From: noon, Until: noon.Add(72 * time.Hour), Delegate: approvers.Who("T0001", "U0003"), DelegateName: "Ingrid"}
	tab.standsFor = []approvers.Absence{{Who: approvers.Who("T0001", "U0004"), Name: "Kenji", From: noon, Until: noon.Add(24 * time.Hour)}}
	tab.grants = cut([]desk.GrantSight{{Grant: approvers.Grant{ID: "grant_1", State: approvers.GrantLive, Tool: "issue_refund", Agent: "support", By: teo.ID, Name: "Teo", Role: "team-lead", Uses: 3, Left: 2, Until: noon.Add(time.Hour)}}}, 0, 4)

	unknown, tab := tabOf(teo)
	call := store.Call{ID: "call_9", Tool: "issue_refund", Preview: "Refund of $5.00 for order ORD-9"}
	question := store.Call{ID: "call_8", Inquiry: &approvers.Inquiry{Question: "Which address?", ExpiresAt: noon.Add(time.Hour)}}
	tab.waiting = cut([]homeRow{{Unsettled: desk.Unsettled{Execution: &approvers.Execution{ID: "exec_9"}, Call: &call}}, {Unsettled: desk.Unsettled{Call: &question}}}, 0, 8)

	empty, _ := tabOf(teo)
	resting, _ := tabOf(teo)
	resting.Surface.Home = &store.Home{Rests: true}
	guest, _ := tabOf(approvers.Identity{ID: "T0001/U0900", Guest: true})

	for name, s := range map[string]scene{"home_waiting": waiting, "home_full": full, "home_unknown": unknown, "home_empty": empty, "home_resting": resting, "home_guest": guest} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, homeDrawn(t, s))
		})
	}
}

// homeDrawn draws a Home tab and holds it against what Slack takes.
func homeDrawn(t *testing.T, s scene) []slack.Block {
	t.Helper()
	d, _, err := draw(s)
	if err != nil {
		t.Fatal(err)
	}
	viewWithin(t, slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: d.messages[0].Blocks}})
	return d.messages[0].Blocks
}

// A Home tab with the most that its parts can show, each at its largest, is a view that Slack takes.
func TestLargestHome(t *testing.T) {
	big := strings.Repeat("𝕏", 5000)
	teo := approvers.Identity{ID: approvers.Who("T0001", "U0002"), Name: big}
	var many []approvers.Request
	for i := range 40 {
		r := testRequest(`{"body":"` + strings.Repeat("x\\n", 400) + big + `"}`)
		r.ID, r.Preview, r.Tool, r.Facts.AskerName = fmt.Sprint("req_", i), big, big, big
		r.Plan.Why, r.Plan.Stages = []string{big, big}, []approvers.Stage{{Approver: big, Quorum: 2}, {Approver: big, Quorum: 2}}
		many = append(many, closed(r, approvers.Pending, "", "", ""))
	}
	s, tab := tabOf(teo, many...)
	tab.waiting.page, tab.waiting.pages = 1, 5
	tab.more, s.Pause = true, largestPause
	tab.asked = rows[homeRow]{list: tab.waiting.list[:homeRows[partAsked]], page: 1, pages: 3, total: 99}
	for i := range many {
		many[i] = closed(many[i], approvers.Rejected, "U0003", big, big)
	}
	tab.recent = rows[approvers.Request]{list: many[:homeRows[partRecent]], page: 1, pages: 3, total: 99}
	tab.away = approvers.Absence{Who: teo.ID, From: noon, Until: noon.Add(72 * time.Hour), Delegate: "x", DelegateName: big}
	for range 20 {
		tab.standsFor = append(tab.standsFor, approvers.Absence{Who: "operator:x", Name: big, From: noon, Until: noon.Add(time.Hour)})
	}
	var grants []desk.GrantSight
	for i := range homeRows[partGrants] {
		grants = append(grants, desk.GrantSight{Grant: approvers.Grant{ID: fmt.Sprint("grant_", i), State: approvers.GrantLive, Tool: big, Agent: big, By: "operator:x", Name: big, Role: big, Uses: 3, Left: 2, Until: noon}})
	}
	tab.grants = rows[desk.GrantSight]{list: grants, page: 1, pages: 3, total: 99}
	t.Logf("blocks=%d", len(homeDrawn(t, s)))
}

// A Home tab is fast with a thousand rows, and so is each of its pages.
func TestHomeWithThousand(t *testing.T) {
	const waiting = 1000
	w := newWorkbench(t, func(w *workbench) { w.once = true })
	err := w.store.Update(context.Background(), func(tx store.Tx) error {
		for i := range waiting {
			r := testRequest(refundArgs)
			r.ID, r.Call, r.Turn, r.Conversation, r.Execution = fmt.Sprintf("req_%04d", i), fmt.Sprint("call_", i), fmt.Sprint("turn_", i), fmt.Sprint("conv_", i), fmt.Sprint("exec_", i)
			r.CreatedAt = time.Now().Add(time.Duration(i) * time.Millisecond)
			r.ExpiresAt = time.Now().Add(time.Hour)
			for _, err := range []error{
				tx.PutRequest(r), tx.PutCall(store.Call{ID: r.Call, Turn: r.Turn, Conversation: r.Conversation, Request: r.ID}),
				tx.PutTurn(approvers.Turn{ID: r.Turn, Conversation: r.Conversation}), tx.PutConversation(store.Conversation{ID: r.Conversation, Channel: "C0001", Name: "support"}),
			} {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.looks("teo", "Waits for you: 1000", "Page 1 of 125") // who and what Slack knows is asked once
	var best time.Duration
	for page := 2; page < 7; page++ {
		began := time.Now()
		w.clicksHome("teo", partWaiting, actHome+"_next")
		w.atHome("teo", fmt.Sprintf("Page %d of 125", page))
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	began := time.Now()
	who, all, _, err := w.bot.unsettledFor(context.Background(), "U0002", w.policy)
	theirs, _ := sorted(all, who, w.policy)
	read := time.Since(began)
	if err != nil || len(theirs) != waiting {
		t.Fatal(len(theirs), err)
	}
	t.Logf("rows=%d read=%.1fms click_to_page=%.1fms (the best of five)", waiting, read.Seconds()*1e3, best.Seconds()*1e3)
	if best > 3*time.Second {
		t.Errorf("a page took %s", best)
	}
}
