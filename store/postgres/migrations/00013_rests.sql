-- +goose Up

-- Whether a replica leaves its work to the other replicas, because it can't do the work. An older program counts such a
-- replica among those that share the work.
ALTER TABLE replicas ADD COLUMN rests boolean NOT NULL DEFAULT false;

SELECT needs_program(10);
