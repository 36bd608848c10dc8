package desk

// DeadlineWorkers is how many deadlines are handled side by side.
const DeadlineWorkers = deadlineWorkers
