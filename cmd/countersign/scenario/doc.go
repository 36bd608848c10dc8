// Package scenario reads and plays the scenarios of countersign demo --play. A scenario says what people do, what
// happens, and what people must then see.
//
// [Parse] reads a scenario file (scenario.go describes the language; verbs.go and lines_*.go have its lines). [Play]
// plays it with a [Demo]. People act through the API of the workspace's page (click.go, form.go), and the transcript
// tells what was new for them (news.go, told.go, describe.go). The package itself never starts or stops a process or
// sets a clock. It calls the demo for this. It only reads the store.
package scenario
