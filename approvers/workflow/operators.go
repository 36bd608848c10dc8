package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// If the policy names a channel for the operators, the bot posts a notice there when a problem begins, and edits the
// notice when the problem ends. The transaction that changes the state also stores the problem and requests the notice.
// A problem that lasts is not posted again. If a problem ends and comes back within noticeAgain, its last notice is
// edited. If it comes back later, it is posted again. Problems that begin while a notice waits for its post join this
// notice.
//
// Each notice is an outbox message with the Ref operatorsRef. When all problems of a notice have ended, a later notice
// uses the outbox message again, for a new Slack message. So the store has few such messages.

const (
	operatorsRef   = "operators"
	noticeDelay    = 10 * time.Second // the time between the first problem of a notice and the post, so that the notice has all problems of a burst
	noticeInterval = time.Minute      // the shortest time between the posts of two notices
	noticeMostWait = 5 * time.Minute  // the longest delay of a post, also after the clock was set back
	noticeAgain    = time.Hour
	maxProblems    = 100 // the maximum number of problems in one notice
	maxNotices     = 50
	maxUnseen      = 50 // the maximum number of requests that are stored with a problem
)

// begin stores a problem, and requests a notice about it. If the operators know of this problem and it still lasts,
// begin only updates the requests and the description of the stored problem (joinProblem).
func (t operatorsTx) begin(o *settings.Operators, p settings.Problem) error {
	if notice, last := o.Find(p.Kind, p.Of); last != nil {
		if last.Lasts() {
			return t.joinProblem(notice, last, p)
		}
		if t.now.Sub(notice.At) < noticeAgain {
			s, err := t.OutboxMessage(notice.Message)
			if store.IgnoreNotFound(err) != nil {
				return err
			}
			if s.State == store.OutboxWanted || s.State == store.OutboxShown {
				*last = p
				return t.outbox.changed(s)
			}
		}
	}
	notice, err := t.waitingNotice(o)
	if err != nil {
		return err
	}
	notice.Problems = append(notice.Problems, p)
	return nil
}

// joinProblem adds the requests of p to last, and updates the description of last. The parameter last is the stored
// entry of the same problem, which still lasts.
func (t operatorsTx) joinProblem(notice *settings.OperatorNotice, last *settings.Problem, p settings.Problem) error {
	for _, r := range p.Requests {
		switch {
		case slices.Contains(last.Requests, r):
		case len(last.Requests) >= maxUnseen:
			last.More = true
		default:
			last.Requests = append(last.Requests, r)
		}
	}
	if last.How == p.How {
		return nil
	}
	last.How = p.How
	return t.changedNotice(notice)
}

// end records that a problem has ended, and requests an edit of its notice.
func (t operatorsTx) end(notice *settings.OperatorNotice, p *settings.Problem) error {
	p.Until, p.Requests, p.More = t.now, nil, false
	return t.changedNotice(notice)
}

func (t operatorsTx) changedNotice(notice *settings.OperatorNotice) error {
	s, err := t.OutboxMessage(notice.Message)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	return t.outbox.changed(s)
}

// waitingNotice returns a notice that is not posted yet. If there is no such notice, waitingNotice schedules the post
// of a new notice.
func (t operatorsTx) waitingNotice(o *settings.Operators) (*settings.OperatorNotice, error) {
	to := store.ToChannel + t.policy.Operators.Channel
	var free string // an outbox message whose problems have ended
	for i := len(o.Notices) - 1; i >= 0; i-- {
		n := &o.Notices[i]
		s, err := t.OutboxMessage(n.Message)
		if err != nil {
			if store.IgnoreNotFound(err) != nil {
				return nil, err
			}
			continue
		}
		switch {
		case isUnposted(s) && len(n.Problems) < maxProblems && s.State == store.OutboxWanted && s.To == to:
			return n, t.outbox.changed(s)
		case isUnposted(s) && len(n.Problems) < maxProblems && s.State == store.OutboxUnreachable:
			n.At = t.nextPost(o)
			return n, t.post(s, to, n.At)
		case !n.Lasts() && s.State != store.OutboxWanted && (s.State == store.OutboxRemoved || t.now.Sub(n.At) >= noticeAgain),
			len(o.Notices) >= maxNotices && i == 0:
			free = n.Message
		}
	}
	n := settings.OperatorNotice{Message: free, At: t.nextPost(o)}
	if free == "" {
		s, err := t.outbox.put(store.OutboxMessage{Kind: store.OutboxOperators, Ref: operatorsRef, To: to})
		if err == nil {
			err = t.showLater(s, n.At)
		}
		if err != nil {
			return nil, err
		}
		n.Message = s.ID
	} else {
		s, err := t.OutboxMessage(free)
		if err == nil {
			err = t.post(s, to, n.At)
		}
		if err != nil {
			return nil, err
		}
		n.Posts = s.Posts
		o.Notices = slices.DeleteFunc(o.Notices, func(n settings.OperatorNotice) bool { return n.Message == free })
	}
	o.Notices = append(o.Notices, n)
	return &o.Notices[len(o.Notices)-1], nil
}

