// Package bot connects the program to Slack. It receives what people write and click, routes it to the workflow, and
// delivers what Slack must show. Only this package and the packages below it use Slack's client.
//
// Guarantees:
//
//   - A delivery is durable in the inbox before it is acknowledged to Slack. A delivery that could not be stored is not
//     acknowledged, and Slack sends it again.
//   - Every delivery is finally handled, or set aside with a note and a log line. None is retried forever.
//   - After each click, Slack is asked who clicked. If Slack cannot say, the click is refused. A button's value and a
//     modal's metadata only identify a rendering. What the person was shown is read from the stored rendering, which
//     must contain the clicked button.
//   - Every outbox message is drawn by one pure function from one snapshot of the state, again and again until Slack
//     shows the latest state. Each Slack message carries the id of its outbox message. A post whose response was lost
//     is thus found, and not repeated.
//
// The packages below it: transport receives deliveries and acknowledges them, slackapi calls the Web API, render draws
// messages and forms, directory looks up who somebody is and where something is posted, and installation examines how
// the app is set up. bottest has fixtures for tests.
//
// The path of a delivery: transport brings it, receive.go stores it, handle.go picks it up, and message.go, click.go,
// form.go, submit.go and command.go act on it. The path of an outbox message: show.go draws it, post.go and draft.go
// write it, and unconfirmed.go finds posts whose response was lost.
package bot
