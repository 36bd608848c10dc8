-- +goose Up

-- Each row with a record has a checksum over its table, its key and its record. The program computes it, so a change of
-- the row by anything else is noticed. The records of the history have their hashes instead.

-- It is what rowSum (checksum.go) computes.
-- +goose StatementBegin
CREATE FUNCTION pg_temp.checksum_of(in_table text, key text, record json) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
SELECT substr(sha256(convert_to(in_table || ' ' || octet_length(key) || ' ' || key || record::text, 'UTF8')), 1, 8)
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
    name text;
    key  text;
BEGIN
    FOR name, key IN VALUES
        ('conversations', 'id'), ('turns', 'id'), ('calls', 'id'), ('requests', 'id'), ('executions', 'id'), ('elicitations', 'id'), ('inbox', 'id'),
        ('outbox_messages', 'id'), ('settings', 'id'), ('grants', 'id'), ('absences', 'id'),
        ('messages', 'seq || '' '' || conversation'), ('renderings', 'post || '' '' || message'), ('files', 'index || '' '' || execution')
    LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN checksum bytea', name);
        EXECUTE format('UPDATE %I SET checksum = pg_temp.checksum_of(%L, %s, record)', name, name, key);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN checksum SET NOT NULL', name);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- Damaged rows that were moved out of the way, so that their record could be written again. Nothing reads them.
CREATE TABLE set_aside (
    "table" text COLLATE "C",
    id      text COLLATE "C",
    at      timestamptz NOT NULL,
    stored  json NOT NULL, -- the whole row
    PRIMARY KEY ("table", id)
);

-- A role that works with the tables works with this one, too.
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
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON set_aside TO ' || bot;
    END LOOP;
END
$$;
-- +goose StatementEnd
