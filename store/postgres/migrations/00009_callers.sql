-- +goose Up

-- Conversations, requests and executions of callers have fields that older programs would drop.
SELECT needs_program(9);
