package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"countersign/internal/redact"
)

// The environment variables that this package reads. The SDK and its exporter read the other OTEL_* variables.
const (
	varDisabled   = "OTEL_SDK_DISABLED"
	varExporter   = "OTEL_TRACES_EXPORTER"
	varEndpoint   = "OTEL_EXPORTER_OTLP_ENDPOINT"
	varTracesTo   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	varProtocol   = "OTEL_EXPORTER_OTLP_PROTOCOL"
	varTracesBy   = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	varHeaders    = "OTEL_EXPORTER_OTLP_HEADERS"
	varTracesHead = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
	varTexts      = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
)

// ErrVariable means that an OTEL_* variable has a value that can't be used.
var ErrVariable = errors.New("environment")

// FromEnv returns the tracer that the environment configures. The headers for the receiver have the syntax of
// OTEL_EXPORTER_OTLP_HEADERS. If the environment configures no tracer, FromEnv returns nil.
func FromEnv(ctx context.Context, getenv func(string) string, headers string, s Service, now func() time.Time, log *slog.Logger) (*Tracer, error) {
	c, err := newClient(getenv, headers, false)
	if err != nil || c == nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%w: traces can't be sent: %w", ErrVariable, err)
	}
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(&complaints{log: log})
	wants := []string{"true", "span_only", "span_and_event"}
	return New(ctx, sdk.NewBatchSpanProcessor(exporter), Options{Service: s, Now: now, Texts: slices.Contains(wants, strings.ToLower(getenv(varTexts)))})
}

// Probe sends the receiver of traces a message without spans. Probe returns the receiver's address, or "" if the
// environment configures no traces. If a variable is wrong, the error is [ErrVariable].
func Probe(ctx context.Context, getenv func(string) string, headers string) (address string, err error) {
	c, err := newClient(getenv, headers, true)
	if err != nil || c == nil {
		return "", err
	}
	address = cmp.Or(getenv(varTracesTo), getenv(varEndpoint), "localhost")
	if err := c.Start(ctx); err != nil {
		return address, fmt.Errorf("%w: %w", ErrVariable, err)
	}
	return address, errors.Join(c.UploadTraces(ctx, nil), c.Stop(ctx))
}

// newClient returns the client that sends traces. If the environment configures no traces, newClient returns nil. If
// once is true, the client does not repeat failed calls.
func newClient(getenv func(string) string, headers string, once bool) (otlptrace.Client, error) {
	switch kind := getenv(varExporter); {
	case strings.EqualFold(getenv(varDisabled), "true"), kind == "none":
		return nil, nil
	case kind == "otlp":
	case kind != "":
		return nil, fmt.Errorf("%w: %s is %q; traces are sent by otlp or not at all (none)", ErrVariable, varExporter, kind)
	case getenv(varEndpoint) == "" && getenv(varTracesTo) == "":
		return nil, nil
	}
	by, from := getenv(varTracesBy), varTracesBy
	if by == "" {
		by, from = getenv(varProtocol), varProtocol
	}
	if by != "" && by != overHTTP && by != overGRPC {
		return nil, fmt.Errorf("%w: %s is %q; it can be http/protobuf or grpc", ErrVariable, from, by)
	}
	for _, name := range []string{varEndpoint, varTracesTo} {
		if err := checkAddress(name, getenv(name), by == overGRPC); err != nil {
			return nil, err
		}
	}
	given, err := readHeaders(varHeaders, headers)
	if special := getenv(varTracesHead); special != "" {
		given, err = readHeaders(varTracesHead, special)
	}
	if err != nil {
		return nil, err
	}
	if by == overGRPC {
		options := []otlptracegrpc.Option{otlptracegrpc.WithHeaders(given)}
		if once {
			options = append(options, otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}))
		}
		return otlptracegrpc.NewClient(options...), nil
	}
	options := []otlptracehttp.Option{otlptracehttp.WithHeaders(given)}
	if once {
		options = append(options, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	}
	return otlptracehttp.NewClient(options...), nil
}

// The two protocols.
const (
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// checkAddress refuses addresses that the SDK ignores. The SDK would then send the traces to localhost.
func checkAddress(name, address string, grpc bool) error {
	u, err := url.Parse(address)
	if address == "" || err == nil && (grpc || (u.Scheme == "http" || u.Scheme == "https") && u.Host != "") {
		return nil
	}
	return fmt.Errorf("%w: %s is not a URL such as http://127.0.0.1:4318", ErrVariable, name)
}

// readHeaders parses headers such as "authorization=Bearer%20KEY,x-team=bots". Their values are removed from the log.
func readHeaders(name, text string) (map[string]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		header, escaped, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		header = strings.TrimSpace(header)
		if !found || err != nil || header == "" {
			return nil, fmt.Errorf("%w: %s is not a list of headers such as authorization=Bearer%%20KEY", ErrVariable, name)
		}
		redact.Secrets(strings.TrimSpace(escaped), value)
		out[header] = value
	}
	return out, nil
}

// complainEvery is the minimum time between two log lines about spans that could not be sent.
const complainEvery = 5 * time.Minute

// complaints logs the errors of the SDK.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.last) >= complainEvery {
		c.last = now
		c.log.Warn("traces can't be sent; the bot works without them", "error", redact.Error(err))
	}
}
