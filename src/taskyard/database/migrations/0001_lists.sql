-- Shared lists: tasks, who holds them, and the log of every change.
--
-- Every write to a list goes through `commit_change`, which holds the list's row for as long as one statement runs. So
-- writes of one list happen one after the other, in the order of `tick`, and whoever has seen tick N has seen all before.

CREATE TABLE list (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    last_id     bigint NOT NULL DEFAULT 0,  -- the highest id of a task that was ever given out
    tick        bigint NOT NULL DEFAULT 0,  -- grows with every write
    changes     bigint NOT NULL DEFAULT 0,  -- the id of the next change in the log
    changed_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

CREATE TABLE task (
    list        integer NOT NULL REFERENCES list ON DELETE CASCADE,
    id          bigint NOT NULL,
    tick        bigint NOT NULL,            -- of the last write to it or its lease
    is_gone     boolean NOT NULL,           -- removed; `body` is how it last was
    status      text NOT NULL,
    is_owned    boolean NOT NULL,
    is_internal boolean NOT NULL,
    blocked_by  bigint[] NOT NULL,
    body        text NOT NULL,              -- the task as JSON, without its id
    lease       text,                       -- who holds it, as JSON
    losses      integer NOT NULL,           -- holders it lost
    instance    text,                       -- the holder, if it lives as long as a process does
    until       timestamptz,                -- when the lease ends, if a clock ends it
    PRIMARY KEY (list, id)
) WITH (fillfactor = 80);

CREATE INDEX task_by_tick ON task (list, tick);
CREATE INDEX task_by_end ON task (list, until) WHERE until IS NOT NULL;
CREATE INDEX task_by_instance ON task (list, instance) WHERE instance IS NOT NULL;

CREATE TABLE change (
    list        integer NOT NULL REFERENCES list ON DELETE CASCADE,
    id          bigint NOT NULL,
    at          bigint NOT NULL,            -- epoch ms, by this server's clock
    actor       text,
    cause       text NOT NULL,
    via         text NOT NULL,
    note        text NOT NULL,
    op          uuid NOT NULL,              -- of the request: one that is sent twice takes effect once
    tasks       bigint[] NOT NULL,
    bodies      text[] NOT NULL,            -- each of them as it was afterwards; NULL: gone
    PRIMARY KEY (list, id)
);

CREATE UNIQUE INDEX change_by_op ON change (op);
CREATE INDEX change_by_task ON change USING gin (tasks);

-- Holders that live as long as a process does, and until when that is believed without another word from them.
CREATE TABLE instance (
    id          text PRIMARY KEY,
    host        text NOT NULL,
    until       timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Whether the holder of a task is gone, by this server's clock.
CREATE FUNCTION is_dead(p_instance text, p_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_until < clock_timestamp(), false)
        OR (p_instance IS NOT NULL
            AND NOT EXISTS (SELECT FROM instance i WHERE i.id = p_instance AND i.until >= clock_timestamp()))
$$;

-- The id of a list, which is made if there is none.
CREATE FUNCTION list_named(p_name text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_id integer;
BEGIN
    SELECT id INTO v_id FROM list WHERE name = p_name;
    IF v_id IS NULL THEN
        INSERT INTO list (name) VALUES (p_name) ON CONFLICT (name) DO NOTHING;
        SELECT id INTO v_id FROM list WHERE name = p_name;
        PERFORM pg_notify('lists', p_name);
    END IF;
    RETURN v_id;
END $$;

-- One change of a list, if what it was decided on still holds: the tick of the list afterwards; NULL if it does not.
CREATE FUNCTION commit_change(
    p_list      integer,
    p_seen      bigint[],       -- tasks the decision rests on, and
    p_ticks     bigint[],       -- the tick of each as it was seen; 0: there was none
    p_whole     bigint,         -- it rests on the whole list, as of this tick; NULL: it does not
    p_dead      bigint,         -- only while the holder of this task is gone; NULL: whoever holds what
    p_ids       bigint[],       -- what is written: tasks by id; NULL: a new one
    p_gone      boolean[],
    p_told      boolean[],      -- whether the log tells of it; what is only held differently is not told
    p_status    text[],
    p_owned     boolean[],
    p_internal  boolean[],
    p_blocked   text[],         -- arrays as text, since SQL has none of different lengths
    p_bodies    text[],
    p_leases    text[],
    p_losses    integer[],
    p_instances text[],
    p_spans     bigint[],       -- ms from now until the lease ends; NULL: no clock ends it
    p_host      text,           -- of the instances, and
    p_silence   bigint,         -- ms for which they are believed to live
    p_actor     text,
    p_cause     text,
    p_via       text,
    p_note      text,
    p_op        uuid,
    OUT tick    bigint,
    OUT new_id  bigint,
    OUT at      bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    v_list   list%ROWTYPE;
    v_now    timestamptz;
    v_told   integer[];
BEGIN
    SELECT * INTO v_list FROM list l WHERE l.id = p_list FOR UPDATE;
    IF p_whole IS NOT NULL AND v_list.tick <> p_whole THEN
        RETURN;
    END IF;
    IF cardinality(p_seen) > 0 AND EXISTS (
        SELECT FROM unnest(p_seen, p_ticks) AS s(id, tick)
        LEFT JOIN task t ON t.list = p_list AND t.id = s.id
        WHERE coalesce(t.tick, 0) <> s.tick
    ) THEN
        RETURN;
    END IF;
    IF p_dead IS NOT NULL AND NOT (
        SELECT is_dead(t.instance, t.until) FROM task t WHERE t.list = p_list AND t.id = p_dead
    ) THEN
        RETURN;
    END IF;

    v_now := clock_timestamp();
    tick := v_list.tick + 1;
    at := floor(extract(epoch FROM v_now) * 1000);
    IF p_ids[1] IS NULL THEN
        new_id := v_list.last_id + 1;
        p_ids[1] := new_id;
    END IF;

    INSERT INTO task AS t
    SELECT p_list, w.id, commit_change.tick, w.gone, w.status, w.owned, w.internal, w.blocked::bigint[], w.body, w.lease,
           w.losses, w.instance, v_now + w.span * interval '1 ms'
    FROM unnest(p_ids, p_gone, p_status, p_owned, p_internal, p_blocked, p_bodies, p_leases, p_losses, p_instances, p_spans)
        AS w(id, gone, status, owned, internal, blocked, body, lease, losses, instance, span)
    ON CONFLICT (list, id) DO UPDATE SET
        tick = excluded.tick, is_gone = excluded.is_gone, status = excluded.status, is_owned = excluded.is_owned,
        is_internal = excluded.is_internal, blocked_by = excluded.blocked_by, body = excluded.body, lease = excluded.lease,
        losses = excluded.losses, instance = excluded.instance, until = excluded.until;

    INSERT INTO instance AS i (id, host, until)
    SELECT DISTINCT n, p_host, v_now + p_silence * interval '1 ms' FROM unnest(p_instances) AS n WHERE n IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET until = greatest(i.until, excluded.until);

    IF true = ANY (p_told) THEN
        INSERT INTO change (list, id, at, actor, cause, via, note, op, tasks, bodies)
        SELECT p_list, v_list.changes, commit_change.at, p_actor, p_cause, p_via, p_note, p_op,
               array_agg(w.id), array_agg(CASE WHEN w.gone THEN NULL ELSE w.body END)
        FROM unnest(p_ids, p_gone, p_told, p_bodies) AS w(id, gone, told, body) WHERE w.told;
        v_list.changes := v_list.changes + 1;
    END IF;

    UPDATE list l SET tick = commit_change.tick, changes = v_list.changes, changed_at = v_now,
        last_id = greatest(v_list.last_id, (SELECT max(n) FROM unnest(p_ids) AS n))
    WHERE l.id = p_list;
    PERFORM pg_notify('list_' || p_list, commit_change.tick::text);
END $$;
