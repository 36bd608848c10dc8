package bot

import (
	"fmt"
	"regexp"
	"strings"
)

// Slack's names of people, channels and messages are checked for their form before they are stored or used in calls.
// Otherwise a malformed thread would become a conversation in which Slack refuses every answer, and the bot would keep
// trying.

var (
	idShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	tsShape = regexp.MustCompile(`^[0-9]{1,16}(\.[0-9]{1,16})?$`)
)

// nameOfSlack is one name in a delivery, with its expected form.
type nameOfSlack struct {
	field, value string
	shape        *regexp.Regexp
}

// shaped returns an error for the first malformed name. Empty names are ignored.
func shaped(names ...nameOfSlack) error {
	for _, n := range names {
		if n.value != "" && !n.shape.MatchString(n.value) {
			return fmt.Errorf("%w: its %s %q is not what Slack names one", errPayload, n.field, cutTo(n.value, 40))
		}
	}
	return nil
}

// cutTo returns the beginning of an external text, for the log.
func cutTo(text string, n int) string {
	if len(text) > n {
		text = text[:n] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// shaped returns an error if a name in an event is malformed.
func (e envelope) shaped() error {
	ev := e.Event
	return shaped(
		nameOfSlack{"user", ev.userID(), idShape}, nameOfSlack{"channel", ev.channelID(), idShape}, nameOfSlack{"ts", ev.TS, tsShape},
		nameOfSlack{"thread_ts", ev.ThreadTS, tsShape}, nameOfSlack{"event_ts", ev.At, tsShape}, nameOfSlack{"edited.ts", ev.Edited.TS, tsShape},
		nameOfSlack{"deleted_ts", ev.DeletedTS, tsShape}, nameOfSlack{"assistant_thread.user_id", ev.Assistant.User, idShape},
		nameOfSlack{"assistant_thread.channel_id", ev.Assistant.Channel, idShape}, nameOfSlack{"assistant_thread.thread_ts", ev.Assistant.Thread, tsShape},
	)
}

// shaped returns an error if a name in an interaction is malformed.
func (i interaction) shaped() error {
	return shaped(
		nameOfSlack{"user", i.User.ID, idShape}, nameOfSlack{"channel", i.Channel.ID, idShape}, nameOfSlack{"container.channel_id", i.Container.Channel, idShape},
		nameOfSlack{"container.message_ts", i.Container.Message, tsShape}, nameOfSlack{"message.ts", i.Posted.TS, tsShape},
		nameOfSlack{"message.thread_ts", i.Posted.ThreadTS, tsShape}, nameOfSlack{"view", i.View.ID, idShape},
	)
}

// shaped returns an error if a name in a slash command is malformed.
func (c command) shaped() error {
	return shaped(nameOfSlack{"user_id", c.User, idShape}, nameOfSlack{"channel_id", c.Channel, idShape})
}
