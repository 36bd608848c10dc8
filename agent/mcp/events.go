package mcp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
)

// events reads a stream of server-sent events. It passes each message through the tap, and returns the events with
// the resulting messages.
type events struct {
	body    io.ReadCloser
	lines   *bufio.Reader
	limits  limits
	limiter messageLimiter
	see     func([]byte) []byte
	left    []byte // the unread rest of the current event
}

func newEvents(body io.ReadCloser, l limits, see func([]byte) []byte) *events {
	return &events{body: body, lines: bufio.NewReaderSize(body, 64<<10), limits: l, limiter: messageLimiter{most: l.perSecond}, see: see}
}

// Read reads the rest of the current event, or the next event.
func (e *events) Read(p []byte) (int, error) {
	for len(e.left) == 0 {
		next, err := e.next()
		if err != nil {
			return 0, err
		}
		e.left = next
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// Close ends the stream.
func (e *events) Close() error { return e.body.Close() }

// next reads one event. next drops comments. It keeps an event's id and retry delay, even if the tap drops the
// event's message.
func (e *events) next() ([]byte, error) {
	if err := e.limiter.wait(context.Background()); err != nil {
		return nil, err
	}
	var data, kept bytes.Buffer
	named, has, size := "", false, 0
	for {
		raw, err := readLine(e.lines, e.limits.message-size)
		if err != nil {
			return nil, err // an incomplete event is dropped
		}
		if len(raw) == 0 {
			break
		}
		size += len(raw)
		field, value, _ := bytes.Cut(raw, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if has {
				data.WriteByte('\n')
			}
			has = true
			data.Write(value)
		case "event":
			named = string(value)
		case "id", "retry":
			fmt.Fprintf(&kept, "%s: %s\n", field, value)
		}
	}
	if has && data.Len() > 0 && (named == "" || named == "message") {
		if seen := e.see(data.Bytes()); seen != nil {
			fmt.Fprintf(&kept, "data: %s\n", oneLine(seen))
		}
	}
	if kept.Len() > 0 {
		kept.WriteByte('\n')
	}
	return kept.Bytes(), nil
}
