package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// longestMessage limits one message of MCP, in bytes.
const longestMessage = 16 << 20

// Stdio serves MCP over a pair of streams, and passes the messages to the gateway. Each line of a stream is one
// message. Stdio returns at the end of the stream in, or when ctx ends. Stdio then stops waiting for open calls, and
// does not withdraw their requests. If the connection breaks during a call, Stdio sends the call again. The repetition
// is safe, because the gateway creates only one request for the call.
func (c *Client) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	b := &stdio{Client: c, out: out, calls: map[string]context.CancelFunc{}}
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() { ended <- readLines(ctx, in, lines) }() // a read can't be interrupted, so it may outlast Stdio
	var err error
	for open := true; open; {
		select {
		case line := <-lines:
			b.receive(ctx, line)
		case err = <-ended:
			open = false
		case <-ctx.Done():
			open = false
		}
	}
	stop()
	b.underWay.Wait()
	return errors.Join(err, b.err)
}

// readLines sends the lines of a stream that are not empty, until the stream or ctx ends.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, longestMessage)
	for scanner.Scan() {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		select {
		case lines <- bytes.Clone(line):
		case <-ctx.Done():
			return nil
		}
	}
	return scanner.Err()
}

// stdio is the state of one call of Stdio.
type stdio struct {
	*Client
	underWay sync.WaitGroup

	mu      sync.Mutex // guards the fields below, and serializes the lines of out
	out     io.Writer
	err     error
	session string // set if the MCP client uses a version before 2026-07-28
	version string // the negotiated protocol version
	calls   map[string]context.CancelFunc
}

// rpcMessage has the fields of a message that Stdio reads.
type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		TaskID    string          `json:"taskId"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// receive handles one message of the MCP client.
func (b *stdio) receive(ctx context.Context, line []byte) {
	var m rpcMessage
	if err := json.Unmarshal(line, &m); err != nil {
		b.print([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is not a JSON-RPC message"}}`))
		return
	}
	if m.Method == "notifications/cancelled" {
		b.mu.Lock()
		legacy, cancel := b.session != "", b.calls[string(m.Params.RequestID)]
		b.mu.Unlock()
		if legacy {
			b.post(ctx, line, m) // the message must be sent before the connection of its call is closed
		}
		if cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	if len(m.ID) > 0 {
		b.mu.Lock()
		b.calls[string(m.ID)] = cancel
		b.mu.Unlock()
	}
	do := func() {
		defer cancel()
		b.post(ctx, line, m)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.calls, string(m.ID))
	}
	if m.Method == "initialize" || len(m.ID) == 0 { // later messages may depend on this message
		do()
		return
	}
	b.underWay.Go(do)
}

// print writes a message on a line of its own.
func (b *stdio) print(message []byte) {
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return
	}
	line.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.out.Write(line.Bytes()); err != nil && b.err == nil {
		b.err = err
	}
}

// post sends a message and prints the answer. If the gateway can't be reached, answers with a status of 500 or above,
// or breaks the connection before the answer, post tries again until [Client.Patience] has passed.
func (b *stdio) post(ctx context.Context, line []byte, m rpcMessage) {
	pause := 200 * time.Millisecond
	for since := time.Now(); ; pause = min(2*pause, 10*time.Second) {
		answered, err := b.try(ctx, line, m)
		if answered || ctx.Err() != nil {
			return
		}
		if time.Since(since) > b.Patience {
			if len(m.ID) > 0 {
				// Encoding a string can't fail.
				text, _ := json.Marshal(fmt.Sprintf("the gateway can't be reached: %v. Call again with the same arguments; the call is made once only.", err))
				b.print(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s}}`, m.ID, text))
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// try sends a message once. If the message has its answer, or needs none, answered is true. Otherwise, the caller may
// send the message again.
func (b *stdio) try(ctx context.Context, line []byte, m rpcMessage) (answered bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.address+"/mcp", bytes.NewReader(line))
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	session, version := b.session, b.version
	b.mu.Unlock()
	for name, value := range map[string]string{
		"Authorization": "Bearer " + b.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if m.Params.Meta.Version != "" {
		version = m.Params.Meta.Version
		req.Header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.TaskID; name != "" {
			req.Header.Set("Mcp-Name", name)
		}
	}
	if version != "" && m.Method != "initialize" {
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return b.events(resp, m)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, longestMessage))
	switch {
	case err != nil:
		return false, err
	case resp.StatusCode >= 500:
		return false, errors.New(resp.Status)
	case len(m.ID) == 0:
		return true, nil
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"):
		b.print(body)
	default:
		// Encoding a string can't fail.
		text, _ := json.Marshal(fmt.Sprintf("the gateway answers %s: %.500s", resp.Status, strings.TrimSpace(string(body))))
		b.print(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s}}`, m.ID, text))
	}
	return true, nil
}

// events prints the messages of an event stream. The last message of the stream is the answer.
func (b *stdio) events(resp *http.Response, m rpcMessage) (answered bool, err error) {
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, longestMessage)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var of struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result struct {
				Version string `json:"protocolVersion"`
			} `json:"result"`
		}
		// The stream has the answer to message m only. The ids are not compared, because the gateway may write an id
		// in another notation: "A" for "\u0041".
		if json.Unmarshal(data, &of) == nil && of.Method == "" && len(of.ID) > 0 && len(m.ID) > 0 {
			answered = true
		}
		if answered && m.Method == "initialize" {
			b.mu.Lock()
			b.session, b.version = resp.Header.Get("Mcp-Session-Id"), of.Result.Version
			b.mu.Unlock()
		}
		b.print(data)
	}
	if answered {
		return true, nil
	}
	if err := lines.Err(); err != nil {
		return false, err
	}
	return false, io.ErrUnexpectedEOF
}
