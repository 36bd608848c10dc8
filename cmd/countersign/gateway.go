package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"countersign/agent/client"
	"countersign/agent/gateway"
	"countersign/agent/gateway/hookserver"
	"countersign/agent/gateway/mcpserver"
	"countersign/agent/hook"
	"countersign/cmd/countersign/cli"
)

// openReceiptKey reads or creates the key that signs receipts.
func openReceiptKey(path string) (gateway.ReceiptKey, error) {
	k, err := gateway.OpenReceiptKey(path)
	if errors.Is(err, gateway.ErrKeyFile) {
		return k, cli.Misused("%w. COUNTERSIGN_GATEWAY_KEY names the file", err)
	}
	return k, err
}

// openGateway returns the HTTP server for the requests of other agents.
func (s setup) openGateway(ctx context.Context, p parts) (*http.Server, error) {
	g, err := gateway.New(ctx, gateway.Config{
		Callers: p.workflow.Callers, Views: p.workflow.Views, Policy: s.tools.Policy, Key: s.receiptKey, Log: s.log, Now: s.now, Count: p.metrics.CountCaller,
		Resource: s.gatewayURL,
	})
	if err != nil {
		return nil, err
	}
	mcp, err := mcpserver.Attach(mcpserver.Config{
		Gateway: g, Callers: p.workflow.Callers, Views: p.workflow.Views, Policy: s.tools.Policy, Tools: s.tools.All, Version: version(),
		Stopping: ctx.Done(), Log: s.log, Tell: p.workflow.Tell,
	})
	if err != nil {
		return nil, err
	}
	p.mcp.Store(mcp)
	hookserver.Attach(hookserver.Config{Gateway: g, Callers: p.workflow.Callers, Views: p.workflow.Views, Stopping: ctx.Done(), Log: s.log})
	p.metrics.WatchGateway(g.Waiting)
	server := gateway.Server(g)
	server.Handler = p.traces.receiving(server.Handler)
	return server, nil
}

// addressOf returns the address of a listener, or "" for nil.
func addressOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// limitConnections returns a listener that accepts a connection only if the number of open connections is less than the
// parameter most.
func limitConnections(l net.Listener, most int) net.Listener {
	return &limitedListener{Listener: l, free: make(chan struct{}, most), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	free   chan struct{} // a buffered channel with one entry for each open connection
	close  sync.Once
	closed chan struct{}
}

// Accept waits until the number of open connections is below the limit, and then accepts a connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &limitedConn{Conn: c, end: sync.OnceFunc(func() { <-l.free })}, nil
}

// Close closes the listener. A waiting call of Accept then returns.
func (l *limitedListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	end func()
}

// Close closes the connection. The listener can then accept another connection.
func (c *limitedConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

func gatewayCommand() *cobra.Command {
	var stdio bool
	cmd := &cobra.Command{
		Use:   "gateway --stdio",
		Short: "Serves the tools of a running bot to an MCP client that starts a process",
		Long: `Speaks MCP over standard input and output, and passes the messages on to the gateway of a running bot. It is for MCP
clients that can't reach an address, or can't send a header. The tools are those that the policy lets this client see.

The address of the gateway and the file with the token are read from ~/.config/countersign/hook.json (or the file that
COUNTERSIGN_HOOK_CONFIG names), and from COUNTERSIGN_HOOK_ADDRESS and COUNTERSIGN_HOOK_TOKEN_FILE, as those of hooks are.
If the gateway restarts, calls that were held are continued.`,
		Example: "  countersign gateway --stdio",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return cli.Misused("say --stdio: the gateway itself is a part of countersign serve")
			}
			c, err := hook.ReadConfig(os.Getenv)
			if err != nil {
				return cli.Misused("%w", err)
			}
			gate, err := client.New(c.Address, c.Token)
			if err != nil {
				return cli.Misused("%w", err)
			}
			if err := gate.Stdio(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return cli.CouldNot("%w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "speak over standard input and output")
	return cmd
}
