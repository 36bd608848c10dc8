package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"countersign/cmd/countersign/cli"
)

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "out", "o", "-", "the file to write; - prints it")
}

// toFile writes to a file that appears only when it is complete. "-" means the terminal.
func toFile(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(cmd.OutOrStdout())
	}
	return cli.WholeFile(path, func(f *os.File) error { return write(f) })
}
