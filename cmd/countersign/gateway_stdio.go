package main

import (
	"os"

	"github.com/spf13/cobra"

	"countersign/agent/client"
	"countersign/agent/hook"
	"countersign/cmd/countersign/cli"
)

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
