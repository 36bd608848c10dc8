package workflow

import (
	"context"
	"errors"

	"countersign/store"
)

// ErrNoResult says that a conversation has no such result to read.
var ErrNoResult = errors.New("this conversation has no run of that id with a result; take the id from the note on what was cut")

// WholeResult is all that the run of a call answered, also where the model was given its beginning. Only what a
// conversation asked for itself can be read there.
func (w *Workflow) WholeResult(ctx context.Context, conversation, execution string) (result string, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		result = ""
		e, err := r.Execution(execution)
		if errors.Is(err, store.ErrNotFound) || err == nil && (e.Conversation != conversation || e.FinishedAt.IsZero()) {
			return ErrNoResult
		}
		if err != nil {
			return err
		}
		result = e.Result
		files, err := r.Files(execution)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.Whole {
				data, err := r.FileData(execution, f.Index)
				result = string(data)
				return err
			}
		}
		return nil
	})
	return result, err
}
