package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
)

func workspaceCommand() *cobra.Command {
	var addr, seedFile, dataFile, requestURL string
	var realRates bool
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "A local Slack workspace with a page in the browser, for trying any bot against it",
		Long: `Runs a Slack workspace on this machine: Slack's Web API for a bot, with Socket Mode or requests over HTTP, a page in the
browser for people, and an HTTP API for scripts (docs/workspace.md). It prints the settings that point a bot at it. Without
--seed the people and channels are the demo's, and the bot may do everything.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			seed := workspace.OpenSeed()
			if seedFile != "" {
				var err error
				if seed, err = workspace.ReadSeed(seedFile); err != nil {
					return cli.Misused("the workspace's seed can't be used: %w", err)
				}
			}
			if requestURL != "" {
				seed.App.RequestURLs = delivery.URLsAt(requestURL)
				if err := seed.Validate(); err != nil {
					return cli.Misused("--request-url can't be used: %w", err)
				}
			}
			if err := keepable(dataFile); err != nil {
				return cli.CouldNot("the workspace can't be kept in %s: %w. Name another file with --data", dataFile, err)
			}
			l, err := listen("the workspace", "--addr", addr)
			if err != nil {
				return err
			}
			local, base := addressesOf(l)
			s, err := workspace.New(workspace.Config{
				Seed: seed, DataFile: dataFile, BaseURL: base, RealRates: realRates,
				Log: logger(slog.LevelInfo, config.TextLog),
			})
			if err != nil {
				l.Close()
				return cli.CouldNot("the workspace can't start: %w", err)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "The workspace %s is open at %s\n\nPoint a bot at it with\n\n", seed.Team.Name, local)
			fmt.Fprintf(out, "  export SLACK_API_URL=%s/api/\n", local)
			for _, token := range seed.App.BotTokens[:min(1, len(seed.App.BotTokens))] {
				fmt.Fprintf(out, "  export SLACK_BOT_TOKEN=%s\n", token)
			}
			if r := seed.App.Rotation; r.ClientID != "" {
				fmt.Fprintf(out, "  export SLACK_CLIENT_ID=%s SLACK_CLIENT_SECRET=%s SLACK_REFRESH_TOKEN=%s\n", r.ClientID, r.ClientSecret, r.RefreshToken)
			}
			for _, token := range seed.App.AppTokens[:min(1, len(seed.App.AppTokens))] {
				fmt.Fprintf(out, "  export SLACK_APP_TOKEN=%s\n", token)
			}
			if seed.App.SigningSecret != "" {
				fmt.Fprintf(out, "  export SLACK_SIGNING_SECRET=%s\n", seed.App.SigningSecret)
			}
			g, ctx := errgroup.WithContext(cmd.Context())
			g.Go(func() error { return serveHTTP(ctx, l, s.Handler()) })
			g.Go(func() error {
				<-ctx.Done()
				return s.Close()
			})
			return g.Wait()
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8484", "where to listen")
	cmd.Flags().StringVar(&seedFile, "seed", "", "YAML or JSON file with the team, people, channels and tokens (docs/workspace.md); default: the demo's")
	cmd.Flags().StringVar(&dataFile, "data", "", "file that keeps the workspace between runs; default: nothing is kept")
	cli.PathFlags(cmd.Flags(), "seed", "data")
	cmd.Flags().StringVar(&requestURL, "request-url", "", "send events, interactions, options and commands to this URL, as Slack does without Socket Mode; if it ends in /, these names are appended")
	cmd.Flags().BoolVar(&realRates, "real-rates", false, "enforce Slack's rate limits")
	return cmd
}

// keepable checks at the start whether a file can be written. Otherwise, the operator would learn of a problem only
// when data is lost.
func keepable(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY, 0o600) // the workspace writes to this file first
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// addressesOf returns the URL at which programs on this machine reach a workspace, and the workspace's base URL. If the
// workspace listens on all addresses, the base URL is empty. Then the workspace names the host that each client uses.
func addressesOf(l net.Listener) (local, base string) {
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", a.Port), ""
	}
	local = "http://" + l.Addr().String()
	return local, local
}