// isUnposted reports whether Slack does not show a notice yet, because its post waits or was refused.
func isUnposted(s store.OutboxMessage) bool {
	return s.TS == "" && (s.State == store.OutboxWanted || s.State == store.OutboxUnreachable)
}

// nextPost determines the time at which the next notice is posted, and stores the time in o.Last.
func (t operatorsTx) nextPost(o *settings.Operators) time.Time {
	at := t.now.Add(noticeDelay)
	if next := o.Last.Add(noticeInterval); next.After(at) {
		at = next
	}
	if most := t.now.Add(noticeMostWait); at.After(most) {
		at = most
	}
	o.Last = at
	return at
}

// post schedules the post of a notice as a new Slack message.
func (t operatorsTx) post(s store.OutboxMessage, to string, at time.Time) error {
	if err := t.reposts.postNext(s, to); err != nil {
		return err
	}
	s.To = to
	return t.showLater(s, at)
}

func (t operatorsTx) showLater(s store.OutboxMessage, at time.Time) error {
	return t.SetTimer(store.Timer{Kind: s.Rank.Timer(), Ref: s.ID, Due: at, PutOff: t.now, Lane: s.To})
}

// lasts reports whether a problem of a notice still lasts.
func (t operatorsTx) lasts(s store.OutboxMessage) (bool, error) {
	o, _, err := settings.ReadOperators(t)
	n := o.Notice(s.ID)
	return n != nil && n.Lasts(), err
}

// change reads the notices, changes them, and writes them if they have changed. If the policy names no channel for the
// operators, change does nothing.
func (t operatorsTx) change(change func(*settings.Operators) error) error {
	if t.policy.Operators.Channel == "" {
		return nil
	}
	return t.changeAlways(change)
}

func (t operatorsTx) changeAlways(change func(*settings.Operators) error) error {
	o, s, err := settings.ReadOperators(t)
	if err != nil {
		return err
	}
	before, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := change(&o); err != nil {
		return err
	}
	if s.Value, err = json.Marshal(o); err != nil || bytes.Equal(s.Value, before) {
		return err
	}
	return t.PutSetting(s)
}

// webhookOff tells the operators that a client's webhook was switched off.
func (t operatorsTx) webhookOff(client string, w settings.Webhook) error {
	return t.change(func(o *settings.Operators) error { return t.begin(o, webhookProblem(client, w)) })
}

func webhookProblem(client string, w settings.Webhook) settings.Problem {
	return settings.Problem{Kind: settings.ProblemWebhook, Of: client, Since: w.Off, Why: w.Why}
}

// webhookOn ends the problem that a client's webhook was switched off.
func (t operatorsTx) webhookOn(client string) error {
	return t.change(func(o *settings.Operators) error {
		if notice, p := o.Find(settings.ProblemWebhook, client); p != nil && p.Lasts() {
			return t.end(notice, p)
		}
		return nil
	})
}

// FailedCheck is a check of /readyz that fails.
type FailedCheck struct {
	Since time.Time
	Why   string
	Long  bool // the check has failed for long enough to tell the operators
}

