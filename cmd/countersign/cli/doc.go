// Package cli has the code that the commands of countersign share: exit codes and the errors that carry them (exit.go),
// the printed form of numbers, sizes and times (text.go), files that appear only when they are complete (file.go), and
// the names of this process and its operator (process.go).
package cli
