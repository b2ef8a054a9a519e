-- Shared lists: tasks, who holds them, and the log of every change.
--
-- Every write to a list goes through a function below, which holds the list's row until its statement is done. So the
-- writes of one list happen one after the other, in the order of `tick`, and whoever has seen tick N has seen all before
-- it. Locks are taken in one order: the list's advisory lock (shared), tasks by ascending id, the list's row. Whoever must
-- decide while nobody else writes takes the advisory lock for itself first. Every time is this server's.

CREATE TABLE list (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    last_id     bigint NOT NULL DEFAULT 0,  -- the highest id of a task that was ever given out
    tick        bigint NOT NULL DEFAULT 0,  -- grows with every write
    changes     bigint NOT NULL DEFAULT 0,  -- the id of the next change in the log
    changed_at  bigint                      -- epoch ms
) WITH (fillfactor = 50);

CREATE TABLE task (
    list        integer NOT NULL REFERENCES list ON DELETE CASCADE,
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
    PRIMARY KEY (list, id)
) WITH (fillfactor = 80);

CREATE INDEX task_by_tick ON task (list, tick);
CREATE INDEX task_by_end ON task (list, until) WHERE until IS NOT NULL;
CREATE INDEX task_by_instance ON task (list, instance) WHERE instance IS NOT NULL;

