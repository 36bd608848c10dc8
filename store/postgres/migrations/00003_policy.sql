-- +goose Up

-- The policy and the pins in force, for all replicas. There is at most one row; its id is 'policy'.
CREATE TABLE policies (
    id      text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL, -- increases with each change
    record  json NOT NULL,   -- digests, who loaded them, and when
    load    text NOT NULL,   -- random, different for each change
    content bytea NOT NULL DEFAULT ''
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
