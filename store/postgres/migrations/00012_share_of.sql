-- +goose Up

-- The result is the same as before. Each write of a timer computes the timer's share, and PostgreSQL can't inline the
-- body of the old function, because convert_to is only STABLE. So it parsed and planned the body again for each write. A
-- function in PL/pgSQL is prepared once in a session.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION share_of(affinity text, lane text, ref text) RETURNS smallint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (get_byte(sha256(convert_to(translate(CASE WHEN affinity <> '' THEN affinity WHEN lane <> '' THEN lane ELSE ref END, E'\x01\x02', ''), 'UTF8')), 0) % 64)::smallint;
END
$$;
-- +goose StatementEnd

SELECT needs_program(10);