// FollowChecks tells the operators which checks of /readyz fail for long. The parameter failed has all checks that
// fail, by name. The problems of all other checks end. A check that fails for a short time ends no problem, because an
// earlier process may have told the operators. FollowChecks also ends the problems that have happened once, if
// the operators were told of them noticeAgain ago.
func (w *Outbox) FollowChecks(ctx context.Context, failed map[string]FailedCheck) error {
	var known settings.Operators
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		known, _, err = settings.ReadOperators(r)
		return err
	})
	follows := func(p settings.Problem) bool { return p.Lasts() && (p.Kind == settings.ProblemCheck || p.Kind.Once()) }
	long := slices.ContainsFunc(slices.Collect(maps.Values(failed)), func(f FailedCheck) bool { return f.Long })
	if err == nil && !long && !slices.ContainsFunc(known.Notices, func(n settings.OperatorNotice) bool { return slices.ContainsFunc(n.Problems, follows) }) {
		return nil
	}
	return w.update(ctx, "follow checks", func(t *tx) error {
		return t.operators.change(func(o *settings.Operators) error {
			names := map[string]bool{}
			for _, name := range slices.Sorted(maps.Keys(failed)) {
				if names[name] = true; !failed[name].Long {
					continue
				}
				if err := t.operators.begin(o, settings.Problem{Kind: settings.ProblemCheck, Of: name, Since: failed[name].Since, Why: failed[name].Why}); err != nil {
					return err
				}
			}
			return errors.Join(t.operators.endOthers(o, settings.ProblemCheck, names), t.operators.endTold(o))
		})
	})
}

// endTold ends the problems that have happened once and were posted noticeAgain ago. Their notices stay as they are.
func (t operatorsTx) endTold(o *settings.Operators) error {
	for i := range o.Notices {
		n := &o.Notices[i]
		s, err := t.OutboxMessage(n.Message)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && (!n.Posted(s) || t.now.Sub(n.At) < noticeAgain) {
			continue
		}
		for j := range n.Problems {
			if p := &n.Problems[j]; p.Kind.Once() && p.Lasts() {
				p.Until, p.Requests, p.More = t.now, nil, false
			}
		}
	}
	return nil
}

// happened tells the operators of a problem that can't end: of names the record or the delivery that was set aside. If
// the stored notices are damaged, happened does nothing, so that this damage can be handled.
func (t operatorsTx) happened(kind settings.ProblemKind, of, why string) error {
	err := t.change(func(o *settings.Operators) error {
		return t.begin(o, settings.Problem{Kind: kind, Since: t.now, Why: why, First: of, Requests: []string{of}})
	})
	if store.OnlyDamaged(err) {
		return nil
	}
	return err
}

// follow tells the operators that a request can't be decided until they change something (approvers.NeedsOperator), or
// that the problem has ended.
func (t operatorsTx) follow(r approvers.Request, events []approvers.Event) error {
	if r.Unreached == nil && !approvers.HasEvent[approvers.StageStarted](events) {
		return nil
	}
	return t.change(func(o *settings.Operators) error {
		p := t.unreachedProblem(r)
		if approvers.NeedsOperator(r) && lists(o, p.Kind, r.ID) {
			return nil
		}
		err := t.endUnreached(o, func(id string, _ settings.ProblemKind) (bool, error) { return id != r.ID, nil })
		if err != nil || !approvers.NeedsOperator(r) {
			return err
		}
		return t.begin(o, p)
	})
}

// lists reports whether a problem of this kind lists the request. After a new policy names other addresses or roles for
// the request, the request stays in the same problem.
func lists(o *settings.Operators, kind settings.ProblemKind, request string) bool {
	return slices.ContainsFunc(o.Notices, func(n settings.OperatorNotice) bool {
		return slices.ContainsFunc(n.Problems, func(p settings.Problem) bool { return p.Kind == kind && slices.Contains(p.Requests, request) })
	})
}

