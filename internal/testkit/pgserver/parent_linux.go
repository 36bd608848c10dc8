package pgserver

import "syscall"

// endWithParent makes the server end like a crash when the tests end, however that happens.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
