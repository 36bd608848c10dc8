// Package scriptedmodel is a scripted model, served as an OpenAI-compatible HTTP endpoint: GET /v1/models, GET
// /v1/models/{model} and POST /v1/chat/completions, with and without streaming. The demo uses the scripted model if no
// real model is configured. Tests use the scripted model in place of a real model.
//
//   - The scripted model is at least as strict as the real service. The model's errors have the status, type and code
//     of the real service. The service answers with an error if a tool call in the history has no result, a tool's
//     schema is invalid, a parameter or the model is unknown, the key is wrong, or the context is too long.
//   - Streams are split into many small pieces, and so are the arguments of tools within a stream.
//   - The scripted model calls only tools that the request offers, unless a test asks for another tool with Fault.Tool
//     or a Script.
//   - The scripted model stores no conversation. As with the real service, an answer depends only on the request.
//
// A Responder answers the requests. The default Responder uses package demomodel, which understands plain English about
// a shop. Tests use a Script as the Responder: a queue of exact replies. A Fault simulates a failure of a real service.
// A Fault is part of a reply, or is injected.
package scriptedmodel
