// Package policyfile reads the policy file with its tools and pins, and keeps the bot on the policy in force.
//
// A [Source] watches the policy file, the OpenAPI files that the policy names, and the lock file. The source owns the
// stored policy in force: it puts changed files into force, and follows changes that other processes make. [Read],
// [ReadGiven] and [ReadStored] read a policy once, for a command.
//
// A file that can't be used changes nothing. A process that can't use the policy in force reports this, and decides and
// runs nothing. The package never writes the files, and never decides a request.
package policyfile
