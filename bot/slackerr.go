package bot

import (
	"errors"
	"net/http"
	"time"

	"github.com/slack-go/slack"
)

// errorCode is Slack's code in an error, such as channel_not_found; empty for errors that aren't Slack's answer.
func errorCode(err error) string {
	var answer slack.SlackErrorResponse
	if errors.As(err, &answer) {
		return answer.Err
	}
	return ""
}

// refusedTokens are the codes with which Slack refuses a token for good.
var refusedTokens = map[string]bool{
	"invalid_auth": true, "not_authed": true, "account_inactive": true, "token_revoked": true, "token_expired": true,
	"not_allowed_token_type": true,
}

// gone are the codes with which Slack says that a place or a person can't be written to, now or later.
var gone = map[string]bool{
	errShared.Err: true, "channel_not_found": true, "not_in_channel": true, "is_archived": true, "user_not_found": true, "users_not_found": true,
	"user_disabled": true, "user_not_visible": true, "cannot_dm_bot": true, "restricted_action": true,
	"restricted_action_read_only_channel": true, "restricted_action_thread_only_channel": true, "restricted_action_non_threadable_channel": true,
	"restricted_action_thread_locked": true, "messages_tab_disabled": true, "thread_not_found": true, "not_allowed_to_message_user": true,
	"cannot_reply_to_message": true, "missing_scope": true, "invalid_users": true, "ekm_access_denied": true, "access_denied": true,
	"is_inactive": true, "cant_dm_bot": true, "user_is_bot": true,
	"msg_too_long": true, "msg_blocks_too_long": true, "invalid_blocks": true, "invalid_blocks_format": true, "no_text": true, "metadata_too_large": true,
}

// away are the codes with which Slack says that the bot is not in a channel any more, or that there is no such channel to write in.
var away = map[string]bool{errShared.Err: true, "channel_not_found": true, "not_in_channel": true, "is_archived": true}

// vanished are the codes with which chat.update says that the message is gone: deleted, or with only its thread left under what Slack put in its place.
var vanished = map[string]bool{"message_not_found": true, "cant_update_message": true}

// stale are the codes with which chat.update says that the message can't be changed any more.
var stale = map[string]bool{"edit_window_closed": true, "as_user_not_supported": true}

// unsent reports whether an error says that a call changed nothing: it was not made, or Slack answered that it refused it.
func unsent(err error) bool {
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	var answer slack.SlackErrorResponse
	var put later
	switch {
	case errors.As(err, &put), errors.As(err, &limited):
		return true
	case errors.As(err, &status):
		return status.Code < http.StatusInternalServerError
	case errors.As(err, &answer):
		return !failing(answer.Err)
	}
	return false
}

// failing reports whether a code says that Slack itself failed, and so nothing of what it was asked.
func failing(code string) bool { return slackFailed.MatchString(`"error":"` + code + `"`) }

// later is an error that says when to try again.
type later struct {
	error
	after time.Duration
}

// After is how long to wait, for the agenda.
func (l later) After() time.Duration { return l.after }

func (l later) Unwrap() error { return l.error }

// isPutOff reports whether something was only put off.
func isPutOff(err error) bool {
	var put later
	return errors.As(err, &put)
}

// slow marks a refusal for asking too often with the time that Slack asks to wait.
func slow(err error) error {
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return later{err, max(limited.RetryAfter, time.Second)}
	}
	var status slack.StatusCodeError
	if errors.As(err, &status) && status.Code == http.StatusTooManyRequests {
		return later{err, 5 * time.Second}
	}
	switch errorCode(err) {
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return later{err, 5 * time.Second}
	}
	return err
}
