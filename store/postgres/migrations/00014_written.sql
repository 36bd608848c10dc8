-- +goose Up

-- Which transaction wrote the row: see restored.go. A row that a restore of the data alone has written is of another
-- transaction than the row says.
ALTER TABLE origin ADD COLUMN written xid8;
UPDATE origin SET written = pg_current_xact_id();

-- An older program does not know the column.
-- +goose StatementBegin
CREATE FUNCTION note_writer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.written = pg_current_xact_id();
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER note_writer BEFORE UPDATE ON origin FOR EACH ROW EXECUTE FUNCTION note_writer();

SELECT needs_program(10);
