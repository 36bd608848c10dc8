package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/shop"
)

func shopCommand() *cobra.Command {
	var addr, file string
	cmd := &cobra.Command{
		Use:   "shop",
		Short: "The demo's sample shop as an MCP server, for trying the bot or any other MCP client with it",
		Long: `Serves the tools of the sample shop to an MCP client: over standard input and output, or with --addr over streamable HTTP at /mcp, with a page
at / that shows what the tools read and change. With --file the shop keeps its state in that file, which several processes may
have open at the same time. Without --file nothing is kept.`,
		Example: `  countersign shop --file shop.json
  countersign shop --addr 127.0.0.1:8585`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := keepable(file); err != nil {
				return cli.CouldNot("the shop can't be kept in %s: %w. Name another file with --file", file, err)
			}
			s, err := shop.Open(file, time.Now)
			if err != nil {
				return cli.CouldNot("the sample shop can't be opened: %w", err)
			}
			if addr == "" {
				return serveShop(cmd.Context(), s)
			}
			return serveShopAt(cmd.Context(), s, addr, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "serve over HTTP here, such as 127.0.0.1:8585, and not over standard input and output")
	cmd.Flags().StringVar(&file, "file", "", "file that keeps the shop between runs; default: nothing is kept")
	cli.PathFlags(cmd.Flags(), "file")
	return cmd
}

// serveShop serves the shop's tools over standard input and output. No other output may be written to the standard
// output.
func serveShop(ctx context.Context, s *shop.Shop) error {
	if err := s.ServeIO(ctx, os.Stdin, os.Stdout); err != nil {
		return cli.CouldNot("the connection to the client broke: %w", err)
	}
	return nil
}

func serveShopAt(ctx context.Context, s *shop.Shop, addr string, out io.Writer) error {
	l, err := listen("the shop", "--addr", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The sample shop is open at http://%s/, and its tools at http://%[1]s/mcp\n", l.Addr())
	return serveHTTP(ctx, l, s.Handler())
}
