package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// viewGrant reads a grant, and where it was given.
func (m *ViewModel) viewGrant(w *Workflow, r store.Reader, id string) error {
	g, err := r.Grant(id)
	if err != nil {
		return err
	}
	m.Grant = &g
	if g.State == approvers.GrantLive && m.Now.Before(g.Until) {
		m.Stalled = g.Stalled(approvers.DecisionContext{Policy: m.Policy, Now: m.Now}, w.hash(g.Tool))
	}
	if g.Conversation == "" {
		return nil
	}
	m.Conversation, err = r.Conversation(g.Conversation)
	return err
}

// grantOf reads the grant that an execution ran under; nil for none.
func grantOf(r store.Reader, e approvers.Execution) (*approvers.Grant, error) {
	if e.GrantUse == 0 {
		return nil, nil
	}
	g, err := r.Grant(e.Grant)
	return &g, err
}

// grantOwnerOf is who gave the grant that an execution ran under; "" for none.
func grantOwnerOf(r store.Reader, e approvers.Execution) (approvers.PersonID, error) {
	g, err := grantOf(r, e)
	if g == nil || err != nil {
		return "", err
	}
	return g.By, nil
}

// Grants lists the grants that are in force, oldest first, each with the conversation that it was given in and where a
// person sees it.
func (w *Workflow) Grants(ctx context.Context, who approvers.PersonID) (out []GrantView, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		out = nil
		open, err := r.OpenGrants("")
		if err != nil {
			return err
		}
		for _, g := range open {
			if g.State != approvers.GrantLive || !w.now().Before(g.Until) {
				continue
			}
			vm, err := viewListedGrant(r, g, who)
			if err != nil {
				return err
			}
			out = append(out, vm)
		}
		return nil
	})
	return out, err
}

// GrantView is a grant in a list.
type GrantView struct {
	Grant        approvers.Grant
	Conversation store.Conversation   // zero: it holds in all of the agent's
	Own          *store.OutboxMessage // the person's own message about it, as far as Slack shows one
}

func viewListedGrant(r store.Reader, g approvers.Grant, who approvers.PersonID) (GrantView, error) {
	vm := GrantView{Grant: g}
	var err error
	if g.Conversation != "" {
		if vm.Conversation, err = r.Conversation(g.Conversation); err != nil {
			return vm, err
		}
	}
	messages, err := r.OutboxMessagesOf(g.ID)
	for _, s := range messages {
		if s.To == toUser+who.User() && s.State != store.OutboxUnreachable && s.State != store.OutboxRemoved {
			vm.Own = &s
		}
	}
	return vm, err
}

// SendGrants has somebody shown grants by direct message that they have no message about yet.
func (w *Workflow) SendGrants(ctx context.Context, inbox string, who approvers.PersonID, grants []string) error {
	return w.update(ctx, "send grants", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		for _, g := range grants {
			if err := t.wantOnce(store.OutboxMessage{Kind: store.OutboxGrant, Ref: g, To: toUser + who.User()}); err != nil {
				return err
			}
		}
		return nil
	})
}

// showGrants has all grants shown again, because the policy changed that they hold under.
func (w *Workflow) showGrants(ctx context.Context) error {
	return w.update(ctx, "re-evaluate", func(t *tx) error {
		t.homes = true
		open, err := t.OpenGrants("")
		if err != nil {
			return err
		}
		for _, g := range open {
			if err := t.changedRef(g.ID); err != nil {
				return err
			}
		}
		return nil
	})
}
