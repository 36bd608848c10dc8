// Package scenario reads and plays the scenarios of countersign demo --play. A scenario says what people do, what
// happens, and what people must then see.
//
// [Parse] reads a scenario file (scenario.go describes the language; verbs.go, lines_time.go and lines_pause.go have
// its lines). [Play] plays a scenario with a [Demo]. People act through the API of the workspace's page (click.go,
// form.go), and the transcript shows the messages that are new to them (news.go, told.go, describe.go). The package
// itself never starts or stops a process, and never sets a clock. For these purposes, the package calls the demo. The
// package reads the store, but never writes to it.
package scenario
