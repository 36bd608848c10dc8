-- +goose Up

-- Each proposed call looks for the grants of its tool. Without the index it reads the open grants of all tools.
CREATE INDEX grants_tool ON grants (tool, born) WHERE open;

-- A serializable transaction conflicts with others that write to the pages of the indexes that it reads. So the key
-- begins with ref: the timers of different requests are in different pages, once there are many. Only lists can use the
-- index that begins with the kind. Every decision reads the list of the Home tabs in use, which has an index of its own.
ALTER TABLE timers DROP CONSTRAINT timers_pkey, ADD PRIMARY KEY (ref, kind);
DROP INDEX timers_ref;
DROP INDEX timers_due;
CREATE INDEX timers_due ON timers ((kind || ''), due, ref);
CREATE INDEX timers_home ON timers (due, ref) WHERE kind = 'home';

-- Programs of version 7 work on the same tables; only indexes differ.
SELECT needs_program(7);
