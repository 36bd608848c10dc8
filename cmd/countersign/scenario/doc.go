// Package scenario reads and plays the scenarios of countersign demo --play. A scenario lists actions of people and
// other events, with the messages that people must then see.
//
// [Parse] reads a scenario file. The file scenario.go describes the language, and verbs.go and lines_*.go have its
// lines. [Play] plays the scenario with a [Demo]. People act through the API of the workspace's page (click.go,
// form.go). After each action, the transcript lists the new content that people see (news.go, told.go, describe.go).
// The package calls the demo to start and stop the bot, and to set the clock. The package only reads the store.
package scenario
