// Package task runs the operations of commands on a store.
//
// The package decides which process runs the operation of a command. If no process holds the store, the command runs
// the [Task] itself. If a bot holds the store, the bot runs the task. If the store is a database and no bot answers,
// the command runs the task beside the replicas.
//
// A task has no input and no output except the streams of its [Env]. Therefore the task has the same output in the
// command and in the bot. The package never prints by itself. The package does not list the tasks: the bot keeps the
// list of the tasks that it accepts.
package task
