// Package scenario reads and plays the scenarios of countersign demo --play. A scenario says what people do, what
// happens, and what people must then see.
//
// [Parse] reads a scenario file. The file scenario.go describes the language, and verbs.go and lines_*.go have its
// lines. [Play] plays the scenario with a [Demo]. People act through the API of the workspace's page (click.go,
// form.go), and the transcript tells what was new for them (news.go, told.go, describe.go). The package calls the demo
// to start and stop the bot, and to set the clock. The package only reads the store.
package scenario
