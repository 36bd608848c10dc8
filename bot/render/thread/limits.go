package thread

// These values limit the parts of a step and of an unfinished answer. A limit is in characters unless its comment says
// otherwise.
const (
	MaxStepCalls = 12   // a step with more calls shows each of them in fewer words
	maxPlanTasks = 50   // Slack's limit for one plan
	maxPlanText  = 8000 // the text of all tasks together; for tasks beyond this limit, only their number is shown
	maxSaidText  = 7000 // the text of an unfinished answer
	maxStepParts = 20   // blocks of the model's text beside its calls
	maxStepText  = 1500 // the model's text beside its calls
	maxTaskTitle = 80   // title of a task, if a step has many tasks
	maxTasksTold = 6    // number of calls that show their state, if a step has more than MaxStepCalls calls
)