// unreachedProblem returns the problem of a request that needs the operators. A role without members whom the bot can
// write to is the same problem as a role in which nobody is left.
func (t operatorsTx) unreachedProblem(r approvers.Request) settings.Problem {
	p := settings.Problem{Kind: settings.ProblemCards, Tool: r.Tool, First: r.ID, Requests: []string{r.ID}}
	if r.Unreached != nil {
		p.Since, p.Why = r.Unreached.Since, r.Unreached.Cause
	}
	of := view.Addresses(t.policy, r)
	switch p.Why {
	case approvers.NobodyLeft, approvers.NobodyThere:
		p.Kind, of = settings.ProblemPeople, r.Roles()
	case approvers.TooFew:
		p.Kind, of = settings.ProblemQuorum, r.Roles()
	}
	p.Of = strings.Join(of, "\n")
	return p
}

// endUnreached updates the problems about requests that need the operators: it removes the requests for which the
// callback "still" returns false. A problem without requests ends.
func (t operatorsTx) endUnreached(o *settings.Operators, still func(request string, kind settings.ProblemKind) (bool, error)) error {
	for i := range o.Notices {
		for j := range o.Notices[i].Problems {
			p := &o.Notices[i].Problems[j]
			if p.Kind != settings.ProblemCards && p.Kind != settings.ProblemPeople && p.Kind != settings.ProblemQuorum || !p.Lasts() {
				continue
			}
			var left []string
			for _, id := range p.Requests {
				unseen, err := still(id, p.Kind)
				if err != nil {
					return err
				}
				if unseen {
					left = append(left, id)
				}
			}
			if p.Requests = left; len(left) > 0 {
				continue
			}
			if err := t.endOrRefill(o, &o.Notices[i], p, still); err != nil {
				return err
			}
		}
	}
	return nil
}

// endOrRefill ends a problem without requests. If there were more requests than a problem can hold, endOrRefill first
// looks for other requests with the same problem.
func (t operatorsTx) endOrRefill(o *settings.Operators, notice *settings.OperatorNotice, p *settings.Problem,
	still func(request string, kind settings.ProblemKind) (bool, error),
) error {
	if p.More {
		unreached, err := view.UnreachedRequests(t)
		if err != nil {
			return err
		}
		p.More = false
		for _, r := range unreached {
			unseen, err := still(r.ID, p.Kind)
			if err != nil {
				return err
			}
			if other := t.unreachedProblem(r); unseen && other.Kind == p.Kind && other.Of == p.Of && !lists(o, p.Kind, r.ID) {
				if err := t.joinProblem(notice, p, other); err != nil {
					return err
				}
			}
		}
	}
	if len(p.Requests) > 0 {
		return nil
	}
	return t.end(notice, p)
}

// ReviewProblems compares the problems that the operators were told of with the current state. The bot calls
// ReviewProblems when it starts, and when the policy or the tools have changed.
func (w *Outbox) ReviewProblems(ctx context.Context) error {
	policy := w.Policy()
	var stored settings.Operators
	var unreached []approvers.Request
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		unreached = nil
		if stored, _, err = settings.ReadOperators(r); err == nil && policy.Operators.Channel != "" {
			unreached, err = view.UnreachedRequests(r)
		}
		return err
	})
	if err != nil && !store.OnlyDamaged(err) { // the transaction below sets a damaged record aside
		return err
	}
	if policy.Operators.Channel == "" && len(stored.Notices) == 0 && err == nil {
		return nil
	}
	return w.update(ctx, "review problems", func(t *tx) error { return t.operators.review(unreached) })
}

func (t operatorsTx) review(unreached []approvers.Request) error {
	return t.changeAlways(func(o *settings.Operators) error {
		if t.policy.Operators.Channel == "" {
			return t.forgetUnposted(o)
		}
		if err := t.reviewWebhooks(o); err != nil {
			return err
		}
		if err := t.reviewTools(o); err != nil {
			return err
		}
		if err := t.reviewUnreached(o, unreached); err != nil {
			return err
		}
		return t.postAgain(o, t.isStuck)
	})
}

// isStuck reports whether a waiting notice needs a new timer for its post in the policy's channel. There are two
// possible reasons: the policy has named another channel since, or an earlier version of the program gave up the
// notice, because it did not know notices.
func (t operatorsTx) isStuck(s store.OutboxMessage) (bool, error) {
	if s.To != store.ToChannel+t.policy.Operators.Channel {
		return true, nil
	}
	if s.State != store.OutboxUnreachable {
		return false, nil
	}
	_, err := t.Timer(store.TimerRepost, s.ID)
	return err != nil, store.IgnoreNotFound(err)
}