CREATE TABLE change (
    list        integer NOT NULL REFERENCES list ON DELETE CASCADE,
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

-- The class of the advisory locks of lists.
CREATE FUNCTION lists_class() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 7265834';

-- Whether the holder of a task is gone.
CREATE FUNCTION is_dead(p_instance text, p_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_until < clock_timestamp(), false)
        OR (p_instance IS NOT NULL
            AND NOT EXISTS (SELECT FROM instance i WHERE i.id = p_instance AND i.until >= clock_timestamp()))
$$;

-- The tasks of a list whose holders are gone.
CREATE FUNCTION dead_in(p_list integer) RETURNS bigint[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(
        SELECT t.id FROM task t WHERE t.list = p_list AND t.until < clock_timestamp()
        UNION
        SELECT t.id FROM task t LEFT JOIN instance i ON i.id = t.instance
        WHERE t.list = p_list AND t.instance IS NOT NULL AND (i.until IS NULL OR i.until < clock_timestamp())
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
    PERFORM pg_advisory_xact_lock_shared(lists_class(), p_list);
    PERFORM FROM task t WHERE t.list = p_list AND t.id = ANY (p_ids) ORDER BY t.id FOR UPDATE;
    SELECT * INTO v_list FROM list l WHERE l.id = p_list FOR UPDATE;
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

    INSERT INTO task AS t (list, id, tick, is_gone, status, owner, created_at, updated_at, body, blocked_by, lease, losses,
                           instance, until)
    SELECT p_list, w.id, commit_change.tick, w.gone, w.status, w.owner, commit_change.at, commit_change.at, w.body,
           w.blocked::bigint[], w.lease, w.losses, w.instance, v_now + w.span * interval '1 ms'
    FROM unnest(p_ids, p_gone, p_statuses, p_owners, p_bodies, p_blocked, p_leases, p_losses, p_instances, p_spans)
        AS w(id, gone, status, owner, body, blocked, lease, losses, instance, span)
    ON CONFLICT (list, id) DO UPDATE SET
        tick = excluded.tick, is_gone = excluded.is_gone, status = excluded.status, owner = excluded.owner,
        updated_at = CASE WHEN p_told[array_position(p_ids, t.id)] THEN excluded.updated_at ELSE t.updated_at END,
        body = excluded.body, blocked_by = excluded.blocked_by, lease = excluded.lease, losses = excluded.losses,
        instance = excluded.instance, until = excluded.until;

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

-- Holders are believed to live from now on for a while longer; who was heard of just now is not written down again.
CREATE FUNCTION believed(p_instances text[], p_host text, p_silence bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_until  timestamptz := clock_timestamp() + p_silence * interval '1 ms';
    v_enough timestamptz := v_until - p_silence * interval '0.1 ms';
    v_id     text;
BEGIN
    FOREACH v_id IN ARRAY p_instances LOOP
        CONTINUE WHEN v_id IS NULL OR EXISTS (SELECT FROM instance i WHERE i.id = v_id AND i.until > v_enough);
        INSERT INTO instance AS i (id, host, until) VALUES (v_id, p_host, v_until)
        ON CONFLICT (id) DO UPDATE SET until = greatest(i.until, excluded.until);
    END LOOP;
END $$;

-- A new task that depends on nothing.
CREATE FUNCTION add_task(
    p_list      integer,
    p_status    text,
    p_owner     text,
    p_body      text,
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
    PERFORM pg_advisory_xact_lock_shared(lists_class(), p_list);
    SELECT c.at, c.tasks[1] INTO at, new_id FROM change c WHERE c.op = p_op;
    IF FOUND THEN  -- the same request, whose answer was lost
        RETURN;
    END IF;
    UPDATE list l SET tick = tick + 1, changes = changes + 1, last_id = last_id + 1,
        changed_at = floor(extract(epoch FROM clock_timestamp()) * 1000)
    WHERE l.id = p_list RETURNING l.last_id, l.changed_at, l.tick, l.changes - 1 INTO new_id, at, v_tick, v_change;
    v_now := clock_timestamp();
    INSERT INTO change (list, id, at, actor, cause, via, note, op, tasks, statuses, owners, created, bodies)
    VALUES (p_list, v_change, add_task.at, p_actor, p_cause, p_via, p_note, p_op, ARRAY[new_id], ARRAY[p_status],
            ARRAY[p_owner], ARRAY[add_task.at], ARRAY[p_body]);
    INSERT INTO task (list, id, tick, is_gone, status, owner, created_at, updated_at, body, blocked_by, lease, losses,
                      instance, until)
    VALUES (p_list, new_id, v_tick, false, p_status, p_owner, add_task.at, add_task.at, p_body, '{}', p_lease, 0, p_instance,
            v_now + p_span * interval '1 ms');
    IF p_instance IS NOT NULL THEN
        PERFORM believed(ARRAY[p_instance], p_host, p_silence);
    END IF;
    PERFORM pg_notify('list_' || p_list, v_tick::text);
END $$;

-- The first of several free tasks that is still free is somebody's from now on; which, and which were passed over because
-- others have them by now. NULL: none is free any more; or `is_old`: something happened since the tick of the look that
-- may have made another task the first, or the first that is free is another than it was seen.
CREATE FUNCTION claim_first(
    p_list      integer,
    p_since     bigint,         -- the tick of the look that the choice rests on
    p_ids       bigint[],       -- in the order of choice
    p_seen      bigint[],       -- tasks the decisions rest on,
    p_ticks     bigint[],       -- the tick of each as it was seen, and
    p_of        bigint[],       -- about whom
    p_status    text,
    p_owner     text,
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
    OUT id      bigint,
    OUT at      bigint,
    OUT passed  bigint[],
    OUT is_old  boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    v_list   list%ROWTYPE;
    v_task   task%ROWTYPE;
    v_id     bigint;
    v_now    timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(lists_class(), p_list);
    is_old := false;
    passed := '{}';
    SELECT c.at, c.tasks[1] INTO at, id FROM change c WHERE c.op = p_op;
    IF FOUND THEN  -- the same request, whose answer was lost
        RETURN;
    END IF;
    -- The task first, then the list: whoever waits for the list has a task of its own already.
    FOREACH v_id IN ARRAY p_ids LOOP
        SELECT * INTO v_task FROM task t WHERE t.list = p_list AND t.id = v_id FOR UPDATE SKIP LOCKED;
        EXIT WHEN FOUND AND NOT v_task.is_gone AND v_task.owner IS NULL AND v_task.status = 'pending';
        passed := passed || v_id;
        v_id := NULL;
    END LOOP;
    IF v_id IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO v_list FROM list l WHERE l.id = p_list FOR UPDATE;
    -- A task that somebody else began is of no interest; one that is free again, new, done or gone may change the order.
    is_old := v_list.tick > p_since AND EXISTS (
        SELECT FROM task t WHERE t.list = p_list AND t.tick > p_since
            AND (t.is_gone OR t.owner IS NULL OR t.status = 'completed')
    ) OR EXISTS (
        SELECT FROM unnest(p_seen, p_ticks, p_of) AS s(id, tick, about)
        LEFT JOIN task t ON t.list = p_list AND t.id = s.id
        WHERE s.about = v_id AND coalesce(t.tick, 0) <> s.tick
    );
    IF is_old THEN
        RETURN;
    END IF;
    v_now := clock_timestamp();
    id := v_id;
    at := floor(extract(epoch FROM v_now) * 1000);
    UPDATE task t SET tick = v_list.tick + 1, status = p_status, owner = p_owner, updated_at = claim_first.at,
        lease = p_lease, instance = p_instance, until = v_now + p_span * interval '1 ms'
    WHERE t.list = p_list AND t.id = v_id;
    INSERT INTO change (list, id, at, actor, cause, via, note, op, tasks, statuses, owners, created, bodies)
    VALUES (p_list, v_list.changes, claim_first.at, p_actor, p_cause, p_via, p_note, p_op, ARRAY[v_id], ARRAY[p_status],
            ARRAY[p_owner], ARRAY[v_task.created_at], ARRAY[v_task.body]);
    UPDATE list l SET tick = v_list.tick + 1, changes = v_list.changes + 1, changed_at = claim_first.at WHERE l.id = p_list;
    PERFORM believed(ARRAY[p_instance], p_host, p_silence);
    PERFORM pg_notify('list_' || p_list, (v_list.tick + 1)::text);
END $$;
