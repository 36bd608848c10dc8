-- +goose Up

-- Room for what comes later in the life of a row. Only pages that are written from now on have it.

-- If the new version of a row fits into its page, and no indexed column changes, the server writes to no index. That is
-- less work, and a serializable transaction does not conflict with another one only because it read the same page of an
-- index.
ALTER TABLE requests SET (fillfactor = 70);
ALTER TABLE outbox_messages SET (fillfactor = 70);
ALTER TABLE executions SET (fillfactor = 70);
ALTER TABLE calls SET (fillfactor = 70);
ALTER TABLE turns SET (fillfactor = 70);

-- A chain grows from two records to about nine, and a request gets other timers. In both indexes the new entries come
-- between the old ones. Pages with room need not be divided, and fewer requests share a page.
ALTER INDEX audit_records_pkey SET (fillfactor = 25);
ALTER INDEX timers_pkey SET (fillfactor = 25);

SELECT needs_program(7);
