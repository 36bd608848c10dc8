package slackapi

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/internal/redact"
)

// IsBlocksRefused reports whether an error says that Slack refused the blocks of a message or a view. Slack may accept
// the same text in other blocks, or without blocks.
func IsBlocksRefused(err error) bool {
	var status slack.StatusCodeError
	if errors.As(err, &status) {
		return status.Code == http.StatusBadRequest || status.Code == http.StatusRequestEntityTooLarge
	}
	switch code := ErrorCode(err); code {
	case "invalid_blocks", "invalid_blocks_format", "invalid_block", "unknown_block_type", "unsupported_block_type", "msg_blocks_too_long", "block_mismatch",
		"invalid_attachments", "too_many_attachments", "view_too_large":
		return true
	case "invalid_arguments", "invalid_json", "invalid_form_data":
		said := reasons(err)
		return len(said) == 0 || slices.ContainsFunc(said, func(s string) bool { return blockNamed.MatchString(s) })
	}
	return false
}

// IsMetadataRefused reports whether an error says that Slack refused the metadata of a message.
func IsMetadataRefused(err error) bool {
	code := ErrorCode(err)
	return strings.HasPrefix(code, "invalid_metadata") || strings.HasPrefix(code, "metadata_")
}

// IsFileRefused reports whether an error says that Slack refused a file because of the file's type or size. Slack may
// accept other files.
func IsFileRefused(err error) bool {
	switch ErrorCode(err) {
	case "file_type_not_allowed", "blocked_file_type", "file_uploads_except_images_disabled", "file_upload_size_restricted", "snippet_too_large", "unknown_snippet_type",
		"unknown_subtype":
		return true
	}
	return false
}

// blockNamed matches Slack's name of a part of a block, such as [json-pointer:/blocks/0/type].
var blockNamed = regexp.MustCompile(`\[json-pointer:(?:/view)?/blocks/(\d+)((?:/[^\]]*)?)\]`)

// kindNamed matches the kind of block that a reason of Slack names.
var kindNamed = regexp.MustCompile(`unsupported type: ([a-z_]+)`)

// BlockFault is one of Slack's reasons for refusing blocks.
type BlockFault struct {
	Index int    // index of the block
	Kind  bool   // Slack does not accept this kind of block at all
	Name  string // the kind that Slack names, if it names one
}

// BlockFaults returns Slack's reasons for refusing blocks. If Slack gave no reasons, the result "said" is false.
func BlockFaults(err error) (faults []BlockFault, said bool) {
	for _, reason := range reasons(err) {
		said = true
		name := ""
		if m := kindNamed.FindStringSubmatch(reason); m != nil {
			name = m[1]
		}
		for _, named := range blockNamed.FindAllStringSubmatch(reason, -1) {
			index, err := strconv.Atoi(named[1])
			if err != nil {
				continue
			}
			faults = append(faults, BlockFault{index, named[2] == "/type" || strings.Contains(reason, "unsupported"), name})
		}
	}
	return faults, said
}

// reasons returns the reasons in Slack's answer, in addition to its code.
func reasons(err error) []string {
	var answer slack.SlackErrorResponse
	if !errors.As(err, &answer) {
		return nil
	}
	return answer.ResponseMetadata.Messages
}

// maxReason is the maximum number of bytes of Slack's reasons in an error.
const maxReason = 400

