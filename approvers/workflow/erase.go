package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// ErrNotOver means that a call, request or run can't be erased, because it has not ended.
var ErrNotOver = errors.New("it is not over yet")

// Erased counts the erased records.
type Erased struct {
	Payloads   int // payloads of audit records
	Renderings int // posted versions of cards
	Files      int // files of the call's runs
	Chains     int // audit chains that had texts of the call
}

// Erase erases the texts of people and of the model about a call. These are the texts in the call's audit records, the
// posted versions of its cards, and the texts in the request, the executions and the call. The audit still says who
// decided, when, and about which digest. The messages of the conversation remain. The parameter chain is the id of the
// call's audit chain. This is the id of the call's request. If nobody was asked, it is the id of the call's execution
// or of the call. Other requests on the same cards must have ended too.
func (w *History) Erase(ctx context.Context, chain string, who approvers.PersonID, reason string) (done Erased, err error) {
	err = w.update(ctx, "erase", func(t *tx) error {
		e := &erasing{tx: t, chain: chain, who: who, reason: reason, hashes: map[string]bool{}, beside: map[string]bool{}}
		if err := e.find(); err != nil {
			return err
		}
		err := e.everything()
		done = e.done
		return err
	})
	return done, err
}

// erasing holds the records of a call that Erase changes.
type erasing struct {
	*tx
	chain, reason string
	who           approvers.PersonID
	request       *approvers.Request
	runs          []approvers.Execution
	call          *store.Call
	hashes        map[string]bool // hashes of the renderings that showed the call
	beside        map[string]bool // other requests that these renderings showed
	done          Erased
}

// e.find reads the chain's call, request and executions, and checks that they have ended.
func (e *erasing) find() error {
	if _, err := e.AuditHead(e.chain); err != nil {
		return err
	}
	call := e.chain
	if r, err := e.Request(e.chain); err == nil {
		e.request, call = &r, r.Call
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if x, err := e.Execution(e.chain); err == nil {
		call = x.Call
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	c, err := e.Call(call)
	if errors.Is(err, store.ErrNotFound) {
		return nil // the conversation was erased before, or the chain is of another kind
	}
	if err != nil {
		return err
	}
	e.call = &c
	all, err := e.Executions(c.Conversation)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Call == c.ID && (e.request == nil || x.Request == e.request.ID) {
			e.runs = append(e.runs, x)
		}
	}
	return e.over()
}

// e.over checks that the call, its request and its executions have ended.
func (e *erasing) over() error {
	conversation, err := e.Conversation(e.call.Conversation)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case err == nil && conversation.Turn == e.call.Turn, e.request != nil && e.request.State.Open():
		return ErrNotOver
	}
	for _, x := range e.runs {
		if x.State == approvers.ExecutionExecuting || x.State == approvers.ExecutionUnknown {
			return ErrNotOver
		}
	}
	return nil
}

func (e *erasing) everything() error {
	if err := e.outboxMessages(); err != nil {
		return err
	}
	if err := e.payloads(e.chain, nil); err != nil {
		return err
	}
	for id := range e.beside {
		if err := e.shownBeside(id); err != nil {
			return err
		}
	}
	if err := e.homes(); err != nil {
		return err
	}
	return e.records()
}

// e.homes erases the stored versions of the watched Home tabs, because each version may have shown the call. The next
// update sends these Home tabs to Slack again, even if their content is unchanged.
func (e *erasing) homes() error {
	return e.tx.homes.eachHome(func(s store.OutboxMessage) error {
		n, err := e.EraseRenderings(s.ID, 0)
		if err != nil {
			return err
		}
		e.done.Renderings += n
		again := *s.Home
		again.ViewHash = ""
		s.Home = &again
		return e.PutOutboxMessage(s)
	})
}

