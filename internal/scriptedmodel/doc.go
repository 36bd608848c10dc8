// Package scriptedmodel is a model without a machine behind it, served as an
// OpenAI-compatible HTTP endpoint: GET /v1/models, GET /v1/models/{model} and
// POST /v1/chat/completions, streaming and not. The demo chats with it when no
// real model is configured, and tests put it in the place of one.
//
// What it promises:
//
//   - It is as strict as the real service, and in doubt stricter: what passes
//     here passes there. A history in which a tool call and its result are
//     parted, a bad tool schema, an unknown parameter, a wrong key, an unknown
//     model or too long a context get the status, type and code that the real
//     service answers with, so that a client meets them before its users do.
//   - Its streams are cut into many small pieces, tool arguments too.
//   - It never calls a tool that the request does not offer, except where a
//     test asks for that with Fault.Tool or a Script.
//   - It keeps no conversation: as with the real service, everything that it
//     answers follows from the request alone.
//
// Who answers is a Responder. Without one it is package clerk, which
// understands plain English about a shop; tests use a Script, a queue of exact
// replies. A Fault, in a reply or injected from outside, makes the service
// misbehave as real ones do.
package scriptedmodel
