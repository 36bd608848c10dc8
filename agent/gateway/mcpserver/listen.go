package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/gateway"
	"countersign/approvers/workflow"
)

// mostListened limits the tasks of one stream.
const mostListened = 100

// listener sends the notifications of one subscriptions/listen message. The SDK can't send notifications/tasks, so
// listener writes to the answer itself. The SDK writes to the answer only after listen has returned.
type listener struct {
	*Server
	x    *exchange
	meta mcp.Meta // of the message

	mu sync.Mutex // serializes the messages of the stream
}

// listen handles subscriptions/listen for the extension for tasks. It sends the state of each task, and sends the state
// again after each change. The stream ends when all tasks have ended, after an hour, when the process stops, or when the
// client's credentials become invalid.
func (s *Server) listen(ctx context.Context, x *exchange, meta mcp.Meta) (mcp.Result, error) {
	if !declaresTasks(meta) {
		return nil, errUndeclared
	}
	var ids []string
	if json.Unmarshal(x.taskIDs, &ids) != nil {
		return nil, invalid("taskIds must be a list of task ids")
	}
	x.taskIDs = nil // releases the memory, because the stream may last for an hour
	end, err := s.Gateway.Wait(x.client.Name)
	if err != nil {
		return nil, s.taskError(ctx, x, "", err)
	}
	defer end()
	l := &listener{Server: s, x: x, meta: meta}
	known, err := l.known(ctx, ids)
	if err != nil {
		return nil, err
	}
	agreed := members{}
	if len(known) > 0 {
		agreed["taskIds"] = known
	}
	if err := l.notify("notifications/subscriptions/acknowledged", members{"notifications": agreed}); err != nil {
		return nil, errLeft
	}
	if err := l.followAll(ctx, known); err != nil {
		return nil, inStream(err)
	}
	out := &result{members: members{"resultType": "complete"}}
	out.Meta = mcp.Meta{mcp.MetaKeySubscriptionID: json.RawMessage(x.id)}
	return out, nil
}

// inStream returns the error that ends a stream. The SDK sends errors with some codes, such as CodeInvalidParams, as the
// whole body of an HTTP response. These codes are not possible after the first event.
func inStream(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// known returns the ids that belong to tasks of the client. Only the first mostListened ids count.
func (l *listener) known(ctx context.Context, ids []string) (known []string, err error) {
	for i, id := range ids[:min(len(ids), mostListened)] {
		if slices.Contains(ids[:i], id) {
			continue
		}
		_, _, err := l.now(ctx, l.x, id)
		var problem *workflow.CallerProblem
		switch {
		case err == nil:
			known = append(known, id)
		case !errors.As(err, &problem) || problem.Code != workflow.CallerNotFound:
			return nil, l.taskError(ctx, l.x, id, err)
		}
	}
	return known, nil
}

// followAll sends notifications about tasks until the stream ends.
func (l *listener) followAll(ctx context.Context, ids []string) error {
	var followers sync.WaitGroup
	defer followers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(ids))
	for _, id := range ids {
		followers.Go(func() { ended <- l.follow(ctx, id) })
	}
	lasts := longest
	if until := l.x.client.Until; !until.IsZero() {
		lasts = min(lasts, until.Sub(l.Now()))
	}
	over := time.NewTimer(lasts)
	defer over.Stop()
	beat := time.NewTicker(progressEvery)
	defer beat.Stop()
	for left := len(ids); left > 0; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			left--
		case <-beat.C:
			if c, ok := l.Policy().Client(l.x.client.Name); !ok || !c.Same(l.x.client) {
				return nil
			}
			if l.write(": waiting\n\n") != nil {
				return errLeft
			}
		case <-over.C:
			return nil
		case <-l.Stopping:
			return nil
		case <-ctx.Done():
			return errLeft
		}
	}
	return nil
}

// follow sends the state of a task, and sends it again after each change, until the task has ended.
func (l *listener) follow(ctx context.Context, id string) error {
	changed, stop := l.Callers.Hold(l.x.client, id)
	defer stop()
	for sent := ""; ; {
		state, rec, err := l.now(ctx, l.x, id)
		if err != nil {
			return l.taskError(ctx, l.x, id, err)
		}
		out := detailedTask(l.x, state, rec, l.meta, l.Now())
		if is := fmt.Sprint(out["status"], out["statusMessage"], out["lastUpdatedAt"]); is != sent {
			if err := l.tell(ctx, state, out); err != nil {
				return errLeft
			}
			sent = is
		}
		if state.Settled() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// tell sends the state of a task. If this is the last state, tell records the delivery immediately, because the stream
// may continue with other tasks.
func (l *listener) tell(ctx context.Context, state *gateway.State, task members) error {
	if !state.Over() {
		return l.notify("notifications/tasks", task)
	}
	l.ends.begin(state.ID)
	defer l.ends.end([]string{state.ID})
	if err := l.notify("notifications/tasks", task); err != nil {
		return err
	}
	l.recordDelivery(ctx, l.x, state.ID)
	return nil
}

func (l *listener) notify(method string, params members) error {
	params["_meta"] = members{mcp.MetaKeySubscriptionID: json.RawMessage(l.x.id)}
	message, err := json.Marshal(members{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		return err
	}
	return l.write("event: message\ndata: " + string(message) + "\n\n")
}

func (l *listener) write(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.x.out.Write([]byte(text)); err != nil {
		return err
	}
	if err := l.x.out.FlushError(); err != nil || l.x.out.failed {
		return errHungUp
	}
	return nil
}
