package pgserver

import "syscall"

// endWithParent makes the kernel end the server, as in a crash, when the tests' process ends for any reason.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
