package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"countersign/agent"
	"countersign/config"
)

// Config configures a Client.
type Config struct {
	Servers []config.Server
	// Lookup returns environment variables for ${NAME} in the servers' values. The default is config.Lookup.
	Lookup func(name string) (string, bool)
	// Offer receives a server's complete list of tools after each connection and each change of the list. Calls to
	// Offer for one server don't overlap. Offer is not called when a server becomes unreachable, so the server's
	// tools stay registered. A call to a tool of an unreachable server waits for a limited time, and then fails. If
	// Offer is nil, lists are not reported.
	Offer func(server string, tools []agent.Tool)
	// LeftOut receives each problem of a list, such as a definition that can't be offered as a tool. If LeftOut is nil,
	// problems are only logged.
	LeftOut func(server, problem string)
	Log     *slog.Logger
	// Version is this program's version, as sent to servers.
	Version string
}

// Client connects to all servers, and calls their tools. Client is safe for concurrent use.
type Client struct {
	servers []*server
	byName  map[string]*server
}

// ErrServer means that the policy has no server with the given name.
var ErrServer = errors.New("the policy has no MCP server of that name")

// Open returns a client. Nothing is started before [Client.Run].
func Open(c Config) *Client { return open(c, usual) }

func open(c Config, l limits) *Client {
	if c.Lookup == nil {
		c.Lookup = config.Lookup
	}
	if c.Offer == nil {
		c.Offer = func(string, []agent.Tool) {}
	}
	if c.LeftOut == nil {
		c.LeftOut = func(string, string) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	client := &Client{byName: map[string]*server{}}
	for _, s := range c.Servers {
		one := newServer(s, c, l)
		client.servers = append(client.servers, one)
		client.byName[s.Name] = one
	}
	return client
}

// Run keeps all servers connected until ctx ends. When ctx ends, Run stops the servers that it started, and returns
// nil.
func (c *Client) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, s := range c.servers {
		running.Go(func() { s.keep(ctx) })
	}
	running.Wait()
	return nil
}

// Settled waits until each server has listed its tools, or the first attempt to connect, with both handshakes, has
// failed.
func (c *Client) Settled(ctx context.Context) error {
	for _, s := range c.servers {
		select {
		case <-s.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Tool returns the tool for a server's definition. The server need not be connected. A call to the tool is sent only if
// the server's current definition is the same. An error of Tool wraps [ErrServer] or [ErrDefinition].
func (c *Client) Tool(server string, raw json.RawMessage) (agent.Tool, error) {
	s := c.byName[server]
	if s == nil {
		return agent.Tool{}, fmt.Errorf("%.80q: %w", server, ErrServer)
	}
	return s.tool(raw)
}

// Status is the state of a server.
type Status struct {
	Server    string
	Connected bool      // the server is connected, and its list has been read
	Since     time.Time // start of the connection
	Tools     int
	Restarts  int    // number of connections after the first one
	Problem   string // why there is no connection; if there is a connection, the first problem of the list of tools
}

// Status returns the state of each server, in the order of the policy.
func (c *Client) Status() []Status {
	var out []Status
	for _, s := range c.servers {
		out = append(out, s.status())
	}
	return out
}
