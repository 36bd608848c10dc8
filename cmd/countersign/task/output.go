package task

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"countersign/agent/pins"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// ToFile writes a command's output to a file. The file appears only when its content is complete. The path "-" means the
// standard output. ToFile never replaces a file of the bot.
func ToFile(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(cmd.OutOrStdout())
	}
	if err := NotOfBot(path); err != nil {
		return err
	}
	return cli.WholeFile(path, func(f *os.File) error { return write(f) })
}

// NotOfBot returns an error if the environment names the file at a path as one of the bot's files.
func NotOfBot(path string) error {
	if env, err := config.ReadEnv(config.Offline); err == nil { // a command that needs the environment reports the error
		return notIn(env, path)
	}
	return nil
}

func notIn(env config.Env, path string) error {
	files := map[string]string{
		env.Store.Path: "the store itself", env.Store.Path + ".crashes": "the bot's record of crashes", env.Audit.Key: "the key that signs the history",
		env.Audit.Heads: "the file of signed heads", config.ReceiptKeyBeside(env.Store.Path): "the key that signs receipts",
		os.Getenv("COUNTERSIGN_GATEWAY_KEY"): "the key that signs receipts", env.Control: "the control socket", env.Policy: "the policy",
		filepath.Join(filepath.Dir(env.Policy), pins.FileName): "the file of pins",
	}
	for _, line := range os.Environ() {
		if name, file, _ := strings.Cut(line, "="); strings.HasSuffix(name, "_FILE") {
			files[file] = "the file of " + name
		}
	}
	for _, own := range slices.Sorted(maps.Keys(files)) {
		if own != "" && cli.SameFile(path, own) {
			return cli.Misused("%s is %s; name another file", path, files[own])
		}
	}
	return nil
}
