package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// PreviewCall is one attempt to get a preview of a call from a tool.
type PreviewCall struct {
	Request, Conversation, Turn string
	Asker                       approvers.PersonID
	Digest                      string // digest of the call
	Key                         string // idempotency key of the preview; not the key of the run
	Tool, ToolHash              string // the tool that makes the preview, and the hash of its definition
	Own                         bool   // the tool has a preview function in Go, which is called
	Args                        json.RawMessage
	Within                      time.Duration
}

// previewLease is added to the time limit of an attempt to make a preview. If an attempt takes longer than this sum,
// the attempt counts as lost.
const previewLease = 15 * time.Second

// previewSource returns the tool that makes the preview. The policy may name this tool, or an argument for a dry run of
// the called tool. If the policy names neither, the called tool makes its own preview, if it can. This needs a policy
// that has no template for the tool and allows previews.
func (t previewsTx) previewSource(tool, agent string) approvers.PreviewSource {
	p, _ := t.policy.Tool(tool, agent)
	by := p.Preview.By
	known, _ := t.w.Tools.Tool(tool)
	switch {
	case by.Argument != "":
		by.Tool = tool
	case by.Tool == "" && known.Previews && p.Preview.Render == nil && !p.NoPreview:
		by.Tool = tool
	}
	if by.Within == 0 {
		by.Within = approvers.DefaultWithin
	}
	return by
}

// requestToolPreview returns a pending tool preview for a call that people decide. A tool makes the preview later. If
// no tool makes a preview, requestToolPreview returns nil.
func (t previewsTx) requestToolPreview(tool, agent, digest string) *approvers.ToolPreview {
	by := t.previewSource(tool, agent)
	if by.Tool == "" {
		return nil
	}
	return begun(by, tool, digest)
}

func begun(by approvers.PreviewSource, tool, digest string) *approvers.ToolPreview {
	return &approvers.ToolPreview{
		By: by.Tool, Dry: by.Argument != "", Own: by.Tool == tool && by.Argument == "", State: approvers.ToolPreviewPending, Digest: digest,
	}
}

// BeginPreview starts an attempt to make a request's tool preview. ok is false if no attempt can be started, for
// example because the request is decided or the tool can't be called. The card shows why the tool can't be called.
// While everything is paused, BeginPreview returns ErrPaused.
func (w *Runs) BeginPreview(ctx context.Context, request string) (p PreviewCall, ok bool, err error) {
	err = w.update(ctx, "begin preview", func(t *tx) (err error) {
		p, ok, err = t.previews.beginPreview(request)
		return err
	})
	return p, ok, err
}

func (t previewsTx) beginPreview(request string) (p PreviewCall, ok bool, err error) {
	r, err := t.Request(request)
	if store.IgnoreNotFound(err) != nil {
		return p, false, err
	}
	if err != nil || r.State != approvers.Pending || !r.ToolPreview.Making() {
		return p, false, t.ClearTimer(store.TimerPreview, request)
	}
	if err := ifPaused(t); err != nil {
		return p, false, err
	}
	by, tries := t.previewSource(r.Tool, r.Agent), r.ToolPreview.Tries
	if by.Tool == "" { // the policy no longer asks for a preview
		r.ToolPreview = nil
		return p, false, t.apply(r, nil)
	}
	r.ToolPreview = begun(by, r.Tool, r.Digest)
	r.ToolPreview.Tries = tries + 1
	if tries >= approvers.ToolPreviewTries {
		return p, false, t.storeToolPreview(r, approvers.PreviewAnswer{Fault: fmt.Sprintf("it was begun %d times, and each time the process stopped before it was there", tries)})
	}
	p, problem := t.previewing(r, by)
	if problem != "" {
		return p, false, t.storeToolPreview(r, approvers.PreviewAnswer{Fault: problem})
	}
	if err := t.PutRequest(r); err != nil {
		return p, false, err
	}
	if r.ToolPreview.Dry { // a dry run calls the tool itself, so the audit must have the attempt before the call
		if err := t.records.auditToolPreview(r, "asked", nil); err != nil {
			return p, false, err
		}
	}
	return p, true, t.SetTimer(store.Timer{Kind: store.TimerPreview, Ref: r.ID, Due: t.now.Add(by.Within + previewLease), PutOff: t.now})
}

