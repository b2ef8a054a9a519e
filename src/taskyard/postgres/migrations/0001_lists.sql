-- Shared lists: tasks, who holds them, and the log of every change.
--
-- Every write to a list goes through a function below, which has the list for itself until its statement is done. So the
-- writes of one list happen one after the other, in the order of `tick`, and whoever has seen tick N has seen all before
-- it. Locks are taken in one order: the advisory lock 7265834 of the list (shared), tasks by ascending id, its advisory
-- lock 7265835, which is the right to write. (Advisory locks are handed on with one wake-up each; a row's would take two.)
-- Whoever must decide while nobody else writes takes the first one for itself. Every time is this server's.
--
-- What is called most takes its locks, and notifies, in an expression (`IF ... IS NULL`): PERFORM would be one more query.

CREATE TABLE list (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    last_id     bigint NOT NULL DEFAULT 0,  -- the highest id of a task that was ever given out
    tick        bigint NOT NULL DEFAULT 0,  -- grows with every write
    changes     bigint NOT NULL DEFAULT 0,  -- the id of the next change in the log
    changed_at  bigint                      -- epoch ms
) WITH (fillfactor = 50);

CREATE TABLE task (
    list        integer NOT NULL,
    id          bigint NOT NULL,
    tick        bigint NOT NULL,            -- of the last write to it or its lease
    is_gone     boolean NOT NULL,           -- removed; the rest is how it last was
    status      text NOT NULL,
    owner       text,
    created_at  bigint NOT NULL,            -- epoch ms
    updated_at  bigint NOT NULL,
    body        text NOT NULL,              -- the rest of it, as JSON
    lease       text,                       -- who holds it, as JSON
    losses      integer NOT NULL,           -- holders it lost
    instance    text,                       -- the holder, if it lives as long as a process does
    until       timestamptz,                -- when the lease ends, if a clock ends it
    blocked_by  bigint[] NOT NULL,          -- as in `body`, for those who fetch a task with its blockers
    priority    smallint NOT NULL,          -- as in `body`
    is_offered  boolean NOT NULL,           -- whether anybody may have it once nothing blocks it
    PRIMARY KEY (list, id)
) WITH (fillfactor = 80);

CREATE INDEX task_by_tick ON task (list, tick);
CREATE INDEX task_by_end ON task (list, until) WHERE until IS NOT NULL;
CREATE INDEX task_by_instance ON task (list, instance) WHERE instance IS NOT NULL;

CREATE INDEX task_by_turn ON task (list, priority, id) WHERE is_offered;

CREATE TABLE change (
    list        integer NOT NULL,
    id          bigint NOT NULL,
    at          bigint NOT NULL,            -- epoch ms
    actor       text,
    cause       text NOT NULL,
    via         text NOT NULL,
    note        text NOT NULL,
    op          uuid NOT NULL,              -- of the request: one that is sent twice takes effect once
    tasks       bigint[] NOT NULL,          -- whom it changed, and how they were afterwards:
    statuses    text[] NOT NULL,            -- NULL: gone
    owners      text[] NOT NULL,
    created     bigint[] NOT NULL,
    bodies      text[] NOT NULL,
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

CREATE INDEX instance_by_end ON instance (until);

-- Whether the holder of a task is gone.
CREATE FUNCTION is_dead(p_instance text, p_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_until < clock_timestamp(), false)
        OR (p_instance IS NOT NULL
            AND NOT EXISTS (SELECT FROM instance i WHERE i.id = p_instance AND i.until >= clock_timestamp()))
$$;

-- Who holds something of a list for as long as a process lives: each once, found by a step in the index for each.
CREATE FUNCTION holders_in(p_list integer) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE holder AS (
        SELECT min(t.instance) AS instance FROM task t WHERE t.list = p_list AND t.instance IS NOT NULL
        UNION ALL
        SELECT (SELECT min(t.instance) FROM task t WHERE t.list = p_list AND t.instance > h.instance)
        FROM holder h WHERE h.instance IS NOT NULL
    )
    SELECT instance FROM holder WHERE instance IS NOT NULL
$$;

-- The tasks of a list whose holders are gone.
CREATE FUNCTION dead_in(p_list integer) RETURNS bigint[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(
        SELECT t.id FROM task t WHERE t.list = p_list AND t.until < clock_timestamp()
        UNION
        SELECT t.id FROM holders_in(p_list) AS h(id) LEFT JOIN instance i ON i.id = h.id
        JOIN task t ON t.list = p_list AND t.instance = h.id
        WHERE i.until IS NULL OR i.until < clock_timestamp()
    )
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

-- An id that is never given out again.
CREATE FUNCTION reserve_id(p_list integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7265834, p_list);
    PERFORM pg_advisory_xact_lock(7265835, p_list);
    UPDATE list SET last_id = last_id + 1 WHERE id = p_list RETURNING last_id INTO v_id;
    RETURN v_id;
END $$;

-- One change of a list, if what it was decided on still holds: the tick of the list afterwards; NULL if it does not.
CREATE FUNCTION commit_change(
    p_list      integer,
    p_seen      bigint[],       -- tasks the decision rests on, and
    p_ticks     bigint[],       -- the tick of each as it was seen; 0: there was none
    p_whole     bigint,         -- it rests on the whole list, as of this tick; NULL: it does not
    p_dead      bigint,         -- only while the holder of this task is gone; NULL: whoever holds what
    p_ids       bigint[],       -- what is written: tasks by id; NULL as the first: a new one
    p_gone      boolean[],
    p_told      boolean[],      -- whether the task itself is another one, and the log tells of it
    p_statuses  text[],
    p_owners    text[],
    p_bodies    text[],
    p_blocked   text[],         -- arrays as text, since SQL has none of different lengths
    p_priority  smallint[],
    p_offered   boolean[],
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
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7265834, p_list);
    PERFORM FROM task t WHERE t.list = p_list AND t.id = ANY (p_ids) ORDER BY t.id FOR UPDATE;
    PERFORM pg_advisory_xact_lock(7265835, p_list);
    SELECT * INTO v_list FROM list l WHERE l.id = p_list;
    SELECT c.at, c.tasks[1] INTO at, new_id FROM change c WHERE c.op = p_op;
    IF FOUND THEN  -- the same request, whose answer was lost
        tick := v_list.tick;
        RETURN;
    END IF;
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
    IF p_dead IS NOT NULL AND NOT coalesce(
        (SELECT is_dead(t.instance, t.until) FROM task t WHERE t.list = p_list AND t.id = p_dead), false
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

    INSERT INTO task AS t (list, id, tick, is_gone, status, owner, created_at, updated_at, body, blocked_by, priority,
                           is_offered, lease, losses, instance, until)
    SELECT p_list, w.id, commit_change.tick, w.gone, w.status, w.owner, commit_change.at, commit_change.at, w.body,
           w.blocked::bigint[], w.priority, w.offered, w.lease, w.losses, w.instance, v_now + w.span * interval '1 ms'
    FROM unnest(p_ids, p_gone, p_statuses, p_owners, p_bodies, p_blocked, p_priority, p_offered, p_leases, p_losses,
                p_instances, p_spans)
        AS w(id, gone, status, owner, body, blocked, priority, offered, lease, losses, instance, span)
    ON CONFLICT (list, id) DO UPDATE SET
        tick = excluded.tick, is_gone = excluded.is_gone, status = excluded.status, owner = excluded.owner,
        updated_at = CASE WHEN p_told[array_position(p_ids, t.id)] THEN excluded.updated_at ELSE t.updated_at END,
        body = excluded.body, blocked_by = excluded.blocked_by, priority = excluded.priority,
        is_offered = excluded.is_offered, lease = excluded.lease, losses = excluded.losses, instance = excluded.instance,
        until = excluded.until;

    PERFORM believed(p_instances, p_host, p_silence);

    IF true = ANY (p_told) THEN
        INSERT INTO change (list, id, at, actor, cause, via, note, op, tasks, statuses, owners, created, bodies)
        SELECT p_list, v_list.changes, commit_change.at, p_actor, p_cause, p_via, p_note, p_op, array_agg(t.id ORDER BY w.n),
               array_agg(CASE WHEN t.is_gone THEN NULL ELSE t.status END ORDER BY w.n), array_agg(t.owner ORDER BY w.n),
               array_agg(t.created_at ORDER BY w.n), array_agg(t.body ORDER BY w.n)
        FROM unnest(p_ids, p_told) WITH ORDINALITY AS w(id, told, n) JOIN task t ON t.list = p_list AND t.id = w.id
        WHERE w.told;
        v_list.changes := v_list.changes + 1;
        v_list.changed_at := at;
    END IF;

    UPDATE list l SET tick = commit_change.tick, changes = v_list.changes, changed_at = v_list.changed_at,
        last_id = greatest(v_list.last_id, (SELECT max(n) FROM unnest(p_ids) AS n))
    WHERE l.id = p_list;
    PERFORM pg_notify('list_' || p_list, commit_change.tick::text);
END $$;

-- Holders are believed to live from now on for a while longer.
CREATE FUNCTION believed(p_instances text[], p_host text, p_silence bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_until timestamptz := clock_timestamp() + p_silence * interval '1 ms';
    v_id    text;
BEGIN
    FOREACH v_id IN ARRAY p_instances LOOP
        CONTINUE WHEN v_id IS NULL;
        INSERT INTO instance AS i (id, host, until) VALUES (v_id, p_host, v_until)
        ON CONFLICT (id) DO UPDATE SET until = greatest(i.until, excluded.until);
    END LOOP;
END $$;

-- A new task that depends on nothing. One that is sent again fails by `change_by_op`: see `came_of`.
CREATE FUNCTION add_task(
    p_list      integer,
    p_status    text,
    p_owner     text,
    p_body      text,
    p_priority  smallint,
    p_offered   boolean,
    p_lease     text,
    p_instance  text,
    p_span      bigint,
    p_host      text,
    p_silence   bigint,
    p_actor     text,
    p_cause     text,
    p_via       text,
    p_note      text,
    p_op        uuid,
    OUT new_id  bigint,
    OUT at      bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    v_tick   bigint;
    v_change bigint;
    v_now    timestamptz;
BEGIN
    IF pg_advisory_xact_lock_shared(7265834, p_list) IS NULL OR pg_advisory_xact_lock(7265835, p_list) IS NULL THEN
    END IF;
    v_now := clock_timestamp();
    at := floor(extract(epoch FROM v_now) * 1000);
    UPDATE list l SET tick = tick + 1, changes = changes + 1, last_id = last_id + 1, changed_at = add_task.at
    WHERE l.id = p_list RETURNING l.last_id, l.tick, l.changes - 1 INTO new_id, v_tick, v_change;
    INSERT INTO change (list, id, at, actor, cause, via, note, op, tasks, statuses, owners, created, bodies)
    VALUES (p_list, v_change, add_task.at, p_actor, p_cause, p_via, p_note, p_op, ARRAY[new_id], ARRAY[p_status],
            ARRAY[p_owner], ARRAY[add_task.at], ARRAY[p_body]);
    INSERT INTO task (list, id, tick, is_gone, status, owner, created_at, updated_at, body, blocked_by, priority, is_offered,
                      lease, losses, instance, until)
    VALUES (p_list, new_id, v_tick, false, p_status, p_owner, add_task.at, add_task.at, p_body, '{}', p_priority, p_offered,
            p_lease, 0, p_instance, v_now + p_span * interval '1 ms');
    IF p_instance IS NOT NULL THEN
        PERFORM believed(ARRAY[p_instance], p_host, p_silence);
    END IF;
    IF pg_notify('list_' || p_list, v_tick::text) IS NULL THEN
    END IF;
END $$;

-- The first task that is offered and waits for none is somebody's from now on; `id` is NULL if there is none. A claim that
-- is sent again fails by `change_by_op`: see `came_of`.
CREATE FUNCTION claim_first(
    p_list         integer,
    p_status       text,
    p_owner        text,
    p_lease        text,
    p_instance     text,
    p_span         bigint,
    p_host         text,
    p_silence      bigint,
    p_actor        text,
    p_cause        text,
    p_via          text,
    p_note         text,
    p_op           uuid,
    OUT id         bigint,
    OUT created_at bigint,
    OUT at         bigint,
    OUT body       text
)
LANGUAGE plpgsql AS $$
DECLARE
    v_blocked bigint[];
    v_tick    bigint;
    v_change  bigint;
    v_now     timestamptz;
    v_until   timestamptz;
BEGIN
    IF pg_advisory_xact_lock_shared(7265834, p_list) IS NULL THEN
    END IF;
    LOOP
        -- The task first, then the right to write: whoever waits for that has a task of its own already.
        SELECT t.id, t.created_at, t.body, t.blocked_by INTO id, created_at, body, v_blocked FROM task t
        WHERE t.list = p_list AND t.is_offered AND (t.blocked_by = '{}' OR NOT EXISTS (
            SELECT FROM task b
            WHERE b.list = p_list AND b.id = ANY (t.blocked_by) AND NOT b.is_gone AND b.status <> 'completed'
        ))
        ORDER BY t.priority, t.id LIMIT 1 FOR UPDATE OF t SKIP LOCKED;
        IF id IS NULL THEN  -- unless it was sent again, and took the last
            SELECT c.tasks[1], c.created[1], c.at, c.bodies[1] INTO id, created_at, at, body FROM change c WHERE c.op = p_op;
            RETURN;
        END IF;
        IF pg_advisory_xact_lock(7265835, p_list) IS NULL THEN
        END IF;
        -- What it waits for may have been opened again before we could write; from now on it cannot.
        EXIT WHEN v_blocked = '{}' OR NOT EXISTS (
            SELECT FROM task b
            WHERE b.list = p_list AND b.id = ANY (v_blocked) AND NOT b.is_gone AND b.status <> 'completed'
        );
    END LOOP;
    v_now := clock_timestamp();
    at := floor(extract(epoch FROM v_now) * 1000);
    UPDATE list l SET tick = tick + 1, changes = changes + 1, changed_at = claim_first.at WHERE l.id = p_list
    RETURNING l.tick, l.changes - 1, (SELECT i.until FROM instance i WHERE i.id = p_instance)
    INTO v_tick, v_change, v_until;
    UPDATE task t SET tick = v_tick, status = p_status, owner = p_owner, updated_at = claim_first.at,
        is_offered = false, lease = p_lease, instance = p_instance, until = v_now + p_span * interval '1 ms'
    WHERE t.list = p_list AND t.id = claim_first.id;
    INSERT INTO change (list, id, at, actor, cause, via, note, op, tasks, statuses, owners, created, bodies)
    VALUES (p_list, v_change, claim_first.at, p_actor, p_cause, p_via, p_note, p_op, ARRAY[claim_first.id],
            ARRAY[p_status], ARRAY[p_owner], ARRAY[claim_first.created_at], ARRAY[claim_first.body]);
    IF p_instance IS NOT NULL AND coalesce(v_until < v_now + p_silence * interval '0.5 ms', true) THEN
        PERFORM believed(ARRAY[p_instance], p_host, p_silence);
    END IF;
    IF pg_notify('list_' || p_list, v_tick::text) IS NULL THEN
    END IF;
END $$;
