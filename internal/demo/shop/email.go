package shop

import (
	"context"
	"fmt"
	"strings"
)

// EmailArgs is a message to one address.
type EmailArgs struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

// EmailResult confirms that the message was sent.
type EmailResult struct {
	EmailID string `json:"email_id"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Message string `json:"message"`
}

// SendEmail sends a message. The sample shop only adds the message to the log of sent messages.
func (s *Shop) SendEmail(ctx context.Context, key string, a EmailArgs) (EmailResult, error) {
	return once(ctx, s, key, "send_email", a, func(c *change) (EmailResult, error) {
		switch {
		case !validAddress(a.To):
			return EmailResult{}, problem(ErrInvalid, "%s is not an e-mail address: give one such as jane@example.com.", shown(a.To))
		case strings.TrimSpace(a.Subject) == "":
			return EmailResult{}, problem(ErrInvalid, "An e-mail needs a subject.")
		case strings.ContainsAny(a.Subject, "\r\n"):
			return EmailResult{}, problem(ErrInvalid, "The subject of an e-mail must be one line.")
		case strings.TrimSpace(a.Body) == "":
			return EmailResult{}, problem(ErrInvalid, "An e-mail needs a text.")
		}
		e := Email{ID: number("EML", len(c.Emails)+1), To: a.To, Subject: a.Subject, Body: a.Body, At: c.at}
		c.Emails = append(c.Emails, e)
		c.summary = fmt.Sprintf("Sent an e-mail to %s: %s", a.To, shown(a.Subject))
		return EmailResult{EmailID: e.ID, To: a.To, Subject: a.Subject, Message: c.summary + "."}, nil
	})
}
