package workflow

import (
	"context"
	"encoding/json"
	"mime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/store"
)

// Finish records a tool's result, and gives it to the model. Finish stores the result's files and shows them in the
// thread. If the text is too long for the card of the call's request, Finish also stores the text as a file.
func (w *Runs) Finish(ctx context.Context, execution string, ok bool, result string, files ...File) error {
	rows := fileRows(execution, files)
	whole := File{Name: "result.txt", Type: "text/plain", Data: []byte(result), Whole: true}
	cut := cutOnCard(result) && !slices.ContainsFunc(files, func(f File) bool { return f.Whole })
	return w.record(ctx, "finish", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		if e, err = e.Finish(ok, result, t.now); err != nil {
			return err
		}
		rows, files := rows, files
		if cut && e.Request != "" {
			whole.Name = WholeName(e.Tool, result)
			files = append(slices.Clone(files), whole)
			rows = fileRows(execution, files)
		}
		if err := t.runs.keepFiles(e, rows, files); err != nil {
			return err
		}
		return t.runs.finished(e)
	})
}

// Unrun records that the tool of a claimed execution was not called. The parameter why is the reason.
func (w *Runs) Unrun(ctx context.Context, execution, why string) error {
	return w.record(ctx, "unrun", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		if e, err = e.Refuse(why, t.now); err != nil {
			return err
		}
		return t.runs.finished(e)
	})
}

// t.finished writes an execution that ended, and the consequences of its end.
func (t runsTx) finished(e approvers.Execution) error {
	if err := t.questions.cancelElicitations(e.ID, whyOver); err != nil {
		return err
	}
	t.countRun(e)
	if err := t.PutExecution(e); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
		return err
	}
	if err := t.clearOutcome(e); err != nil {
		return err
	}
	facts := map[string]string{"execution": e.ID, "digest": e.Digest, "state": string(e.State)}
	if e.Unrun {
		facts["unrun"] = "true"
	}
	if err := t.audit(e.Chain(), approvers.AuditExecuted, "", facts, []byte(e.Result)); err != nil {
		return err
	}
	if err := t.grants.extendStreak(e); err != nil {
		return err
	}
	return t.returnResult(e)
}

// clearOutcome clears the timer that waits for a caller to report the outcome of a run. clearOutcome also wakes the
// callers that wait for the call.
func (t runsTx) clearOutcome(e approvers.Execution) error {
	t.callers.called(e.Call)
	if e.Caller == "" {
		return nil
	}
	return t.ClearTimer(store.TimerOutcome, e.ID)
}

// returnResult gives the outcome of a run to the model, and refreshes the messages that show the run.
func (t runsTx) returnResult(e approvers.Execution) error {
	var request *approvers.Request
	if e.Request != "" {
		r, err := t.Request(e.Request)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil { // a damaged request may be lost
			request = &r
		}
	}
	call, err := t.Call(e.Call)
	if err != nil {
		return err
	}
	if err := t.changedStep(e); err != nil {
		return err
	}
	call.Unrun = e.Unrun
	outcome, text := approvers.RunResult(t.policy, e, request)
	return t.turns.giveResult(call, outcome, text)
}

// changedStep refreshes every message that shows an execution.
func (t runsTx) changedStep(e approvers.Execution) error {
	call, err := t.Call(e.Call)
	if err != nil {
		return err
	}
	// If apply has changed the request in this transaction, it has refreshed the request's messages already.
	if e.Request != "" && !t.refreshed[refresh{ref: e.Request}] {
		if err := t.outbox.changedRef(e.Request); err != nil {
			return err
		}
		r, err := t.Request(e.Request)
		if err == nil {
			err = t.cards.changedBundle(r)
		}
		if store.IgnoreNotFound(err) != nil { // a damaged request may be lost
			return err
		}
	}
	if err := t.outbox.changedRef(e.ID); err != nil {
		return err
	}
	return t.outbox.changedTurn(e.Turn, store.OutboxStep, call.Step)
}

// File is a file in a run's result. Files are stored in addition to the text for the model.
type File struct {
	Name  string // the name that people see
	Type  string // the media type
	Data  []byte
	Whole bool // the file has the whole result; the model's text, or the card, has only the beginning
}

// CardResult is the maximum number of characters of a result that a card shows.
const CardResult = 600

// cutOnCard reports whether a result is too long for its card.
func cutOnCard(result string) bool { return utf8.RuneCountInString(result) > CardResult }

// WholeName returns a name for the file that holds a tool's whole result.
func WholeName(tool, result string) string {
	if json.Valid([]byte(result)) {
		return tool + "-result.json"
	}
	return tool + "-result.txt"
}

// fileRows converts files to rows of the store, and computes their hashes. Finish converts the tool's files before the
// transaction, so that a repeated transaction does not compute their hashes again.
func fileRows(execution string, files []File) []store.File {
	var out []store.File
	for i, f := range files {
		if _, _, err := mime.ParseMediaType(f.Type); err != nil {
			f.Type = "application/octet-stream"
		}
		out = append(out, store.File{Execution: execution, Index: i, Name: f.Name, Type: f.Type, Whole: f.Whole}.Of(f.Data))
	}
	return out
}

// keepFiles stores the files of a run, and shows the files in the conversation's thread.
func (t runsTx) keepFiles(e approvers.Execution, rows []store.File, files []File) error {
	for i, row := range rows {
		row.At = t.now
		if err := t.PutFile(row, files[i].Data); err != nil {
			return err
		}
		kind, _, _ := strings.Cut(row.Type, ";") // a parameter of the media type may be a text, such as the file's name
		facts := map[string]string{"execution": e.ID, "file": strconv.Itoa(i), "type": strings.TrimSpace(kind), "bytes": strconv.Itoa(row.Size)}
		if row.Whole {
			facts["whole"] = "result"
		}
		if err := t.audit(e.Chain(), approvers.AuditAttached, "", facts, map[string]string{"name": row.Name, "sha256": row.Hash}); err != nil {
			return err
		}
		if err := t.outbox.add(store.OutboxMessage{Kind: store.OutboxAttachment, Ref: e.ID, Step: i, To: store.ToConversation + e.Conversation}); err != nil {
			return err
		}
	}
	return nil
}
