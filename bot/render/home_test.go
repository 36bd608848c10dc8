package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/home"
	"countersign/bot/render/wording"
	"countersign/store"
)

// tabOf returns the view and the content of a person's Home tab.
func tabOf(who approvers.Identity, waiting ...approvers.Request) (wording.View, *home.Tab) {
	vm := view.Model{
		Message: store.OutboxMessage{ID: "s_1", Kind: store.OutboxHome, Ref: "homes/U0002", To: "user:U0002", Posts: 2, Home: &store.Home{At: bottest.Noon}},
		Policy:  bottest.Policy(), Now: bottest.Noon,
	}
	tab := &home.Tab{Who: who, Asked: home.Paginate[home.Row](nil, 0, 1), Recent: home.Paginate[approvers.Request](nil, 0, 1), Grants: home.Paginate[view.ListedGrant](nil, 0, 1)}
	var list []home.Row
	for i := range waiting {
		card := bottest.ViewModel(waiting[i])
		row := home.Row{PendingItem: view.PendingItem{Request: &waiting[i]}, Conversation: card.Conversation}
		row.Messages = []store.OutboxMessage{{Kind: store.OutboxCard, To: "channel:#support-approvals", State: store.OutboxShown, Channel: "C0002", TS: "1772452900.000100"}}
		list = append(list, row)
	}
	tab.Waiting = home.Paginate(list, 0, home.PageRows[home.PartWaiting])
	return wording.View{Model: vm, WorkspaceURL: bottest.WorkspaceURL, Reader: block.Reader{Zone: time.FixedZone("CET", 3600), Locale: "de-DE"}}, tab
}

func TestHomes(t *testing.T) {
	teo := approvers.Identity{ID: approvers.Who("T0001", "U0002"), Name: "Teo"}
	refund := bottest.Request(bottest.RefundArgs)
	staged := bottest.Request(`{"user_id":"C-77","confirm":true}`)
	staged.ID, staged.Tool, staged.Preview, staged.Plan.Risk = "req_2", "cancel_account", "", approvers.Critical
	staged.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	long := bottest.Request(`{"order_id":"ORD-123","body":"` + strings.Repeat("日本語のとても長い文章。", 400) + `"}`)
	long.ID = "req_3"

	waiting, waitingTab := tabOf(teo, refund, staged, long)

	full, fullTab := tabOf(teo, refund)
	tab := fullTab
	tab.Waiting.Pages, tab.Waiting.Page, tab.Waiting.Total = 125, 1, 1000
	tab.More = true
	own := refund
	own.Facts.Requesters, own.Facts.Asker = []approvers.PersonID{teo.ID}, teo.ID
	tab.Asked = home.Paginate([]home.Row{{PendingItem: view.PendingItem{Request: &own}, Conversation: bottest.ViewModel(own).Conversation}}, 0, 5)
	tab.Recent = home.Paginate([]approvers.Request{
		bottest.ApprovedBy(bottest.Closed(refund, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0),
		bottest.Closed(own, approvers.Rejected, "U0003", "finance-director", "refunded already"), bottest.Closed(refund, approvers.Expired, "", "", "nobody decided in time"),
		bottest.ApprovedBy(staged, "U0002", "Teo", "team-lead", 0),
	}, 0, 8)
	tab.Away = approvers.Absence{Who: teo.ID, From: bottest.Noon, Until: bottest.Noon.Add(72 * time.Hour), Delegate: approvers.Who("T0001", "U0003"), DelegateName: "Ingrid"}
	tab.StandsInFor = []approvers.Absence{{Who: approvers.Who("T0001", "U0004"), Name: "Kenji", From: bottest.Noon, Until: bottest.Noon.Add(24 * time.Hour)}}
	tab.Grants = home.Paginate([]view.ListedGrant{{Grant: approvers.Grant{ID: "grant_1", State: approvers.GrantLive, Tool: "issue_refund", Agent: "support", By: teo.ID, Name: "Teo", Role: "team-lead", Uses: 3, Left: 2, Until: bottest.Noon.Add(time.Hour)}}}, 0, 4)

	unknown, unknownTab := tabOf(teo)
	call := store.Call{ID: "call_9", Tool: "issue_refund", Preview: "Refund of $5.00 for order ORD-9"}
	question := store.Call{ID: "call_8", ModelQuestion: &approvers.ModelQuestion{Question: "Which address?", ExpiresAt: bottest.Noon.Add(time.Hour)}}
	unknownTab.Waiting = home.Paginate([]home.Row{{PendingItem: view.PendingItem{Execution: &approvers.Execution{ID: "exec_9"}, Call: &call}}, {PendingItem: view.PendingItem{Call: &question}}}, 0, 8)

	empty, emptyTab := tabOf(teo)
	resting, restingTab := tabOf(teo)
	resting.Message.Home = &store.Home{Idle: true}
	guest, guestTab := tabOf(approvers.Identity{ID: "T0001/U0900", Guest: true})

	for name, one := range map[string]struct {
		v   wording.View
		tab *home.Tab
	}{
		"home_waiting": {waiting, waitingTab}, "home_full": {full, fullTab}, "home_unknown": {unknown, unknownTab},
		"home_empty": {empty, emptyTab}, "home_resting": {resting, restingTab}, "home_guest": {guest, guestTab},
	} {
		t.Run(name, func(t *testing.T) {
			bottest.Golden(t, name, homeDrawn(t, one.v, one.tab))
		})
	}
}

// homeDrawn draws a Home tab and checks it against Slack's limits.
func homeDrawn(t *testing.T, v wording.View, tab *home.Tab) []slack.Block {
	t.Helper()
	d, _, err := DrawHome(v, *tab)
	if err != nil {
		t.Fatal(err)
	}
	viewWithin(t, slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: d.Messages[0].Blocks}})
	return d.Messages[0].Blocks
}

