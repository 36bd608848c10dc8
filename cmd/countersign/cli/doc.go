// Package cli is what the commands of countersign have in common: exit codes and the errors that carry them (exit.go),
// numbers, sizes and times as they are printed (text.go), and files that are written whole (file.go).
package cli