// Explain returns the text of an error with Slack's reasons and the missing scope. Explain removes secrets and limits
// the length.
func Explain(err error) string {
	text := redact.Error(err)
	var answer slack.SlackErrorResponse
	if errors.As(err, &answer) && answer.Needed != "" { // Needed is the missing scope
		text += ": " + answer.Needed
	}
	if said := reasons(err); len(said) > 0 {
		text += ": " + redact.Text(strings.Join(said, "; "))
	}
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// IsMissing reports whether an error says that Slack does not have the called method. Such a call had no effect, and
// another call soon afterwards would not help.
func IsMissing(err error) bool {
	var status slack.StatusCodeError
	if errors.As(err, &status) {
		return status.Code == http.StatusNotFound || status.Code == http.StatusMethodNotAllowed || status.Code == http.StatusNotImplemented
	}
	switch ErrorCode(err) {
	case "unknown_method", "method_deprecated", "deprecated_endpoint":
		return true
	}
	return false
}

// IsUnusable reports whether an error says that Slack's answer can't be used. The answer has a status of 500 or above,
// or is not Slack's JSON. It is unknown whether the call took effect.
func IsUnusable(err error) bool {
	var status slack.StatusCodeError
	if errors.As(err, &status) {
		return status.Code >= http.StatusInternalServerError
	}
	var unusable unusableError
	return errors.As(err, &unusable) || IsServerFailure(cmp.Or(ErrorCode(err), "-"))
}

// IsRefused reports whether an error is a lasting refusal. A failure of Slack or a rate limit is not a refusal.
func IsRefused(err error) bool {
	code := ErrorCode(err)
	return IsMissing(err) || code != "" && !IsServerFailure(code) && RetryDelay(err) == 0
}

// unusableError says that an answer with status 200 does not have the form of Slack's answers.
type unusableError struct{ why string }

func (e unusableError) Error() string { return "the response does not have Slack's format: " + e.why }

// ErrNoTimestamp says that Slack accepted a post without naming the message.
var ErrNoTimestamp error = unusableError{"it names no message"}

// notJSON returns the reason why a response with status 200 can't be a response of the Web API, or nil. After the
// check, the response can be read from its start. notJSON ignores a broken connection, because the caller reports a
// broken connection.
func notJSON(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	body := bufio.NewReaderSize(resp.Body, 256)
	resp.Body = readCloser{body, resp.Body}
	for n := 1; n <= 128; n++ {
		head, err := body.Peek(n)
		if errors.Is(err, io.EOF) && len(strings.TrimSpace(string(head))) == 0 {
			return unusableError{"it is empty"}
		}
		if err != nil {
			return nil //nolint:nilerr // whoever reads the body gets the error
		}
		switch c := head[n-1]; c {
		case ' ', '\t', '\r', '\n':
		case '{':
			return nil
		default:
			return unusableError{fmt.Sprintf("it begins with %q", c)}
		}
	}
	return nil
}

// limitedIn matches Slack's error codes for rate limits, in an answer with status 200.
var limitedIn = regexp.MustCompile(`"error": ?"(ratelimited|rate_limited|message_limit_exceeded)"`)

// refusesTokenIn matches Slack's error codes for a token that Slack does not accept.
var refusesTokenIn = regexp.MustCompile(`"error": ?"(invalid_auth|not_authed|account_inactive|token_expired|token_revoked)"`)

// endedIn matches Slack's error codes for a token that is no longer valid.
var endedIn = regexp.MustCompile(`"error": ?"(token_expired|token_revoked)"`)

// tokenEnded reports whether a response is a refusal because the token is no longer valid. After the check, the
// response can be read from its start.
func tokenEnded(resp *http.Response) bool { return answersWith(resp, endedIn) != "" }

// asksToWait reports whether a response with status 200 is a refusal because of a rate limit. After the check, the
// response can be read from its start.
func asksToWait(resp *http.Response) bool { return answersWith(resp, limitedIn) != "" }

// answersWith returns the code of a response with status 200 that is a refusal with one of the codes. For any other
// response, the result is empty.
func answersWith(resp *http.Response, codes *regexp.Regexp) string {
	if resp.StatusCode != http.StatusOK {
		return ""
	}
	body := bufio.NewReaderSize(resp.Body, 256)
	resp.Body = readCloser{body, resp.Body}
	head, _ := body.Peek(128) // the reader of the body sees any error
	code := codes.FindSubmatch(head)
	if code == nil || !notOK.Match(head) {
		return ""
	}
	return string(code[1])
}

// isReply reports whether a request posts to a response URL. A file upload is not a reply.
func isReply(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasPrefix(req.Header.Get("Content-Type"), "application/json")
}

// replied replaces an empty answer of a response URL by "ok", because the client library needs this answer. Slack
// answers "ok", and other servers may send an empty answer.
func replied(resp *http.Response) {
	if resp.StatusCode != http.StatusOK {
		return
	}
	body := bufio.NewReaderSize(resp.Body, 16)
	if _, err := body.Peek(1); !errors.Is(err, io.EOF) {
		resp.Body = readCloser{body, resp.Body}
		return
	}
	resp.Body.Close()
	resp.Header.Set("Content-Type", "text/plain")
	resp.Body = io.NopCloser(strings.NewReader("ok"))
}
