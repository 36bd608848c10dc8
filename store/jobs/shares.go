package jobs

import (
	"context"
	"errors"

	"countersign/store"
)

// watchShares calls Gained with the shares that this process gets, because these shares may have unfinished work.
func (r *Runner) watchShares(ctx context.Context) error {
	var has store.Shares
	if store.IsAlone(r.Replica) {
		has = store.AllShares // the process has already continued an earlier process's work when it started
	}
	for {
		changed := r.Replica.Changed()
		now := r.Replica.Shares()
		has &= now
		if gained := now &^ has; gained != 0 {
			err := r.Gained(ctx, gained)
			switch {
			case store.Refused(err):
				unhurried(ctx)
				if ctx.Err() == nil {
					continue
				}
			case errors.Is(err, store.ErrDamaged):
				r.Log.ErrorContext(ctx, "the unfinished work of an earlier process could not be taken over yet; each run is taken over when its lease ends", "error", err)
			case err != nil:
				return err
			}
			has = now
			r.Wake()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
