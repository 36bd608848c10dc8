// Package scriptedmodel is a scripted model, served as an OpenAI-compatible HTTP endpoint: GET /v1/models, GET
// /v1/models/{model} and POST /v1/chat/completions, with and without streaming. The demo uses it if no real model is
// configured, and tests use it in place of one.
//
//   - It is at least as strict as the real service. It answers with the status, type and code of the real service if a
//     tool call in the history has no result, a tool's schema is invalid, a parameter or the model is unknown, the key
//     is wrong, or the context is too long.
//   - Its streams are split into many small pieces, including tool arguments.
//   - It never calls a tool that the request does not offer, unless a test asks for it with Fault.Tool or a Script.
//   - It stores no conversation: as with the real service, an answer depends only on the request.
//
// A Responder answers the requests. The default one uses package demomodel, which understands plain English about a
// shop; tests use a Script, which is a queue of exact replies. A Fault simulates a failure of a real service. It is
// part of a reply, or injected.
package scriptedmodel