// A Home tab with full sections of maximum size is within Slack's limits.
func TestLargestHome(t *testing.T) {
	big := strings.Repeat("𝕏", 5000)
	teo := approvers.Identity{ID: approvers.Who("T0001", "U0002"), Name: big}
	var many []approvers.Request
	for i := range 40 {
		r := bottest.Request(`{"body":"` + strings.Repeat("x\\n", 400) + big + `"}`)
		r.ID, r.Preview, r.Tool, r.Facts.AskerName = fmt.Sprint("req_", i), big, big, big
		r.Plan.Why, r.Plan.Stages = []string{big, big}, []approvers.Stage{{Approver: big, Quorum: 2}, {Approver: big, Quorum: 2}}
		many = append(many, bottest.Closed(r, approvers.Pending, "", "", ""))
	}
	v, tab := tabOf(teo, many...)
	tab.Waiting.Page, tab.Waiting.Pages = 1, 5
	tab.More, v.Pause = true, largestPause
	tab.Asked = home.Rows[home.Row]{List: tab.Waiting.List[:home.PageRows[home.PartAsked]], Page: 1, Pages: 3, Total: 99}
	for i := range many {
		many[i] = bottest.Closed(many[i], approvers.Rejected, "U0003", big, big)
	}
	tab.Recent = home.Rows[approvers.Request]{List: many[:home.PageRows[home.PartRecent]], Page: 1, Pages: 3, Total: 99}
	tab.Away = approvers.Absence{Who: teo.ID, From: bottest.Noon, Until: bottest.Noon.Add(72 * time.Hour), Delegate: "x", DelegateName: big}
	for range 20 {
		tab.StandsInFor = append(tab.StandsInFor, approvers.Absence{Who: "operator:x", Name: big, From: bottest.Noon, Until: bottest.Noon.Add(time.Hour)})
	}
	var grants []view.ListedGrant
	for i := range home.PageRows[home.PartGrants] {
		grants = append(grants, view.ListedGrant{Grant: approvers.Grant{ID: fmt.Sprint("grant_", i), State: approvers.GrantLive, Tool: big, Agent: big, By: "operator:x", Name: big, Role: big, Uses: 3, Left: 2, Until: bottest.Noon}})
	}
	tab.Grants = home.Rows[view.ListedGrant]{List: grants, Page: 1, Pages: 3, Total: 99}
	t.Logf("blocks=%d", len(homeDrawn(t, v, tab)))
}

// The foot of a Home tab names the program's version, if the bot has a version.
func TestHomeVersion(t *testing.T) {
	for version, want := range map[string]string{"": "Times are in your time zone.", "v1.2.3": "Times are in your time zone. Countersign v1.2.3."} {
		v, tab := tabOf(approvers.Identity{ID: "T1/U2", Name: "Teo"})
		tab.Version = version
		blocks := homeDrawn(t, v, tab)
		foot, err := json.Marshal(blocks[len(blocks)-1])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(foot), want+`"`) {
			t.Errorf("with version %q the last block is %s", version, foot)
		}
	}
}
