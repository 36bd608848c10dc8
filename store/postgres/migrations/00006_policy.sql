-- +goose Up

-- The policy and the pins in force, for all replicas. There is at most one row; its id is 'policy'.
CREATE TABLE policies (
    id       text COLLATE "C" PRIMARY KEY,
    version  bigint NOT NULL, -- increases with each change
    record   json NOT NULL,   -- digests, who loaded them, and when
    checksum bytea NOT NULL,
    load     text NOT NULL,   -- random, different for each change
    content  bytea NOT NULL DEFAULT ''
);

-- check_policy fails unless a change of the policy is the last one. It is part of every transaction that decides by the
-- policy, and runs in the same round trip as its first read, or as its COMMIT.
-- +goose StatementBegin
CREATE FUNCTION check_policy(known text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM policies WHERE id = 'policy' AND load = known;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another policy is in force' USING ERRCODE = 'CS003';
    END IF;
END
$$;
-- +goose StatementEnd

-- A role that works with the other tables works with this one, too.
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
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON policies TO ' || bot;
        EXECUTE 'GRANT EXECUTE ON FUNCTION check_policy(text) TO ' || bot;
    END LOOP;
END
$$;
-- +goose StatementEnd
