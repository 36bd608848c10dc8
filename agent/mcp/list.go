package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/agent/jsonobject"
)

// list reads the server's list of tools as raw definitions.
func (ses *session) list(ctx context.Context) ([]json.RawMessage, error) {
	ses.listing.Lock()
	defer ses.listing.Unlock()
	seen := ses.changes.Load()
	list, err := ses.pages(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	ses.known = map[string]json.RawMessage{}
	count := map[string]int{}
	for _, raw := range list {
		name := nameOf(raw)
		count[name]++
		ses.known[name] = raw
	}
	for name, n := range count {
		if n > 1 {
			delete(ses.known, name) // two tools have this name, so nobody knows which of them would be called
		}
	}
	ses.seen, ses.readAt = seen, time.Now()
	return list, nil
}

// pages reads all pages of the list.
func (ses *session) pages(ctx context.Context) ([]json.RawMessage, error) {
	l := ses.server.limits
	var out []json.RawMessage
	var cursors []string
	size, cursor := 0, ""
	for {
		tools, next, err := ses.onePage(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, raw := range tools {
			size += len(raw)
			switch {
			case len(raw) > l.definition:
				return nil, fmt.Errorf("a tool in the server's list has %d bytes; %d are allowed", len(raw), l.definition)
			case size > l.listBytes:
				return nil, fmt.Errorf("the server's list of tools has more than %d bytes", l.listBytes)
			case len(out) == l.tools:
				return nil, fmt.Errorf("the server has more than %d tools", l.tools)
			}
			out = append(out, raw)
		}
		if next == "" {
			return out, nil
		}
		if cursors = append(cursors, next); len(cursors) >= l.pages || slices.Contains(cursors[:len(cursors)-1], next) {
			return nil, errors.New("the server's list of tools has no last page")
		}
		cursor = next
	}
}

// onePage reads one page of the list, with the exact bytes that the tap received.
func (ses *session) onePage(ctx context.Context, cursor string) ([]json.RawMessage, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ses.page.Store(nil)
	_, err := ses.sdk.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
	got := ses.page.Load()
	if got == nil {
		if err == nil {
			err = errors.New("its response does not belong to the request")
		}
		return nil, "", fmt.Errorf("the server does not send its list of tools: %s", line(err.Error()))
	}
	page, err := jsonobject.Read(*got)
	if err != nil {
		return nil, "", fmt.Errorf("read the server's list of tools: %w", err)
	}
	tools, err := jsonobject.ReadList(page.Get("tools"))
	if err != nil {
		return nil, "", fmt.Errorf("read the server's list of tools: %w", err)
	}
	return tools, page.Text("nextCursor"), nil
}

// errDrifted means that a tool was not called, because the server changed the tool's definition.
var errDrifted = fmt.Errorf("%w: its definition on the server differs from the pinned one; an operator must review it (countersign tools)", agent.ErrNotRun)

// errGone means that a tool was not called, because the server's list does not have the tool.
var errGone = fmt.Errorf("%w: the server does not have this tool any more", agent.ErrNotRun)

// verify checks that the server's current definition of a tool equals the registered definition. If the last list is
// too old, or may have changed, verify first reads the list again.
func (s *server) verify(ctx context.Context, ses *session, d definition) error {
	ses.listing.Lock()
	fresh := ses.changes.Load() == ses.seen && time.Since(ses.readAt) < s.limits.fresh
	ses.listing.Unlock()
	if !fresh {
		if err := s.relist(ctx, ses, false); err != nil {
			return err
		}
	}
	ses.listing.Lock()
	defer ses.listing.Unlock()
	switch raw, ok := ses.known[d.name]; {
	case !ok:
		return errGone
	case !bytes.Equal(raw, d.raw):
		return errDrifted
	}
	return nil
}
