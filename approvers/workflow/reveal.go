package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// Reveal records that a person was shown the masked values of a request, in a form that only they see. secrets are the
// paths of the masked values. body is the form as the record keeps it, without the values. If the person may decide the
// request in its current form, they can approve it from then on.
func (w *Requests) Reveal(ctx context.Context, c Click, secrets []string, body []byte) error {
	return w.update(ctx, "reveal", func(t *tx) error {
		if err := t.records.auditRevealed(c, body); err != nil {
			return err
		}
		cur, denied, err := t.requests.current(c.Request)
		if err != nil {
			return err
		}
		if denied == nil {
			after, events, denied := cur.now.Reveal(t.deciding(), t.requests.action(c), secrets)
			if denied == nil {
				return t.apply(after, append(cur.events, events...))
			}
		}
		return t.requests.applyIfChanged(cur)
	})
}

// auditRevealed records what a person was shown, once for each person and each set of arguments.
func (t recordsTx) auditRevealed(c Click, body []byte) error {
	records, err := t.Audit(c.Request)
	if err != nil {
		return err
	}
	for _, a := range records {
		if a.Kind == approvers.AuditShown && a.Actor == c.Who.ID && a.Facts[approvers.FactShownAs] == approvers.ShownAsReveal && a.Facts["digest"] == c.Digest {
			return nil
		}
	}
	facts := map[string]string{approvers.FactShownAs: approvers.ShownAsReveal, "to": store.ToUser + c.Who.ID.User(), "rendering": c.Rendering, "digest": c.Digest}
	return t.audit(c.Request, approvers.AuditShown, c.Who.ID, facts, body)
}