// previewing returns the call that makes a tool preview. If no preview can be made, problem is the reason. If a tool
// other than the requested tool makes the preview, the other tool must be read-only, run without approval, and accept
// the same arguments.
func (t previewsTx) previewing(r approvers.Request, by approvers.PreviewSource) (p PreviewCall, problem string) {
	p = PreviewCall{
		Request: r.ID, Conversation: r.Conversation, Turn: r.Turn, Asker: r.Facts.Asker, Digest: r.Digest, Key: "preview_" + r.Execution,
		Tool: by.Tool, Own: r.ToolPreview.Own, Args: r.Args, Within: by.Within,
	}
	tool, ok := t.w.Tools.Tool(by.Tool)
	if p.ToolHash = tool.Hash; !ok || tool.Asks {
		return p, fmt.Sprintf("there is no tool %s that could be asked", by.Tool)
	}
	if tool.Blocked != "" {
		return p, by.Tool + " can't be called: " + tool.Blocked
	}
	var err error
	switch {
	case p.Own:
		if !tool.Previews {
			return p, by.Tool + " can't say itself what a call would do"
		}
		return p, ""
	case by.Argument != "":
		if p.Args, err = approvers.SetMember(r.Args, by.Argument, by.Value); err != nil {
			return p, plainFault(err)
		}
	default:
		if problem := t.mayPreview(r, tool); problem != "" {
			return p, problem
		}
	}
	if err := tool.Check(p.Args); err != nil {
		return p, by.Tool + " does not take these arguments: " + plainFault(err)
	}
	return p, ""
}

// mayPreview checks whether a companion may be called with a request's arguments. A companion is a tool that makes the
// preview of another tool. If the companion may not be called, mayPreview returns the reason. If it may be called,
// mayPreview returns "".
func (t previewsTx) mayPreview(r approvers.Request, companion Tool) string {
	if companion.Effect != approvers.ReadOnly {
		return companion.Name + " is not declared to only read"
	}
	args, err := approvers.StrictArgs(r.Args, false)
	if err != nil {
		return plainFault(err)
	}
	call := r.AsCall(args)
	call.Tool, call.Effect = companion.Name, companion.Effect
	if t.policy.Plan(call).Verdict != approvers.Auto {
		return "the policy does not let " + companion.Name + " run without asking"
	}
	return ""
}

// EndPreview records the result of a tool preview. EndPreview ignores the result if the arguments have changed or the
// request was decided in the meantime.
func (w *Runs) EndPreview(ctx context.Context, p PreviewCall, a approvers.PreviewAnswer) error {
	return w.update(ctx, "end preview", func(t *tx) error {
		r, err := t.Request(p.Request)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		if r.Digest != p.Digest {
			return nil
		}
		return t.previews.storeToolPreview(r, a)
	})
}

// PutBackPreview reschedules a tool preview that a pause or the end of the process interrupted.
func (w *Runs) PutBackPreview(ctx context.Context, p PreviewCall) error {
	return w.update(ctx, "put back preview", func(t *tx) error {
		r, err := t.Request(p.Request)
		if err != nil || r.State != approvers.Pending || !r.ToolPreview.Making() || r.Digest != p.Digest {
			return store.IgnoreNotFound(err)
		}
		f := *r.ToolPreview
		f.Tries = max(0, f.Tries-1)
		r.ToolPreview = &f
		if err := t.PutRequest(r); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerPreview, Ref: r.ID, Due: t.now})
	})
}

// recoverPreviews reschedules the tool previews that an earlier process began but did not end. A preview can be
// repeated, because it has no effects.
func (t previewsTx) recoverPreviews(shares store.Shares) error {
	timers, err := t.TimersIn(shares, store.TimerPreview, time.Time{}, mostRuns)
	if err != nil {
		return err
	}
	for _, timer := range timers {
		if timer.PutOff.IsZero() || t.w.running.has(handled{timer.Kind, timer.Ref}) {
			continue
		}
		if err := t.SetTimer(store.Timer{Kind: timer.Kind, Ref: timer.Ref, Due: t.now}); err != nil {
			return err
		}
	}
	return nil
}

// storeToolPreview records the result of a tool preview, and shows the result on the card.
func (t previewsTx) storeToolPreview(r approvers.Request, a approvers.PreviewAnswer) error {
	if a.No == "" && a.Fault == "" {
		a.No = t.saysNo(r, a.Text)
	}
	r, events, changed := r.RecordToolPreview(r.Digest, a, t.now)
	if !changed {
		return nil
	}
	return t.apply(r, events)
}

// saysNo evaluates the policy's condition on a preview. If the condition is true, the call would fail, and saysNo
// returns the reason. If the condition is false, saysNo returns "". A condition that can't be evaluated counts as true.
func (t previewsTx) saysNo(r approvers.Request, text string) string {
	p, _ := t.policy.Tool(r.Tool, r.Agent)
	if p.Preview.No.Eval == nil {
		return ""
	}
	args, err := approvers.StrictArgs(r.Args, false)
	if err != nil {
		return plainFault(err)
	}
	facts := r.AsCall(args).Facts
	facts.Preview = text
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) == nil {
		facts.Preview = object
	}
	no, err := p.Preview.No.Eval(facts)
	switch {
	case err != nil:
		return "the policy's condition on it can't be evaluated (" + p.Preview.No.Text + ")"
	case !no:
		return ""
	}
	if says := approvers.Headline(text); says != "" {
		return says
	}
	return "by the policy's condition " + p.Preview.No.Text
}
