// Package cli has the code that the commands of countersign share. exit.go has the exit codes, and the errors that
// carry them. args.go checks arguments and flags. text.go formats numbers, sizes and times. file.go writes files that
// appear only when they are complete. process.go returns the names of this process and its operator. build.go
// identifies the program's build. disk_*.go report the free disk space.
package cli
