// Package scriptedmodel is a scripted model, served as an OpenAI-compatible HTTP endpoint: GET /v1/models, GET
// /v1/models/{model} and POST /v1/chat/completions, with and without streaming. The demo uses the scripted model if no
// real model is configured. Tests use the scripted model in place of a real model.
//
//   - The scripted model is at least as strict as the real service. The model's errors have the status, type and code
//     of the real service. The model checks that each tool call in the history has a result, and that the schemas of
//     the tools are valid. The model also checks the parameters, the model's name, the key and the length of the
//     context.
//   - Streams are split into many small pieces. The arguments of tool calls within a stream are split, too.
//   - The scripted model calls only tools that the request offers. A test can make the model call another tool with
//     Fault.Tool or a Script.
//   - The scripted model stores no conversation. As with the real service, an answer depends only on the request.
//
// A Responder answers the requests. The default Responder uses package demomodel, which understands plain English about
// a shop. Tests use a Script as the Responder: a queue of exact replies. A Fault simulates a failure of a real service.
// A test puts a Fault into a reply, or passes the Fault to Server.Inject.
package scriptedmodel
