// Package bot connects the program to Slack. The package receives messages and clicks of people, passes them to the
// workflow, and delivers the messages that Slack must show. Only this package and the packages below it use Slack's
// client.
//
// Guarantees:
//
//   - A delivery is durable in the inbox before it is acknowledged to Slack. A delivery that could not be stored is not
//     acknowledged, and Slack sends it again.
//   - Every delivery is finally handled, or set aside with a note and a log line. No delivery is retried forever.
//   - For each click, the bot looks up who clicked. For a low or medium risk, Slack's answer may come from a cache and
//     be up to a minute old. If Slack can't identify the person, the click is refused. A button's value and a modal's
//     metadata only identify a rendering, which is a stored version of a message as Slack showed it. The content that
//     the person saw is read from the stored rendering. The stored rendering must contain the clicked button.
//   - An outbox message is one message, or another item such as a Home tab, that Slack must show. One pure function
//     draws every outbox message from one snapshot of the state. The bot redraws a message until Slack shows the latest
//     state. Each Slack message carries the id of its outbox message. Therefore the bot finds a post whose response was
//     lost, and does not post the message twice.
//
// Package bot has these packages below it. The package transport receives deliveries and acknowledges them. The package
// slackapi calls the Web API. The package render draws messages and forms. The package directory looks up people and
// channels. The package installation examines how the app is set up. The package bottest has fixtures for tests.
//
// A delivery takes this path. The package transport receives the delivery, receive.go stores it in the inbox, and
// handle.go reads it from the inbox. Then message.go, click.go, form.go, submit.go or command.go acts on it. An outbox
// message takes this path: show.go draws it, post.go and draft.go write it, and unconfirmed.go finds posts whose
// response was lost.
package bot
