package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// FromEnv returns the tracer that the environment configures. If the environment configures no tracer, FromEnv returns
// nil.
func FromEnv(ctx context.Context, getenv func(string) string, s Service, now func() time.Time, log *slog.Logger) (*Tracer, error) {
	switch kind := getenv(varExporter); {
	case strings.EqualFold(getenv(varDisabled), "true"), kind == "none":
		return nil, nil
	case kind == "otlp":
	case kind != "":
		return nil, fmt.Errorf("%w: %s is %q; traces are sent by otlp or not at all (none)", ErrVariable, varExporter, kind)
	case getenv(varEndpoint) == "" && getenv(varTracesTo) == "":
		return nil, nil
	}
	for _, name := range []string{varHeaders, varTracesHead} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			_, value, _ := strings.Cut(pair, "=")
			redact.Secrets(strings.TrimSpace(value))
		}
	}
	by, from := getenv(varTracesBy), varTracesBy
	if by == "" {
		by, from = getenv(varProtocol), varProtocol
	}
	var exporter *otlptrace.Exporter
	var err error
	switch by {
	case "", "http/protobuf":
		exporter, err = otlptracehttp.New(ctx)
	case "grpc":
		exporter, err = otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("%w: %s is %q; it can be http/protobuf or grpc", ErrVariable, from, by)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: traces can't be sent: %w", ErrVariable, err)
	}
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(&complaints{log: log})
	wants := []string{"true", "span_only", "span_and_event"}
	return New(ctx, sdk.NewBatchSpanProcessor(exporter), Options{Service: s, Now: now, Texts: slices.Contains(wants, strings.ToLower(getenv(varTexts)))})
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
