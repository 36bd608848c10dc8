-- +goose Up

-- Each proposed call looks for the grants of its tool. Without the index it reads the open grants of all tools.
CREATE INDEX grants_tool ON grants (tool, born) WHERE open;
