package auditcmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

func keyCommand() *cobra.Command {
	var renew bool
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Prints the public key that the history is sealed with",
		Long: `Prints the public keys of the file that COUNTERSIGN_AUDIT_KEY names: first the one that signs the history's heads, then the earlier ones.
Keep the first one in another place, and give it to "countersign audit verify --key".

With --new a new key is made. It signs from the next start of the bot on, and the previous key signs that the new one takes over. If there is no
file yet, --new makes it, so that several replicas can begin with the same key.`,
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
		return KeyError(err)
	}
	for _, k := range keys.Public {
		fmt.Fprintln(out, k)
	}
	return nil
}

// renewSealKey adds a new key before the existing keys, or creates the key file. renewSealKey replaces the key file atomically.
func renewSealKey(path string) error {
	text, err := audit.RenewedKeyFile(path)
	if err != nil {
		return KeyError(err)
	}
	return cli.BotsFile(path, "", func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
}

// KeyError adds an exit code to an error of the key file.
func KeyError(err error) error {
	if errors.Is(err, audit.ErrKeyFile) {
		return cli.Misused("%w", err)
	}
	return err
}
