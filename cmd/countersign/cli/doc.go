// Package cli has the code that the commands of countersign share: exit codes and the errors that carry them (exit.go),
// the printed form of numbers, sizes and times (text.go), files that appear only when they are complete (file.go), and
// the name of this process (process.go).
package cli
