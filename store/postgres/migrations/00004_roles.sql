-- +goose Up

-- The history is append-only for every role but the owner of its tables: docs/postgres.md, "Roles and grants", gives
-- the bot's role no UPDATE, DELETE or TRUNCATE there. What the bot must do beyond appending, it does with the functions
-- below, which run with the rights of their owner.

-- They look only at the tables of this schema, whatever the search_path of their caller is.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- erase_payloads deletes texts of a chain, all of them if seqs is null. The records and their hashes stay.
-- +goose StatementBegin
CREATE FUNCTION erase_payloads(of_chain text, seqs bigint[]) RETURNS SETOF bigint LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DELETE FROM audit_payloads WHERE chain = of_chain AND (seqs IS NULL OR seq = ANY(seqs)) RETURNING seq
$$;
-- +goose StatementEnd

-- prune_chain deletes a whole chain, and returns the number of records. The entries of the journal stay, so that a chain
-- that is missing without a record of its pruning is found. Those records are in the installation's chain.
-- +goose StatementBegin
CREATE FUNCTION prune_chain(of_chain text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    n bigint;
BEGIN
    IF of_chain = 'installation' THEN
        RAISE EXCEPTION 'the chain % is never deleted', of_chain;
    END IF;
    DELETE FROM audit_payloads WHERE chain = of_chain;
    DELETE FROM audit_records WHERE chain = of_chain;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;
-- +goose StatementEnd

-- append_head adds a signed head, and gives the entries of the journal that it covers their leaf. An entry that has a
-- leaf never gets another one.
-- +goose StatementBegin
CREATE FUNCTION append_head(next bigint, covers bigint, signed bytea) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    last audit_heads;
    n bigint;
BEGIN
    SELECT * INTO last FROM audit_heads ORDER BY number DESC LIMIT 1;
    IF next <> coalesce(last.number, 0) + 1 OR covers <= coalesce(last.size, 0) THEN
        RAISE EXCEPTION 'head % over % entries does not follow head % over %', next, covers, last.number, last.size;
    END IF;
    UPDATE audit_journal j SET leaf = x.leaf FROM (
        SELECT position, coalesce(last.size, 0) - 1 + row_number() OVER (ORDER BY position) AS leaf
        FROM (SELECT position FROM audit_journal WHERE leaf IS NULL ORDER BY position LIMIT covers - coalesce(last.size, 0)) y
    ) x WHERE j.position = x.position;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n <> covers - coalesce(last.size, 0) THEN
        RAISE EXCEPTION 'head % covers % entries, and there are fewer', next, covers;
    END IF;
    INSERT INTO audit_heads (number, size, note) VALUES (next, covers, signed);
END
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION erase_payloads(text, bigint[]), prune_chain(text), append_head(bigint, bigint, bytea) FROM PUBLIC;

-- A role that had the rights of an earlier version's documentation gets those of this one.
-- +goose StatementBegin
DO $$
DECLARE
    bot text;
BEGIN
    FOR bot IN
        SELECT DISTINCT quote_ident(r.rolname)
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
        WHERE c.oid = 'audit_records'::regclass AND a.privilege_type = 'DELETE' AND a.grantee <> c.relowner
    LOOP
        EXECUTE 'REVOKE UPDATE, DELETE ON audit_records, audit_payloads, audit_journal, audit_heads FROM ' || bot;
        EXECUTE 'REVOKE INSERT ON audit_journal, audit_heads FROM ' || bot;
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON origin TO ' || bot;
        EXECUTE 'GRANT INSERT (chain, seq, sum) ON audit_journal TO ' || bot;
        EXECUTE 'GRANT EXECUTE ON FUNCTION erase_payloads(text, bigint[]), prune_chain(text), append_head(bigint, bigint, bytea) TO ' || bot;
    END LOOP;
END
$$;
-- +goose StatementEnd
