// Package bot connects the program to Slack. The package receives messages and clicks of people, passes them to the
// workflow, and delivers the messages that Slack must show. Only this package and the packages below it use Slack's
// client.
//
// Guarantees:
//
//   - A delivery is durable in the inbox before it is acknowledged to Slack. A delivery that could not be stored is not
//     acknowledged. Slack sends such an event again. Slack does not repeat clicks, forms and commands: the person has
//     to act again.
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
// Bot has one part for each concern. A part is a type with the state that only this concern needs, and with the parts
// that it uses. All parts share core: the configuration, the workflow, and the clients and caches of Slack.
//
//   - Receiver stores deliveries, and Gaps reads the messages of a gap, in which nothing was received. Inbox passes
//     each stored delivery to its handler, such as messageHandler, clickHandler, submissionHandler or commandHandler.
//     pauseHandler, absenceHandler and grantHandler have the commands, buttons and forms of one subject.
//   - The handlers of clicks and forms use other parts. targets finds the subject of a click, such as a request. modals
//     and formOpener open a form. outcomes decides, or records a refused attempt. ephemeral replies to a person.
//   - Display shows outbox messages. It uses posts to write messages and to find posts whose response was lost. Drafts,
//     Statuses and homeTabs show the model's text, the status under a thread, and the Home tabs. Leftovers deletes
//     messages that Slack refused to delete.
//   - Identities and Availability ask Slack about people. channelAccess and Permissions find out which actions Slack
//     allows the bot. Replicas shares Slack's limits with other processes.
//
// The handlers use parts that show messages, such as Statuses. No part that shows messages uses a handler. Some parts
// also handle the deliveries about their own subject: homeTabs, channelAccess and Availability. The functions New and
// assemble in bot.go create each part after the parts that it uses.
package bot
