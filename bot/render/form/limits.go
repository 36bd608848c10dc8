package form

import "countersign/approvers/workflow"

// These values limit the parts of a form. A limit is in characters unless its comment says otherwise.
const (
	MaxErrorText  = 300     // the error of one form field; it must stay readable beside the field
	maxFormBytes  = 200_000 // all fields together, in bytes; fields beyond this size are locked
	maxFormFields = 40      // a call with more arguments is edited as JSON
	MaxPageText   = 9000    // arguments on one page of the modal
	maxResult     = workflow.CardResult
)
