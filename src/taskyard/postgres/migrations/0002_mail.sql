-- Mail and teams that machines share, and the names of the living.
--
-- Agents and teams are the same if their names become the same folder; `team`, `agent` and `key` hold that form.

CREATE TABLE box (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team        text NOT NULL,
    agent       text NOT NULL,
    name        text NOT NULL,              -- as whoever opened it spelt it
    is_open     boolean NOT NULL,           -- whether it takes mail
    UNIQUE (team, agent)
);

-- A message is `stored`, then `delivered` (in somebody's hands), then `read`; or `bad`, if nobody can read it.
CREATE TABLE message (
    id          uuid PRIMARY KEY,           -- made by whoever sends: sent twice, it is stored once
    box         integer NOT NULL,           -- which is never removed: a reference would have all senders lock its row
    place       bigint GENERATED ALWAYS AS IDENTITY,  -- grows along what one sender sends, since it waits for answers
    body        text NOT NULL,              -- the message as JSON, without its id
    state       text NOT NULL DEFAULT 'stored',
    is_again    boolean NOT NULL DEFAULT false,  -- an earlier reader had it, and is gone
    holder      text,                       -- in whose hands: an instance, unless
    until       timestamptz,                -- hands that open by themselves; 'infinity': they are Claude Code's
    op          uuid,                       -- of the request that took it, or read it: one that is sent twice
    stored_at   timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 80);

CREATE INDEX message_stored ON message (box, place) WHERE state = 'stored';
CREATE INDEX message_delivered ON message (box, holder) WHERE state = 'delivered';

CREATE TABLE team (
    key         text PRIMARY KEY,
    version     bigint NOT NULL,            -- grows with every change
    op          uuid NOT NULL,              -- of the last change
    body        text NOT NULL               -- the record as JSON
);

-- Names of living instances: free again when the instance is gone, or believed to be.
CREATE TABLE living (
    key         text PRIMARY KEY,
    name        text NOT NULL,
    instance    text NOT NULL REFERENCES instance ON DELETE CASCADE
);

CREATE INDEX living_by_instance ON living (instance);

-- Where it is told that mail came to a box.
CREATE FUNCTION mail_channel(p_team text, p_agent text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT 'mail_' || left(md5(p_team || '/' || p_agent), 16) $$;

-- Have a box take mail.
CREATE FUNCTION open_box(p_team text, p_agent text, p_name text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO box AS b (team, agent, name, is_open) VALUES (p_team, p_agent, p_name, true)
    ON CONFLICT (team, agent) DO UPDATE SET is_open = true WHERE NOT b.is_open
$$;

-- Store a message; false if the box takes none.
CREATE FUNCTION send_mail(p_team text, p_agent text, p_id uuid, p_body text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_box integer;
BEGIN
    SELECT b.id INTO v_box FROM box b WHERE b.team = p_team AND b.agent = p_agent AND b.is_open;
    IF v_box IS NULL THEN
        RETURN EXISTS (SELECT FROM message m WHERE m.id = p_id);
    END IF;
    INSERT INTO message (id, box, body) VALUES (p_id, v_box, p_body) ON CONFLICT (id) DO NOTHING;
    PERFORM pg_notify(mail_channel(p_team, p_agent), '');
    RETURN true;
END $$;

-- Keep a copy of a message that went to Claude Code on its own machine.
CREATE FUNCTION note_mail(p_team text, p_agent text, p_name text, p_id uuid, p_body text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO box (team, agent, name, is_open) VALUES (p_team, p_agent, p_name, false) ON CONFLICT (team, agent) DO NOTHING;
    INSERT INTO message (id, box, body, state, holder, until)
    SELECT p_id, b.id, p_body, 'delivered', 'claude', 'infinity' FROM box b WHERE b.team = p_team AND b.agent = p_agent
    ON CONFLICT (id) DO NOTHING
$$;

-- The box of an agent, with what readers that are gone had in hand back in it; NULL if there is none.
CREATE FUNCTION looked_after(p_team text, p_agent text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_box integer;
    v_now timestamptz := clock_timestamp();
BEGIN
    SELECT b.id INTO v_box FROM box b WHERE b.team = p_team AND b.agent = p_agent;
    UPDATE message m SET state = 'stored', is_again = true, holder = NULL, until = NULL, op = NULL
    WHERE m.id = ANY (ARRAY(
        SELECT d.id FROM message d
        WHERE d.box = v_box AND d.state = 'delivered' AND coalesce(
            d.until < v_now, NOT EXISTS (SELECT FROM instance i WHERE i.id = d.holder AND i.until >= v_now)
        )
        ORDER BY d.place FOR UPDATE
    ));
    IF FOUND THEN
        PERFORM pg_notify(mail_channel(p_team, p_agent), '');
    END IF;
    RETURN v_box;
END $$;

-- Put the oldest waiting messages into the hands of a holder: for `p_span` ms, or as long as it lives.
CREATE FUNCTION take_mail(p_team text, p_agent text, p_limit integer, p_holder text, p_span bigint, p_op uuid)
RETURNS TABLE (id uuid, body text, is_again boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_box integer := looked_after(p_team, p_agent);
BEGIN
    IF NOT EXISTS (
        SELECT FROM message m WHERE m.box = v_box AND m.state = 'delivered' AND m.holder = p_holder AND m.op = p_op
    ) THEN
        UPDATE message m SET state = 'delivered', holder = p_holder, op = p_op,
            until = clock_timestamp() + p_span * interval '1 ms'
        WHERE m.id = ANY (ARRAY(
            SELECT w.id FROM message w WHERE w.box = v_box AND w.state = 'stored'
            ORDER BY w.place LIMIT p_limit FOR UPDATE SKIP LOCKED
        ));
    END IF;
    RETURN QUERY
        SELECT m.id, m.body, m.is_again FROM message m
        WHERE m.box = v_box AND m.state = 'delivered' AND m.holder = p_holder AND m.op = p_op ORDER BY m.place;
END $$;

-- The oldest waiting messages, left where they are.
CREATE FUNCTION peek_mail(p_team text, p_agent text, p_limit integer)
RETURNS TABLE (id uuid, body text, is_again boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_box integer := looked_after(p_team, p_agent);
BEGIN
    RETURN QUERY
        SELECT m.id, m.body, m.is_again FROM message m
        WHERE m.box = v_box AND m.state = 'stored' ORDER BY m.place LIMIT p_limit;
END $$;

-- How many messages wait.
CREATE FUNCTION count_mail(p_team text, p_agent text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_box integer := looked_after(p_team, p_agent);
BEGIN
    RETURN (SELECT count(*) FROM message m WHERE m.box = v_box AND m.state = 'stored');
END $$;

-- Whether mail waits; if not, the seconds after which some may come back from hands that open then, if any do.
CREATE FUNCTION await_mail(p_team text, p_agent text, OUT is_there boolean, OUT due float8)
LANGUAGE plpgsql AS $$
DECLARE
    v_box integer := looked_after(p_team, p_agent);
BEGIN
    is_there := EXISTS (SELECT FROM message m WHERE m.box = v_box AND m.state = 'stored');
    IF NOT is_there THEN
        SELECT extract(epoch FROM min(coalesce(m.until, i.until)) - clock_timestamp()) INTO due
        FROM message m LEFT JOIN instance i ON i.id = m.holder
        WHERE m.box = v_box AND m.state = 'delivered' AND m.until IS DISTINCT FROM 'infinity';
    END IF;
END $$;

-- File messages as read, whoever has them in hand; those that this request filed.
CREATE FUNCTION ack_mail(p_team text, p_agent text, p_ids uuid[], p_op uuid) RETURNS SETOF uuid
LANGUAGE plpgsql AS $$
DECLARE
    v_box integer;
BEGIN
    SELECT b.id INTO v_box FROM box b WHERE b.team = p_team AND b.agent = p_agent;
    UPDATE message m SET state = 'read', op = p_op, holder = NULL, until = NULL
    WHERE m.id = ANY (p_ids) AND m.box = v_box AND m.state = 'delivered';
    RETURN QUERY
        SELECT m.id FROM message m WHERE m.id = ANY (p_ids) AND m.box = v_box AND m.state = 'read' AND m.op = p_op;
END $$;

-- Replace a team's record, if it is still as it was seen: version 0, there was none; body NULL, it is dissolved.
CREATE FUNCTION change_team(p_key text, p_version bigint, p_body text, p_op uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF p_body IS NULL THEN
        DELETE FROM team t WHERE t.key = p_key AND t.version = p_version;
    ELSIF p_version = 0 THEN
        INSERT INTO team (key, version, op, body) VALUES (p_key, 1, p_op, p_body) ON CONFLICT (key) DO NOTHING;
    ELSE
        UPDATE team t SET version = t.version + 1, op = p_op, body = p_body WHERE t.key = p_key AND t.version = p_version;
    END IF;
    IF FOUND THEN
        PERFORM pg_notify('teams', p_key);
        RETURN true;
    END IF;
    RETURN CASE WHEN p_body IS NULL THEN NOT EXISTS (SELECT FROM team t WHERE t.key = p_key)
                ELSE EXISTS (SELECT FROM team t WHERE t.key = p_key AND t.op = p_op) END;
END $$;

-- Whether an instance got a name: nobody else living has it.
CREATE FUNCTION take_name(p_key text, p_name text, p_instance text) RETURNS boolean
LANGUAGE sql AS $$
    INSERT INTO living AS l (key, name, instance) VALUES (p_key, p_name, p_instance)
    ON CONFLICT (key) DO UPDATE SET name = excluded.name, instance = excluded.instance
        WHERE l.instance = excluded.instance OR NOT EXISTS (
            SELECT FROM instance i WHERE i.id = l.instance AND i.until >= clock_timestamp()
        );
    SELECT EXISTS (SELECT FROM living l WHERE l.key = p_key AND l.instance = p_instance)
$$;