// e.outboxMessages erases the posted versions of every message that showed the call.
func (e *erasing) outboxMessages() error {
	refs := []string{e.chain}
	if e.call != nil {
		refs = append(refs, e.call.ID, e.call.Turn)
	}
	for _, x := range e.runs {
		refs = append(refs, x.ID)
		asked, err := e.Elicitations(x.ID)
		if err != nil {
			return err
		}
		for _, q := range asked {
			refs = append(refs, q.ID)
		}
	}
	for _, ref := range refs {
		list, err := e.OutboxMessagesOf(ref)
		if err != nil {
			return err
		}
		for _, s := range list {
			if e.call != nil && ref == e.call.Turn && s.Step != e.call.Step && !slices.Contains(s.Steps, e.call.Step) {
				continue // the message shows another step of the turn, or an answer that does not describe the call
			}
			if err := e.outboxMessage(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *erasing) outboxMessage(s store.OutboxMessage) error {
	if s.DraftText != "" {
		s.DraftText = ""
		if err := e.PutOutboxMessage(s); err != nil {
			return err
		}
	}
	posts, err := e.Renderings(s.ID)
	if err != nil {
		return err
	}
	for _, post := range posts {
		e.hashes[post.Hash] = true
		for _, shown := range post.Shows {
			if shown.Request == "" || shown.Request == e.chain {
				continue
			}
			r, err := e.Request(shown.Request)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if r.State.Open() {
				return fmt.Errorf("%w: %s is on the same card, and is still open", ErrNotOver, shown.Request)
			}
			e.beside[shown.Request] = true
		}
	}
	n, err := e.EraseRenderings(s.ID, 0)
	e.done.Renderings += n
	return err
}

// e.payloads erases the payloads of an audit chain's records, and records the erasure in the chain. The last parameter
// lists the records whose payloads are erased. If this list is empty, the payloads of all records are erased.
func (e *erasing) payloads(chain string, only []uint64) error {
	seqs, err := e.ErasePayloads(chain, only...)
	if err != nil || len(seqs) == 0 {
		return err
	}
	e.done.Payloads += len(seqs)
	e.done.Chains++
	facts := approvers.Erasure{Seqs: seqs}.Facts()
	if chain != e.chain {
		facts["with"] = e.chain
	}
	return e.audit(chain, approvers.AuditErased, e.who, facts, map[string]string{"reason": e.reason})
}

// shownBeside erases the texts of the call's cards from the audit chain of another request. The other request was on
// the same cards, so its audit chain has these texts too.
func (e *erasing) shownBeside(chain string) error {
	records, err := e.Audit(chain)
	if err != nil {
		return err
	}
	var seqs []uint64
	for _, a := range records {
		if a.Kind == approvers.AuditShown && e.hashes[a.Facts["rendering"]] {
			seqs = append(seqs, a.Seq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	return e.payloads(chain, seqs)
}

// e.records erases the texts in the request, the executions and the call.
func (e *erasing) records() error {
	if e.request != nil {
		if err := e.PutRequest(e.request.Erase()); err != nil {
			return err
		}
	}
	for _, x := range e.runs {
		if err := e.PutExecution(x.Erase()); err != nil {
			return err
		}
		if err := e.attachments(x.ID); err != nil {
			return err
		}
	}
	if e.call == nil {
		return nil
	}
	if err := e.callerTexts(); err != nil {
		return err
	}
	c := *e.call
	c.Args, c.Preview, c.ModelQuestion = "{}", "", nil
	if c.Result != "" {
		c.Result = erasedResult
	}
	return e.PutCall(c)
}

// callerTexts erases the texts that a caller sent with its request.
func (e *erasing) callerTexts() error {
	conv, err := e.Conversation(e.call.Conversation)
	if err != nil || conv.Caller == nil {
		return store.IgnoreNotFound(err)
	}
	kept := *conv.Caller
	kept.Summary, kept.State = "", ""
	conv.Caller = &kept
	return e.PutConversation(conv)
}

// erasedResult is the call's result in later prompts to the model.
const erasedResult = `{"status":"erased"}`

// e.attachments erases the files of a run, and its elicitations with their answers.
func (e *erasing) attachments(execution string) error {
	n, err := e.EraseFiles(execution)
	if err != nil {
		return err
	}
	e.done.Files += n
	asked, err := e.Elicitations(execution)
	if err != nil {
		return err
	}
	for _, q := range asked {
		if err := e.PutElicitation(q.Erase()); err != nil {
			return err
		}
	}
	return nil
}
