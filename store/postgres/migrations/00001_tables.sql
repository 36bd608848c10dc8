-- +goose Up

-- Texts sort by their bytes (COLLATE "C"), as the contract says. A record is JSON as written by store/record; the
-- columns beside it are for lookups, order and due times. born is the order of creation.

CREATE TABLE conversations (
    id      text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    born    bigint GENERATED ALWAYS AS IDENTITY,
    place   text COLLATE "C" NOT NULL,
    last_at timestamptz NOT NULL,
    record  json NOT NULL
);
CREATE INDEX conversations_place ON conversations (place, born);
CREATE INDEX conversations_last ON conversations (last_at, id);

CREATE TABLE messages (
    conversation text COLLATE "C",
    seq          bigint,
    record       json NOT NULL,
    PRIMARY KEY (conversation, seq)
);

CREATE TABLE turns (
    id           text COLLATE "C" PRIMARY KEY,
    version      bigint NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    state        text COLLATE "C" NOT NULL,
    record       json NOT NULL
);
CREATE INDEX turns_conversation ON turns (conversation, id);

CREATE TABLE calls (
    id      text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    born    bigint GENERATED ALWAYS AS IDENTITY,
    turn    text COLLATE "C" NOT NULL,
    step    bigint NOT NULL,
    index   bigint NOT NULL,
    record  json NOT NULL
);
CREATE INDEX calls_turn ON calls (turn, step, index, born);

CREATE TABLE requests (
    id           text COLLATE "C" PRIMARY KEY,
    version      bigint NOT NULL,
    state        text COLLATE "C" NOT NULL,
    open         boolean NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    turn         text COLLATE "C" NOT NULL,
    call         text COLLATE "C" NOT NULL,
    agent        text COLLATE "C" NOT NULL,
    tool         text COLLATE "C" NOT NULL,
    asked_by     text COLLATE "C" NOT NULL, -- a person's id
    waits_for    text COLLATE "C" NOT NULL, -- the roles of the current stage, separated by commas
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    record       json NOT NULL
);
CREATE INDEX requests_open ON requests (created_at, id) WHERE open;
CREATE INDEX requests_conversation ON requests (conversation, id);

-- One row for each person who made, decided or closed a request.
CREATE TABLE request_people (
    person     text COLLATE "C",
    created_at timestamptz,
    request    text COLLATE "C",
    PRIMARY KEY (person, created_at, request)
);
CREATE INDEX request_people_request ON request_people (request);

CREATE TABLE executions (
    id           text COLLATE "C" PRIMARY KEY,
    version      bigint NOT NULL,
    state        text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    tool         text COLLATE "C" NOT NULL,
    record       json NOT NULL
);
CREATE INDEX executions_conversation ON executions (conversation, id);

CREATE TABLE elicitations (
    id        text COLLATE "C" PRIMARY KEY,
    version   bigint NOT NULL,
    born      bigint GENERATED ALWAYS AS IDENTITY,
    execution text COLLATE "C" NOT NULL,
    record    json NOT NULL
);
CREATE INDEX elicitations_execution ON elicitations (execution, born);

CREATE TABLE files (
    execution text COLLATE "C",
    index     bigint,
    record    json NOT NULL,
    data      bytea NOT NULL,
    PRIMARY KEY (execution, index)
);

-- All pending work. A timer has no record: its columns are the whole of it.
CREATE TABLE timers (
    kind    text COLLATE "C",
    ref     text COLLATE "C",
    due     timestamptz NOT NULL,
    lane    text COLLATE "C" NOT NULL,
    tries   bigint NOT NULL,
    put_off timestamptz, -- null: never
    PRIMARY KEY (kind, ref)
);
CREATE INDEX timers_due ON timers (kind, due, ref);
CREATE INDEX timers_ref ON timers (ref);

CREATE TABLE inbox (
    id          text COLLATE "C" PRIMARY KEY,
    version     bigint NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL,
    handled_at  timestamptz, -- null: not handled yet
    record      json NOT NULL
);
CREATE INDEX inbox_unhandled ON inbox (kind, received_at) WHERE handled_at IS NULL;
CREATE INDEX inbox_handled ON inbox (handled_at, id) WHERE handled_at IS NOT NULL;

