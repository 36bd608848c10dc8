-- +goose Up

-- The open requests: whom each waits for, and since when. The wait begins anew with each stage. Only the record has the
-- time when the stage began. PostgreSQL can't read a field of JSON with \u0000 in a text, so the view replaces \u. The
-- fields that the view reads have no such escape.
CREATE OR REPLACE VIEW waiting_requests AS
SELECT id AS request, state, agent, tool, asked_by, waits_for, since, now() - since AS waiting, expires_at, created_at
FROM requests CROSS JOIN LATERAL (
    SELECT coalesce((replace(record::text, '\u', '\n')::json ->> 'stage_at')::timestamptz, created_at) AS since
) stage
WHERE open;

SELECT needs_program(10);
