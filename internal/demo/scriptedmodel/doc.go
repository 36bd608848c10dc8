// Package scriptedmodel is a scripted model, served as an OpenAI-compatible HTTP endpoint: GET /v1/models, GET
// /v1/models/{model} and POST /v1/chat/completions, with and without streaming. The demo uses it if no real model is
// configured, and tests use it in place of one.
//
//   - It is at least as strict as the real service. A history with a tool call without its result, an invalid tool
//     schema, an unknown parameter, a wrong key, an unknown model or a context that is too long gets the status, type
//     and code of the real service.
//   - Its streams are split into many small pieces, including tool arguments.
//   - It never calls a tool that the request does not offer, unless a test asks for it with Fault.Tool or a Script.
//   - It stores no conversation: as with the real service, an answer depends only on the request.
//
// A Responder answers the requests. The default is package demomodel, which understands plain English about a shop;
// tests use a Script, a queue of exact replies. A Fault, in a reply or injected, simulates failures of real services.
package scriptedmodel
