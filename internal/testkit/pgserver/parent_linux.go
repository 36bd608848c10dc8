package pgserver

import "syscall"

// endWithParent makes the kernel end the server when the tests' process ends for any reason. The server ends as in a
// crash.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
