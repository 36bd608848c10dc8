package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// NotOverError means that a call, request or run can't be erased, because it has not ended.
type NotOverError struct {
	Beside string // the id of another request on the same card, which has not ended; empty: the call itself has not ended
}

func (e NotOverError) Error() string {
	if e.Beside != "" {
		return fmt.Sprintf("%s is on the same card, and is still open", e.Beside)
	}
	return "it is not over yet"
}

// GrantOpenError means that the audit chain of a grant can't be erased, because the grant can still be used or accepted.
type GrantOpenError struct{ State approvers.GrantState }

func (e GrantOpenError) Error() string {
	if e.State == approvers.GrantOffered {
		return "this grant is offered to people: decline it in Slack, or wait until the offer ends"
	}
	return "this grant is in force: revoke it in Slack (/countersign grants), or wait until it ends"
}

// Erased counts the erased records.
type Erased struct {
	Payloads   int // payloads of audit records
	Renderings int // posted versions of cards
	Files      int // files of the call's runs
	Chains     int // audit chains that had texts of the call
}

// Erase erases the texts of people and of the model about a call. These are the texts in the call's audit records, the
// posted versions of its cards, the files of its runs, and the texts in the requests, the executions and the call. The
// audit still says who decided, when, and about which digest. The messages of the conversation remain. The parameter
// chain is the id of one of the call's audit chains. A chain has the id of a request of the call. If nobody was asked,
// the chain has the id of the call's execution or of the call. Other requests on the same cards must have ended too. The
// chain of a grant that has ended can also be erased.
func Erase(ctx context.Context, wf *workflow.Workflow, chain string, who approvers.PersonID, reason string) (done Erased, err error) {
	err = wf.Update(ctx, "erase", func(t workflow.Tx) error {
		e := &erasing{Tx: t, chain: chain, who: who, reason: reason, hashes: map[string]bool{}, beside: map[string]bool{}}
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
	workflow.Tx
	chain, reason string
	who           approvers.PersonID
	call          *store.Call
	requests      []approvers.Request // the call's requests; RetryUnknown adds a request and an execution
	runs          []approvers.Execution
	chains        []string        // all possible audit chains of the call
	hashes        map[string]bool // hashes of the renderings that showed the call
	beside        map[string]bool // ids of other requests that these renderings showed
	done          Erased
}

// e.find reads the chain's call, its requests and its executions, and checks that they have ended.
func (e *erasing) find() error {
	_, unrecorded := e.AuditHead(e.chain) // early versions could prune the chain of a call that is still stored
	if store.IgnoreNotFound(unrecorded) != nil {
		return unrecorded
	}
	e.chains = []string{e.chain}
	if grant, ok := strings.CutPrefix(e.chain, approvers.GrantChain("")); ok {
		g, err := e.Grant(grant)
		if err == nil && g.State.Open() {
			return GrantOpenError{g.State}
		}
		return cmp.Or(unrecorded, store.IgnoreNotFound(err))
	}
	call := e.chain
	if r, err := e.Request(e.chain); err == nil {
		call = r.Call
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
		return unrecorded // the conversation was erased before, or the chain is of another kind
	}
	if err != nil {
		return err
	}
	e.call = &c
	if e.requests, err = e.Requests(c.Conversation); err != nil {
		return err
	}
	e.requests = slices.DeleteFunc(e.requests, func(r approvers.Request) bool { return r.Call != c.ID })
	if e.runs, err = e.Executions(c.Conversation); err != nil {
		return err
	}
	e.runs = slices.DeleteFunc(e.runs, func(x approvers.Execution) bool { return x.Call != c.ID })
	e.chains = chainsOf([]store.Call{c}, e.requests, e.runs)
	return e.over()
}

// chainsOf returns the ids of the audit chains that calls with these requests and executions may have.
func chainsOf(calls []store.Call, requests []approvers.Request, runs []approvers.Execution) []string {
	var chains []string
	for _, c := range calls {
		chains = append(chains, c.ID)
	}
	for _, r := range requests {
		chains = append(chains, r.ID)
	}
	for _, x := range runs {
		chains = append(chains, x.ID)
	}
	slices.Sort(chains) // a caller's call and its first request have the same id
	return slices.Compact(chains)
}

// e.over checks that the call, its requests and its executions have ended. If the outcome of a run is unknown and the
// call was asked for again, the earlier run counts as ended.
func (e *erasing) over() error {
	conversation, err := e.Conversation(e.call.Conversation)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case err == nil && conversation.Turn == e.call.Turn, slices.ContainsFunc(e.requests, func(r approvers.Request) bool { return r.State.Open() }):
		return NotOverError{}
	}
	for _, x := range e.runs {
		if x.State == approvers.ExecutionExecuting || x.State == approvers.ExecutionUnknown && x.ID == e.call.Execution {
			return NotOverError{}
		}
	}
	return nil
}

func (e *erasing) everything() error {
	if err := e.outboxMessages(); err != nil {
		return err
	}
	for _, chain := range e.chains {
		if err := e.payloads(chain, nil); err != nil {
			return err
		}
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

// e.homes erases the stored versions of the watched Home tabs, because each version may have shown the call.
func (e *erasing) homes() error {
	n, err := e.EraseHomes()
	e.done.Renderings += n
	return err
}

// e.outboxMessages erases the posted versions of every message that showed the call.
func (e *erasing) outboxMessages() error {
	refs := slices.Clone(e.chains)
	if e.call != nil {
		refs = append(refs, e.call.Turn)
	}
	for _, x := range e.runs {
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
			if e.call != nil && ref == e.call.Turn && s.Kind != store.OutboxQueued && s.Step != e.call.Step && !slices.Contains(s.Steps, e.call.Step) {
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
	if s.DraftText != "" || s.LastError != "" || s.State == store.OutboxWanted {
		s.DraftText, s.LastError = "", "" // an error of Slack may quote the refused text
		if err := e.PutOutboxMessage(s.KeepFromNow()); err != nil {
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
			if shown.Request == "" || slices.Contains(e.chains, shown.Request) {
				continue
			}
			r, err := e.Request(shown.Request)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if r.State.Open() {
				return NotOverError{Beside: shown.Request}
			}
			e.beside[shown.Request] = true
		}
	}
	n, err := e.EraseRenderings(s.ID, 0)
	e.done.Renderings += n
	return err
}

// e.payloads erases the payloads of an audit chain's records, and records the erasure in the chain. The last parameter
// lists the records whose payloads are erased. If this list is empty, e.payloads erases what erasePayloads erases.
func (e *erasing) payloads(chain string, only []uint64) (err error) {
	var seqs []uint64
	if len(only) > 0 {
		seqs, err = e.ErasePayloads(chain, only...)
	} else {
		seqs, err = erasePayloads(e.Tx, chain)
	}
	if err != nil || len(seqs) == 0 {
		return err
	}
	e.done.Payloads += len(seqs)
	e.done.Chains++
	facts := approvers.Erasure{Seqs: seqs}.Facts()
	if chain != e.chain {
		facts["with"] = e.chain
	}
	return e.WriteAudit(chain, approvers.AuditErased, e.who, facts, map[string]string{"reason": e.reason})
}

// erasePayloads erases the payloads of an audit chain's records, except the reasons of earlier erasures. The payloads of
// damaged records are erased, too. erasePayloads returns the sequence numbers of the erased payloads.
func erasePayloads(t workflow.Tx, chain string) ([]uint64, error) {
	records, err := t.Audit(chain)
	if err != nil && !store.OnlyDamaged(err) {
		return nil, err
	}
	reasons := map[uint64]bool{}
	for _, a := range records {
		if a.Kind == approvers.AuditErased {
			reasons[a.Seq] = true
		}
	}
	if len(reasons) == 0 {
		return t.ErasePayloads(chain)
	}
	head, err := t.AuditHead(chain)
	if err != nil {
		return nil, err
	}
	var seqs []uint64
	for seq := uint64(1); seq <= head.Seq; seq++ {
		if !reasons[seq] {
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	return t.ErasePayloads(chain, seqs...)
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

// e.records erases the texts in the requests, the executions and the call. e.records also ends the streak of approved
// calls to the tool, because the streak may have values of the call's arguments.
func (e *erasing) records() error {
	for _, r := range e.requests {
		if err := e.PutRequest(r.Erase()); err != nil {
			return err
		}
		if err := e.ResetStreak(r.Agent, r.Tool, time.Time{}); err != nil {
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
	kept.Summary, kept.ClientState = "", ""
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
