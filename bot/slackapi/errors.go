package slackapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/slack-go/slack"
)

// ErrorCode returns Slack's code in an error, such as channel_not_found. The code is empty for errors that are not an
// answer from Slack.
func ErrorCode(err error) string {
	var answer slack.SlackErrorResponse
	if errors.As(err, &answer) {
		return answer.Err
	}
	return ""
}

// ErrSharedChannel is the bot's own refusal to post a card in a channel that is shared with another organisation. The
// error has the form of Slack's errors, so the message counts as unreachable.
var ErrSharedChannel = slack.SlackErrorResponse{Err: "shared_channel"}

// IsTokenRefusal reports whether a code says that Slack refuses a token permanently.
func IsTokenRefusal(code string) bool { return tokenRefused[code] }

var tokenRefused = map[string]bool{
	"invalid_auth": true, "not_authed": true, "account_inactive": true, "token_revoked": true, "token_expired": true,
	"not_allowed_token_type": true,
}

// IsUnreachable reports whether a code says that the bot can't send a message to its channel or person.
func IsUnreachable(code string) bool { return unreachable[code] }

var unreachable = map[string]bool{
	ErrSharedChannel.Err: true, "channel_not_found": true, "not_in_channel": true, "is_archived": true, "user_not_found": true, "users_not_found": true,
	"user_disabled": true, "user_not_visible": true, "cannot_dm_bot": true, "restricted_action": true,
	"restricted_action_read_only_channel": true, "restricted_action_thread_only_channel": true, "restricted_action_non_threadable_channel": true,
	"restricted_action_thread_locked": true, "messages_tab_disabled": true, "thread_not_found": true, "not_allowed_to_message_user": true,
	"cannot_reply_to_message": true, "missing_scope": true, "invalid_users": true, "ekm_access_denied": true, "access_denied": true,
	"no_permission": true, "app_access_restricted": true, "team_access_not_granted": true,
	"is_inactive": true, "cant_dm_bot": true, "user_is_bot": true,
	"msg_too_long": true, "msg_blocks_too_long": true, "invalid_blocks": true, "invalid_blocks_format": true, "no_text": true, "metadata_too_large": true,
}

// IsChannelLost reports whether a code says that the bot can't write in a channel. The bot may have been removed, or
// the channel may be archived.
func IsChannelLost(code string) bool {
	switch code {
	case ErrSharedChannel.Err, "channel_not_found", "not_in_channel", "is_archived":
		return true
	}
	return false
}

// IsMessageLost reports whether a code of chat.update says that the message is gone. The message was deleted, or Slack
// replaced it with a placeholder that only keeps the thread.
func IsMessageLost(code string) bool {
	return code == "message_not_found" || code == "cant_update_message"
}

// IsServerFailure reports whether a code says that Slack itself failed. Then it is unknown whether the call took
// effect.
func IsServerFailure(code string) bool { return slackFailed.MatchString(`"error":"` + code + `"`) }

// IsNotSent reports whether an error proves that a call had no effect. Such a call was not made, or Slack refused the
// call.
func IsNotSent(err error) bool {
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	var answer slack.SlackErrorResponse
	var put putOffError
	switch {
	case errors.As(err, &put), errors.As(err, &limited):
		return true
	case errors.As(err, &status):
		return status.Code < http.StatusInternalServerError
	case errors.As(err, &answer):
		return !IsServerFailure(answer.Err)
	}
	return false
}

// putOffError says that a call must wait, and for how long.
type putOffError struct {
	error
	wait time.Duration
}

// After returns the delay before the next try. The scheduler reads this delay.
func (e putOffError) After() time.Duration { return e.wait }

func (e putOffError) Unwrap() error { return e.error }

// IsPutOff reports whether an error says that a call must wait. Such a call was not refused.
func IsPutOff(err error) bool {
	var put putOffError
	return errors.As(err, &put)
}

// WithDelay adds a delay to an error of Slack's rate limits. The delay is the time until the next try. Other errors are
// returned unchanged.
func WithDelay(err error) error {
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return putOffError{err, max(limited.RetryAfter, time.Second)}
	}
	var status slack.StatusCodeError
	if errors.As(err, &status) && status.Code == http.StatusTooManyRequests {
		return putOffError{err, defaultRetryAfter}
	}
	switch ErrorCode(err) {
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return putOffError{err, defaultRetryAfter}
	}
	return err
}

// RetryDelay returns the delay before the next try from an error. If the error has no delay, RetryDelay returns 0.
func RetryDelay(err error) time.Duration {
	var put putOffError
	if errors.As(WithDelay(err), &put) {
		return put.wait
	}
	return 0
}
