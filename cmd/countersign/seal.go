package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/store"
)

// sealing configures the sealer. The zero value means no sealing.
type sealing struct {
	keys   []approvers.SealKey // the first one signs
	places []audit.HeadTarget  // destinations of the heads
}

// openSealing reads or creates the key, and determines the destinations of the signed heads.
func openSealing(ctx context.Context, a config.Audit, s store.Store, log *slog.Logger) (out sealing, err error) {
	if out.keys, err = audit.OpenKeyFile(ctx, a.Key, s, log); err != nil {
		return out, sealKeyError(err)
	}
	if a.Heads != "" {
		out.places = append(out.places, audit.HeadFile(a.Heads))
	}
	if a.Syslog.Network != "" {
		out.places = append(out.places, &audit.Syslog{Network: a.Syslog.Network, Address: a.Syslog.Address, Now: time.Now})
	}
	return out, nil
}

func sealKeyError(err error) error {
	if errors.Is(err, audit.ErrKeyFile) {
		return cli.Misused("%w", err)
	}
	return err
}

// sealProbes returns the sealer's probes for /readyz.
func sealProbes(s *audit.Sealer) []probe {
	if s == nil {
		return nil
	}
	return []probe{
		{name: "seal", ready: s.Ready, notice: true},
		{name: "heads", ready: s.HeadsShipped, notice: true},
	}
}

func auditKeyCommand() *cobra.Command {
	var renew bool
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Prints the public key that the history is sealed with",
		Long: `Prints the public keys of the file that COUNTERSIGN_AUDIT_KEY names: first the one that signs the history's heads, then the earlier ones.
Keep the first one in another place, and give it to "countersign audit verify --key".

With --new a new key is made. It signs from the next start of the bot on, and the previous key signs that the new one takes over.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := config.ReadEnv(config.Offline)
			if err != nil {
				return cli.Misused("the environment can't be used:\n%w", err)
			}
			if renew {
				if err := renewSealKey(env.Audit.Key); err != nil {
					return err
				}
			}
			return printSealKeys(cmd.OutOrStdout(), env.Audit.Key)
		},
	}
	cmd.Flags().BoolVar(&renew, "new", false, "make a new key, which takes over at the next start of the bot")
	return cmd
}

func printSealKeys(out io.Writer, path string) error {
	keys, err := audit.ReadKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.AnswerNo("there is no key at %s yet: the bot makes one when it starts", path)
	}
	if err != nil {
		return sealKeyError(err)
	}
	for _, k := range keys.Public {
		fmt.Fprintln(out, k)
	}
	return nil
}

// renewSealKey adds a new key before the existing keys. renewSealKey replaces the key file atomically.
func renewSealKey(path string) error {
	text, err := audit.RenewedKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.AnswerNo("there is no key at %s yet: the bot makes one when it starts", path)
	}
	if err != nil {
		return sealKeyError(err)
	}
	return cli.WholeFile(path, func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
}
