-- +goose Up

-- Runs with an unknown outcome, and runs that have begun: since when, and which replica has the share of the run. As in
-- waiting_requests, \u is replaced, because PostgreSQL can't read a field of JSON with \u0000 in a text.
CREATE OR REPLACE VIEW unfinished_runs AS
SELECT e.id AS execution, e.state, e.tool, e.conversation, run.since, now() - run.since AS running, r.name AS replica
FROM executions e CROSS JOIN LATERAL (
    SELECT (replace(e.record::text, '\u', '\n')::json ->> 'started_at')::timestamptz AS since
) run
LEFT JOIN claims c ON c.name = 'share-' || lpad(share_of('conversation:' || e.conversation, '', '')::text, 2, '0')
LEFT JOIN replicas r ON r.id = c.owner
WHERE e.state IN ('executing', 'unknown');

-- Pending work that is due, how late it is, and what the oldest piece of it is about.
CREATE OR REPLACE VIEW overdue_work AS
SELECT kind, count(*) AS timers, min(due) AS oldest, now() - min(due) AS late, (array_agg(ref ORDER BY due, ref))[1] AS oldest_ref
FROM timers
WHERE due <= now()
GROUP BY kind;

-- The pause, if everything is paused: by whom, since when, and why.
CREATE VIEW pause AS
SELECT p ->> 'by' AS paused_by, (p ->> 'at')::timestamptz AS since, p ->> 'reason' AS reason
FROM (
    SELECT replace(convert_from(decode(record ->> 'value', 'base64'), 'UTF8'), '\u', '\n')::json AS p FROM settings WHERE id = 'pause'
) s
WHERE (p ->> 'on')::boolean;

-- A role that may read waiting_requests may read the new view, too.
-- +goose StatementBegin
DO $$
DECLARE
    reader text;
BEGIN
    FOR reader IN
        SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE c.oid = 'waiting_requests'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
    LOOP
        EXECUTE 'GRANT SELECT ON pause TO ' || reader;
    END LOOP;
END
$$;
-- +goose StatementEnd

SELECT needs_program(10);
