package tracing

import semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

// Names of spans. The span of a Work has the name of its timer's kind, or one of these names.
const (
	SpanMessage = "receive message" // the main span of a turn: a person's message
	SpanCaller  = "receive call"    // the main span of another agent's call
	SpanClick   = "receive click"   // a click on a button, or a form
	SpanQueued  = "queued messages" // the main span of a turn that begins with queued messages
	SpanPropose = "propose"         // followed by the tool's name; the main span of a request
	SpanWait    = "wait for people" // from the proposal of a request until it was approved or closed
	SpanAgent   = "invoke_agent"    // followed by the agent's name; the span of the whole turn
	SpanChat    = "chat"            // followed by the model's name
	SpanTool    = "execute_tool"    // followed by the tool's name
	SpanPreview = "preview_tool"    // followed by the tool's name
	SpanSlack   = "slack"           // followed by the method of Slack's Web API
)

// received has the names of work that begins with a message from outside.
var received = map[string]bool{SpanMessage: true, SpanCaller: true, SpanClick: true}

// Names of attributes of OpenTelemetry's semantic conventions.
const (
	ErrorType     = string(semconv.ErrorTypeKey)
	ServerAddress = string(semconv.ServerAddressKey)
	ServerPort    = string(semconv.ServerPortKey)

	Operation      = string(semconv.GenAIOperationNameKey)
	Provider       = string(semconv.GenAIProviderNameKey)
	AgentName      = string(semconv.GenAIAgentNameKey)
	Conversation   = string(semconv.GenAIConversationIDKey)
	RequestModel   = string(semconv.GenAIRequestModelKey)
	ResponseModel  = string(semconv.GenAIResponseModelKey)
	ResponseID     = string(semconv.GenAIResponseIDKey)
	FinishReasons  = string(semconv.GenAIResponseFinishReasonsKey)
	InputTokens    = string(semconv.GenAIUsageInputTokensKey)
	OutputTokens   = string(semconv.GenAIUsageOutputTokensKey)
	InputMessages  = string(semconv.GenAIInputMessagesKey)
	OutputMessages = string(semconv.GenAIOutputMessagesKey)
	ToolName       = string(semconv.GenAIToolNameKey)
	ToolType       = string(semconv.GenAIToolTypeKey)
	ToolCall       = string(semconv.GenAIToolCallIDKey)
)

// Names of Countersign's own attributes.
const (
	Turn      = "countersign.turn.id"
	Request   = "countersign.request.id"
	Execution = "countersign.execution.id"
	Risk      = "countersign.risk"      // risk of a request
	Stages    = "countersign.stages"    // how many stages a request has
	State     = "countersign.state"     // state of a turn, request or run at the end of the span
	Decision  = "countersign.decision"  // approve, reject or modify
	Role      = "countersign.role"      // the approver's role that gave the authority
	Try       = "countersign.try"       // how often the work was tried, from 1
	Queued    = "countersign.queued_s"  // seconds from the due time of the work until the work began
	Method    = "slack.method"          // method of Slack's Web API
	Outcome   = "slack.outcome"         // answered, limited, failed or put_off
	Estimated = "countersign.estimated" // true: Countersign estimated the number of tokens, because the endpoint did not report it
)

// maxText is the maximum length in bytes of a text in an attribute.
const maxText = 32 << 10

// Text returns an attribute with a text. Use Text only for spans that may have texts (see Span.Texts).
func Text(name, text string) Attr {
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return String(name, text)
}
