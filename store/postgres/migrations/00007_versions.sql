-- +goose Up

-- Programs of different versions work on these tables at the same time, so that replicas are upgraded one after the
-- other. Each step says the oldest program that works on the tables after it.

-- The oldest program that works on the tables: the version of the tables that it was written for. Each step stores it
-- with itself.
ALTER TABLE migrations ADD COLUMN oldest_program bigint;

-- The version of the tables that a replica's program was written for. 0: a program from before this column.
ALTER TABLE replicas ADD COLUMN schema_version bigint NOT NULL DEFAULT 0;

-- needs_program is the last statement of each step. It fails while a replica with an older program is alive, and takes
-- the claims of older replicas whose lease has passed. No replica joins between that and the end of the step.
-- +goose StatementBegin
CREATE FUNCTION needs_program(oldest bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    older text;
BEGIN
    LOCK TABLE replicas IN SHARE ROW EXCLUSIVE MODE;
    SELECT string_agg(concat_ws(' ', name, nullif(version, '')), ', ' ORDER BY name) INTO older
    FROM replicas WHERE schema_version < oldest AND alive_until > clock_timestamp();
    IF older IS NOT NULL THEN
        RAISE EXCEPTION '%', older USING ERRCODE = 'CS004';
    END IF;
    UPDATE claims SET owner = '' WHERE owner IN (SELECT id FROM replicas WHERE schema_version < oldest);
    EXECUTE format('ALTER TABLE migrations ALTER COLUMN oldest_program SET DEFAULT %s', oldest);
END
$$;
-- +goose StatementEnd

-- A role that works with the tables may call every function. This one does nothing for it.
-- +goose StatementBegin
DO $$
DECLARE
    bot text;
BEGIN
    FOR bot IN
        SELECT DISTINCT quote_ident(r.rolname)
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
        WHERE c.oid = 'requests'::regclass AND a.privilege_type = 'DELETE' AND a.grantee <> c.relowner
    LOOP
        EXECUTE 'GRANT EXECUTE ON FUNCTION needs_program(bigint) TO ' || bot;
    END LOOP;
END
$$;
-- +goose StatementEnd

SELECT needs_program(7);
