package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"countersign/agent"
	"countersign/config"
)

// Config is what a client works with.
type Config struct {
	Servers []config.Server
	// Lookup reads the environment for ${NAME} in the servers' values. Nil: os.LookupEnv.
	Lookup func(name string) (string, bool)
	// Offer is told all tools that a server has, each time it is connected with and each time its list changes. It is called by one goroutine at a time for each
	// server. A server that is away is no news: its tools stay, and calls of them wait a while and then say so. Nil: nobody is told.
	Offer func(server string, tools []agent.Tool)
	Log   *slog.Logger
	// Version is this program's, as servers are told.
	Version string
}

// Client keeps the connections to all servers. It is for many goroutines.
type Client struct {
	servers []*server
	byName  map[string]*server
}

// ErrServer says that there is no server of a name.
var ErrServer = errors.New("the policy has no MCP server of that name")

// Open makes a client. Nothing is started before [Client.Run].
func Open(c Config) *Client { return open(c, usual) }

func open(c Config, l limits) *Client {
	if c.Lookup == nil {
		c.Lookup = os.LookupEnv
	}
	if c.Offer == nil {
		c.Offer = func(string, []agent.Tool) {}
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

// Run keeps all servers connected until ctx ends, and then ends those that it started. It returns nil.
func (c *Client) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, s := range c.servers {
		running.Go(func() { s.keep(ctx) })
	}
	running.Wait()
	return nil
}

// Settled waits until each server was listed, or has failed once.
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

// Tool makes the tool that a server described with these words, whether the server runs or not. A call of it goes to the server only if the server describes
// it so still. The error wraps [ErrServer] or [ErrDefinition].
func (c *Client) Tool(server string, raw json.RawMessage) (agent.Tool, error) {
	s := c.byName[server]
	if s == nil {
		return agent.Tool{}, fmt.Errorf("%.80q: %w", server, ErrServer)
	}
	return s.tool(raw)
}

// Status is how a server is.
type Status struct {
	Server    string
	Connected bool      // and its list was read
	Since     time.Time // of the connection
	Tools     int
	Restarts  int    // connections after the first
	Problem   string // why there is no connection; or what is wrong with single tools
}

// Status tells how each server is, in the order of the policy.
func (c *Client) Status() []Status {
	var out []Status
	for _, s := range c.servers {
		out = append(out, s.status())
	}
	return out
}
