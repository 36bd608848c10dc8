package desk

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// seeGrant reads a grant, and where it was given.
func (s *Sight) seeGrant(d *Desk, r store.Reader, id string) error {
	g, err := r.Grant(id)
	if err != nil {
		return err
	}
	s.Grant = &g
	if g.State == approvers.GrantLive && s.Now.Before(g.Until) {
		s.Stalled = g.Stalled(approvers.Deciding{Policy: s.Policy, Now: s.Now}, d.hash(g.Tool))
	}
	if g.Conversation == "" {
		return nil
	}
	s.Conversation, err = r.Conversation(g.Conversation)
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

// giverOf is who gave the grant that an execution ran under; "" for none.
func giverOf(r store.Reader, e approvers.Execution) (approvers.PersonID, error) {
	g, err := grantOf(r, e)
	if g == nil || err != nil {
		return "", err
	}
	return g.By, nil
}

// Grants lists the grants that are in force, oldest first, each with the conversation that it was given in and where a person sees it.
func (d *Desk) Grants(ctx context.Context, who approvers.PersonID) (out []GrantSight, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		out = nil
		open, err := r.OpenGrants("")
		if err != nil {
			return err
		}
		for _, g := range open {
			if g.State != approvers.GrantLive || !d.now().Before(g.Until) {
				continue
			}
			sight, err := seeListed(r, g, who)
			if err != nil {
				return err
			}
			out = append(out, sight)
		}
		return nil
	})
	return out, err
}

// GrantSight is a grant in a list.
type GrantSight struct {
	Grant        approvers.Grant
	Conversation store.Conversation // zero: it holds in all of the agent's
	Own          *store.Surface     // the person's own message about it, as far as Slack shows one
}

func seeListed(r store.Reader, g approvers.Grant, who approvers.PersonID) (GrantSight, error) {
	sight := GrantSight{Grant: g}
	var err error
	if g.Conversation != "" {
		if sight.Conversation, err = r.Conversation(g.Conversation); err != nil {
			return sight, err
		}
	}
	surfaces, err := r.SurfacesOf(g.ID)
	for _, s := range surfaces {
		if s.To == toUser+who.User() && s.State != store.SurfaceUnreachable && s.State != store.SurfaceGone {
			sight.Own = &s
		}
	}
	return sight, err
}

// SendGrants has somebody shown grants by direct message that they have no message about yet.
func (d *Desk) SendGrants(ctx context.Context, inbox string, who approvers.PersonID, grants []string) error {
	return d.update(ctx, "send grants", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		for _, g := range grants {
			if err := t.wantOnce(store.Surface{Kind: store.SurfaceGrant, Ref: g, To: toUser + who.User()}); err != nil {
				return err
			}
		}
		return nil
	})
}

// showGrants has all grants shown again, because the policy changed that they hold under.
func (d *Desk) showGrants(ctx context.Context) error {
	return d.update(ctx, "reconsider", func(t *tx) error {
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