CREATE TABLE outbox_messages (
    id      text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    born    bigint GENERATED ALWAYS AS IDENTITY,
    kind    text COLLATE "C" NOT NULL,
    ref     text COLLATE "C" NOT NULL,
    state   text COLLATE "C" NOT NULL,
    "to"    text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    channel text COLLATE "C", -- null, like ts: Slack does not show it yet
    ts      text COLLATE "C",
    record  json NOT NULL
);
CREATE INDEX outbox_messages_ref ON outbox_messages (ref, born);
CREATE INDEX outbox_messages_shown ON outbox_messages (channel, ts, born) WHERE channel IS NOT NULL;

CREATE TABLE renderings (
    message text COLLATE "C",
    post    bigint,
    record  json NOT NULL,
    PRIMARY KEY (message, post)
);

-- The history. record and payload are the exact bytes that the hashes cover.
CREATE TABLE audit_records (
    chain  text COLLATE "C",
    seq    bigint,
    at     timestamptz NOT NULL, -- at, kind and actor repeat what is in record, for people
    kind   text COLLATE "C" NOT NULL,
    actor  text COLLATE "C" NOT NULL,
    sum    bytea NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (chain, seq)
);

CREATE TABLE audit_payloads (
    chain   text COLLATE "C",
    seq     bigint,
    payload bytea NOT NULL,
    PRIMARY KEY (chain, seq)
);

-- One entry for each record ever appended. position rises with each append and has gaps; a signed head gives the
-- entries that it covers their leaf, in the order of position. Entries without a leaf follow those that have one.
CREATE TABLE audit_journal (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    leaf     bigint UNIQUE,
    chain    text COLLATE "C" NOT NULL,
    seq      bigint NOT NULL,
    sum      bytea NOT NULL
);
CREATE INDEX audit_journal_unsealed ON audit_journal (position) WHERE leaf IS NULL;
CREATE INDEX audit_journal_record ON audit_journal (chain, seq, position);

CREATE TABLE audit_heads (
    number bigint PRIMARY KEY,
    size   bigint NOT NULL,
    note   bytea NOT NULL
);

CREATE TABLE settings (
    id      text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    record  json NOT NULL
);

CREATE TABLE counters (
    key text COLLATE "C",
    at  timestamptz,
    id  text COLLATE "C",
    n   bigint NOT NULL CHECK (n > 0),
    PRIMARY KEY (key, at, id)
);
CREATE INDEX counters_at ON counters (at, key, id);

CREATE TABLE grants (
    id      text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    born    bigint GENERATED ALWAYS AS IDENTITY,
    tool    text COLLATE "C" NOT NULL,
    state   text COLLATE "C" NOT NULL,
    open    boolean NOT NULL,
    record  json NOT NULL
);
CREATE INDEX grants_open ON grants (born) WHERE open;

CREATE TABLE absences (
    id      text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    record  json NOT NULL
);

-- One row for each connection that writes. last is the number of the connection's last commit: see commit.go.
CREATE TABLE connections (
    id      text PRIMARY KEY,
    backend integer NOT NULL,
    began   timestamptz NOT NULL,
    used    timestamptz NOT NULL,
    last    bigint NOT NULL DEFAULT 0,
    fenced  boolean NOT NULL DEFAULT false
) WITH (fillfactor = 20); -- each commit updates a row in place

-- number_commit is the last statement of every transaction that writes. It fails once the connection was fenced, so
-- that a transaction that is still open on the connection can't be committed.
-- +goose StatementBegin
CREATE FUNCTION number_commit(connection text, number bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE connections SET last = number, used = statement_timestamp() WHERE id = connection AND NOT fenced;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'connection % was given up', connection USING ERRCODE = 'CS001';
    END IF;
END
$$;
-- +goose StatementEnd

-- The open requests: whom each waits for, and since when.
CREATE VIEW waiting_requests AS
SELECT id AS request, state, agent, tool, asked_by, waits_for, created_at AS since, now() - created_at AS waiting, expires_at
FROM requests
WHERE open;

-- Pending work that is due, and how late it is.
CREATE VIEW overdue_work AS
SELECT kind, count(*) AS timers, min(due) AS oldest, now() - min(due) AS late
FROM timers
WHERE due <= now()
GROUP BY kind;

-- Messages that Slack does not show as they should be.
CREATE VIEW undelivered_messages AS
SELECT id AS message, kind, ref, "to", created_at AS since
FROM outbox_messages
WHERE state = 'wanted';

-- Runs with an unknown outcome, and runs that have begun.
CREATE VIEW unfinished_runs AS
SELECT id AS execution, state, tool, conversation
FROM executions
WHERE state IN ('executing', 'unknown');