// forgetUnposted removes the notices that Slack has not shown. The bot can't post them, because the policy names no
// channel for the operators any more.
func (t operatorsTx) forgetUnposted(o *settings.Operators) error {
	var kept []settings.OperatorNotice
	for _, n := range o.Notices {
		s, err := t.OutboxMessage(n.Message)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if n.Posted(s) {
			kept = append(kept, n)
		}
	}
	o.Notices = kept
	return nil
}

func (t operatorsTx) reviewWebhooks(o *settings.Operators) error {
	off := map[string]bool{}
	for _, c := range t.policy.Clients {
		if c.Webhook == nil {
			continue
		}
		w, _, err := settings.ReadWebhook(t, c.Name, c.Webhook.Target())
		if err != nil {
			return err
		}
		if off[c.Name] = !w.Off.IsZero(); !off[c.Name] {
			continue
		}
		if err := t.begin(o, webhookProblem(c.Name, w)); err != nil {
			return err
		}
	}
	return t.endOthers(o, settings.ProblemWebhook, off)
}

func (t operatorsTx) reviewTools(o *settings.Operators) error {
	drifted := map[string]bool{}
	for _, d := range t.w.Tools.Drift() {
		if drifted[d.Tool] = true; d.How == DriftUnknown {
			continue
		}
		since := t.now
		if _, p := o.Find(settings.ProblemTool, d.Tool); p != nil && p.Lasts() {
			since = p.Since
		}
		if err := t.begin(o, settings.Problem{Kind: settings.ProblemTool, Of: d.Tool, Since: since, Source: d.Source, How: string(d.How)}); err != nil {
			return err
		}
	}
	return t.endOthers(o, settings.ProblemTool, drifted)
}

// endOthers ends all problems of a kind, except problems whose Of is in last.
func (t operatorsTx) endOthers(o *settings.Operators, kind settings.ProblemKind, last map[string]bool) error {
	for i := range o.Notices {
		for j := range o.Notices[i].Problems {
			p := &o.Notices[i].Problems[j]
			if p.Kind != kind || !p.Lasts() || last[p.Of] {
				continue
			}
			if err := t.end(&o.Notices[i], p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t operatorsTx) reviewUnreached(o *settings.Operators, unreached []approvers.Request) error {
	still := func(id string, kind settings.ProblemKind) (bool, error) {
		r, err := t.Request(id)
		return approvers.NeedsOperator(r) && t.unreachedProblem(r).Kind == kind, store.IgnoreNotFound(err)
	}
	if err := t.endUnreached(o, still); err != nil {
		return err
	}
	listed := map[string]int{}
	for _, r := range unreached {
		p := t.unreachedProblem(r)
		if listed[string(p.Kind)+p.Of]++; listed[string(p.Kind)+p.Of] > maxUnseen {
			continue
		}
		unseen, err := still(r.ID, p.Kind)
		if err != nil {
			return err
		}
		if !unseen || lists(o, p.Kind, r.ID) {
			continue
		}
		if err := t.begin(o, p); err != nil {
			return err
		}
	}
	return nil
}

// postAgain schedules posts in the policy's channel for notices that are not posted yet and whose problems last. The
// callback "which" selects the notices.
func (t operatorsTx) postAgain(o *settings.Operators, which func(store.OutboxMessage) (bool, error)) error {
	for i := range o.Notices {
		n := &o.Notices[i]
		s, err := t.OutboxMessage(n.Message)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || !n.Lasts() || !isUnposted(s) {
			continue
		}
		if now, err := which(s); err != nil {
			return err
		} else if !now {
			continue
		}
		n.At = t.nextPost(o)
		if err := t.post(s, store.ToChannel+t.policy.Operators.Channel, n.At); err != nil {
			return err
		}
	}
	return nil
}

// again tries to post the notices that Slack refused. again is called after the bot has joined a channel.
func (t operatorsTx) again() error {
	return t.change(func(o *settings.Operators) error {
		return t.postAgain(o, func(s store.OutboxMessage) (bool, error) { return s.State == store.OutboxUnreachable, nil })
	})
}
