package slackapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func TestErrors(t *testing.T) {
	limited := fmt.Errorf("x: %w", WithDelay(&slack.RateLimitedError{RetryAfter: 7 * time.Second}))
	var says interface{ After() time.Duration }
	if !errors.As(limited, &says) || says.After() != 7*time.Second {
		t.Error("Retry-After is lost")
	}
	if !errors.As(WithDelay(slack.StatusCodeError{Code: 429}), &says) || !errors.As(WithDelay(slack.SlackErrorResponse{Err: "ratelimited"}), &says) {
		t.Error("a 429 without Retry-After is not waited for")
	}
	if errors.As(WithDelay(errors.New("x")), &says) {
		t.Error("every error waits")
	}
	if ErrorCode(fmt.Errorf("x: %w", slack.SlackErrorResponse{Err: "is_archived"})) != "is_archived" || ErrorCode(context.Canceled) != "" {
		t.Error("Slack's code is not read")
	}
}
