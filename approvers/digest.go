package approvers

// Digest binds an execution to its exact bytes. It is a SHA-256 over a domain tag, the execution id, the tool, the hash
// of the tool's definition and the argument bytes, each preceded by its length, in hex.
func Digest(execution, tool, toolHash string, args []byte) string {
	b := make([]byte, 0, 256+len(args))
	b = appendPart(b, "countersign/execution/v1")
	b = appendPart(b, execution)
	b = appendPart(b, tool)
	b = appendPart(b, toolHash)
	return SumOf(appendPart(b, args)).String()
}
