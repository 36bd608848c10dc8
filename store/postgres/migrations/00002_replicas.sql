-- +goose Up

-- Several processes ("replicas") work on one database. Each piece of pending work belongs to a share, and each share to
-- one replica: see claims.go.

-- share_of is Timer.Share of package store: the same text is in the same share for every version of the program.
-- +goose StatementBegin
CREATE FUNCTION share_of(affinity text, lane text, ref text) RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT (get_byte(sha256(convert_to(translate(CASE WHEN affinity <> '' THEN affinity WHEN lane <> '' THEN lane ELSE ref END, E'\x01\x02', ''), 'UTF8')), 0) % 64)::smallint
$$;
-- +goose StatementEnd

-- affinity names what the handler works on outside of the database; if it is empty, the lane is used, or else the ref.
ALTER TABLE timers ADD COLUMN affinity text COLLATE "C" NOT NULL DEFAULT '';
UPDATE timers SET affinity = 'conversation:' || t.conversation FROM turns t WHERE timers.kind = 'think' AND t.id = timers.ref;
UPDATE timers SET affinity = 'conversation:' || e.conversation FROM executions e WHERE timers.kind = 'run' AND e.id = timers.ref;
ALTER TABLE timers ADD COLUMN share smallint NOT NULL GENERATED ALWAYS AS (share_of(affinity, lane, ref)) STORED;

-- The live replicas, by the clock of the database. A replica whose lease has passed is removed by another one, in the
-- transaction that takes its claims.
CREATE TABLE replicas (
    id          text PRIMARY KEY, -- random
    name        text NOT NULL,    -- the machine and the process
    version     text NOT NULL,    -- of the program
    joined_at   timestamptz NOT NULL,
    alive_until timestamptz NOT NULL
) WITH (fillfactor = 20);

-- The owners of the shares, and of the jobs that exist only once. epoch increases each time a claim gets an owner.
CREATE TABLE claims (
    name  text COLLATE "C" PRIMARY KEY,
    owner text NOT NULL, -- a replica's id; empty, or an id that is not in replicas: nobody
    epoch bigint NOT NULL
) WITH (fillfactor = 20);

-- check_claim fails unless a replica still has a claim. It is part of every transaction that works under the claim, and
-- runs in the same round trip as its first read, or as its COMMIT.
-- +goose StatementBegin
CREATE FUNCTION check_claim(claim text, replica text, since bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM claims WHERE name = claim AND owner = replica AND epoch = since;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the claim % was taken over', claim USING ERRCODE = 'CS002';
    END IF;
END
$$;
-- +goose StatementEnd

-- Which replica works on which shares and jobs.
CREATE VIEW replica_claims AS
SELECT r.name, r.version, r.joined_at, r.alive_until, count(c.name) AS claims
FROM replicas r LEFT JOIN claims c ON c.owner = r.id
GROUP BY r.id, r.name, r.version, r.joined_at, r.alive_until;
