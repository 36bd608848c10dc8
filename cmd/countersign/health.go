package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// healthTimeout is how long a bot may take to answer.
const healthTimeout = 10 * time.Second

func healthCommand() *cobra.Command {
	var ready bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Asks the running bot whether it lives, for a container's health check",
		Long: `Asks /healthz at COUNTERSIGN_ADMIN_ADDR whether the bot's process lives. With --ready it asks /readyz whether the bot can
accept deliveries and requests, and prints a line for each of its parts. The exit code is 0 if so, 1 if not, and 3 if nobody answers.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := config.ReadEnv(config.Offline)
			if err != nil {
				return cli.Misused("the environment can't be used:\n%w", err)
			}
			path := "/healthz"
			if ready {
				path = fmt.Sprintf("/readyz?wait=%d", int(probeTimeout.Seconds()))
			}
			return health(cmd.Context(), cmd.OutOrStdout(), env.AdminAddr, path)
		},
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether the bot can accept deliveries and requests, and what is wrong with its parts")
	return cmd
}

func health(ctx context.Context, out io.Writer, addr, path string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return cli.Misused("COUNTERSIGN_ADMIN_ADDR: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // the bot listens on every address, including this one
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return cli.Misused("COUNTERSIGN_ADMIN_ADDR: %w", err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req) // without a proxy: the bot is on this machine
	if err != nil {
		return cli.CouldNot("no process answers at %s: %w. Is the bot running, with the same COUNTERSIGN_ADMIN_ADDR?", url, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return cli.CouldNot("%s: %w", url, err)
	}
	fmt.Fprintln(out, strings.TrimSpace(string(said)))
	if resp.StatusCode != http.StatusOK {
		return cli.AnswerNo("the bot is not well: %s answers %s", req.URL.Path, resp.Status)
	}
	return nil
}
