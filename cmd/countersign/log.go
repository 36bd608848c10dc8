package main

import (
	"log"
	"log/slog"
	"os"

	"countersign/internal/redact"
)

// logger is the one log of a process. What looks like a secret, or is one of the environment's, is taken out of each line, whoever wrote it.
func logger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(redact.Writer(os.Stderr), &slog.HandlerOptions{Level: level}))
}

// withoutSecrets keeps the secrets of the environment out of all that the process writes from now on, also of what libraries log by themselves.
func withoutSecrets() {
	redact.Environ(os.Environ())
	log.SetOutput(redact.Writer(os.Stderr))
}
