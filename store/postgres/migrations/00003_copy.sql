-- +goose Up

-- Where the database is. A dump carries the row with it, so after a restore, and in a copied database, the row names
-- another place than the one where it is: see restored.go.
CREATE TABLE origin (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    place text NOT NULL
);

-- current_place names the cluster, the database and the table origin. The number of the table changes when it is made
-- again, as pg_restore --clean does. It runs with the rights of its owner, so that every user gets the same answer.
-- +goose StatementBegin
CREATE FUNCTION current_place(origin_table oid) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    cluster text := '';
BEGIN
    BEGIN
        SELECT system_identifier INTO cluster FROM pg_control_system();
    EXCEPTION WHEN insufficient_privilege THEN -- on some managed servers
        NULL;
    END;
    RETURN concat_ws('/', cluster, (SELECT oid FROM pg_database WHERE datname = current_database()), origin_table);
END
$$;
-- +goose StatementEnd

INSERT INTO origin (place) VALUES (current_place('origin'::regclass));
