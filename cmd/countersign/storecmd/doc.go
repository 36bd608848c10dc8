// Package storecmd has the commands on a whole store: "countersign store" (store.go, copy.go, salvage.go, migrate.go),
// "backup" (backup.go), "restore" (restore.go) and "audit accept-loss" (accept_loss.go).
//
// The package checks copies of a store. With an older store, a bot could repeat actions. Therefore restore, salvage and
// accept-loss close every open request, run, turn and grant before a bot uses the store. Only restore --nothing-lost
// closes nothing. These commands keep the files that they replace.
//
// "backup", "store check" and "audit accept-loss" are tasks, so a bot that holds the store can run them. The bot gets
// these tasks from [Tasks]. "store migrate" works beside the replicas on a database. Every other command takes the
// store's lock, and fails if a bot holds the store. The package never decides whether a bot may start.
package storecmd
